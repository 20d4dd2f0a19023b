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
