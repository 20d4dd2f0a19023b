//! Cells of a notebook for people: headings and texts as they are, code with a few lines of what it gave, thoughts in a quiet
//! colour, the last line of an error in red.

use serde_json::Value;

use crate::cli::language::filled;
use crate::notebook::cell::{Cell, CellKind, Ended};
use crate::notebook::export::ansi;
use crate::notebook::export::output::{Output, read};
use crate::notebook::export::text::{cut_short, one_line, thinker, thought};
use crate::words::language::Language;

/// The most lines of code, of a thought, and of all outputs of a cell that are shown; the rest is counted.
const MOST_CODE: usize = 30;
const MOST_THOUGHT: usize = 8;
const MOST_OUTPUT: usize = 12;

/// The most characters of a line.
const MOST_COLUMNS: usize = 200;

/// Shows cells as they are committed.
#[derive(Debug, Default)]
pub struct CellView {
    /// The number of the last cell that was shown.
    last: u64,
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// As words of a conversation.
    Words,
    /// A heading.
    Heading,
    /// In a quiet colour.
    Quiet,
    /// An error.
    Error,
}

/// A line to be shown.
pub type Line = (Look, String);

impl CellView {
    /// The lines for an event of a session. `None` for one that tells of no notebook, or of nothing that is new in it.
    pub fn lines(&mut self, kind: &str, line: &str, language: Language) -> Option<Vec<Line>> {
        match kind {
            "cell" => {
                let event: Value = serde_json::from_str(line).ok()?;
                let cell: Cell = serde_json::from_value(event.get("cell")?.clone()).ok()?;
                Some(self.cell(&cell, language)).filter(|lines| !lines.is_empty())
            }
            "notebook_action" => {
                let event: Value = serde_json::from_str(line).ok()?;
                let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
                if event.get("success") != Some(&Value::Bool(false)) {
                    return None;
                }
                let values = [("action", text("action")), ("error", &*language.said(text("error")))];
                let told = filled("{action} failed: {error}", &values);
                Some(vec![(Look::Error, one_line(&told))])
            }
            _ => None,
        }
    }

    fn cell(&mut self, cell: &Cell, language: Language) -> Vec<Line> {
        let is_new = cell.number > self.last;
        self.last = self.last.max(cell.number);
        let mut lines = Vec::new();
        match cell.kind {
            CellKind::Markdown if is_new => {
                let metadata = &cell.metadata;
                let is_heading = metadata.is_chapter || metadata.is_section || metadata.is_step;
                let text = ansi::plain(cell.content.trim());
                for (at, line) in text.lines().enumerate() {
                    let look = if is_heading && at == 0 { Look::Heading } else { Look::Words };
                    lines.push((look, line.to_owned()));
                }
                lines.push((Look::Words, String::new()));
            }
            CellKind::Thinking if is_new => {
                let text = format!("{}: {}", thinker(cell, language), thought(cell).trim());
                lines.extend(
                    cut(&ansi::plain(&text), MOST_THOUGHT, language).map(|line| (Look::Quiet, format!("· {line}"))),
                );
            }
            CellKind::Code => {
                if is_new {
                    let code = ansi::plain(cell.content.trim_end());
                    lines.extend(cut(&code, MOST_CODE, language).map(|line| (Look::Words, format!("│ {line}"))));
                }
                if cell.ended.is_some() {
                    outputs(cell, is_new, language, &mut lines);
                }
            }
            CellKind::Markdown | CellKind::Thinking => {}
        }
        lines
    }
}

/// What code gave. Of an older cell that ran again, its first line says which one.
fn outputs(cell: &Cell, is_new: bool, language: Language, lines: &mut Vec<Line>) {
    if !is_new && lines.is_empty() {
        // The code stands right above when it ran in the turn after the one that added it; then this repeats only its count.
        let first = cell.content.lines().next().unwrap_or_default();
        let count = cell.execution_count.map_or_else(String::new, |count| count.to_string());
        lines.push((Look::Quiet, shortened(&format!("[{count}] {}", ansi::plain(first)))));
    }
    let (mut text, mut error) = (String::new(), None);
    for output in cell.outputs.iter().map(read) {
        match output {
            Output::Stream { text: more, .. } => text.push_str(&more),
            Output::Data { data, .. } => {
                let plain = data.get("text/plain").and_then(Value::as_str).map(str::to_owned);
                let types = || data.keys().map(|mime| format!("<{mime}>")).collect::<Vec<_>>().join(" ");
                text.push_str(&plain.unwrap_or_else(types));
                text.push('\n');
            }
            Output::Error { name, value, .. } => error = Some(format!("{name}: {value}")),
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
    }
    let text = ansi::plain(text.trim_end());
    lines.extend(cut(&text, MOST_OUTPUT, language).map(|line| (Look::Quiet, format!("  {line}"))));
    if let Some(error) = error {
        let error = ansi::plain(&error);
        let last = error.lines().next().unwrap_or_default();
        lines.push((Look::Error, format!("  ✗ {}", shortened(last))));
    }
    if let Some(told) = cut_short(cell, language).filter(|_| cell.ended != Some(Ended::Ok)) {
        lines.push((Look::Error, format!("  ✗ {told}")));
    }
}

/// The first lines of a text, and how many there are besides; of none, none.
fn cut(text: &str, most: usize, language: Language) -> impl Iterator<Item = String> {
    let count = text.lines().count();
    let mut lines: Vec<String> = text.lines().take(most).map(shortened).collect();
    if count > most {
        let more = (count - most).to_string();
        lines.push(language.filled("… and {count} more lines", &[("count", &more)]));
    }
    lines.into_iter()
}

fn shortened(line: &str) -> String {
    let mut shown: String = line.chars().take(MOST_COLUMNS).collect();
    if line.chars().nth(MOST_COLUMNS).is_some() {
        shown.push('…');
    }
    shown
}
