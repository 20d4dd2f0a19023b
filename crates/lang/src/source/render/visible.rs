//! Makes the author's text safe for a terminal: what would move the cursor, change colors or ring becomes a visible character.

use std::borrow::Cow;

use annotate_snippets::normalize_untrusted_str;

/// The text with its control characters made visible; line breaks stay.
pub(crate) fn visible(text: &str) -> String {
    text.lines().map(|line| normalize_untrusted_str(&without_c1(line))).collect::<Vec<_>>().join("\n")
}

/// The text on one line: line breaks become spaces.
pub fn visible_line(text: &str) -> String {
    text.lines().map(|line| normalize_untrusted_str(&without_c1(line))).collect::<Vec<_>>().join(" ")
}

/// The text with each C1 control character, which some terminals obey and the renderer does not replace, replaced by a
/// character of the same length, so that spans stay right.
pub(crate) fn without_c1(text: &str) -> Cow<'_, str> {
    let c1 = |c: char| ('\u{80}'..='\u{9f}').contains(&c);
    if text.contains(c1) { Cow::Owned(text.replace(c1, "·")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_is_left() {
        let text: String = ('\0'..='\u{9f}').filter(|c| *c != '\n').collect();
        assert!(!visible(&text).chars().any(|c| c.is_control() && !matches!(c, '\t' | '\n')), "{:?}", visible(&text));
        assert!(!visible_line("a\r\nb\nc\u{1b}").contains(char::is_control));
        assert_eq!(visible("a\r\nb"), "a\nb");
    }
}
