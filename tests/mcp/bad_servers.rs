//! Servers that hang, end, shout, or change their tools.

use std::time::Duration;

use bcc_runtime::effects::tools::ToolLimits;
use serde_json::json;

use crate::servers_under_test::{SeenProgress, TestServers, is_running, wait_until};

fn short() -> ToolLimits {
    ToolLimits { timeout: Duration::from_millis(300), ..ToolLimits::default() }
}

#[tokio::test]
async fn a_call_that_hangs_times_out_and_is_cancelled() {
    for mode in ["handshake", "newest"] {
        let test = TestServers::misbehaving(mode, "");
        let error = test.call_limited("mcp.s.hang", json!({}), short()).await.unwrap_err();
        assert_eq!(error, "the tool `mcp.s.hang` gave no result in time");
        test.wait_for("cancelled").await;
        // The same server goes on.
        assert_eq!(test.call("mcp.s.number", json!({ "n": 1 })).await, Ok(json!("number {\"n\":1}")));
        assert_eq!(test.log().matches("started").count(), 1, "{}", test.log());
    }
}

#[tokio::test]
async fn the_limit_of_the_configuration_counts_as_well() {
    let test = TestServers::misbehaving("handshake", "timeout = \"300ms\"\n");
    let error = test.call("mcp.s.hang", json!({})).await.unwrap_err();
    assert!(error.contains("no result in time"), "{error}");
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled() {
    let test = TestServers::misbehaving("handshake", "");
    let call = test.call("mcp.s.hang", json!({}));
    tokio::select! {
        result = call => panic!("{result:?}"),
        () = test.wait_for("call hang") => {}
    }
    test.wait_for("cancelled").await;
}

#[tokio::test]
async fn a_server_that_ends_in_a_call_is_a_failure_and_the_call_is_not_repeated() {
    let test = TestServers::misbehaving("handshake", "");
    let error = test.call("mcp.s.die", json!({})).await.unwrap_err();
    let expected = "the tool `mcp.s.die` failed: the program ended with exit code 3; the call was not repeated, and what it did is not known";
    assert_eq!(error, expected);
    assert_eq!(test.log().matches("call die").count(), 1);
    // Between two calls, it is started again.
    assert_eq!(test.call("mcp.s.number", json!({ "n": 2 })).await, Ok(json!("number {\"n\":2}")));
    assert_eq!(test.log().matches("started").count(), 2);
}

#[tokio::test]
async fn a_server_that_was_killed_between_two_calls_is_started_once_more() {
    let test = TestServers::misbehaving("handshake", "");
    let first = test.call("mcp.s.pid", json!({})).await.unwrap();
    assert_eq!(test.call("mcp.s.late_answer", json!({})).await, Ok(json!("bye")));
    wait_until("it ended", || !is_running(&first)).await;
    let second = test.call("mcp.s.pid", json!({})).await.unwrap();
    assert_ne!(first, second);
    assert_eq!(test.log().matches("started").count(), 2);
}

#[tokio::test]
async fn a_message_without_end_closes_the_connection() {
    let test = TestServers::misbehaving("handshake", "");
    for tool in ["mcp.s.shout", "mcp.s.huge"] {
        let error = test.call(tool, json!({})).await.unwrap_err();
        assert!(error.contains("sent a message of more than 16777216 bytes"), "{error}");
        assert!(test.call("mcp.s.pid", json!({})).await.is_ok());
    }
    let error = TestServers::misbehaving("shouting", "").call("mcp.s.pid", json!({})).await.unwrap_err();
    assert!(error.starts_with("the tool `mcp.s.pid` cannot be used: "), "{error}");
}

#[tokio::test]
async fn a_large_result_is_cut() {
    let test = TestServers::misbehaving("handshake", "");
    let limits = ToolLimits { max_bytes: 1_000, ..ToolLimits::default() };
    let output = test.try_call("mcp.s.big", &json!({}), limits, &SeenProgress::default()).await.unwrap();
    assert!(output.is_truncated && (990..=1_000).contains(&output.value.to_string().len()));
}

#[tokio::test]
async fn a_server_that_does_not_start_is_an_error_of_its_tools() {
    for (mode, limit, part) in [
        ("silent", "500ms", "did not list its tools within 0.5 s"),
        ("broken", "30s", "the connection was closed before the server introduced itself"),
    ] {
        let test = TestServers::misbehaving(mode, &format!("start_timeout = \"{limit}\"\n"));
        let (tools, errors) = test.describe("mcp.*").await;
        assert!(tools.is_empty() && errors.len() == 1 && errors[0].contains(part), "{mode}: {errors:?}");
        assert!(test.call("mcp.s.pid", json!({})).await.unwrap_err().contains(part));
    }
    let test = TestServers::configured("[mcp_servers.s]\ncommand = [\"no-such-program\"]\n");
    let error = test.call("mcp.s.pid", json!({})).await.unwrap_err();
    assert!(error.contains("the program `no-such-program` was not found; install it"), "{error}");
    let test = TestServers::configured("[mcp_servers.s]\nurl = \"http://127.0.0.1:1/mcp?key=secret\"\n");
    let error = test.call("mcp.s.pid", json!({})).await.unwrap_err();
    assert!(error.contains("cannot be reached") && !error.contains("secret"), "{error}");
}

#[tokio::test]
async fn an_old_server_that_ends_at_an_unknown_request_is_started_for_the_older_protocol() {
    let test = TestServers::misbehaving("brittle", "");
    assert!(test.call("mcp.s.pid", json!({})).await.is_ok());
    assert!(test.log().contains("version 2025-11-25"), "{}", test.log());
}

#[tokio::test]
async fn a_change_of_tools_is_noticed_before_the_next_call() {
    for mode in ["handshake", "newest"] {
        let test = TestServers::misbehaving(mode, "");
        assert!(test.names().await.contains(&"mcp.s.old".to_owned()));
        // The client of the newest protocol asks for announcements beside the first calls.
        assert_eq!(test.call("mcp.s.number", json!({ "n": 1 })).await, Ok(json!("number {\"n\":1}")));
        assert_eq!(test.call("mcp.s.change", json!({})).await, Ok(json!("changed")));
        let error = test.call("mcp.s.old", json!({})).await.unwrap_err();
        assert!(error.ends_with("the server `s` does not have this tool, or no longer"), "{mode}: {error}");
        assert!(!test.log().contains("call old"));
        // The schema is the newest one.
        let error = test.call("mcp.s.number", json!({ "n": 1 })).await.unwrap_err();
        assert!(error.starts_with("the arguments for `mcp.s.number` are not valid: /n"), "{error}");
        assert_eq!(test.call("mcp.s.number", json!({ "n": "1" })).await, Ok(json!("number {\"n\":\"1\"}")));
        let names = test.names().await;
        assert!(names.contains(&"mcp.s.new".to_owned()) && !names.contains(&"mcp.s.old".to_owned()));
    }
}

#[tokio::test]
async fn a_tool_that_vanished_without_an_announcement_is_reported() {
    let test = TestServers::misbehaving("handshake", "");
    assert_eq!(test.call("mcp.s.vanish", json!({})).await, Ok(json!("vanished")));
    let error = test.call("mcp.s.old", json!({})).await.unwrap_err();
    assert!(error.ends_with("the server `s` does not have this tool, or no longer"), "{error}");
    assert!(!test.names().await.contains(&"mcp.s.old".to_owned()));
}

#[tokio::test]
async fn errors_of_a_server_are_failures_with_harmless_texts() {
    let test = TestServers::misbehaving("handshake", "");
    for (tool, expected) in [
        ("mcp.s.fail", "the tool `mcp.s.fail` failed: no luck"),
        ("mcp.s.refuse", "the tool `mcp.s.refuse` failed: not[2J today"),
        ("mcp.s.wrong", "the tool `mcp.s.wrong` failed: the server answered with something that is not a result"),
    ] {
        assert_eq!(test.call(tool, json!({})).await, Err(expected.to_owned()));
    }
}

#[tokio::test]
async fn an_answer_that_is_not_json_fails_its_call_at_once() {
    for mode in ["handshake", "newest"] {
        let test = TestServers::misbehaving(mode, "");
        for how in ["half", "latin", "nan", "deep", "large"] {
            let error = test.call("mcp.s.garble", json!({ "how": how })).await.unwrap_err();
            assert!(error.starts_with("the tool `mcp.s.garble` failed: "), "{how}: {error}");
            assert!(
                error.contains("something that is not a result;") && error.contains("what it did is not known"),
                "{how}: {error}"
            );
        }
        // Only its call fails.
        assert!(test.call("mcp.s.pid", json!({})).await.is_ok());
    }
}

#[tokio::test]
async fn progress_reaches_the_caller() {
    for mode in ["handshake", "newest"] {
        let test = TestServers::misbehaving(mode, "");
        let seen = SeenProgress::default();
        test.try_call("mcp.s.progress", &json!({}), ToolLimits::default(), &seen).await.unwrap();
        assert_eq!(*seen.0.lock().unwrap(), [(1.0, Some(3.0)), (2.0, Some(3.0)), (3.0, Some(3.0))]);
    }
}

#[tokio::test]
async fn calls_of_one_server_run_at_the_same_time() {
    let test = TestServers::misbehaving("handshake", "");
    let (hanging, quick) = tokio::join!(
        test.call_limited("mcp.s.hang", json!({}), short()),
        test.call("mcp.s.number", json!({ "n": 1 })),
    );
    assert!(hanging.is_err() && quick.is_ok());
    assert_eq!(test.log().matches("started").count(), 1);
}
