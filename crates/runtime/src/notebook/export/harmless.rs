//! Makes the markdown of a cell harmless for a markdown file, whose reader may render HTML and load images: HTML becomes text,
//! images become links, and only links to web and mail addresses stay links.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use crate::notebook::export::html::rendered::{MARKDOWN, MAX_MARKDOWN_BYTES, is_link};
use crate::notebook::export::image::is_picture_address;
use bcc_lang::source::render::markdown::escape_lines;
use bcc_lang::source::render::visible::visible;

/// The limit on changes that reveal further ones: what stands in an HTML block is not read as markdown before it is text.
const MAX_PASSES: usize = 20;

/// How a reader may read the file: with tables, or as CommonMark. In a row of a table, code and HTML begin and end in other places.
const READINGS: [Options; 2] = [MARKDOWN, Options::empty()];

/// A comment ends a list.
const SEPARATOR: &str = "<!-- -->";

/// What stands for an image before its description.
const IMAGE_SIGN: &str = "🖼 ";

/// The markdown without active parts. Everything else is as it was written.
pub(crate) fn harmless_markdown(text: &str) -> String {
    let mut text = visible(text);
    if text.len() > MAX_MARKDOWN_BYTES {
        return escape_lines(&text, "");
    }
    for _ in 0..MAX_PASSES {
        let changes = changes(&text);
        if changes.is_empty() {
            return text;
        }
        let mut changed = String::with_capacity(text.len() + changes.len() * 4);
        let mut copied = 0;
        for (at, change) in changes {
            changed += text.get(copied..at).unwrap_or_default();
            copied = match change {
                Change::Escape => {
                    changed.push('\\');
                    at
                }
                Change::Image => {
                    changed += IMAGE_SIGN;
                    at + 1
                }
            };
        }
        changed += text.get(copied..).unwrap_or_default();
        text = changed;
    }
    escape_lines(&text, "")
}

/// The markdown of a cell as a part of a file: an indented start would otherwise continue a list of the cell before, and what is code
/// in the cell could be HTML there. A block of code that is left open ends with the cell, or the next fence would close it.
pub(crate) fn separate_cell(text: &str) -> String {
    let mut text = harmless_markdown(text);
    if let Some(fence) = open_fence(&text) {
        text = format!("{text}\n{fence}");
    }
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if first.starts_with([' ', '\t']) { format!("{SEPARATOR}\n\n{text}") } else { text }
}

/// The fence of the block of code that also contains what follows the text.
fn open_fence(text: &str) -> Option<String> {
    let followed = format!("{text}\n\nx");
    READINGS.into_iter().find_map(|options| open_fence_of(&followed, options))
}

fn open_fence_of(followed: &str, options: Options) -> Option<String> {
    let last = Parser::new_ext(followed, options).into_offset_iter().filter_map(|(event, range)| {
        let is_fenced = matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))));
        (is_fenced && range.end == followed.len()).then_some(range.start)
    });
    let opening = followed.get(last.last()?..)?;
    let mark = opening.chars().next()?;
    Some(opening.chars().take_while(|c| *c == mark).collect())
}

/// What happens to the character at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// It becomes text.
    Escape,
    /// The `!` before an image becomes a sign, so that the image is a link.
    Image,
}

/// The positions of parts that are active in any of the readings, in order. Where another one reads code, it shows the change.
fn changes(text: &str) -> Vec<(usize, Change)> {
    let mut changes: Vec<(usize, Change)> =
        READINGS.into_iter().flat_map(|options| changes_of(text, options)).collect();
    changes.sort_unstable();
    changes.dedup_by_key(|(at, _)| *at);
    changes
}

