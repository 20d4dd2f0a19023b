//! The markdown format: texts as they are except for active parts, code and outputs in code fences, images embedded.

use serde_json::{Map, Value};

use crate::notebook::cell::{Cell, CellKind};
use crate::notebook::export::ansi::plain;
use crate::notebook::export::brief::NotebookMetadata;
use crate::notebook::export::harmless::{harmless_markdown, separate_cell};
use crate::notebook::export::image::{Picture, PictureFile, picture, picture_file};
use crate::notebook::export::output::{CellOutput, read};
use crate::notebook::export::scripts::{HtmlScripts, needs_scripts};
use crate::notebook::export::text::{fence, incomplete_run_text, one_line, quoted, thinking_text, thinking_title};
use bcc_lang::message::language::Language;
use bcc_lang::source::render::markdown::escape_line;
use bcc_lang::source::render::visible::visible;

/// The start of the first line of a file, before the id of its session.
pub const SESSION_COMMENT_START: &str = "<!-- bcc-script notebook of session: ";

/// The types of output data that markdown shows, in order of preference, with the name of the code fence.
const TEXTS: [(&str, &str); 5] = [
    ("text/plain", "text"),
    ("text/markdown", "markdown"),
    ("text/latex", "latex"),
    ("application/json", "json"),
    ("text/html", "html"),
];

/// The text for a chart.
const CHART: &str = "a chart that is drawn by a script: `--format html --run-scripts` shows it";

#[derive(Debug, Default)]
pub struct Markdown {
    written: bool,
    /// The pictures of the cells so far that are to be files.
    pub(crate) pictures: Vec<PictureFile>,
}

impl Markdown {
    pub fn head(&self, brief: &NotebookMetadata) -> String {
        let mark = format!("{SESSION_COMMENT_START}{} -->\n", one_line(&brief.session));
        if brief.shows_title { mark } else { format!("{mark}\n# {}\n", escape_line(brief.heading())) }
    }

    pub fn cell(&mut self, cell: &Cell, brief: &NotebookMetadata) -> String {
        self.written = true;
        match cell.kind {
            CellKind::Markdown => format!("\n{}\n", close_open_fence(&separate_cell(cell.content.trim_end()))),
            CellKind::Thinking => {
                let agent = escape_line(&thinking_title(cell, brief.language));
                format!(
                    "\n{}\n",
                    quoted(&format!("**{agent}**\n\n{}", harmless_markdown(thinking_text(cell).trim_end())))
                )
            }
            CellKind::Code => {
                let mut text = format!("\n{}", fenced(&visible(&cell.content), &brief.spec().language));
                for value in &cell.outputs {
                    let value = read(value);
                    let file = match (&value, &brief.pictures) {
                        (CellOutput::Data { data, .. }, Some(folder)) => Some((data, folder)).zip(picture_file(data)),
                        _ => None,
                    };
                    match file {
                        Some(((data, folder), file)) => {
                            let address = format!("{folder}/{}", file.name);
                            text.push_str(&format!("\n![{}]({address})\n", escape_line(&alt_text(data))));
                            self.pictures.push(file);
                        }
                        None => text.push_str(&output(&value, brief.language)),
                    }
                }
                if let Some(message) = incomplete_run_text(cell, brief.language) {
                    text.push_str(&format!("\n*{message}*\n"));
                }
                text
            }
        }
    }

    /// The text after the cells: nothing.
    pub fn tail(&self) -> String {
        String::new()
    }
}

fn output(output: &CellOutput, language: Language) -> String {
    match output {
        CellOutput::Stream { text, .. } => output_block(text, "text"),
        CellOutput::Error { name, value, traceback } => {
            let lines = if traceback.is_empty() { format!("{name}: {value}") } else { traceback.join("\n") };
            output_block(&lines, "text")
        }
        CellOutput::Data { data, .. } => match picture(data) {
            Some(Picture::Shown(address)) => format!("\n![{}]({address})\n", escape_line(&alt_text(data))),
            Some(Picture::LeftOut(mime, bytes)) => {
                format!("\n*{}*\n", omitted_image(mime, bytes, language))
            }
            None if needs_scripts(data).is_some_and(HtmlScripts::is_library) => String::new(),
            None if needs_scripts(data).is_some() => format!("\n*{}*\n", language.translate(CHART)),
            None => {
                let text = TEXTS.iter().find_map(|(mime, name)| Some((data.get(*mime)?, *name)));
                match text {
                    Some((Value::String(text), name)) => output_block(text, name),
                    Some((other, name)) => output_block(&format!("{other:#}"), name),
                    None => output_block(&mime_types(data), "text"),
                }
            }
        },
    }
}

/// The text for an image that is not shown.
pub(crate) fn omitted_image(mime: &str, bytes: usize, language: Language) -> String {
    let bytes = bytes.to_string();
    language.format(
        "omitted here: {mime}, {bytes} bytes; the .ipynb file contains it",
        &[("mime", mime), ("bytes", &bytes)],
    )
}

/// The types of data that no format can show.
pub(crate) fn mime_types(data: &Map<String, Value>) -> String {
    data.keys().map(|mime| one_line(mime)).collect::<Vec<_>>().join(", ")
}

/// The alternative text of an image.
pub(crate) fn alt_text(data: &Map<String, Value>) -> String {
    let text = data.get("text/plain").and_then(Value::as_str).unwrap_or("image");
    one_line(text).chars().take(100).collect()
}

/// Output in a code fence; empty if it shows nothing.
fn output_block(text: &str, name: &str) -> String {
    let text = plain(text);
    if text.trim().is_empty() { String::new() } else { format!("\n{}", fenced(text.trim_end_matches('\n'), name)) }
}

fn fenced(text: &str, name: &str) -> String {
    let fence = fence(text);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    // A language name is one word of letters, digits and `+#-._`.
    let allowed = |c: &char| c.is_alphanumeric() || matches!(c, '+' | '#' | '-' | '.' | '_');
    let name: String = name.chars().filter(allowed).take(40).collect();
    format!("{fence}{name}\n{text}{end}{fence}\n")
}

/// The text with an open fence closed, so that a cell cannot affect the following ones.
fn close_open_fence(text: &str) -> String {
    let mut open: Option<(char, usize)> = None;
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
    match open {
        Some((mark, length)) => format!("{text}\n{}", mark.to_string().repeat(length)),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_fence_is_closed() {
        let table = [
            ("a", "a"),
            ("```python\nx", "```python\nx\n```"),
            ("~~~~\n```\n~~~", "~~~~\n```\n~~~\n~~~~"),
            ("```\nx\n```", "```\nx\n```"),
            ("```\nx\n````  ", "```\nx\n````  "),
            ("``` a`b", "``` a`b"),
            ("    ```", "    ```"),
        ];
        for (text, expected) in table {
            assert_eq!(close_open_fence(text), expected, "{text:?}");
        }
    }
}
