//! Escapes text for labels of Mermaid.

use std::fmt::Write as _;

/// One line as a part of a label. A browser parses it as HTML and Mermaid as Markdown, so special characters of both are written
/// as character codes.
pub fn escape_line(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut previous = ' ';
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        let inside = previous.is_alphanumeric() && characters.peek().is_some_and(|next| next.is_alphanumeric());
        let plain = match c {
            '_' | '-' => inside,
            // `1.` and `1)` would start a list.
            '.' | ')' => !previous.is_ascii_digit(),
            // `fa:fa-user` would be an icon.
            ':' => characters.peek().is_none_or(|next| next.is_whitespace()),
            ' ' | ',' | '!' | '?' | '(' | '/' | '=' | '%' | '\'' => true,
            c => !c.is_ascii_punctuation(),
        };
        if plain {
            text.push(c)
        } else {
            let _ = write!(text, "#{};", u32::from(c));
        }
        previous = c;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_looks_like_an_icon_is_escaped() {
        assert_eq!(escape_line("fa:fa-user"), "fa#58;fa-user");
        assert_eq!(escape_line("mdi:home: two:"), "mdi#58;home: two:");
    }
}
