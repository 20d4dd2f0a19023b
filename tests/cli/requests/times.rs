//! Times of requests: how lists show them, and what `tick` and the commands of decisions make of waits.

use serde_json::Value;

use super::{call, plain, requests, run, status};
use crate::process::{Finished, Home, finished};
use crate::session_output::journal;
use bcc_engine::clock::{now, stamp};

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
fn tick_leaves_a_stopped_session_alone_although_a_branch_waits_for_a_time_that_has_come() {
    let home = Home::new();
    let script = "
session:
  session_id: w
  budget: { turns: 3 }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: parallel
              action_id: both
              config:
                branches:
                  - id: a
                    actions:
                      - { action_type: set, action_id: a1, config: { values: { x: 1 } } }
                      - { action_type: set, action_id: a2, config: { values: { x: 2 } } }
                      - { action_type: set, action_id: a3, config: { values: { x: 3 } } }
                      - { action_type: set, action_id: a4, config: { values: { x: 4 } } }
                  - { id: b, actions: [{ action_type: wait, action_id: rest, config: { for: 200ms } }] }
";
    assert_eq!(run(&home, script, "").code, 3);
    assert_eq!(status(&home), "stopped");
    let due = requests(&home)[0]["due_at"].as_str().unwrap().to_owned();
    let has_come = std::iter::repeat_with(now).find(|now| stamp(*now) > due);
    assert!(has_come.is_some());
    let before = journal(&home, "s").len();
    let tick = call(&home, "tick");
    assert_eq!((tick.code, tick.stdout.as_str(), journal(&home, "s").len()), (0, "", before), "{tick:?}");
    assert_eq!(call(&home, "sessions resume s --budget turns=20").code, 0);
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

#[test]
fn a_decision_about_a_time_or_an_unknown_request_is_told_what_is_open() {
    let home = Home::new();
    let script = "
session:
  session_id: w
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: parallel
              action_id: all
              config:
                branches:
                  - { id: a, actions: [{ action_type: approval, action_id: ask_a, config: { prompt: 'A?' } }] }
                  - { id: b, actions: [{ action_type: approval, action_id: ask_b, config: { prompt: 'B?' } }] }
                  - { id: c, actions: [{ action_type: wait, action_id: rest, config: { for: 1h } }] }
";
    run(&home, script, "");
    let open = requests(&home);
    let id = |name: &str, value: &str| {
        let found = open.iter().find(|request| request[name] == value);
        found.unwrap()["request_id"].as_str().unwrap().to_owned()
    };
    let (a, b, time) = (id("prompt", "A?"), id("prompt", "B?"), id("kind", "time"));
    let both = format!("open are `{a}`, `{b}`");
    for (request, expected) in [
        (time.as_str(), format!("the request `{time}` waits for a time, not for a person")),
        ("r999", "has no request `r999`".to_owned()),
    ] {
        let refused = call(&home, &format!("approve s/{request}"));
        let said = &refused.stderr;
        assert!(refused.code == 2 && said.contains(&expected) && said.contains(&both), "{request}: {refused:?}");
    }
    assert_eq!(call(&home, &format!("approve s/{a}")).code, 0);
    let refused = call(&home, "approve s/r999");
    assert!(refused.stderr.contains(&format!("the open request is `{b}`")), "{refused:?}");
}
