//! Cells of a notebook for people: headings and texts as they are, code with a few lines of what it gave, thoughts in a quiet
//! colour, the last line of an error in red.

use serde_json::Value;

use crate::cli::language::filled;
use bcc_lang::message::language::Language;
use bcc_runtime::notebook::cell::{Cell, CellKind};
use bcc_runtime::notebook::export::ansi;
use bcc_runtime::notebook::export::output::{CellOutput, read};
use bcc_runtime::notebook::export::text::{cut_short, one_line, thinker, thought};
use bcc_runtime::program::event::Event;
use bcc_runtime::program::shown_cell::ShownCell;

/// The most lines of code, of a thought, and of all outputs of a cell that are shown; the rest is counted.
const MOST_CODE: usize = 30;
const MOST_THOUGHT: usize = 8;
const MOST_OUTPUT: usize = 12;

/// The most characters of a line.
const MOST_COLUMNS: usize = 200;

/// The warnings that whoever looks on needs, to understand what is shown; `/why` and `--json` tell of all others, too.
const TOLD: [&str; 12] = [
    "auto-debug-failed",
    "bad-plan",
    "behavior-cut-short",
    "behavior-unreadable",
    "command-not-started",
    "kernel-died",
    "kernel-memory-gone",
    "not-allowed",
    "too-many-actions",
    "too-many-moves",
    "unknown-action",
    "unknown-step",
];

