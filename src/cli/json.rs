//! `--json`: every event as one object a line on standard output.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::json;

use bcc_runtime::program::event::{Committed, Delta, Observer};

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
    fn committed(&self, committed: &Committed<'_>) {
        write(committed.line);
    }

    fn delta(&self, delta: &Delta<'_>) {
        write(&line_of(delta));
    }
}

/// Events for a program that first wants what it missed: they are kept back until [`CatchUp::go_on`].
#[derive(Debug)]
pub struct CatchUp {
    kept: Mutex<Option<Vec<String>>>,
    first: OnceLock<u64>,
}

impl Default for CatchUp {
    fn default() -> Self {
        Self { kept: Mutex::new(Some(Vec::new())), first: OnceLock::new() }
    }
}

impl CatchUp {
    fn kept(&self) -> MutexGuard<'_, Option<Vec<String>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The `seq` of the first event.
    pub fn first_seq(&self) -> Option<u64> {
        self.first.get().copied()
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
    fn committed(&self, committed: &Committed<'_>) {
        let _ = self.first.set(committed.seq);
        self.line(committed.line);
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
