//! What a session tells of itself, with all that resuming added to it taken out again.

use bcc_runtime::program::stored_event::public_line;
use std::collections::BTreeMap;

use bcc_engine::export::export;
use bcc_store::contract::Store;
use bcc_store::sqlite::open::open_read_only;
use serde_json::Value;

use crate::client::SESSION;
use crate::process::Home;

pub struct Told {
    pub journal: Vec<Value>,
    pub export: Value,
}

impl Told {
    pub fn of(home: &Home) -> Self {
        let archive = open_read_only(&home.store()).unwrap();
        let export = runtime().block_on(export(&archive, SESSION, true)).unwrap();
        Self { journal: journal(home, SESSION), export }
    }

    /// What the person said, in order. (The export masks what is sensitive in it.)
    pub fn answers(&self) -> Vec<String> {
        let said = self.journal.iter().filter(|event| event["type"] == "message" && event["role"] == "user");
        said.map(|said| said["text"].as_str().unwrap().to_owned()).collect()
    }
}

/// All events of a session, as the store has them.
pub fn journal(home: &Home, id: &str) -> Vec<Value> {
    let archive = open_read_only(&home.store()).unwrap();
    let rows = runtime().block_on(archive.journal(id, 0, usize::MAX >> 1)).unwrap();
    rows.iter().map(|row| serde_json::from_str(&public_line(&row.body)).unwrap()).collect()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// The same session as if nobody had ever resumed it: the events that a resume adds are taken out, and everything that
/// is counted by events (`seq`, the times of `--clock`, ids of messages and calls) is counted anew without them.
pub fn without_resumes(told: &Told, clock: &str) -> Told {
    let mut numbers = BTreeMap::new();
    let mut journal = Vec::new();
    let mut resumed = false;
    for event in &told.journal {
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
    let mut export = told.export.clone();
    journal.iter_mut().for_each(|event| renumber.value(event));
    renumber.value(&mut export);
    Told { journal, export }
}

struct Renumber {
    /// The new number of each event that is kept.
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
        let passed = u64::try_from(at.duration_since(self.clock).as_millis()).unwrap();
        let moved = self.clock + jiff::SignedDuration::from_millis(i64::try_from(self.number(passed)).unwrap());
        format!("{moved:.6}")
    }

    /// `m12`, `u7`, `c12.0`: the number is that of an event.
    fn id(&self, id: &str) -> String {
        let (kind, rest) = id.split_at(1);
        let (seq, call) = rest.split_once('.').unwrap_or((rest, ""));
        let seq = self.number(seq.parse().unwrap());
        if call.is_empty() { format!("{kind}{seq}") } else { format!("{kind}{seq}.{call}") }
    }
}

/// Where two tellings differ first; none when they are the same to the last byte.
pub fn first_difference(expected: &Told, found: &Told) -> Option<String> {
    let lines = |told: &Told| {
        let mut lines: Vec<String> = told.journal.iter().map(Value::to_string).collect();
        lines.extend(serde_json::to_string_pretty(&told.export).unwrap().lines().map(str::to_owned));
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
