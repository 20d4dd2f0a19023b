//! Escapes text for HTML.

use bcc_lang::source::render::html;
use bcc_lang::source::render::visible::visible_line;

/// One line of text, escaped for any place in the page including attributes. Control characters become visible.
pub fn escaped(text: &str) -> String {
    html::escape(&visible_line(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_in_a_text_is_escaped() {
        assert_eq!(
            escaped(r#"<a href="x" on='y'>&amp;</a>"#),
            "&lt;a href=&quot;x&quot; on=&#39;y&#39;&gt;&amp;amp;&lt;/a&gt;"
        );
        assert_eq!(escaped("名字 {{ 用户名 }}"), "名字 {{ 用户名 }}");
        let all: String = ('\0'..='\u{9f}').collect();
        assert!(!escaped(&all).contains(|c: char| c.is_control() && c != '\t'));
    }
}
