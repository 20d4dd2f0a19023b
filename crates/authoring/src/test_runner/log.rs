//! The events of one conversation, kept as lines and read only where somebody asks for them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::Value;

use crate::test_runner::ran::Line;
use bcc_runtime::program::event::{Committed, Observer, Speaker};

/// One event.
#[derive(Clone, Debug)]
struct Row {
    kind: String,
    body: String,
}

/// The events of one conversation so far.
#[derive(Debug, Default)]
pub struct Log {
    rows: Mutex<Vec<Row>>,
}

impl Observer for Log {
    fn committed(&self, committed: &Committed<'_>) {
        self.rows().push(Row { kind: committed.event.kind().to_owned(), body: committed.line.to_owned() });
    }
}

#[derive(Deserialize)]
struct Said {
    seq: u64,
    role: String,
    text: String,
    location: Place,
}

#[derive(Deserialize)]
struct Place {
    action_id: Option<String>,
}

impl Log {
    fn rows(&self) -> MutexGuard<'_, Vec<Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.rows().len()
    }

    /// The events of this type from the `from`-th on.
    pub fn of(&self, kind: &str, from: usize) -> Vec<Value> {
        let rows = self.rows();
        let of = rows.iter().skip(from).filter(|row| row.kind == kind);
        of.filter_map(|row| serde_json::from_str(&row.body).ok()).collect()
    }

    /// The newest event of this type that is as wanted.
    pub fn newest(&self, kind: &str, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        let rows = self.rows();
        let mut of = rows.iter().rev().filter(|row| row.kind == kind);
        of.find_map(|row| serde_json::from_str(&row.body).ok().filter(|event| wanted(event)))
    }

    /// The types of the events from the `from`-th on.
    pub fn kinds(&self, from: usize) -> Vec<String> {
        self.rows().iter().skip(from).map(|row| row.kind.clone()).collect()
    }

    /// The `at`-th event.
    pub fn event(&self, at: usize) -> Option<Value> {
        self.rows().get(at).and_then(|row| serde_json::from_str(&row.body).ok())
    }

    /// What was said from the `from`-th event on.
    pub fn lines(&self, from: usize) -> Vec<Line> {
        let rows = self.rows();
        let messages = rows.iter().skip(from).filter(|row| row.kind == "message");
        let read = messages.filter_map(|row| serde_json::from_str::<Said>(&row.body).ok());
        read.map(|said| Line {
            speaker: if said.role == Speaker::User.name() { Speaker::User } else { Speaker::Ai },
            text: said.text,
            action_id: said.location.action_id.unwrap_or_default(),
            seq: said.seq,
        })
        .collect()
    }

    /// All of them as they were written.
    pub fn journal(&self) -> Vec<String> {
        std::mem::take(&mut *self.rows()).into_iter().map(|row| row.body).collect()
    }
}
