//! The events of one conversation, as they were committed.

use bcc_lang::message::message::Message;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::test_runner::result::TranscriptLine;
use bcc_runtime::program::event::{Committed, Event, Observer};
use bcc_runtime::program::location::EventLocation;

#[derive(Clone, Debug)]
pub struct Row {
    pub seq: u64,
    pub place: EventLocation,
    pub event: Event,
    line: String,
}

#[derive(Debug, Default)]
pub struct Log {
    rows: Mutex<Vec<Row>>,
}

impl Observer for Log {
    fn committed(&self, committed: &Committed<'_>) {
        let (seq, place, event) = (committed.seq, committed.place.clone(), committed.event.clone());
        self.rows().push(Row { seq, place, event, line: committed.line.to_owned() });
    }
}

impl Row {
    /// The id of the action of the event; empty if there is none.
    pub fn action(&self) -> &str {
        self.place.action_id.as_deref().unwrap_or_default()
    }
}

impl Log {
    fn rows(&self) -> MutexGuard<'_, Vec<Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn count(&self) -> usize {
        self.rows().len()
    }

    /// The results of `read` for the events from index `from` on.
    pub fn read<T>(&self, from: usize, read: impl Fn(&Row) -> Option<T>) -> Vec<T> {
        self.rows().iter().skip(from).filter_map(read).collect()
    }

    /// The result of `read` for the newest event for which it is `Some`.
    pub fn newest<T>(&self, read: impl Fn(&Row) -> Option<T>) -> Option<T> {
        self.rows().iter().rev().find_map(read)
    }

    /// The message of the newest error.
    pub(crate) fn newest_error(&self) -> Option<Message> {
        self.newest(|row| match &row.event {
            Event::Error { message, .. } => Some(message.clone()),
            _ => None,
        })
    }

    /// The codes and messages of warnings, or of errors, from index `from` on.
    pub fn codes(&self, errors: bool, from: usize) -> Vec<(&'static str, Message)> {
        self.read(from, |row| match &row.event {
            Event::Warning { code, message, .. } if !errors => Some((*code, message.clone())),
            Event::Error { code, message, .. } if errors => Some((*code, message.clone())),
            _ => None,
        })
    }

    /// The event at index `at` in the format of `--json`, which defines the field names in tests.
    pub fn event(&self, at: usize) -> Option<Value> {
        self.rows().get(at).and_then(|row| serde_json::from_str(&row.line).ok())
    }

    /// The messages from index `from` on.
    pub fn lines(&self, from: usize) -> Vec<TranscriptLine> {
        self.read(from, |row| match &row.event {
            Event::Message { role, text, .. } => Some(TranscriptLine {
                speaker: *role,
                text: text.clone(),
                action_id: row.action().to_owned(),
                seq: row.seq,
            }),
            _ => None,
        })
    }

    /// Takes all events as JSON lines.
    pub fn journal(&self) -> Vec<String> {
        std::mem::take(&mut *self.rows()).into_iter().map(|row| row.line).collect()
    }
}
