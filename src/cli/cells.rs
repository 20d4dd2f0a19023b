//! Shows the cells of a notebook as text: headings and texts unchanged, code with the first lines of its output, thoughts dimmed,
//! the last line of an error in red.

use serde_json::Value;

use crate::cli::language::filled;
use bcc_lang::message::language::Language;
use bcc_lang::message::message::{Joint, Message};
use bcc_runtime::notebook::cell::{Cell, CellKind};
use bcc_runtime::notebook::export::ansi;
use bcc_runtime::notebook::export::output::{CellOutput, read};
use bcc_runtime::notebook::export::text::{incomplete_run_text, one_line, thinking_text, thinking_title};
use bcc_runtime::program::event::Event;
use bcc_runtime::program::shown_cell::{LINES_LEFT_OUT, ShownCell};

/// The limits on the lines of code, of a thought, and of all outputs of a cell that are shown; the remaining lines are counted.
const MAX_CODE: usize = 30;
const MAX_THOUGHT: usize = 8;
const MAX_OUTPUT: usize = 12;

/// The limit on the characters of a line.
const MAX_COLUMNS: usize = 200;

/// The warnings that are shown, because the output would be unclear without them. `/why` and `--json` show all warnings.
pub const SHOWN_WARNINGS: [&str; 19] = [
    "auto-debug-failed",
    "bad-plan",
    "behavior-cut-short",
    "behavior-unreadable",
    "command-not-started",
    "command-retried",
    "file-not-read",
    "file-not-written",
    "kernel-busy",
    "kernel-died",
    "kernel-memory-gone",
    "not-allowed",
    "processes-left",
    "too-many-actions",
    "too-many-moves",
    "unexpected-answer",
    "unknown-action",
    "unknown-step",
    "variable-withheld",
];

/// The beginning of a note about an output that was not kept.
const LEFT_OUT: &str = "[bcc-script left out ";

/// Shows cells as they are committed.
#[derive(Debug, Default)]
pub struct CellView {
    /// The cells that were shown, in order: the event that showed each, and its number.
    shown: Vec<(u64, u64)>,
}

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStyle {
    /// Text of the conversation.
    Words,
    /// A heading.
    Heading,
    /// Dimmed text.
    Quiet,
    /// An error.
    Error,
}

/// A line with its style.
pub type StyledLine = (LineStyle, String);

impl CellView {
    /// The lines for an event of a session, the one with the number `seq`. `None` if the event is not about the notebook, or there is
    /// nothing new to show. What the cell `streamed` printed was shown while it ran.
    pub fn lines(
        &mut self,
        (seq, event): (u64, &Event),
        streamed: &str,
        language: Language,
    ) -> Option<Vec<StyledLine>> {
        match event {
            Event::Cell(shown) => {
                Some(self.cell(&cell_of(shown), seq, streamed, language)).filter(|lines| !lines.is_empty())
            }
            // Other cells can get the numbers of those that are gone.
            Event::TakenBack { from_seq, .. } => {
                self.shown.retain(|(seq, _)| seq < from_seq);
                None
            }
            Event::NotebookAction { action, success: false, error, .. } => {
                let error = error.as_ref().map(|error| error.render(language)).unwrap_or_default();
                let text = filled("{action} failed: {error}", &[("action", action), ("error", &*error)]);
                Some(vec![(LineStyle::Error, one_line(&text))])
            }
            Event::Warning { code, message, .. } if SHOWN_WARNINGS.contains(code) => {
                Some(vec![(LineStyle::Quiet, format!("! {}", shortened(&one_line(&message.render(language)))))])
            }
            _ => None,
        }
    }

    fn cell(&mut self, cell: &Cell, seq: u64, streamed: &str, language: Language) -> Vec<StyledLine> {
        let is_new = self.shown.last().is_none_or(|(_, last)| cell.number > *last);
        if is_new {
            self.shown.push((seq, cell.number));
        }
        let mut lines = Vec::new();
        match cell.kind {
            CellKind::Markdown if is_new => {
                let metadata = &cell.metadata;
                let is_heading = metadata.is_chapter || metadata.is_section || metadata.is_step;
                let text = ansi::plain(cell.content.trim());
                for (number, line) in text.lines().enumerate() {
                    let style = if is_heading && number == 0 { LineStyle::Heading } else { LineStyle::Words };
                    lines.push((style, line.to_owned()));
                }
                lines.push((LineStyle::Words, String::new()));
            }
            CellKind::Thinking if is_new => {
                let parts = [thinking_title(cell, language), thinking_text(cell).trim().to_owned()];
                let text = Message::list(Joint::Colon, parts.map(Message::text)).render(language);
                lines.extend(
                    cut(&ansi::plain(&text), MAX_THOUGHT, 0, language)
                        .map(|line| (LineStyle::Quiet, format!("· {line}"))),
                );
            }
            CellKind::Code => {
                if is_new {
                    let code = ansi::plain(cell.content.trim_end());
                    lines.extend(cut(&code, MAX_CODE, 0, language).map(|line| (LineStyle::Words, format!("│ {line}"))));
                }
                if cell.ended.is_some() {
                    outputs(cell, is_new, !streamed.is_empty() && cell.id == streamed, language, &mut lines);
                }
            }
            CellKind::Markdown | CellKind::Thinking => {}
        }
        lines
    }
}

