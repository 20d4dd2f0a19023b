//! Texts of people made fit to stand in a drawing: on one line, without what no reader shows, and cut where they are long.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The widest line of a drawing, in columns; a CJK character takes two.
pub const WIDEST: usize = 44;

/// A text on one line: breaks and runs of blanks become one space, what is not shown or turns the order of what is shown
/// around becomes nothing.
pub fn one_line(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !is_hidden(*c));
    shown.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// [`one_line`], cut to what a drawing can hold.
pub fn cut(text: &str) -> String {
    let text = one_line(text);
    if text.width() <= WIDEST {
        return text;
    }
    let mut width = 0;
    let fits = text.chars().take_while(|c| {
        width += c.width().unwrap_or(0);
        width < WIDEST
    });
    format!("{}…", fits.collect::<String>().trim_end())
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
        // Neither XML nor a browser takes them.
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stands_on_one_line_and_is_cut_by_columns() {
        assert_eq!(one_line(" a\n\tb \u{1b}\u{202e}c\u{0}"), "a b c");
        assert_eq!(cut("短"), "短");
        let long = cut(&"焦虑".repeat(40));
        assert!(long.ends_with('…') && long.width() <= WIDEST, "{long}");
        assert_eq!(cut(&"a".repeat(WIDEST)).len(), WIDEST);
        assert_eq!(cut(&"a".repeat(WIDEST + 1)).width(), WIDEST);
    }
}
