//! Converts markdown to HTML. Text of models and persons is untrusted: HTML in it is shown as text, only links to web and mail
//! addresses are kept, and no image is loaded.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use crate::notebook::export::image::is_picture_address;
use bcc_lang::source::render::html::escape;
use bcc_lang::source::render::visible::visible;

/// The maximum size of text that is read as markdown, in bytes; longer text is shown as is.
pub(crate) const MAX_MARKDOWN_BYTES: usize = 1024 * 1024;

/// What is read in addition to CommonMark.
pub(crate) const MARKDOWN: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// The allowed prefixes of link addresses.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

/// `text`, read as markdown, as HTML.
pub(crate) fn markdown_html(text: &str) -> String {
    if text.len() > MAX_MARKDOWN_BYTES {
        return format!("<pre class=\"raw\">{}</pre>\n", escape(text));
    }
    let text = visible(&text.replace("\r\n", "\n").replace('\r', "\n"));
    let mut links = Vec::new();
    let events = Parser::new_ext(&text, MARKDOWN).map(|event| sanitize(event, &mut links));
    let mut page = String::with_capacity(text.len() * 2);
    html::push_html(&mut page, events);
    page
}

/// The event or its replacement. `links` holds for each open link whether it is shown as a link.
fn sanitize<'t>(event: Event<'t>, links: &mut Vec<bool>) -> Event<'t> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Link { dest_url, title, .. }) => {
            let shown = is_link(&dest_url);
            links.push(shown);
            inline_html(if shown { link_start(&dest_url, &title) } else { String::new() })
        }
        Event::End(TagEnd::Link) => inline_html(if links.pop() == Some(true) { "</a>".into() } else { String::new() }),
        // An embedded image is shown; for any other, its description and address are shown.
        Event::Start(Tag::Image { ref dest_url, .. }) if is_picture_address(dest_url) => event,
        Event::Start(Tag::Image { dest_url, title, .. }) => {
            let shown = is_link(&dest_url);
            links.push(shown);
            let link = if shown { link_start(&dest_url, &title) } else { "<span class=\"absent\">".into() };
            inline_html(format!("{link}🖼 "))
        }
        Event::End(TagEnd::Image) => match links.pop() {
            Some(true) => inline_html("</a>".into()),
            Some(false) => inline_html("</span>".into()),
            None => Event::End(TagEnd::Image),
        },
        other => other,
    }
}

fn inline_html(html: String) -> Event<'static> {
    Event::InlineHtml(CowStr::from(html))
}

fn link_start(address: &str, title: &str) -> String {
    let title = if title.is_empty() { String::new() } else { format!(" title=\"{}\"", escape(title)) };
    format!("<a href=\"{}\"{title} rel=\"noopener noreferrer\">", escape(address))
}

pub(crate) fn is_link(address: &str) -> bool {
    let has_scheme =
        |scheme: &&str| address.get(..scheme.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(scheme));
    SCHEMES.iter().any(has_scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_rendered_and_nothing_in_it_is_html() {
        let table = [
            (
                "## 一 `x`\n\n* a\n* **b**",
                "<h2>一 <code>x</code></h2>\n<ul>\n<li>a</li>\n<li><strong>b</strong></li>\n</ul>\n",
            ),
            ("a <script>alert(1)</script>", "<p>a &lt;script&gt;alert(1)&lt;/script&gt;</p>\n"),
            ("<img src=x onerror=alert(1)>", "<p>&lt;img src=x onerror=alert(1)&gt;</p>\n"),
            ("[a](javascript:alert(1))", "<p>a</p>\n"),
            (
                "[a](JaVaScRiPt:alert(1)) [b](//x) [c](data:text/html,x) [d](file:///x) [e](a.html)",
                "<p>a b c d e</p>\n",
            ),
            (
                "[a](https://x/?a=1&b=\"2\" \"t'\")",
                "<p><a href=\"https://x/?a=1&amp;b=&quot;2&quot;\" title=\"t&#39;\" rel=\"noopener noreferrer\">a</a></p>\n",
            ),
            (
                "[a](https://x \"t'\")",
                "<p><a href=\"https://x\" title=\"t&#39;\" rel=\"noopener noreferrer\">a</a></p>\n",
            ),
            ("<HTTPS://x> <b@c.de>", "<p><a href=\"HTTPS://x\" rel=\"noopener noreferrer\">HTTPS://x</a> b@c.de</p>\n"),
            ("![图](https://x/a.png)", "<p><a href=\"https://x/a.png\" rel=\"noopener noreferrer\">🖼 图</a></p>\n"),
            ("![图](a.png)", "<p><span class=\"absent\">🖼 图</span></p>\n"),
            ("![图](data:image/png;base64,AAAA)", "<p><img src=\"data:image/png;base64,AAAA\" alt=\"图\" /></p>\n"),
            (
                "[![图](a.png)](https://x)",
                "<p><a href=\"https://x\" rel=\"noopener noreferrer\"><span class=\"absent\">🖼 图</span></a></p>\n",
            ),
            ("a\u{0}\u{1b}[31m", "<p>a␀␛[31m</p>\n"),
        ];
        for (text, expected) in table {
            assert_eq!(markdown_html(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_text_that_is_too_long_to_read_is_shown_as_it_is() {
        let page = markdown_html(&"*".repeat(MAX_MARKDOWN_BYTES + 1));
        assert!(page.starts_with("<pre class=\"raw\">***"));
    }
}
