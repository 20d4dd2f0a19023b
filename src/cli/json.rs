//! `--json`: writes each event as one JSON object per line to standard output.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::json;

use crate::cli::output;
use bcc_lang::message::message::Message;
use bcc_lang::source::render::visible::visible_json;
use bcc_runtime::program::cell_rerun::CellRerunPiece;
use bcc_runtime::program::event::{Committed, Delta, Observer};
use bcc_runtime::program::output_piece::OutputPiece;
use bcc_runtime::program::tool_progress::ToolProgressPiece;

/// What waits at most for the end of its commit, in bytes.
const MAX_BUFFERED_BYTES: usize = 64 * 1024;

/// Writes events for programs: those of one commit with a single write, before the session goes on.
#[derive(Debug, Default)]
pub struct JsonLines {
    /// The lines of the commit whose events arrive.
    lines: Mutex<String>,
}

impl JsonLines {
    fn lines(&self) -> MutexGuard<'_, String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what has arrived of a commit, and the line that follows it.
    fn write_now(&self, line: &str) {
        let mut lines = self.lines();
        push_line(&mut lines, line);
        write_out(&mut lines);
    }

    /// Writes an error of the store, which cannot be committed and has no `seq`.
    pub fn uncommitted_error(code: &str, message: &Message, help: Option<&Message>) {
        let help = help.map(ToString::to_string);
        write(&json!({ "type": "error", "code": code, "message": message.to_string(), "help": help }).to_string());
    }
}

impl Observer for JsonLines {
    fn committed(&self, committed: &Committed<'_>) {
        let mut lines = self.lines();
        push_line(&mut lines, committed.line);
        if lines.len() > MAX_BUFFERED_BYTES {
            write_out(&mut lines);
        }
    }

    fn commit_ended(&self) -> Result<(), Message> {
        write_out(&mut self.lines());
        Ok(())
    }

    fn delta(&self, delta: &Delta<'_>) {
        self.write_now(&line_of(delta));
    }

    fn output(&self, output: &OutputPiece<'_>) {
        self.write_now(&json!(output).to_string());
    }

    fn cell_rerun(&self, piece: &CellRerunPiece<'_>) {
        self.write_now(&json!(piece).to_string());
    }

    fn tool_progress(&self, progress: &ToolProgressPiece<'_>) {
        self.write_now(&json!(progress).to_string());
    }
}

/// Buffers events until [`CatchUp::release`], for a program that first reads the events it missed.
#[derive(Debug)]
pub struct CatchUp {
    buffer: Mutex<Option<Vec<String>>>,
    first: OnceLock<u64>,
}

impl Default for CatchUp {
    fn default() -> Self {
        Self { buffer: Mutex::new(Some(Vec::new())), first: OnceLock::new() }
    }
}

impl CatchUp {
    fn buffer(&self) -> MutexGuard<'_, Option<Vec<String>>> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The `seq` of the first event.
    pub fn first_seq(&self) -> Option<u64> {
        self.first.get().copied()
    }

    /// Writes the buffered events, and from now on each event immediately.
    pub fn release(&self) {
        for line in self.buffer().take().into_iter().flatten() {
            write(&line);
        }
    }

    fn line(&self, line: &str) {
        match self.buffer().as_mut() {
            Some(buffer) => buffer.push(line.to_owned()),
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

    fn output(&self, output: &OutputPiece<'_>) {
        self.line(&json!(output).to_string());
    }

    fn cell_rerun(&self, piece: &CellRerunPiece<'_>) {
        self.line(&json!(piece).to_string());
    }

    fn tool_progress(&self, progress: &ToolProgressPiece<'_>) {
        self.line(&json!(progress).to_string());
    }
}

fn line_of(delta: &Delta<'_>) -> String {
    json!(delta).to_string()
}

/// Writes one line with a single write, so that a reader does not see a partial line.
pub fn write(line: &str) {
    let mut lines = String::new();
    push_line(&mut lines, line);
    write_out(&mut lines);
}

fn push_line(lines: &mut String, line: &str) {
    lines.push_str(&visible_json(line));
    lines.push('\n');
}

/// Writes whole lines, and empties the buffer.
fn write_out(lines: &mut String) {
    if !lines.is_empty() {
        output::write(lines);
        lines.clear();
    }
}
