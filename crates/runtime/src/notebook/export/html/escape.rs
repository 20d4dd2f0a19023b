//! Text of others inside of HTML.

use crate::notebook::export::ansi::visible;
use bcc_lang::source::render::html;

/// A text as it may stand anywhere in a page, in attributes too: what HTML would read as its own is escaped, and control
/// characters other than line ends and tabs are visible ones.
pub fn escaped(text: &str) -> String {
    html::escaped(&text.chars().map(visible).collect::<String>())
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
