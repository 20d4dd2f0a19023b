//! Events as the store holds them: the line that `--json` writes, preceded by the messages behind its texts, so that they can be
//! shown in another language later (docs/languages.md). Programs never see that part.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bcc_lang::message::message::Message;
use bcc_lang::message::stored::StoredMessage;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use crate::program::event::Event;

/// The field with the messages, by JSON pointer. It comes first, where an event has no other field.
const FIELD: &str = "_messages";
const START: &str = "{\"_messages\":";

impl Event {
    /// The messages of its fields, by JSON pointer.
    fn messages(&self) -> Vec<(&str, &Message)> {
        match self {
            Self::Skipped { why, .. }
            | Self::RouteTaken { why, .. }
            | Self::Triggered { why, .. }
            | Self::Orchestrated { why, .. }
            | Self::Behavior { why, .. }
            | Self::BudgetReached { why, .. } => vec![("/why", why)],
            Self::EffectStarted { summary, .. } | Self::EffectFinished { summary, .. } => vec![("/summary", summary)],
            Self::Warning { message, help, .. } | Self::Error { message, help, .. } => {
                std::iter::once(("/message", message)).chain(help.iter().map(|help| ("/help", help))).collect()
            }
            Self::ToolCalled(call) => call.error.iter().map(|error| ("/error", error)).collect(),
            Self::NotebookAction { error, .. } => error.iter().map(|error| ("/error", error)).collect(),
            Self::ModelCall(call) => call.error.iter().map(|error| ("/error", error)).collect(),
            Self::SessionCompleted { summary }
            | Self::SessionFailed { summary }
            | Self::SessionStopped { summary }
            | Self::SessionCancelled { summary } => {
                summary.reason.iter().map(|reason| ("/summary/reason", reason)).collect()
            }
            Self::Outcome { .. }
            | Self::SessionStarted { .. }
            | Self::SessionResumed { .. }
            | Self::PhaseEntered { .. }
            | Self::TopicEntered { .. }
            | Self::ActionStarted { .. }
            | Self::MessageDiscarded { .. }
            | Self::Message { .. }
            | Self::VariableSet { .. }
            | Self::MonitorFeedback { .. }
            | Self::Cell(_)
            | Self::PlanChanged { .. }
            | Self::Undone { .. }
            | Self::TakenBack { .. }
            | Self::RequestOpened { .. }
            | Self::RequestAnswered { .. }
            | Self::Waiting { .. } => Vec::new(),
        }
    }

    /// Removes the messages of an outcome, so that its public line does not contain them.
    pub(crate) fn take_messages(&mut self) -> BTreeMap<String, StoredMessage> {
        match self {
            Self::Outcome { outcome, .. } => std::mem::take(&mut outcome.messages),
            _ => BTreeMap::new(),
        }
    }

    /// The stored form of the event, whose public line is `line`, with the messages that were removed from it before.
    ///
    /// # Errors
    /// If a message cannot be written as JSON, which does not happen.
    pub(crate) fn stored(
        &self,
        line: &str,
        removed: BTreeMap<String, StoredMessage>,
    ) -> Result<String, serde_json::Error> {
        let event_messages = self.messages().into_iter().filter(|(_, message)| !matches!(message, Message::Text(_)));
        let mut messages = removed;
        messages.extend(event_messages.map(|(pointer, message)| (pointer.to_owned(), StoredMessage(message.clone()))));
        match line.strip_prefix('{').filter(|_| !messages.is_empty()) {
            Some(rest) => Ok(format!("{START}{},{rest}", serde_json::to_string(&messages)?)),
            None => Ok(line.to_owned()),
        }
    }
}

/// The line of a stored event as `--json` writes it.
pub fn public_line(stored: &str) -> Cow<'_, str> {
    let Some(after) = stored.strip_prefix(START) else { return Cow::Borrowed(stored) };
    let mut values = serde_json::Deserializer::from_str(after).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => {
            let rest = after.get(values.byte_offset()..).unwrap_or_default();
            Cow::Owned(format!("{{{}", rest.strip_prefix(',').unwrap_or(rest)))
        }
        _ => Cow::Borrowed(stored),
    }
}

/// Removes the messages from a stored event, which gives its public form.
pub fn make_public(event: &mut Value) {
    if let Some(fields) = event.as_object_mut() {
        fields.remove(FIELD);
    }
}

/// Copies the messages of a stored event to a row with the same texts at the same pointers.
pub fn keep_messages(event: &Value, row: &mut Map<String, Value>) {
    if let Some(messages) = event.get(FIELD) {
        row.insert(FIELD.to_owned(), messages.clone());
    }
}

/// A value with the messages of its texts, as in a stored event.
pub fn with_messages(mut value: Value, messages: &[(&str, &StoredMessage)]) -> Value {
    if let Some(fields) = value.as_object_mut() {
        let messages = messages.iter().map(|(pointer, message)| ((*pointer).to_owned(), json!(message)));
        fields.insert(FIELD.to_owned(), Value::Object(messages.collect()));
    }
    value
}

/// A message that was stored as a separate value; empty if it cannot be read.
pub fn stored_message(stored: Value) -> Message {
    StoredMessage::deserialize(stored).map_or_else(|_| Message::default(), |stored| stored.0)
}

/// The text at a pointer of a stored event as a message; the text itself if an earlier version stored it.
pub fn message_at(event: &Value, pointer: &str) -> Message {
    let stored = event.get(FIELD).and_then(|messages| messages.get(pointer));
    match stored.and_then(|stored| StoredMessage::deserialize(stored).ok()) {
        Some(StoredMessage(message)) => message,
        None => Message::text(event.pointer(pointer).and_then(Value::as_str).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_lang::message::language::Language;
    use bcc_lang::message::msg;

    #[test]
    fn a_stored_event_is_its_public_line_with_its_messages() {
        let why = msg!("its condition does not hold: {}", "_messages > 3");
        let event = Event::Skipped { name: "a".into(), why, skipped: None };
        let line = serde_json::to_string(&event).unwrap();
        let stored = event.stored(&line, BTreeMap::new()).unwrap();
        assert_eq!(public_line(&stored), line);
        let value: Value = serde_json::from_str(&stored).unwrap();
        assert_eq!(message_at(&value, "/why").render(Language::Chinese), "它的条件不成立：_messages > 3");
        assert_eq!(message_at(&value, "/why").to_string(), value["why"]);
        let mut public = value;
        make_public(&mut public);
        assert_eq!(public, serde_json::from_str::<Value>(&line).unwrap());
    }

    #[test]
    fn a_line_of_an_earlier_version_is_public_as_it_is() {
        let line = r#"{"seq":1,"why":"a","value":{"_messages":{"/why":"b"}}}"#;
        assert_eq!(public_line(line), line);
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(message_at(&value, "/why").to_string(), "a");
    }
}
