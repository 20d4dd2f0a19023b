//! No process of a server survives it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::servers_under_test::{TestServers, is_running, wait_until};

#[tokio::test]
async fn a_server_and_its_children_end_with_their_owner() {
    let test = TestServers::misbehaving("handshake", "");
    let server = test.call("mcp.s.pid", json!({})).await.unwrap();
    let child = test.call("mcp.s.child", json!({})).await.unwrap();
    assert!(is_running(&server) && is_running(&child));
    let TestServers { servers, directory } = test;
    drop(servers);
    assert!(!is_running(&server) && !is_running(&child));
    // It could end by itself.
    assert!(std::fs::read_to_string(directory.path().join("log")).unwrap().contains("input ended"));
}

#[tokio::test]
async fn a_server_that_ignores_everything_is_killed() {
    let test = TestServers::misbehaving("stubborn", "");
    let server = test.call("mcp.s.pid", json!({})).await.unwrap();
    test.wait_for("stubborn").await;
    let log = test.log();
    let shell = log.lines().find_map(|line| line.strip_prefix("stubborn ")).unwrap();
    let shell = Value::String(shell.to_owned());
    let started = Instant::now();
    drop(test.servers);
    assert!(!is_running(&server) && !is_running(&shell));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[tokio::test]
async fn the_children_of_a_server_that_ended_are_ended() {
    let test = TestServers::misbehaving("handshake", "");
    let child = test.call("mcp.s.child", json!({})).await.unwrap();
    assert!(test.call("mcp.s.die", json!({})).await.is_err());
    wait_until("the child ended", || !is_running(&child)).await;
}

#[tokio::test]
async fn a_start_that_hangs_does_not_delay_the_end() {
    let test = TestServers::misbehaving("silent", "");
    tokio::select! {
        result = test.call("mcp.s.pid", json!({})) => panic!("{result:?}"),
        () = test.wait_for("handshake ignored") => {}
    }
    let log = test.log();
    let server = Value::String(log.lines().find_map(|line| line.strip_prefix("started ")).unwrap().to_owned());
    let started = Instant::now();
    drop(test.servers);
    assert!(started.elapsed() < Duration::from_secs(5));
    // It was killed; its threads take a moment to end.
    wait_until("the server ended", || !is_running(&server)).await;
}

#[tokio::test]
async fn a_call_that_hangs_does_not_delay_the_end() {
    let test = TestServers::misbehaving("handshake", "");
    tokio::select! {
        result = test.call("mcp.s.hang", json!({})) => panic!("{result:?}"),
        () = test.wait_for("call hang") => {}
    }
    let started = Instant::now();
    drop(test.servers);
    assert!(started.elapsed() < Duration::from_secs(5));
}
