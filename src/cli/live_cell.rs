//! What the code of a cell prints at a terminal while it runs. A progress bar stays on its line.

use unicode_width::UnicodeWidthChar;

use crate::cli::columns::max_columns;
use crate::cli::progress::can_move_cursor;
use bcc_runtime::notebook::export::ansi;

/// Moves to the beginning of the line, and erases it.
const ERASE: &str = "\r\u{1b}[2K";

/// The lines of the cell that runs.
#[derive(Debug, Default)]
pub struct LiveCell {
    /// The cell whose output was shown.
    pub id: String,
    /// Whether the last line may still be replaced.
    is_open: bool,
    /// The last line that may still be replaced, if the terminal cannot write a line again.
    held: Option<String>,
}

impl LiveCell {
    /// What to write for a piece of output. `dimmed` gives a text its style.
    pub fn write(&mut self, cell_id: &str, text: &str, dimmed: impl Fn(&str) -> String) -> String {
        if self.id != cell_id {
            cell_id.clone_into(&mut self.id);
        }
        let mut written = String::new();
        let text = text.replace("\r\n", "\n");
        for piece in text.split_inclusive(['\n', '\r']) {
            let line = ansi::plain(piece.trim_end_matches(['\n', '\r']));
            let is_update = !piece.ends_with('\n');
            if line.is_empty() && (is_update || self.is_open || self.held.is_some()) {
                if !is_update {
                    written.push_str(&self.end());
                }
                continue;
            }
            if is_update && !can_move_cursor() {
                self.held = Some(dimmed(&format!("  {line}")));
                continue;
            }
            self.held = None;
            if self.is_open {
                written.push_str(ERASE);
            }
            // A line that is replaced must not wrap.
            let line = if is_update { cut(&line) } else { line };
            written.push_str(&dimmed(&format!("  {line}")));
            self.is_open = is_update;
            if !is_update {
                written.push('\n');
            }
        }
        written
    }

    /// What ends the line that may still be replaced: it stays as it is.
    pub fn end(&mut self) -> String {
        match self.held.take() {
            Some(line) => format!("{line}\n"),
            None if std::mem::take(&mut self.is_open) => "\n".to_owned(),
            None => String::new(),
        }
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
        let mut write = |text: &str| cell.write("c", text, str::to_owned);
        assert_eq!(write("one\r\ntwo\r\n"), "  one\n  two\n");
        // Whether the terminal can write a line again or not, the last state of a progress bar is shown, and its line ends.
        let bar = format!("{}{}", write("1%\r2%\r"), cell.end());
        assert!(bar.ends_with("  2%\n"), "{bar:?}");
        assert_eq!(cell.end(), "");
    }
}
