//! Escapes text for HTML.

use crate::notebook::export::ansi::visible;
use bcc_lang::source::render::html;

/// Escapes a text for any place in a page, including attributes. Control characters other than line ends and tabs become
/// visible characters.
pub fn escaped(text: &str) -> String {
    html::escape(&text.chars().map(visible).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_read_as_html() {
        let all = "<a href=\"x\" on='y'>&amp;\u{0}\u{1b}]]></a>";
        assert_eq!(escaped(all), "&lt;a href=&quot;x&quot; on=&#39;y&#39;&gt;&amp;amp;␀␛]]&gt;&lt;/a&gt;");
    }
}
