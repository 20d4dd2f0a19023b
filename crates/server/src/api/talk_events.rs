//! What of the events of a session somebody with a role may see.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::access::AccessRole;
use crate::api::reply::is_for_person;

/// The events that the person in a conversation may see: no prompts, variables, model calls or analyses.
const TALK_EVENTS: [&str; 14] = [
    "session_started",
    "session_resumed",
    "message",
    "message_delta",
    "message_discarded",
    "taken_back",
    "waiting",
    "session_completed",
    "session_failed",
    "session_stopped",
    "session_cancelled",
    "phase_entered",
    "topic_entered",
    "skipped",
];

/// What of the `summary` at the end of a session is about the conversation.
const TALK_SUMMARY: [&str; 2] = ["answers", "turns"];

/// What says which model is asked, and in which other sessions the same was said: whoever knows the id of a session can talk in it.
const INTERNALS: [&str; 4] = ["model", "retry_of", "fork_of", "fork_seq"];

/// What of `taken_back` is about variables, plans and effects.
const ABOUT_VARIABLES: [&str; 3] = ["globals", "plans", "effects"];

/// An event in its public form, as somebody with this role may see it; none if it is not for them.
pub(crate) fn shown_event<'l>(role: AccessRole, kind: &str, line: &'l str) -> Option<Cow<'l, str>> {
    if role >= AccessRole::Author {
        return Some(Cow::Borrowed(line));
    }
    let hide: fn(&mut Map<String, Value>) = match kind {
        kind if !TALK_EVENTS.contains(&kind) => return None,
        "waiting" if role < AccessRole::Decide => hide_decision,
        // The condition, with names of variables.
        "skipped" => |event| drop(event.shift_remove("why")),
        "taken_back" => |event| event.retain(|name, _| !ABOUT_VARIABLES.contains(&name.as_str())),
        "session_started" | "session_resumed" => |event| event.retain(|name, _| !INTERNALS.contains(&name.as_str())),
        "session_completed" | "session_failed" | "session_stopped" | "session_cancelled" => hide_calls_and_reason,
        _ => return Some(Cow::Borrowed(line)),
    };
    let Ok(Value::Object(mut event)) = serde_json::from_str(line) else { return None };
    hide(&mut event);
    Some(Cow::Owned(Value::Object(event).to_string()))
}

/// The prompt of a decision is for those who decide.
fn hide_decision(event: &mut Map<String, Value>) {
    if !event.get("for").and_then(Value::as_str).is_some_and(is_for_person) {
        event.shift_remove("prompt");
    }
}

/// The reason names conditions, files and the addresses of models.
fn hide_calls_and_reason(event: &mut Map<String, Value>) {
    if let Some(summary) = event.get_mut("summary").and_then(Value::as_object_mut) {
        summary.retain(|name, _| TALK_SUMMARY.contains(&name.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The fields of an event as somebody who talks sees it; none if the event is not for them.
    fn shown(kind: &str, fields: Value) -> Option<Value> {
        let mut event = json!({ "type": kind, "seq": 5, "at": "t", "session_id": "s", "location": {} });
        event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let line = event.to_string();
        let shown = shown_event(AccessRole::Talk, kind, &line)?;
        let mut shown: Value = serde_json::from_str(&shown).unwrap();
        for name in ["type", "seq", "at", "session_id", "location"] {
            assert!(shown.as_object_mut().unwrap().remove(name).is_some(), "{kind}: {name}");
        }
        Some(shown)
    }

    #[test]
    fn who_talks_sees_only_fields_about_the_conversation() {
        let summary = json!({ "answers": 1, "turns": 2, "model_calls": 3, "reason": "secret", "tokens_in": 1 });
        let ended = json!({ "summary": { "answers": 1, "turns": 2 } });
        for (kind, fields, expected) in [
            (
                "taken_back",
                json!({ "from_seq": 1, "to_seq": 4, "answers": 0, "effects": 1, "globals": ["diagnosis"], "plans": [7] }),
                json!({ "from_seq": 1, "to_seq": 4, "answers": 0 }),
            ),
            ("session_started", json!({ "script": "s", "model": "m", "fork_of": "x" }), json!({ "script": "s" })),
            (
                "session_resumed",
                json!({ "script": "s", "model": "m", "last_seq": 1, "answers": 1 }),
                json!({ "script": "s", "last_seq": 1, "answers": 1 }),
            ),
            ("skipped", json!({ "name": "a", "why": "secret > 1" }), json!({ "name": "a" })),
            (
                "waiting",
                json!({ "for": "decision", "prompt": "secret", "answer_id": "x" }),
                json!({ "for": "decision", "answer_id": "x" }),
            ),
            ("session_completed", json!({ "summary": summary }), ended.clone()),
            ("session_failed", json!({ "summary": summary }), ended.clone()),
            ("session_stopped", json!({ "summary": summary }), ended.clone()),
            ("session_cancelled", json!({ "summary": summary }), ended),
        ] {
            assert_eq!(shown(kind, fields), Some(expected), "{kind}");
        }
        for kind in ["message", "message_delta", "message_discarded", "phase_entered", "topic_entered"] {
            let fields = json!({ "message_id": "m", "name": "n" });
            assert_eq!(shown(kind, fields.clone()), Some(fields), "{kind}");
        }
        for kind in ["variable_set", "model_call", "outcome", "routed", "warning", "error", "undone", "cell", "new"] {
            assert_eq!(shown(kind, json!({})), None, "{kind}");
        }
    }
}
