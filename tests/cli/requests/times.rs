//! Times of requests: how lists show them, and what `tick` and the commands of decisions make of waits.

use serde_json::Value;

use super::{call, plain, requests, run, status};
use crate::process::{Finished, Home, finished};
use crate::session_output::journal;

/// A command in this time zone.
fn in_zone(home: &Home, zone: &str, line: &str) -> Finished {
    let mut command = home.command(line.split(' '));
    command.env("TZ", zone);
    finished(command, "")
}

#[test]
fn lists_show_times_in_the_zone_of_the_machine_with_its_offset() {
    let home = Home::new();
    run(&home, &plain("prompt: x, approvers: [a], timeout: 2h"), "");
    let opened = requests(&home)[0]["opened_at"].as_str().unwrap().to_owned();
    let day = opened[..10].to_owned();
    for (zone, offset) in [("UTC", "+00:00"), ("CST-8", "+08:00"), ("EST5", "-05:00")] {
        let shown = in_zone(&home, zone, "requests list").out;
        assert_eq!(shown.matches(&format!("(UTC{offset})")).count(), 2, "{zone}: {shown}");
        let listed = in_zone(&home, zone, "sessions list").out;
        assert_eq!(listed.matches(&format!("(UTC{offset})")).count(), 1, "{zone}: {listed}");
        let same_time = shown.contains(&opened[..16].replace('T', " "));
        assert_eq!(same_time, zone == "UTC", "{zone}: {opened} in {shown}");
        assert!(zone != "UTC" || listed.contains(&day), "{listed}");
        // JSON keeps the times of the store.
        let json: Value = serde_json::from_str(&in_zone(&home, zone, "requests list --json").out).unwrap();
        assert_eq!(json["requests"][0]["opened_at"], opened.as_str());
    }
}

#[test]
fn the_end_of_a_wait_is_no_decision() {
    let home = Home::new();
    let script = plain("prompt: x").replace(
        "- { action_type: approval, action_id: ask, config: { prompt: x } }",
        "- { action_type: wait, action_id: first, config: { for: 50ms } }\n            \
         - { action_type: wait, action_id: second, config: { for: 2h } }",
    );
    assert_eq!(run(&home, &script, "").code, 3);
    assert_eq!(status(&home), "waiting_time");
    let answered = journal(&home, "s").into_iter().find(|event| event["type"] == "request_answered").unwrap();
    let refused = call(&home, "approve s");
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("waits for no decision: its status is `waiting_time`"), "{}", refused.stderr);
    let id = answered["request_id"].as_str().unwrap();
    let named = call(&home, &format!("approve s/{id}"));
    assert!(
        named.code == 2 && named.stderr.contains(&format!("the request `{id}` was a wait, which ended at")),
        "{named:?}"
    );
}
