//! Monitors when each answer is given to a process of its own (docs/monitors.md).

use serde_json::json;

use crate::process::Home;
use crate::session_output::journal;

const SCRIPT: &str = "
session:
  session_id: s
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: 好吗？, max_rounds: 4 } }
";

#[test]
fn a_process_whose_input_ends_waits_for_the_monitor_of_its_last_answer() {
    let home = Home::new();
    home.file("script.yaml", SCRIPT);
    let round =
        |content: &str, mood: &str| json!({ "content": content, "EXIT": "NO", "metrics": { "user_engagement": mood } });
    let replies = json!({
        "ask": [round("一？", ""), round("二？", "冷"), round("三？", "更冷")],
        "monitor:ask": [{ "$after_ms": 300, "reply": { "feedback_for_action": "慢一点" } }, { "feedback_for_action": null }],
    });
    home.file("replies.json", &json!({ "replies": replies }).to_string());
    let model = "replay:replies.json";
    let begun = home.finish(["run", "script.yaml", "--session", "s", "--model", model], "嗯\n");
    assert_eq!((begun.code, begun.out.lines().last()), (Some(3), Some("二？")), "{begun:?}");
    let calls = || {
        let events = journal(&home, "s");
        let of =
            |kind: &str| events.iter().filter(|event| event["type"] == kind && event["purpose"] != "action").count();
        (of("model_call"), of("monitor_feedback"))
    };
    assert_eq!(calls(), (1, 1), "the call is counted, and its advice is stored");
    let resumed = home.finish(["sessions", "resume", "s", "--model", model], "还行\n");
    assert_eq!(resumed.code, Some(3), "{resumed:?}");
    // The second analysis, and the use of the first one.
    assert_eq!(calls(), (2, 3));
}
