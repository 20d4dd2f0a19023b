//! What the code of a cell prints at a terminal while it runs. An unfinished line goes on where it is, and a progress bar stays on its
//! line.

use unicode_width::UnicodeWidthChar;

use crate::cli::columns::max_columns;
use crate::cli::progress::can_move_cursor;
use bcc_runtime::notebook::export::ansi;

/// Moves to the beginning of the line, and erases it.
const ERASE: &str = "\r\u{1b}[2K";

/// The output of the cell that runs.
#[derive(Debug, Default)]
pub struct LiveCell {
    /// The cell whose output was shown.
    pub id: String,
    /// The last line, until it ends.
    open: Option<OpenLine>,
}

/// A line that has not ended.
#[derive(Debug)]
struct OpenLine {
    /// What printed it.
    stream: &'static str,
    /// Its text, since it was replaced the last time.
    text: String,
    /// What the terminal shows of it.
    shown: String,
    /// Whether the next text replaces it.
    is_over: bool,
    /// Whether it is replaced over and over, as progress bars are.
    is_bar: bool,
    /// Its last state, if the terminal cannot write a line again.
    held: Option<String>,
}

impl OpenLine {
    const fn new(stream: &'static str) -> Self {
        Self { stream, text: String::new(), shown: String::new(), is_over: false, is_bar: false, held: None }
    }

    /// Adds a text, and what to write for it. `ending` is `\n` or `\r`, if one of them ends it.
    fn add(&mut self, text: &str, ending: Option<char>, dimmed: &impl Fn(&str) -> String) -> String {
        if self.is_over && !text.is_empty() {
            self.text.clear();
            self.is_over = false;
        }
        self.text.push_str(text);
        self.is_over |= ending == Some('\r');
        self.is_bar |= self.is_over;
        let is_complete = ending == Some('\n');
        let line = ansi::plain(&self.text);
        // A line that is replaced must not wrap.
        let line = if self.is_bar && !is_complete { cut(&line) } else { line };
        if line == self.shown {
            self.held = None;
            return String::new();
        }
        if self.is_bar && !is_complete && !can_move_cursor() {
            self.held = Some(dimmed(&format!("  {line}")));
            return String::new();
        }
        self.held = None;
        let written = match line.strip_prefix(self.shown.as_str()) {
            Some(rest) if !self.shown.is_empty() => dimmed(rest),
            _ => format!("{}{}", self.start_over(), dimmed(&format!("  {line}"))),
        };
        self.shown = line;
        written
    }

    /// What makes room for another line in the place of this one, or below it if it cannot be erased.
    fn start_over(&self) -> &'static str {
        match self.shown.is_empty() {
            true => "",
            false if can_move_cursor() && cut(&self.shown) == self.shown => ERASE,
            false => "\n",
        }
    }

    /// What ends it: it stays as it is.
    fn end(self) -> String {
        match &self.held {
            Some(held) => format!("{}{held}\n", self.start_over()),
            None if self.shown.is_empty() => String::new(),
            None => "\n".to_owned(),
        }
    }
}

impl LiveCell {
    /// What to write for a piece of output of a stream. `dimmed` gives a text its style.
    pub fn write(
        &mut self,
        cell_id: &str,
        stream: &'static str,
        text: &str,
        dimmed: impl Fn(&str) -> String,
    ) -> String {
        if self.id != cell_id {
            cell_id.clone_into(&mut self.id);
        }
        let mut written = String::new();
        let text = text.replace("\r\n", "\n");
        let mut bar = None;
        if let Some(open) = self.open.take_if(|open| open.stream != stream) {
            // A progress bar stays below the lines that are printed meanwhile.
            if open.is_bar && open.held.is_none() && text.ends_with('\n') && open.start_over() != "\n" {
                written.push_str(open.start_over());
                bar = Some(open);
            } else {
                written.push_str(&open.end());
            }
        }
        for piece in text.split_inclusive(['\n', '\r']) {
            let ending = piece.chars().next_back().filter(|last| matches!(last, '\n' | '\r'));
            let body = piece.trim_end_matches(['\n', '\r']);
            let mut line = self.open.take().unwrap_or(OpenLine::new(stream));
            written.push_str(&line.add(body, ending, &dimmed));
            if ending != Some('\n') {
                self.open = Some(line);
            } else if line.shown.is_empty() {
                written.push_str(&format!("{}\n", dimmed("  ")));
            } else {
                written.push_str(&line.end());
            }
        }
        if let Some(bar) = bar {
            if !bar.shown.is_empty() {
                written.push_str(&dimmed(&format!("  {}", bar.shown)));
            }
            self.open = Some(bar);
        }
        written
    }

    /// Whether the line that is shown last has not ended.
    pub fn is_open(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.shown.is_empty())
    }

    /// What ends the line that has not ended: it stays as it is.
    pub fn end(&mut self) -> String {
        self.open.take().map(OpenLine::end).unwrap_or_default()
    }
}

/// The beginning of a line that fits into the terminal.
fn cut(line: &str) -> String {
    let mut left = max_columns();
    line.chars()
        .take_while(|char| {
            let width = char.width().unwrap_or(0);
            let fits = width <= left;
            left = left.saturating_sub(width);
            fits
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_another_system_is_shown_and_an_update_that_ends_stays() {
        let mut cell = LiveCell::default();
        let mut write = |text: &str| cell.write("c", "stdout", text, str::to_owned);
        assert_eq!(write("one\r\ntwo\r\n"), "  one\n  two\n");
        // Whether the terminal can write a line again or not, the last state of a progress bar is shown, and its line ends.
        let bar = format!("{}{}", write("1%\r2%\r"), cell.end());
        assert!(bar.ends_with("  2%\n"), "{bar:?}");
        assert_eq!(cell.end(), "");
    }

    #[test]
    fn an_unfinished_line_is_continued_and_what_another_stream_prints_gets_lines_of_its_own() {
        let mut cell = LiveCell::default();
        let mut write = |stream, text: &str| cell.write("c", stream, text, str::to_owned);
        assert_eq!(write("stdout", "par"), "  par");
        assert_eq!(write("stdout", "tial"), "tial");
        assert_eq!(write("stdout", " line\nnext"), " line\n  next");
        assert_eq!(write("stderr", "a warning\n"), "\n  a warning\n");
        assert_eq!(write("stdout", "\n\nlast"), "  \n  \n  last");
        // A color that comes in two pieces.
        assert_eq!(write("stdout", "\u{1b}[31mred\u{1b}[0m\n"), "red\n");
        assert_eq!(cell.end(), "");
    }
}
