//! `--json`: every event as one object a line on standard output.

use std::io::Write;

use serde_json::json;

use crate::program::event::Observer;

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

    fn delta(&self, message_id: &str, text: &str) {
        write(&json!({ "type": "message_delta", "message_id": message_id, "text": text }).to_string());
    }
}

/// Writes one line at once: a reader never sees half of one that this process could finish.
pub fn write(line: &str) {
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(format!("{line}\n").as_bytes());
    let _ = output.flush();
}
