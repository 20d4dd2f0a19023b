//! The histories of metrics, monitors and plans in an export (docs/exports.md), from the events of a journal.

use bcc_runtime::program::stored_event::keep_messages;
use std::collections::HashSet;

use serde_json::{Map, Value, json};

/// Whether an event records that feedback of a monitor was received. Its use is another event of the same type.
pub(crate) fn is_received_feedback(event: &Value) -> bool {
    is_feedback(event) && used_feedback(event).is_none()
}

/// The seq of the received feedback, if this event records that a turn used it.
pub fn used_feedback(event: &Value) -> Option<u64> {
    event.get("feedback").filter(|_| is_feedback(event))?.as_u64()
}

fn is_feedback(event: &Value) -> bool {
    event.get("type").and_then(Value::as_str) == Some("monitor_feedback")
}

/// The rows of `action_metrics_history` and `progress_suggestion_history` for an outcome; none for a turn without metrics.
pub fn metrics(outcome: &Value) -> Option<(Value, Value)> {
    let metrics = outcome.get("metrics").filter(|metrics| metrics.as_object().is_some_and(|map| !map.is_empty()))?;
    let mut suggestion = history_row(outcome, ["progress_suggestion"]);
    let plain = Value::Object(suggestion.clone());
    suggestion.insert("metrics".into(), metrics.clone());
    Some((Value::Object(suggestion), plain))
}

/// The rows of `monitor_feedback`: one for each received feedback, with whether a turn used it.
pub fn feedback(events: &[Value]) -> Vec<Value> {
    let used: HashSet<u64> = events.iter().filter_map(used_feedback).collect();
    let received = events.iter().filter(|event| is_received_feedback(event));
    let row = |event: &Value| {
        let mut row = history_row(event, ["analysis"]);
        let seq = event.get("seq").and_then(Value::as_u64);
        row.insert("used".into(), Value::Bool(seq.is_some_and(|seq| used.contains(&seq))));
        Value::Object(row)
    };
    received.map(row).collect()
}

pub fn plan(event: &Value) -> Value {
    let mut row = history_row(event, ["accepted", "reason", "plan", "original", "now", "why"]);
    row.insert("action_id".into(), event.get("from").cloned().unwrap_or_default());
    row.insert("change".into(), event.get("route").cloned().unwrap_or_default());
    keep_messages(event, &mut row);
    Value::Object(row)
}

/// A row of a history: action, round, path and timestamp, and these fields of the event.
fn history_row<const N: usize>(event: &Value, fields: [&str; N]) -> Map<String, Value> {
    let at_location = |name: &str| event.pointer(&format!("/location/{name}"));
    // An event from the background has its own fields for the action that it is about.
    let value = |name: &str| event.get(name).or_else(|| at_location(name)).cloned().unwrap_or_default();
    let mut row = Map::new();
    for name in ["action_id", "action_type", "round", "path"] {
        row.insert(name.into(), value(name));
    }
    for name in fields {
        row.insert(name.into(), event.get(name).cloned().unwrap_or_default());
    }
    row.insert("timestamp".into(), event.get("at").cloned().unwrap_or(json!(null)));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feedback_event(seq: u64, feedback: Option<u64>) -> Value {
        json!({ "type": "monitor_feedback", "seq": seq, "at": "now", "action_id": "ask", "action_type": "ai_ask", "round": 2,
            "analysis": { "feedback_for_action": seq }, "used": feedback.is_some(), "feedback": feedback,
            "location": { "action_id": "other", "round": 9, "path": "t/other" } })
    }

    #[test]
    fn feedback_has_one_row_and_is_used_if_a_turn_used_it() {
        let rows = feedback(&[feedback_event(3, None), feedback_event(5, None), feedback_event(8, Some(3))]);
        let found: Vec<_> = rows.iter().map(|row| (&row["analysis"]["feedback_for_action"], &row["used"])).collect();
        assert_eq!(found, [(&json!(3), &json!(true)), (&json!(5), &json!(false))]);
        assert_eq!((&rows[0]["action_id"], &rows[0]["round"]), (&json!("ask"), &json!(2)), "what it is about");
        assert_eq!(rows[0]["timestamp"], "now");
    }

    #[test]
    fn a_turn_without_metrics_has_no_row_in_the_histories() {
        let mut outcome = json!({ "at": "now", "action_type": "ai_ask", "progress_suggestion": "blocked", "metrics": {},
            "location": { "action_id": "ask", "round": 1, "path": "t/ask" } });
        assert_eq!(metrics(&outcome), None);
        outcome["metrics"] = json!({ "user_engagement": "高" });
        let (metric, suggestion) = metrics(&outcome).unwrap();
        assert_eq!(metric["metrics"]["user_engagement"], "高");
        assert_eq!((&metric["action_id"], &metric["path"]), (&json!("ask"), &json!("t/ask")));
        assert_eq!((&suggestion["progress_suggestion"], suggestion.get("metrics")), (&json!("blocked"), None));
    }
}
