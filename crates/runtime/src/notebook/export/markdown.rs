//! Markdown: texts as they are, code and outputs between fences, images in the file itself.

use serde_json::{Map, Value};

use crate::notebook::cell::{Cell, CellKind};
use crate::notebook::export::ansi::plain;
use crate::notebook::export::brief::Brief;
use crate::notebook::export::image::{Picture, picture};
use crate::notebook::export::output::{CellOutput, read};
use crate::notebook::export::text::{cut_short, fence, one_line, quoted, thinker, thought, words_only};
use bcc_lang::message::language::Language;

/// What the first line of a file says before the id of its session.
pub const MARK: &str = "<!-- bcc-script notebook of session: ";

/// The forms of an output's data in which markdown shows it, the first that is there counting; with the name of the fence.
const TEXTS: [(&str, &str); 5] = [
    ("text/plain", "text"),
    ("text/markdown", "markdown"),
    ("text/latex", "latex"),
    ("application/json", "json"),
    ("text/html", "html"),
];

#[derive(Debug, Default)]
pub struct Markdown {
    written: bool,
}

impl Markdown {
    pub fn head(&self, brief: &Brief) -> String {
        let mark = format!("{MARK}{} -->\n", one_line(&brief.session));
        if brief.shows_title { mark } else { format!("{mark}\n# {}\n", words_only(&one_line(brief.heading()))) }
    }

    pub fn cell(&mut self, cell: &Cell, brief: &Brief) -> String {
        self.written = true;
        match cell.kind {
            CellKind::Markdown => format!("\n{}\n", closed(cell.content.trim_end())),
            CellKind::Thinking => {
                let who = words_only(&thinker(cell, brief.language));
                format!("\n{}\n", quoted(&format!("**{who}**\n\n{}", thought(cell).trim_end())))
            }
            CellKind::Code => {
                let mut text = format!("\n{}", fenced(&cell.content, &brief.spec().language));
                for value in &cell.outputs {
                    text.push_str(&output(&read(value), brief.language));
                }
                if let Some(told) = cut_short(cell, brief.language) {
                    text.push_str(&format!("\n*{told}*\n"));
                }
                text
            }
        }
    }

    /// What stands after the cells: nothing.
    pub fn tail(&self) -> String {
        String::new()
    }
}

fn output(output: &CellOutput, language: Language) -> String {
    match output {
        CellOutput::Stream { text, .. } => shown(text, "text"),
        CellOutput::Error { name, value, traceback } => {
            let lines = if traceback.is_empty() { format!("{name}: {value}") } else { traceback.join("\n") };
            shown(&lines, "text")
        }
        CellOutput::Data { data, .. } => match picture(data) {
            Some(Picture::Shown(address)) => format!("\n![{}]({address})\n", words_only(&alternative(data))),
            Some(Picture::LeftOut(mime, bytes)) => {
                format!("\n*{}*\n", left_out(mime, bytes, language))
            }
            None => {
                let text = TEXTS.iter().find_map(|(mime, name)| Some((data.get(*mime)?, *name)));
                match text {
                    Some((Value::String(text), name)) => shown(text, name),
                    Some((other, name)) => shown(&format!("{other:#}"), name),
                    None => shown(&only_types(data), "text"),
                }
            }
        },
    }
}

/// What is said of an image that is not shown.
pub fn left_out(mime: &str, bytes: usize, language: Language) -> String {
    let bytes = bytes.to_string();
    language.filled(
        "omitted here: {mime}, {bytes} bytes; the .ipynb file contains it",
        &[("mime", mime), ("bytes", &bytes)],
    )
}

/// Of data that no form can show: its types.
pub fn only_types(data: &Map<String, Value>) -> String {
    data.keys().map(|mime| one_line(mime)).collect::<Vec<_>>().join(", ")
}

/// The words for who does not see a picture.
pub fn alternative(data: &Map<String, Value>) -> String {
    let text = data.get("text/plain").and_then(Value::as_str).unwrap_or("image");
    one_line(text).chars().take(100).collect()
}

/// Output between fences; nothing for one that shows nothing.
fn shown(text: &str, name: &str) -> String {
    let text = plain(text);
    if text.trim().is_empty() { String::new() } else { format!("\n{}", fenced(text.trim_end_matches('\n'), name)) }
}

fn fenced(text: &str, name: &str) -> String {
    let fence = fence(text);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    // A name of a language is one word of letters, digits and `+#-._`.
    let allowed = |c: &char| c.is_alphanumeric() || matches!(c, '+' | '#' | '-' | '.' | '_');
    let name: String = name.chars().filter(allowed).take(40).collect();
    format!("{fence}{name}\n{text}{end}{fence}\n")
}

/// A text whose open fence or comment ends with it: what one cell leaves open must not swallow those after it.
fn closed(text: &str) -> String {
    let mut open: Option<(char, usize)> = None;
    let (mut comment, mut rest) = (false, text);
    for line in text.lines() {
        let body = line.trim_start_matches(' ');
        let mark = body.chars().next().filter(|c| matches!(c, '`' | '~'));
        let run = mark.map_or(0, |mark| body.chars().take_while(|c| *c == mark).count());
        let after = body.get(run..).unwrap_or_default();
        if line.len() - body.len() > 3 || run < 3 {
            continue;
        }
        match (open, mark) {
            (None, Some('`')) if after.contains('`') => {}
            (None, Some(mark)) => open = Some((mark, run)),
            (Some((with, length)), Some(mark)) if mark == with && run >= length && after.trim().is_empty() => {
                open = None
            }
            _ => {}
        }
    }
    while let Some(at) = rest.find(if comment { "-->" } else { "<!--" }) {
        comment = !comment;
        rest = rest.get(at + 3..).unwrap_or_default();
    }
    match open {
        Some((mark, length)) => format!("{text}\n{}", mark.to_string().repeat(length)),
        None if comment => format!("{text}\n-->"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_leaves_open_ends_with_it() {
        let table = [
            ("a", "a"),
            ("```python\nx", "```python\nx\n```"),
            ("~~~~\n```\n~~~", "~~~~\n```\n~~~\n~~~~"),
            ("```\nx\n```", "```\nx\n```"),
            ("```\nx\n````  ", "```\nx\n````  "),
            ("``` a`b", "``` a`b"),
            ("    ```", "    ```"),
            ("a <!-- b", "a <!-- b\n-->"),
            ("a <!-- b --> c", "a <!-- b --> c"),
        ];
        for (text, expected) in table {
            assert_eq!(closed(text), expected, "{text:?}");
        }
    }
}
