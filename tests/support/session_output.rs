//! The journal and export of a session, without the events that resuming adds.

use bcc_runtime::program::stored_event::public_line;
use std::collections::BTreeMap;

use bcc_engine::export::export;
use bcc_store::contract::Store;
use bcc_store::sqlite::open::open_read_only;
use serde_json::Value;

use crate::client::SESSION;
use crate::process::Home;

pub struct SessionOutput {
    pub journal: Vec<Value>,
    pub export: Value,
}

impl SessionOutput {
    pub fn of(home: &Home) -> Self {
        let store = open_read_only(&home.store()).unwrap();
        let export = runtime().block_on(export(&store, SESSION, true)).unwrap();
        Self { journal: journal(home, SESSION), export: export.into_value() }
    }

    /// The messages of the person, in order. (The export masks sensitive values.)
    pub fn answers(&self) -> Vec<String> {
        let messages = self.journal.iter().filter(|event| event["type"] == "message" && event["role"] == "user");
        messages.map(|message| message["text"].as_str().unwrap().to_owned()).collect()
    }
}

/// All events of a session in the store.
pub fn journal(home: &Home, id: &str) -> Vec<Value> {
    let store = open_read_only(&home.store()).unwrap();
    let rows = runtime().block_on(store.journal(id, 0, usize::MAX >> 1)).unwrap();
    rows.iter().map(|row| serde_json::from_str(&public_line(&row.body)).unwrap()).collect()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// The same session as if it had never been resumed: the events that a resume adds are removed, and everything that is counted by events
/// (`seq`, the times of `--clock`, ids of messages and calls) is renumbered without them.
pub fn without_resumes(output: &SessionOutput, clock: &str) -> SessionOutput {
    let mut numbers = BTreeMap::new();
    let mut journal = Vec::new();
    let mut resumed = false;
    for event in &output.journal {
        let kind = event["type"].as_str().unwrap();
        let discards = resumed && kind == "message_discarded";
        resumed = kind == "session_resumed";
        let repeats = kind == "warning" && event["code"] == "answer-taken";
        if !(resumed || discards || repeats) {
            numbers.insert(event["seq"].as_u64().unwrap(), numbers.len() as u64 + 1);
            journal.push(event.clone());
        }
    }
    let renumber = Renumber { numbers, clock: clock.parse().unwrap() };
    let mut export = output.export.clone();
    journal.iter_mut().for_each(|event| renumber.value(event));
    renumber.value(&mut export);
    SessionOutput { journal, export }
}

struct Renumber {
    /// The new number of each remaining event.
    numbers: BTreeMap<u64, u64>,
    clock: jiff::Timestamp,
}

impl Renumber {
    fn value(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                for (key, field) in fields {
                    match (key.as_str(), &*field) {
                        ("seq", Value::Number(seq)) => *field = self.number(seq.as_u64().unwrap()).into(),
                        ("at" | "timestamp" | "started_at" | "updated_at", Value::String(at)) => {
                            *field = self.time(at).into()
                        }
                        ("message_id" | "call_id", Value::String(id)) => *field = self.id(id).into(),
                        _ => self.value(field),
                    }
                }
            }
            _ => {}
        }
    }

    fn number(&self, seq: u64) -> u64 {
        *self.numbers.get(&seq).unwrap_or_else(|| panic!("something refers to event {seq}, which a resume added"))
    }

    fn time(&self, at: &str) -> String {
        let at: jiff::Timestamp = at.parse().unwrap();
        let elapsed = u64::try_from(at.duration_since(self.clock).as_millis()).unwrap();
        let shifted = self.clock + jiff::SignedDuration::from_millis(i64::try_from(self.number(elapsed)).unwrap());
        format!("{shifted:.6}")
    }

    /// `m12`, `u7`, `c12.0`: the number is that of an event.
    fn id(&self, id: &str) -> String {
        let (kind, rest) = id.split_at(1);
        let (seq, call) = rest.split_once('.').unwrap_or((rest, ""));
        let seq = self.number(seq.parse().unwrap());
        if call.is_empty() { format!("{kind}{seq}") } else { format!("{kind}{seq}.{call}") }
    }
}

/// The first difference between two sessions; `None` when they are the same to the last byte.
pub fn first_difference(expected: &SessionOutput, found: &SessionOutput) -> Option<String> {
    let lines = |output: &SessionOutput| {
        let mut lines: Vec<String> = output.journal.iter().map(Value::to_string).collect();
        lines.extend(serde_json::to_string_pretty(&output.export).unwrap().lines().map(str::to_owned));
        lines
    };
    let (expected, found) = (lines(expected), lines(found));
    let pairs = expected.iter().zip(&found).enumerate();
    let different =
        pairs.filter(|(_, (a, b))| a != b).map(|(line, (a, b))| format!("line {line}\n expected {a}\n    found {b}"));
    let shorter =
        (expected.len() != found.len()).then(|| format!("{} lines, expected {}", found.len(), expected.len()));
    different.chain(shorter).next()
}
