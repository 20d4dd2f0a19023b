//! Prepares text for drawings: on one line, without invisible characters, truncated if it is long.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The maximum width of a line, in columns; a CJK character takes two.
pub(crate) const WIDEST: usize = 44;

/// The text on one line: whitespace is collapsed; invisible characters and bidirectional controls are removed.
pub fn one_line(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !is_hidden(*c));
    shown.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// [`one_line`], truncated to the maximum width.
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
        // These are invalid in XML and in browsers.
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_put_on_one_line_and_truncated_by_width() {
        assert_eq!(one_line(" a\n\tb \u{1b}\u{202e}c\u{0}"), "a b c");
        assert_eq!(cut("短"), "短");
        let long = cut(&"焦虑".repeat(40));
        assert!(long.ends_with('…') && long.width() <= WIDEST, "{long}");
        assert_eq!(cut(&"a".repeat(WIDEST)).len(), WIDEST);
        assert_eq!(cut(&"a".repeat(WIDEST + 1)).width(), WIDEST);
    }
}
