//! Texts that the forms share: what is thought, the heading of a cell, how long a fence must be.

use crate::notebook::cell::{Cell, CellEnd};
use bcc_lang::message::language::Language;

/// The most characters of a heading in a table of contents.
pub const MOST_HEADING: usize = 120;

/// Who thinks, or thought, as one line.
pub fn thinker(cell: &Cell, language: Language) -> String {
    let agent = cell.metadata.agent_name.as_deref().map(one_line).filter(|agent| !agent.is_empty());
    match (agent, cell.metadata.finished_thinking) {
        (Some(agent), false) => language.filled("{agent} is thinking", &[("agent", &agent)]),
        (Some(agent), true) => language.filled("{agent} thought", &[("agent", &agent)]),
        (None, false) => language.said("thinking").into_owned(),
        (None, true) => language.said("thought").into_owned(),
    }
}

/// What a thinking cell shows (docs/notebook.md): `custom_text` instead of the thought where there is one, and the pieces.
pub fn thought(cell: &Cell) -> String {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let metadata = &cell.metadata;
    let whole = given(&metadata.custom_text).or_else(|| given(&metadata.thinking_text));
    let mut shown = whole.unwrap_or_else(|| cell.content.clone());
    for piece in metadata.text_array.iter().filter(|piece| !piece.trim().is_empty()) {
        // A piece that is a line of what is shown already says nothing new; one that is only a word of it does.
        if shown.trim() != piece.trim() && !shown.lines().any(|line| line.trim() == piece.trim()) {
            let gap = if shown.trim().is_empty() { "" } else { "\n\n" };
            shown.push_str(gap);
            shown.push_str(piece);
        }
    }
    shown
}

/// The first line of a heading's cell without its marks, as a table of contents shows it.
pub fn heading(content: &str) -> String {
    let line = content.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line = one_line(line.trim().trim_start_matches('#').trim_end_matches('#'));
    let mut shown: String = line.chars().take(MOST_HEADING).collect();
    if line.chars().nth(MOST_HEADING).is_some() {
        shown.push('…');
    }
    shown
}

/// How many cells there are, in words.
pub fn counted(cells: u64, language: Language) -> String {
    language.filled("{count} cells", &[("count", &cells.to_string())])
}

/// What stands over a table of contents.
pub fn contents(language: Language) -> String {
    language.said("Contents").into_owned()
}

/// A text on one line, without characters that control anything.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

/// A fence of backticks that no line of `text` can close.
pub fn fence(text: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(longest.max(2) + 1)
}

/// `text` as a block quote.
pub fn quoted(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let quote = |line: &str| if line.is_empty() { ">".to_owned() } else { format!("> {line}") };
    text.split('\n').map(quote).collect::<Vec<_>>().join("\n")
}

/// `text` so that markdown reads nothing in it but words.
pub fn words_only(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            words.push('\\');
        }
        words.push(c);
    }
    words
}

/// How code came to an end that its outputs may not tell of.
pub fn cut_short(cell: &Cell, language: Language) -> Option<String> {
    let told = match cell.ended? {
        CellEnd::Ok | CellEnd::Error => return None,
        CellEnd::TimedOut => "interrupted: it exceeded the time limit",
        CellEnd::Died => "the kernel died",
        CellEnd::Interrupted => "interrupted",
    };
    Some(language.said(told).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notebook::cell::Metadata;

    #[test]
    fn a_piece_that_is_only_a_word_of_the_thought_is_shown() {
        let pieces = ["一", "想一想"].map(str::to_owned).to_vec();
        let metadata = Metadata { thinking_text: Some("想一想".into()), text_array: pieces, ..Metadata::default() };
        let cell = Cell { content: "想一想".into(), metadata, ..Cell::default() };
        assert_eq!(thought(&cell), "想一想\n\n一");
    }

    #[test]
    fn a_thought_is_its_text_and_its_pieces_or_what_is_shown_instead() {
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
        assert_eq!(thought(&cell(None, None, &[])), "content");
        assert_eq!(thought(&cell(Some("t"), Some(" "), &["a", "t", ""])), "t\n\na");
        assert_eq!(thought(&cell(Some("t"), Some("custom"), &[])), "custom");
    }

    #[test]
    fn headings_and_quotes_and_fences_hold_whatever_they_are_made_of() {
        assert_eq!(heading("\n### 一\u{7}二 ##\n三"), "一 二");
        assert_eq!(heading(&"长".repeat(200)).chars().count(), MOST_HEADING + 1);
        assert_eq!(quoted("a\r\n\rb"), "> a\n>\n> b");
        assert_eq!((fence("a").as_str(), fence("```` `").as_str()), ("```", "`````"));
        assert_eq!(words_only("**a**<b>"), "\\*\\*a\\*\\*\\<b\\>");
    }
}
