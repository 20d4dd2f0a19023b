//! Prepares text for drawings: on one line, with what would be hidden or change the order made visible, truncated if it is long.

use bcc_lang::source::render::visible::visible_line;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The maximum width of a line, in columns; a CJK character takes two.
pub(crate) const WIDEST: usize = 44;

/// The text on one line: whitespace is collapsed.
pub fn one_line(text: &str) -> String {
    visible_line(text).split_whitespace().collect::<Vec<_>>().join(" ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_put_on_one_line_and_truncated_by_width() {
        assert_eq!(one_line(" a\n\tb \u{1b}\u{202e}c\u{0}"), "a b ␛\\u{202e}c␀");
        assert_eq!(cut("短"), "短");
        let long = cut(&"焦虑".repeat(40));
        assert!(long.ends_with('…') && long.width() <= WIDEST, "{long}");
        assert_eq!(cut(&"a".repeat(WIDEST)).len(), WIDEST);
        assert_eq!(cut(&"a".repeat(WIDEST + 1)).width(), WIDEST);
    }
}
