//! Tests of the trace, event by event.

use serde_json::{Value, json};

use crate::cli::commands::trace::{times, trace};
use bcc_lang::value::exact::ExactValue;

fn exact(events: &[Value]) -> Vec<ExactValue> {
    events.iter().map(|event| event.clone().into()).collect()
}

fn told(events: &[Value]) -> String {
    trace(&exact(events), false).join("\n")
}

#[test]
fn a_blocked_turn_is_told_with_its_reason_its_route_and_what_was_inserted() {
    let at = json!({ "topic_id": "t", "action_id": "ask", "round": 1, "path": "t/ask" });
    let inside = json!({ "topic_id": "t", "action_id": "say", "path": "t/ask/comfort/say" });
    let events = [
        json!({ "type": "message", "role": "user", "text": "我说不出来", "location": at }),
        json!({ "type": "model_call", "purpose": "action", "attempts": 3, "location": at, "bent": [
            { "path": "/EXIT", "bending": "coerced", "expected": "string", "found": "boolean" } ] }),
        json!({ "type": "outcome", "action_type": "ai_ask", "completed": false, "exit_reason": "user_blocked",
            "progress_suggestion": "blocked", "metrics": { "user_engagement": "很低" }, "location": at,
            "metadata": { "current_round": 1, "max_rounds": 3, "parse_retry_count": 2 } }),
        json!({ "type": "routed", "reason": "user_blocked", "route": "insert: comfort, then: resume", "from": "ask",
            "why": "on_exit of the action `ask`", "location": at }),
        json!({ "type": "action_started", "name": "ai_say", "location": inside }),
        json!({ "type": "skipped", "name": "extra", "why": "its condition does not hold: a == 1", "location": inside }),
        json!({ "type": "triggered", "reason": "crisis", "route": "insert: help, then: resume", "why": "`when` holds: x" }),
    ];
    insta::assert_snapshot!(told(&events));
}

#[test]
fn repeated_requests_and_repairs_of_a_reply_are_shown() {
    let at = json!({ "action_id": "ask", "round": 1, "path": "t/ask" });
    let events = [
        json!({ "type": "model_call", "purpose": "action", "attempts": 1, "location": at, "error": "the reply could not be read",
            "parse_retry_count": 3 }),
        json!({ "type": "warning", "code": "reply-refused", "message": "a reply could not be used", "location": at }),
        json!({ "type": "model_call", "purpose": "action", "attempts": 1, "location": at, "reask": 2, "parse_retry_count": 4,
            "repairs": [{ "kind": "trailing_comma", "at": 5 }, { "kind": "trailing_comma", "at": 9 }] }),
        json!({ "type": "outcome", "action_type": "ai_think", "completed": true, "location": at,
            "metadata": { "parse_retry_count": 4 } }),
    ];
    let lines = told(&events);
    for part in [
        "warning      a reply could not be used",
        "asked again  the model was asked again twice for this turn",
        "repaired     the reply was near-JSON and was repaired in several places: trailing_comma",
        "reply read   by strategy 4 (repair_json)",
    ] {
        assert!(lines.contains(part), "{part}: {lines}");
    }
}

#[test]
fn a_reply_that_could_not_be_read_is_told_with_what_was_tried_and_raw_only_when_asked_for() {
    let events = [json!({
        "type": "outcome", "completed": false, "exit_reason": null, "progress_suggestion": "continue_needed",
        "metadata": { "current_round": 2, "max_rounds": 5, "parse_error": true, "parse_retry_count": 3, "error_message": "e" },
        "debug_info": { "llm_response": "<<secret>>", "parse_error": { "retry_count": 3,
            "strategies": ["direct_parse", "trim_and_parse", "extract_json_block"],
            "errors": ["expected value at line 1", "the same", "there is no JSON object in the text"],
            "final_error": "there is no JSON object in the text" } },
        "location": { "path": "t/ask" },
    })];
    insta::assert_snapshot!(told(&events));
    assert!(trace(&exact(&events), true).join("\n").ends_with("raw reply:\n<<secret>>"));
}

#[test]
fn feedback_of_a_monitor_tells_whether_a_turn_used_it() {
    let feedback = |seq: u64, words: Value| {
        json!({ "type": "monitor_feedback", "seq": seq, "action_id": "ask", "action_type": "ai_ask", "round": seq,
            "analysis": { "intervention_reason": "blocked", "strategy_suggestion": "comfort", "feedback_for_action": words } })
    };
    let unread = json!({ "type": "monitor_feedback", "seq": 9, "action_id": "ask", "round": 3,
        "analysis": { "metadata": { "parse_error": true, "parse_retry_count": 3 } } });
    let silent = json!({ "type": "monitor_feedback", "seq": 10, "action_id": "ask", "round": 4,
        "analysis": { "intervention_reason": "normal", "strategy_suggestion": "continue", "feedback_for_action": null,
            "metadata": { "parse_error": false, "parse_retry_count": 0 } } });
    let used =
        json!({ "type": "monitor_feedback", "seq": 12, "action_id": "ask", "round": 1, "used": true, "feedback": 1 });
    let of_before = json!({ "type": "monitor_feedback", "seq": 13, "action_id": "ask", "round": 1, "used": true,
        "feedback": 700, "analysis": { "feedback_for_action": "换个说法" } });
    let events = [
        feedback(1, json!("先安慰")),
        feedback(2, json!("别急")),
        feedback(3, Value::Null),
        unread,
        silent,
        used,
        of_before,
    ];
    insta::assert_snapshot!(told(&events));
}

#[test]
fn plans_and_budgets_are_told_with_their_reasons() {
    let events = [
        json!({ "type": "orchestrated", "accepted": true, "route": "insert", "reason": "blocked", "why": "需要先放松",
            "original": ["a", "b"], "now": ["a", "x", "b"] }),
        json!({ "type": "orchestrated", "accepted": false, "route": "skip", "reason": "off_topic", "why": "there is no action `z`" }),
        json!({ "type": "budget_reached", "reason": "minutes", "route": "skip_topic", "why": "3 minutes are left" }),
        json!({ "type": "skipped", "name": "talk", "why": "3 minutes are left" }),
        json!({ "type": "model_call", "purpose": "monitor", "error": "timed out" }),
        json!({ "type": "session_stopped", "summary": { "reason": "the budget is used up" } }),
    ];
    insta::assert_snapshot!(told(&events));
}

#[test]
fn a_variable_is_shown_once_and_a_long_value_is_cut() {
    let at = json!({ "path": "t/ask" });
    let set = |name: &str, value: &str| json!({ "type": "variable_set", "name": name, "scope": "topic", "value": value, "source": "ask", "location": at });
    let outcome = json!({ "type": "outcome", "action_type": "set", "completed": true, "exit_reason": "exit_criteria_met",
        "extracted_variables": { "name": "小林" }, "metadata": {}, "location": at });
    let lines = told(&[set("name", "小林"), set("father_info", "未完成"), set("long", &"长".repeat(300)), outcome]);
    assert_eq!(lines.matches("小林").count(), 1, "{lines}");
    assert!(lines.contains("set          father_info = \"未完成\" (topic, by ask)"), "{lines}");
    assert!(lines.contains("长…") && lines.matches('长').count() == 199, "{lines}");
}

#[test]
fn numbers_of_times_are_written_as_words() {
    assert_eq!([1, 2, 3].map(times), ["once", "twice", "3 times"]);
}