/// Shows cells as they are committed.
#[derive(Debug, Default)]
pub struct CellView {
    /// The number of the last cell that was shown.
    last: u64,
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStyle {
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
pub type StyledLine = (LineStyle, String);

impl CellView {
    /// The lines for an event of a session. `None` for one that tells of no notebook, or of nothing that is new in it.
    pub fn lines(&mut self, event: &Event, language: Language) -> Option<Vec<StyledLine>> {
        match event {
            Event::Cell(shown) => Some(self.cell(&cell_of(shown), language)).filter(|lines| !lines.is_empty()),
            Event::NotebookAction { action, success: false, error, .. } => {
                let error = error.as_ref().map(|error| error.render(language)).unwrap_or_default();
                let told = filled("{action} failed: {error}", &[("action", action), ("error", &*error)]);
                Some(vec![(LineStyle::Error, one_line(&told))])
            }
            Event::Warning { code, message, .. } if TOLD.contains(code) => {
                Some(vec![(LineStyle::Quiet, format!("! {}", shortened(&one_line(&message.render(language)))))])
            }
            _ => None,
        }
    }

    fn cell(&mut self, cell: &Cell, language: Language) -> Vec<StyledLine> {
        let is_new = cell.number > self.last;
        self.last = self.last.max(cell.number);
        let mut lines = Vec::new();
        match cell.kind {
            CellKind::Markdown if is_new => {
                let metadata = &cell.metadata;
                let is_heading = metadata.is_chapter || metadata.is_section || metadata.is_step;
                let text = ansi::plain(cell.content.trim());
                for (at, line) in text.lines().enumerate() {
                    let look = if is_heading && at == 0 { LineStyle::Heading } else { LineStyle::Words };
                    lines.push((look, line.to_owned()));
                }
                lines.push((LineStyle::Words, String::new()));
            }
            CellKind::Thinking if is_new => {
                let text = format!("{}: {}", thinker(cell, language), thought(cell).trim());
                lines.extend(
                    cut(&ansi::plain(&text), MOST_THOUGHT, language)
                        .map(|line| (LineStyle::Quiet, format!("· {line}"))),
                );
            }
            CellKind::Code => {
                if is_new {
                    let code = ansi::plain(cell.content.trim_end());
                    lines.extend(cut(&code, MOST_CODE, language).map(|line| (LineStyle::Words, format!("│ {line}"))));
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

/// The cell that an event tells of. Parts that were cut so short that they can no longer be read say nothing.
fn cell_of(shown: &ShownCell) -> Cell {
    let kind = match shown.cell_type {
        "code" => CellKind::Code,
        "thinking" => CellKind::Thinking,
        _ => CellKind::Markdown,
    };
    Cell {
        number: shown.number,
        id: shown.cell_id.clone(),
        kind,
        content: shown.content.clone(),
        metadata: serde_json::from_value(shown.metadata.clone()).unwrap_or_default(),
        outputs: shown.outputs.as_array().cloned().unwrap_or_default(),
        execution_count: shown.execution_count,
        ended: serde_json::from_value(shown.ended.clone()).ok(),
    }
}

/// What code gave. Of an older cell that ran again, its first line says which one.
fn outputs(cell: &Cell, is_new: bool, language: Language, lines: &mut Vec<StyledLine>) {
    if !is_new && lines.is_empty() {
        let first = cell.content.lines().next().unwrap_or_default();
        let count = cell.execution_count.map_or_else(String::new, |count| count.to_string());
        lines.push((LineStyle::Quiet, shortened(&format!("[{count}] {}", ansi::plain(first)))));
    }
    let (mut text, mut error) = (String::new(), None);
    for output in cell.outputs.iter().map(read) {
        match output {
            CellOutput::Stream { text: more, .. } => text.push_str(&more),
            CellOutput::Data { data, .. } => {
                let plain = data.get("text/plain").and_then(Value::as_str).map(str::to_owned);
                let types = || data.keys().map(|mime| format!("<{mime}>")).collect::<Vec<_>>().join(" ");
                text.push_str(&plain.unwrap_or_else(types));
                text.push('\n');
            }
            CellOutput::Error { name, value, .. } => error = Some(format!("{name}: {value}")),
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
    }
    let text = ansi::plain(text.trim_end());
    lines.extend(cut(&text, MOST_OUTPUT, language).map(|line| (LineStyle::Quiet, format!("  {line}"))));
    if let Some(error) = error {
        let error = ansi::plain(&error);
        let last = error.lines().next().unwrap_or_default();
        lines.push((LineStyle::Error, format!("  ✗ {}", shortened(last))));
    }
    if let Some(told) = cut_short(cell, language) {
        lines.push((LineStyle::Error, format!("  ✗ {told}")));
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The lines for the event of a cell with these parts.
    fn shown(view: &mut CellView, cell: &Value) -> Vec<String> {
        let text = |name: &str| cell[name].as_str().unwrap_or_default().to_owned();
        let event = Event::Cell(Box::new(ShownCell {
            number: cell["number"].as_u64().unwrap(),
            cell_id: text("cell_id"),
            cell_type: ["code", "thinking", "markdown"].into_iter().find(|kind| cell["cell_type"] == **kind).unwrap(),
            content: text("content"),
            metadata: cell["metadata"].clone(),
            outputs: cell["outputs"].clone(),
            execution_count: cell["execution_count"].as_u64(),
            ended: cell["ended"].clone(),
            left_out: None,
        }));
        let lines = view.lines(&event, Language::English).unwrap_or_default();
        lines.into_iter().map(|(look, line)| format!("{look:?}|{line}")).collect()
    }

    #[test]
    fn what_became_of_the_kernel_is_told_and_what_a_reply_lacked_is_not() {
        let mut view = CellView::default();
        let told = |code| Event::Warning { code, message: "the kernel\nis gone".into(), help: None };
        let lines = view.lines(&told("kernel-memory-gone"), Language::English);
        assert_eq!(lines, Some(vec![(LineStyle::Quiet, "! the kernel is gone".to_owned())]));
        assert_eq!(view.lines(&told("reply-bent"), Language::English), None);
    }

    #[test]
    fn a_cell_is_shown_once_and_its_outputs_when_it_ran() {
        let mut view = CellView::default();
        let chapter = json!({ "number": 1, "cell_id": "a", "cell_type": "markdown", "content": "## 一\n\n说明", "metadata": { "is_chapter": true } });
        assert_eq!(shown(&mut view, &chapter), ["Heading|## 一", "Words|", "Words|说明", "Words|"]);
        assert!(shown(&mut view, &chapter).is_empty(), "a text that is put again is not new");
        let mut code = json!({ "number": 2, "cell_id": "b", "cell_type": "code", "content": "print(1)\n1/0\n" });
        assert_eq!(shown(&mut view, &code), ["Words|│ print(1)", "Words|│ 1/0"]);
        code["ended"] = "error".into();
        code["execution_count"] = 3.into();
        code["outputs"] = json!([
            { "output_type": "stream", "name": "stdout", "text": "1%\r100%\u{1b}[31m\u{7}" },
            { "output_type": "display_data", "data": { "image/png": { "left_out": 9 } }, "metadata": {} },
            { "output_type": "error", "ename": "ZeroDivisionError", "evalue": "division\nby zero", "traceback": [] },
        ]);
        let expected =
            ["Quiet|[3] print(1)", "Quiet|  100%␇", "Quiet|  <image/png>", "Error|  ✗ ZeroDivisionError: division"];
        assert_eq!(shown(&mut view, &code), expected);
        let late = json!({ "number": 3, "cell_type": "code", "content": "x", "ended": "timed_out" });
        assert_eq!(shown(&mut view, &late), ["Words|│ x", "Error|  ✗ interrupted: it exceeded the time limit"]);
    }

    #[test]
    fn what_is_long_is_cut_and_what_is_odd_harms_nobody() {
        let mut view = CellView::default();
        let text = "行\n".repeat(40) + &"长".repeat(300);
        let thought =
            json!({ "number": 1, "cell_type": "thinking", "content": text, "metadata": { "agent_name": "A\u{1b}" } });
        let lines = shown(&mut view, &thought);
        assert_eq!(
            (lines.len(), lines[0].as_str(), lines[8].as_str()),
            (9, "Quiet|· A is thinking: 行", "Quiet|· … and 33 more lines")
        );
        let output = json!([{ "output_type": "stream", "text": "x".repeat(500) }]);
        let code = json!({ "number": 2, "cell_type": "code", "content": "", "ended": "ok", "outputs": output, "metadata": "cut" });
        assert_eq!(shown(&mut view, &code)[0].chars().count(), "Quiet|  ".len() + MOST_COLUMNS + 1);
        let failed = Event::NotebookAction {
            action: "exec".into(),
            by: "script",
            cell_id: None,
            success: false,
            error: Some("there is no cell `x`".into()),
            effects: vec![],
        };
        let told = vec![(LineStyle::Error, "exec failed: there is no cell `x`".to_owned())];
        assert_eq!(view.lines(&failed, Language::English), Some(told));
    }
}
