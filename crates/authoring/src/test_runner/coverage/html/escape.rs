//! Text of authors inside of HTML.

use bcc_lang::source::render::html;
use bcc_lang::source::render::visible::visible_line;

/// One line of text as it may stand anywhere in the page, in attributes too: what HTML would read as its own is escaped, and
/// control characters are visible ones.
pub fn escaped(text: &str) -> String {
    html::escaped(&visible_line(text))
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
