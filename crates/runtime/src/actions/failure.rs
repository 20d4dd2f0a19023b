//! The outcome of an action whose effect outside the session failed.

use bcc_lang::message::message::Message;
use bcc_lang::message::stored::StoredMessage;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::program::flow::Flow;
use crate::program::outcome::{ERROR_MESSAGE, ExitReason, Outcome};
use crate::program::turn::Turn;

/// Ends the action with `failed`.
pub(crate) fn failed_flow(turn: &Turn<'_>, failure: &Message) -> Flow {
    Flow::done(failed(turn, ExitReason::Failed, failure, Map::new()))
}

/// The outcome for this reason; `metadata` is what is known besides.
pub(crate) fn failed(
    turn: &Turn<'_>,
    reason: ExitReason,
    failure: &Message,
    mut metadata: Map<String, Value>,
) -> Outcome {
    let mut note = |name: &str, value: Value| _ = metadata.insert(name.to_owned(), value);
    note("success", false.into());
    note("exit_reason", reason.name().into());
    note("error", json!(failure));
    note("error_message", json!(failure));
    note("action_id", json!(turn.place.action_id));
    let stored = |pointer: &str| (pointer.to_owned(), StoredMessage(failure.clone()));
    let messages = BTreeMap::from([ERROR_MESSAGE, "/metadata/error"].map(stored));
    Outcome { success: false, metadata, messages, ..Outcome::done(reason) }
}
