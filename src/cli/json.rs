//! `--json`: every event as one object a line on standard output.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use bcc_runtime::program::event::{Delta, Observer};

/// Writes events for programs.
#[derive(Debug, Default)]
pub struct JsonLines;

impl JsonLines {
    /// An error about the store itself, which no commit could hold: it has no `seq`.
    pub fn uncommitted_error(code: &str, message: &str, help: Option<&str>) {
        write(&json!({ "type": "error", "code": code, "message": message, "help": help }).to_string());
    }
}

impl Observer for JsonLines {
    fn committed(&self, _kind: &str, line: &str) {
        write(line);
    }

    fn delta(&self, delta: &Delta<'_>) {
        write(&line_of(delta));
    }
}

/// Events for a program that first wants what it missed: they are kept back until [`CatchUp::go_on`].
#[derive(Debug)]
pub struct CatchUp {
    kept: Mutex<Option<Vec<String>>>,
}

impl Default for CatchUp {
    fn default() -> Self {
        Self { kept: Mutex::new(Some(Vec::new())) }
    }
}

impl CatchUp {
    fn kept(&self) -> MutexGuard<'_, Option<Vec<String>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The `seq` of the first event that is kept back.
    pub fn first_seq(&self) -> Option<u64> {
        let first: Value = serde_json::from_str(self.kept().as_ref()?.first()?).ok()?;
        first.get("seq")?.as_u64()
    }

    /// Writes what was kept back, and from now on every event as it comes.
    pub fn go_on(&self) {
        for line in self.kept().take().into_iter().flatten() {
            write(&line);
        }
    }

    fn line(&self, line: &str) {
        match self.kept().as_mut() {
            Some(kept) => kept.push(line.to_owned()),
            None => write(line),
        }
    }
}

impl Observer for CatchUp {
    fn committed(&self, _kind: &str, line: &str) {
        self.line(line);
    }

    fn delta(&self, delta: &Delta<'_>) {
        self.line(&line_of(delta));
    }
}

fn line_of(delta: &Delta<'_>) -> String {
    json!(delta).to_string()
}

/// Writes one line at once: a reader never sees half of one that this process could finish.
pub fn write(line: &str) {
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(format!("{line}\n").as_bytes());
    let _ = output.flush();
}
