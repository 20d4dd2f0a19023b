//! Text of authors inside of HTML.

use bcc_lang::source::render::visible::visible_line;

/// One line of text as it may stand anywhere in the page, in attributes too: what HTML would read as its own is escaped, and
/// control characters are visible ones.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in visible_line(text).chars() {
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
        assert_eq!(
            escaped(r#"<a href="x" on='y'>&amp;</a>"#),
            "&lt;a href=&quot;x&quot; on=&#39;y&#39;&gt;&amp;amp;&lt;/a&gt;"
        );
        assert_eq!(escaped("名字 {{ 用户名 }}"), "名字 {{ 用户名 }}");
        let all: String = ('\0'..='\u{9f}').collect();
        assert!(!escaped(&all).contains(|c: char| c.is_control() && c != '\t'));
    }
}
