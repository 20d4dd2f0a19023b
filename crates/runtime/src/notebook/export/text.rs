//! Texts that the formats share: thoughts, headings and code fences.

use crate::notebook::cell::{Cell, CellEnd};
use bcc_lang::message::language::Language;
use bcc_lang::source::render::markdown::longest_run;
use bcc_lang::source::render::visible::visible_line;

/// The maximum length of a heading in a table of contents, in characters.
pub(crate) const MAX_HEADING: usize = 120;

/// The heading of a thinking cell, on one line.
pub fn thinking_title(cell: &Cell, language: Language) -> String {
    let agent = cell.metadata.agent_name.as_deref().map(one_line).filter(|agent| !agent.is_empty());
    match (agent, cell.metadata.finished_thinking) {
        (Some(agent), false) => language.format("{agent} is thinking", &[("agent", &agent)]),
        (Some(agent), true) => language.format("{agent} thought", &[("agent", &agent)]),
        (None, false) => language.translate("thinking").into_owned(),
        (None, true) => language.translate("thought").into_owned(),
    }
}

/// The text of a thinking cell (docs/notebook.md): `custom_text` instead of the thought if it is set, followed by the pieces.
pub fn thinking_text(cell: &Cell) -> String {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let metadata = &cell.metadata;
    let text = given(&metadata.custom_text).or_else(|| given(&metadata.thinking_text));
    let mut shown = text.unwrap_or_else(|| cell.content.clone());
    for piece in metadata.text_array.iter().filter(|piece| !piece.trim().is_empty()) {
        // A piece that is already a line of the text is not repeated; a piece that is only part of a line is.
        if shown.trim() != piece.trim() && !shown.lines().any(|line| line.trim() == piece.trim()) {
            let gap = if shown.trim().is_empty() { "" } else { "\n\n" };
            shown.push_str(gap);
            shown.push_str(piece);
        }
    }
    shown
}

/// The first line of a heading cell without marks, for a table of contents.
pub fn heading(content: &str) -> String {
    let line = content.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line = one_line(line.trim().trim_start_matches('#').trim_end_matches('#'));
    let mut shown: String = line.chars().take(MAX_HEADING).collect();
    if line.chars().nth(MAX_HEADING).is_some() {
        shown.push('…');
    }
    shown
}

/// The number of cells, as text.
pub fn counted(cells: u64, language: Language) -> String {
    language.format("{count} cells", &[("count", &cells.to_string())])
}

/// The title of the table of contents.
pub fn contents(language: Language) -> String {
    language.translate("Contents").into_owned()
}

/// The text on one line, with what would be obeyed or hidden made visible.
pub fn one_line(text: &str) -> String {
    visible_line(text).trim().to_owned()
}

/// A fence of backticks that no line of `text` can close.
pub fn fence(text: &str) -> String {
    "`".repeat(longest_run(text).max(2) + 1)
}

/// `text` as a block quote.
pub fn quoted(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let quote = |line: &str| if line.is_empty() { ">".to_owned() } else { format!("> {line}") };
    text.split('\n').map(quote).collect::<Vec<_>>().join("\n")
}

/// The text for an end of code that its outputs may not show.
pub fn incomplete_run_text(cell: &Cell, language: Language) -> Option<String> {
    let message = match cell.ended? {
        CellEnd::Ok | CellEnd::Error => return None,
        CellEnd::TimedOut => "interrupted: it exceeded the time limit",
        CellEnd::Died => "the kernel died",
        CellEnd::Interrupted => "interrupted",
    };
    Some(language.translate(message).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notebook::cell::Metadata;

    #[test]
    fn a_piece_that_is_only_part_of_the_thought_is_shown() {
        let pieces = ["一", "想一想"].map(str::to_owned).to_vec();
        let metadata = Metadata { thinking_text: Some("想一想".into()), text_array: pieces, ..Metadata::default() };
        let cell = Cell { content: "想一想".into(), metadata, ..Cell::default() };
        assert_eq!(thinking_text(&cell), "想一想\n\n一");
    }

    #[test]
    fn a_thought_is_its_text_and_its_pieces_or_the_custom_text() {
        let cell = |thought: Option<&str>, custom: Option<&str>, pieces: &[&str]| Cell {
            content: "content".into(),
            metadata: Metadata {
                thinking_text: thought.map(str::to_owned),
                custom_text: custom.map(str::to_owned),
                text_array: pieces.iter().map(|piece| (*piece).to_owned()).collect(),
                ..Metadata::default()
            },
            ..Cell::default()
        };
        assert_eq!(thinking_text(&cell(None, None, &[])), "content");
        assert_eq!(thinking_text(&cell(Some("t"), Some(" "), &["a", "t", ""])), "t\n\na");
        assert_eq!(thinking_text(&cell(Some("t"), Some("custom"), &[])), "custom");
    }

    #[test]
    fn headings_quotes_and_fences_accept_any_text() {
        assert_eq!(heading("\n### 一\u{7}二 ##\n三"), "一␇二");
        assert_eq!(heading(&"长".repeat(200)).chars().count(), MAX_HEADING + 1);
        assert_eq!(quoted("a\r\n\rb"), "> a\n>\n> b");
        assert_eq!((fence("a").as_str(), fence("```` `").as_str()), ("```", "`````"));
    }
}
