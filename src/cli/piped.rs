//! Piped: the AI's words and the cells of a notebook go to standard output and nothing else does.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::cli::cells::CellView;
use crate::cli::language::chosen;
use crate::cli::report;
use crate::cli::terminal::plain;
use bcc_runtime::program::event::{Delta, Observer};

/// Writes the AI's words, and the cells of a notebook.
#[derive(Debug, Default)]
pub struct Piped {
    cells: Mutex<CellView>,
}

impl Observer for Piped {
    fn committed(&self, kind: &str, line: &str) {
        match kind {
            "message" | "waiting" => {
                let Ok(event) = serde_json::from_str::<Value>(line) else { return };
                let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
                // A question about an outside effect is no message.
                match kind {
                    "message" if text("role") == "ai" => write(text("text")),
                    "waiting" if text("for") == "interrupted_effect" => write(text("prompt")),
                    _ => {}
                }
            }
            "cell" | "notebook_action" => {
                let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(lines) = cells.lines(kind, line, chosen()) else { return };
                let mut output = std::io::stdout().lock();
                for (_, line) in lines {
                    let _ = output.write_all(format!("{}\n", plain(&line)).as_bytes());
                }
                let _ = output.flush();
            }
            "error" => {
                let Ok(event) = serde_json::from_str::<Value>(line) else { return };
                let text = |name: &str| event.get(name).and_then(Value::as_str);
                report::note(&format!("error: {}", text("message").unwrap_or_default()));
                if let Some(help) = text("help") {
                    report::note(&format!("help: {help}"));
                }
            }
            _ => {}
        }
    }

    fn delta(&self, _delta: &Delta<'_>) {}
}

fn write(text: &str) {
    let mut output = std::io::stdout().lock();
    // Words may go to a terminal even when answers come from a pipe.
    let text = if output.is_terminal() { plain(text) } else { text.to_owned() };
    let _ = output.write_all(format!("{text}\n").as_bytes());
    let _ = output.flush();
}