fn changes_of(text: &str, options: Options) -> Vec<(usize, Change)> {
    let parser = Parser::new_ext(text, options);
    // An address that is defined in one cell could become that of an image in another cell.
    let definitions = parser.reference_definitions().iter().map(|(_, definition)| definition.span.clone());
    let opening = |range: std::ops::Range<usize>| {
        let at = text.get(range.clone()).and_then(|part| part.find(['[', '<']));
        at.map(|at| (range.start + at, Change::Escape))
    };
    let mut changes: Vec<(usize, Change)> = definitions.filter_map(opening).collect();
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Html(html) | Event::InlineHtml(html) if html.contains('<') => {
                let part = text.get(range.clone()).unwrap_or_default();
                changes.extend(part.match_indices('<').map(|(at, _)| (range.start + at, Change::Escape)));
            }
            Event::Start(Tag::Image { dest_url, .. }) if !is_picture_address(&dest_url) => {
                changes.push((range.start, Change::Image));
            }
            Event::Start(Tag::Link { dest_url, .. }) if !is_link(&dest_url) => changes.extend(opening(range)),
            _ => {}
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn html_images_and_other_addresses_are_text_and_everything_else_stays() {
        let kept = "# 一\n\n* **b** `<b>` [a](https://x.y) <https://z>\n\n| a |\n|---|\n| 1 |\n\n```html\n<b>\n```\n\n1 < 2 & 3 > 2";
        let table = [
            (kept, kept),
            ("a <b onclick=x>c</b>", "a \\<b onclick=x>c\\</b>"),
            ("<script>\nalert(1)\n</script>", "\\<script>\nalert(1)\n\\</script>"),
            ("<div>\n![x](http://a/b)\n</div>", "\\<div>\n🖼 [x](http://a/b)\n\\</div>"),
            ("<!-- a\n\nb", "\\<!-- a\n\nb"),
            ("![图](https://a/b.png)", "🖼 [图](https://a/b.png)"),
            ("![图](file:///etc/passwd)", "🖼 \\[图](file:///etc/passwd)"),
            ("![](data:image/png;base64,AAAA)", "![](data:image/png;base64,AAAA)"),
            ("[a](javascript:alert(1)) <javascript:x>", "\\[a](javascript:alert(1)) \\<javascript:x>"),
            ("[a][b]\n\n[b]: javascript:x", "\\[a][b]\n\n\\[b]: javascript:x"),
            ("[x]: http://a/b.png", "\\[x]: http://a/b.png"),
            ("a\u{1b}\u{202e}b", "a␛\\u{202e}b"),
            ("| h | i |\n|---|---|\n| ` | `<b>` |", "| h | i |\n|---|---|\n| ` | `\\<b>` |"),
            ("| h |\n|---|\n| `a\\|<b>` |", "| h |\n|---|\n| `a\\|<b>` |"),
        ];
        for (text, expected) in table {
            assert_eq!(harmless_markdown(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_fence_that_is_left_open_ends_with_its_cell() {
        for (text, expected) in [
            ("```", "```\n```"),
            ("a\n\n  ~~~~html\n<b>", "a\n\n  ~~~~html\n<b>\n~~~~"),
            ("```\n```", "```\n```"),
            ("* a\n  ```\n  b", "* a\n  ```\n  b"),
            ("````\n```", "````\n```\n````"),
        ] {
            assert_eq!(separate_cell(text), expected, "{text:?}");
        }
    }

    fn nasty() -> impl Strategy<Value = String> {
        let parts = vec![
            "<b>",
            "<!--",
            "-->",
            "</div>",
            "<div>",
            "<script>",
            "<?",
            "<",
            ">",
            "![",
            "[",
            "]",
            "](http://a)",
            "](javascript:x)",
            "](x)",
            "[x]",
            ": http://a",
            "[x]: ",
            "\n",
            "\n\n",
            "    ",
            "`",
            "```",
            "*",
            "-",
            " ",
            "a",
            "\\",
            "&lt;",
            "<http://a>",
            "<a@b.c>",
            "\u{202e}",
            "> ",
            "|",
            "\n|---|\n",
            "| h |\n|---|\n| ` | `",
            "~~",
            "[ ] ",
            "1. ",
            "!",
            "(",
            ")",
        ];
        proptest::collection::vec(proptest::sample::select(parts), 0..20).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn two_cells_together_have_no_active_part(one in nasty(), other in nasty()) {
            let document = format!("{}\n\n{}\n", separate_cell(&one), separate_cell(&other));
            for event in READINGS.into_iter().flat_map(|options| Parser::new_ext(&document, options)) {
                let is_active = match &event {
                    Event::Html(html) | Event::InlineHtml(html) => html.contains('<') && html.trim_end() != SEPARATOR,
                    Event::Start(Tag::Image { dest_url, .. }) => !is_picture_address(dest_url),
                    Event::Start(Tag::Link { dest_url, .. }) => !is_link(dest_url),
                    _ => false,
                };
                prop_assert!(!is_active, "{event:?} in {document:?}");
            }
        }
    }
}
