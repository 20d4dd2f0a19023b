//! Text of authors made safe for a terminal: what would move a cursor, change colours or ring becomes a visible character.

use std::borrow::Cow;

use annotate_snippets::normalize_untrusted_str;

/// Text with its control characters made visible; line breaks stay.
pub(crate) fn visible(text: &str) -> String {
    text.lines().map(|line| normalize_untrusted_str(&without_c1(line))).collect::<Vec<_>>().join("\n")
}

/// The text as it is shown on one line: breaks become spaces.
pub fn visible_line(text: &str) -> String {
    text.lines().map(|line| normalize_untrusted_str(&without_c1(line))).collect::<Vec<_>>().join(" ")
}

/// Text whose C1 control characters, which some terminals obey and the renderer lets through, are a character of the same
/// length: spans stay right.
pub(crate) fn without_c1(text: &str) -> Cow<'_, str> {
    let c1 = |c: char| ('\u{80}'..='\u{9f}').contains(&c);
    if text.contains(c1) { Cow::Owned(text.replace(c1, "·")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let text: String = ('\0'..='\u{9f}').filter(|c| *c != '\n').collect();
        assert!(!visible(&text).chars().any(|c| c.is_control() && !matches!(c, '\t' | '\n')), "{:?}", visible(&text));
        assert!(!visible_line("a\r\nb\nc\u{1b}").contains(char::is_control));
        assert_eq!(visible("a\r\nb"), "a\nb");
    }
}
