//! Escapes text for HTML.

use crate::source::render::visible::visible;

/// Escapes text for any place in a page, including attributes. Characters that would be hidden or change the order of others
/// are visible.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for c in visible(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_read_as_html() {
        let all = "<a href=\"x\" on='y'>&amp;\u{0}\u{1b}\u{202e}]]>\n</a>";
        assert_eq!(escape(all), "&lt;a href=&quot;x&quot; on=&#39;y&#39;&gt;&amp;amp;␀␛\\u{202e}]]&gt;\n&lt;/a&gt;");
    }
}
