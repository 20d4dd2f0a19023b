//! The room for text in a line of the terminal.

use rustix::termios::tcgetwinsize;

/// The widths of terminals that lines are made for.
const MIN_COLUMNS: u16 = 20;
const MAX_COLUMNS: u16 = 120;

/// The width of a terminal that does not know its own, as in a container.
const USUAL_COLUMNS: u16 = 80;

/// The columns that the text of a line does not use.
const RESERVED_COLUMNS: u16 = 3;

/// The maximum number of columns of the text of a line that is written again and again.
pub fn max_columns() -> usize {
    text_columns(tcgetwinsize(std::io::stdout()).map_or(0, |size| size.ws_col))
}

/// The same for a terminal of this width; 0 if it is not known.
fn text_columns(width: u16) -> usize {
    let width = if width == 0 { USUAL_COLUMNS } else { width };
    usize::from(width.clamp(MIN_COLUMNS, MAX_COLUMNS) - RESERVED_COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_without_a_width_is_as_wide_as_usual() {
        assert_eq!([0, 1, 20, 100, 300].map(text_columns), [77, 17, 17, 97, 117]);
    }
}
