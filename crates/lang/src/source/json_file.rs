//! Files that programs write as JSON: states and notebooks. YAML includes JSON, but what is wrong with a broken one is told as JSON.

use crate::message::library::library;
use crate::message::message::Message;
use crate::message::msg;
use std::path::Path;
use std::sync::Arc;

use serde::de::IgnoredAny;

use crate::source::diagnostic::Diagnostic;
use crate::source::span::Span;
use crate::source::text::{BYTE_ORDER_MARK, SourceFile};

/// The first keys of states that have no name of a JSON file.
const FIRST_KEYS: [&str; 3] = ["\"observation\"", "\"location\"", "\"workflow_id\""];

/// Keys that only states have.
const STATE_KEYS: [&str; 4] = ["\"observation\"", "\"workflow_id\"", "\"current_stage_id\"", "\"FSM\""];

const CUT_OFF: &str = "it was probably cut off while it was written or copied: get it again from the program that wrote it; `bcc-script sessions export ID --format protocol` writes the state of a session";
const DAMAGED: &str = "correct the file here, or get it again from the program that wrote it; `bcc-script sessions export ID --format protocol` writes the state of a session";

/// What to do with a notebook that was given in place of a script.
pub(crate) const NOTEBOOK_HELP: &str = "a Jupyter notebook is no script: `bcc-script run SCRIPT --from NOTEBOOK.ipynb` begins a session of a script with its cells";

/// Whether the name of a file is that of a Jupyter notebook.
pub(crate) fn is_notebook_name(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

/// Whether the name of a file is that of JSON.
pub(crate) fn is_json_name(name: &str) -> bool {
    let is_json = Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    is_json || is_notebook_name(name)
}

/// Whether a file with this name, whose text starts like this, is meant as JSON.
pub(crate) fn is_meant_as_json(name: &str, text: &str) -> bool {
    let text = text.trim_start_matches(BYTE_ORDER_MARK).trim_start();
    let first_key = text.strip_prefix('{').map(str::trim_start);
    let is_state = first_key.is_some_and(|rest| FIRST_KEYS.iter().any(|key| rest.starts_with(key)));
    is_state || is_json_name(name) && (text.is_empty() || text.starts_with(['{', '[']))
}

/// Whether a text starts as that of a state.
fn is_state(text: &str) -> bool {
    const SEARCHED_BYTES: usize = 4096;
    let start = text.get(..text.floor_char_boundary(SEARCHED_BYTES)).unwrap_or_default();
    STATE_KEYS.iter().any(|key| memchr::memmem::find(start.as_bytes(), key.as_bytes()).is_some())
}

/// What the file is called in messages.
fn described(file: &SourceFile) -> Message {
    Message::word(if is_state(file.text()) { "the state file" } else { "the file" })
}

/// The diagnostic of a file that is meant as JSON and is not; none for others.
pub(crate) fn broken_json(file: &Arc<SourceFile>) -> Option<Diagnostic> {
    let text = file.text().trim_start_matches(BYTE_ORDER_MARK);
    if text.trim().is_empty() || !is_meant_as_json(file.name(), text) {
        return None;
    }
    let error = serde_json::from_str::<IgnoredAny>(text).err()?;
    let line = file.line_span(error.line()).unwrap_or_default();
    let at = file.clamp(Span::point((line.start + error.column().saturating_sub(1)).min(line.end))).start;
    let span = file.clamp(Span::new(at, at + 1));
    let what = described(file);
    let (line, column) = file.line_column(at);
    let (message, help) = match error.is_eof() {
        true => (msg!("{what} is not whole JSON: it ends in the middle, at line {line}, column {column}"), CUT_OFF),
        false => {
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            let reason = library(reason);
            (msg!("{what} is not whole JSON: at line {line}, column {column}: {reason}"), DAMAGED)
        }
    };
    Some(Diagnostic::error("broken-json", message, file, span).with_help(Message::word(help)))
}

/// The diagnostic of a state that has a byte at `byte` that is no text; none for other files.
pub(crate) fn damaged_json(file: &Arc<SourceFile>, byte: usize) -> Option<Diagnostic> {
    if !is_meant_as_json(file.name(), file.text()) || !is_state(file.text()) {
        return None;
    }
    let what = described(file);
    let (line, column) = file.line_column(byte);
    let message = msg!("{what} is not whole JSON: at line {line}, column {column} is a byte that is no text");
    // Text around such a byte is seldom fit for a terminal.
    Some(Diagnostic::error("broken-json", message, file, Span::default()).with_help(Message::word(DAMAGED)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::compose::parse;

    fn told(name: &str, text: &str) -> Vec<String> {
        let parsed = parse(&Arc::new(SourceFile::new(name, text)));
        parsed.diagnostics.iter().map(|found| format!("{}: {}", found.rule, found.message)).collect()
    }

    #[test]
    fn a_broken_state_is_told_as_json_with_its_place() {
        let state =
            "{\n  \"observation\": {\n    \"location\": {\"current_stage_id\": \"a\"},\n    \"context\": {}\n  }\n}\n";
        assert_eq!(told("state.json", state), Vec::<String>::new());
        for end in 1..state.trim_end().len() {
            let found = told("state.json", &state[..end]);
            assert!(
                matches!(found.as_slice(), [found] if found.contains("broken-json: ") && found.contains(" is not whole JSON: it ends in the middle, at line ")),
                "{end}: {found:?}"
            );
        }
        let damaged = state.replace("\"a\"},", "\"a\"}");
        assert_eq!(
            told("a.txt", &damaged),
            ["broken-json: the state file is not whole JSON: at line 4, column 5: expected `,` or `}`"]
        );
    }

    #[test]
    fn scripts_are_told_as_yaml() {
        for (name, text) in [("a.yaml", "{\"session\": {"), ("a.json", "session: [")] {
            assert!(told(name, text)[0].starts_with("yaml-syntax: "), "{name}");
        }
    }
}