/// The cell of an event. Parts that were truncated and can no longer be parsed are omitted.
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
        ..Cell::default()
    }
}

/// The outputs of a code cell. For an earlier cell that ran again, the first line identifies the cell.
fn outputs(cell: &Cell, is_new: bool, is_streamed: bool, language: Language, lines: &mut Vec<StyledLine>) {
    if !is_new && !is_streamed && lines.is_empty() {
        let first = cell.content.lines().next().unwrap_or_default();
        let count = cell.execution_count.map_or_else(String::new, |count| count.to_string());
        lines.push((LineStyle::Quiet, shortened(&format!("[{count}] {}", ansi::plain(first)))));
    }
    let incomplete_run = incomplete_run_text(cell, language);
    let (mut text, mut error, mut left_out) = (String::new(), None, 0);
    for output in &cell.outputs {
        let lines_left_out = output.get(LINES_LEFT_OUT).and_then(Value::as_u64).unwrap_or(0);
        let output = read(output);
        if !(is_streamed && matches!(output, CellOutput::Stream { .. })) {
            left_out += lines_left_out;
        }
        match output {
            // What was not kept was shown all the same; that it was not kept has not been said.
            CellOutput::Stream { text: more, .. } if is_streamed => {
                more.lines().filter(|line| line.starts_with(LEFT_OUT)).for_each(|line| text.push_str(line));
            }
            CellOutput::Stream { text: more, .. } => text.push_str(&more),
            CellOutput::Data { data, .. } => {
                let plain = data.get("text/plain").and_then(Value::as_str).map(str::to_owned);
                let types = || data.keys().map(|mime| format!("<{mime}>")).collect::<Vec<_>>().join(" ");
                text.push_str(&plain.unwrap_or_else(types));
                text.push('\n');
            }
            // An interrupt is named below.
            CellOutput::Error { name, .. } if name == "KeyboardInterrupt" && incomplete_run.is_some() => {}
            CellOutput::Error { name, value, .. } => {
                error = Some(if value.is_empty() { name } else { format!("{name}: {value}") });
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
    }
    let text = ansi::plain(text.trim_end());
    let left_out = usize::try_from(left_out).unwrap_or(usize::MAX);
    lines.extend(cut(&text, MAX_OUTPUT, left_out, language).map(|line| (LineStyle::Quiet, format!("  {line}"))));
    if let Some(error) = error {
        let error = ansi::plain(&error);
        let last = error.lines().next().unwrap_or_default();
        lines.push((LineStyle::Error, format!("  ✗ {}", shortened(last))));
    }
    if let Some(reason) = incomplete_run {
        lines.push((LineStyle::Error, format!("  ✗ {reason}")));
    }
}

/// The first lines of a text, and the number of remaining lines, with those that the text itself lacks.
fn cut(text: &str, max_lines: usize, left_out: usize, language: Language) -> impl Iterator<Item = String> {
    let count = text.lines().count().saturating_add(left_out);
    let mut lines: Vec<String> = text.lines().take(max_lines).map(shortened).collect();
    let more = count - lines.len();
    if more > 0 {
        lines.push(match more {
            1 => language.translate("… and 1 more line").into_owned(),
            more => language.format("… and {count} more lines", &[("count", &more.to_string())]),
        });
    }
    lines.into_iter()
}

fn shortened(line: &str) -> String {
    let mut shown: String = line.chars().take(MAX_COLUMNS).collect();
    if line.chars().nth(MAX_COLUMNS).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_number_of_lines_that_are_not_shown_is_that_of_the_text() {
        let last = |text: &str, left_out| cut(text, 3, left_out, Language::English).last();
        let more = |count: &str| Some(format!("… and {count}"));
        for (text, left_out, expected) in [
            ("", 0, None),
            ("a", 0, Some("a".to_owned())),
            ("a\nb\nc\n", 0, Some("c".to_owned())),
            ("a\r\nb\r\nc\r\nd\r\n", 0, more("1 more line")),
            ("a\nb\nc\nd\ne", 0, more("2 more lines")),
            ("a\nb", 1, more("1 more line")),
            ("a\nb\nc\nd\n", 996, more("997 more lines")),
        ] {
            assert_eq!(last(text, left_out), expected, "{text:?}");
        }
    }

    /// The lines for the event of a cell with these parts.
    fn shown(view: &mut CellView, cell: &Value) -> Vec<String> {
        shown_at(view, 1, cell)
    }

    fn shown_at(view: &mut CellView, seq: u64, cell: &Value) -> Vec<String> {
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
        let lines = view.lines((seq, &event), "", Language::English).unwrap_or_default();
        lines.into_iter().map(|(style, line)| format!("{style:?}|{line}")).collect()
    }

    #[test]
    fn warnings_about_the_kernel_are_shown_and_warnings_about_replies_are_not() {
        let mut view = CellView::default();
        let warning = |code| Event::Warning { code, message: "the kernel\nis gone".into(), help: None };
        let lines = view.lines((1, &warning("kernel-memory-gone")), "", Language::English);
        assert_eq!(lines, Some(vec![(LineStyle::Quiet, "! the kernel is gone".to_owned())]));
        assert_eq!(view.lines((1, &warning("reply-bent")), "", Language::English), None);
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
        let interrupt =
            json!([{ "output_type": "error", "ename": "KeyboardInterrupt", "evalue": "", "traceback": [] }]);
        let stopped =
            json!({ "number": 4, "cell_type": "code", "content": "x", "ended": "interrupted", "outputs": interrupt });
        assert_eq!(shown(&mut view, &stopped), ["Words|│ x", "Error|  ✗ interrupted"]);
        let raised =
            json!({ "number": 5, "cell_type": "code", "content": "x", "ended": "error", "outputs": interrupt });
        assert_eq!(shown(&mut view, &raised), ["Words|│ x", "Error|  ✗ KeyboardInterrupt"]);
    }

    #[test]
    fn cells_that_follow_a_taken_back_answer_are_shown() {
        let mut view = CellView::default();
        let text = |number: u64| json!({ "number": number, "cell_id": "x", "cell_type": "markdown", "content": format!("text {number}") });
        for (seq, number) in [(3, 1), (8, 2), (9, 3)] {
            assert_eq!(shown_at(&mut view, seq, &text(number)).len(), 2, "{number}");
        }
        let (globals, plans) = (vec![], vec![]);
        let taken_back = Event::TakenBack { from_seq: 7, to_seq: 10, answers: 0, effects: 0, globals, plans };
        assert_eq!(view.lines((11, &taken_back), "", Language::English), None);
        assert!(shown_at(&mut view, 13, &text(1)).is_empty(), "the first cell is still there");
        assert_eq!(shown_at(&mut view, 14, &text(2)), ["Words|text 2", "Words|"]);
    }

    #[test]
    fn long_texts_are_cut_and_invalid_parts_are_ignored() {
        let mut view = CellView::default();
        let text = "行\n".repeat(40) + &"长".repeat(300);
        let thought =
            json!({ "number": 1, "cell_type": "thinking", "content": text, "metadata": { "agent_name": "A\u{1b}" } });
        let lines = shown(&mut view, &thought);
        assert_eq!(
            (lines.len(), lines[0].as_str(), lines[8].as_str()),
            (9, "Quiet|· A␛ is thinking: 行", "Quiet|· … and 33 more lines")
        );
        let output = json!([{ "output_type": "stream", "text": "x".repeat(500) }]);
        let code = json!({ "number": 2, "cell_type": "code", "content": "", "ended": "ok", "outputs": output, "metadata": "cut" });
        assert_eq!(shown(&mut view, &code)[0].chars().count(), "Quiet|  ".len() + MAX_COLUMNS + 1);
        let failed = Event::NotebookAction {
            action: "exec".into(),
            by: "script",
            cell_id: None,
            success: false,
            error: Some("there is no cell `x`".into()),
            effects: vec![],
        };
        let expected = vec![(LineStyle::Error, "exec failed: there is no cell `x`".to_owned())];
        assert_eq!(view.lines((1, &failed), "", Language::English), Some(expected));
    }
}
