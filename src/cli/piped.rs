//! Piped: the AI's words go to standard output and nothing else does.

use std::io::{IsTerminal, Write};

use serde_json::Value;

use crate::cli::report;
use crate::cli::terminal::plain;
use crate::program::event::{Delta, Observer};

/// Writes the AI's words.
#[derive(Debug, Default)]
pub struct Piped;

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
