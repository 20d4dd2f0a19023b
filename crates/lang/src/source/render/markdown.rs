//! Escapes text for Markdown: it is read as it was written, and nothing of it becomes markup, a link, an image or HTML.

use crate::source::render::visible::{visible, visible_line};

/// The longest number of a list item, in digits.
const MAX_LIST_DIGITS: usize = 9;

/// The text on one line, for any place within a line.
pub fn escape_line(text: &str) -> String {
    escaped(visible_line(text).trim())
}

/// The text with its lines. Those after the first start with `indent`, so that they stay in the list item or block quote of the
/// first one.
pub fn escape_lines(text: &str, indent: &str) -> String {
    let text = visible(text);
    let mut document = String::with_capacity(text.len() + text.len() / 8);
    let mut gap = false;
    for line in text.lines() {
        if line.trim().is_empty() {
            gap = !document.is_empty();
            continue;
        }
        if !document.is_empty() {
            // Two spaces end a line without ending the paragraph.
            document += if gap { "\n" } else { "  \n" };
            if gap {
                document += indent.trim_end();
                document.push('\n');
            }
            document += indent;
        }
        gap = false;
        let body = line.trim_start_matches([' ', '\t']);
        // Spaces at the start of a line would be dropped, or make it a block of code.
        let spaces = line.chars().take(line.len() - body.len()).map(|c| if c == '\t' { 4 } else { 1 }).sum();
        document += &"\u{a0}".repeat(spaces);
        document += &escaped(body.trim_end());
    }
    document
}

/// The text on one line as a span of code.
pub fn code_span(text: &str) -> String {
    let text = visible_line(text);
    let fence = "`".repeat(longest_run(&text) + 1);
    // Without the spaces, backticks of the text would be part of the fence; and spaces at both ends would be dropped.
    let pad = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    if text.trim().is_empty() { String::new() } else { format!("{fence}{pad}{text}{pad}{fence}") }
}

/// The length of the longest run of backticks.
pub fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// One line without spaces at its ends, escaped where a character could be markup, and not elsewhere: people read the source too.
fn escaped(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len() + line.len() / 8);
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let mut previous = None;
    for (at, c) in line.char_indices() {
        let rest = line.get(at + c.len_utf8()..).unwrap_or_default();
        let next = rest.chars().next();
        let is_markup = match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '~' | '|' | '$' | '^' => true,
            // Not within a name such as `user_name`.
            '_' => !(is_word(previous) && is_word(next)),
            '&' => next.is_some_and(|c| c == '#' || c.is_ascii_alphanumeric()),
            // Also the end of a heading, and references to issues.
            '#' => previous.is_none_or(char::is_whitespace) || previous == Some('#'),
            // `==marked==` in some programs, and the underline of a heading.
            '=' => at == 0 || previous == Some('=') || next == Some('='),
            '>' | '+' | '-' => at == 0,
            '.' | ')' if at == digits && (1..=MAX_LIST_DIGITS).contains(&digits) => true,
            // Many programs make links of addresses.
            ':' => at == 0 || rest.starts_with("//"),
            '.' => ends_with_www(line.get(..at).unwrap_or_default()),
            _ => false,
        };
        if is_markup {
            escaped.push('\\');
        }
        escaped.push(c);
        previous = Some(c);
    }
    escaped
}

fn is_word(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_alphanumeric())
}

fn ends_with_www(text: &str) -> bool {
    text.len().checked_sub(3).and_then(|start| text.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case("www"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

    use super::*;

    /// The text of a document, with its line ends, in which only paragraphs, list items and strong text are allowed.
    fn read(document: &str) -> String {
        // Everything that a reader may have switched on, except for quotes, which change only their form.
        let options = Options::all() - Options::ENABLE_SMART_PUNCTUATION;
        let mut text = String::new();
        for event in Parser::new_ext(document, options) {
            match event {
                Event::Text(piece) => text += &piece,
                Event::HardBreak => text.push('\n'),
                Event::End(TagEnd::Paragraph) => text += "\n\n",
                Event::Start(Tag::Paragraph | Tag::List(None) | Tag::Item | Tag::Strong) => {}
                Event::End(TagEnd::Item) => text.push('\n'),
                Event::End(TagEnd::List(_) | TagEnd::Strong) => {}
                other => panic!("{other:?} in {document:?}"),
            }
        }
        text.trim_end_matches('\n').to_owned()
    }

    #[test]
    fn ordinary_text_stays_readable_in_the_source() {
        let table = [
            (
                "你好，小林！(3.5%) “好” - a_b, x > y; Tom & Jerry: C#",
                "你好，小林！(3.5%) “好” - a_b, x > y; Tom & Jerry: C#",
            ),
            ("# 标题", "\\# 标题"),
            ("1. 吃饭", "1\\. 吃饭"),
            ("- a", "\\- a"),
            ("**b** _c_ `d`", "\\*\\*b\\*\\* \\_c\\_ \\`d\\`"),
            ("![x](http://a/b.png)", "!\\[x\\](http\\://a/b.png)"),
            ("<img src=x> &lt; www.a.b", "\\<img src=x> \\&lt; www\\.a.b"),
            ("a\u{1b}\u{202e}\nb", "a␛\\\\u{202e} b"),
        ];
        for (text, expected) in table {
            assert_eq!(escape_line(text), expected, "{text:?}");
            assert_eq!(read(&escape_line(text)), visible_line(text), "{text:?}");
        }
    }

    #[test]
    fn lines_and_paragraphs_stay_what_they_are() {
        let text = "一\n  二\n\n    code?\n\n\n---\n===\n+ x\n| a | b |\n|---|---|\n";
        let document = format!("- **AI**: {}\n- b", escape_lines(text, "  "));
        let nbsp = "\u{a0}";
        let expected = format!(
            "AI: 一\n{nbsp}{nbsp}二\n\n{nbsp}{nbsp}{nbsp}{nbsp}code?\n\n---\n===\n+ x\n| a | b |\n|---|---|\n\n\nb"
        );
        assert_eq!(read(&document), expected, "{document}");
    }

    #[test]
    fn a_span_of_code_holds_backticks_and_spaces() {
        for text in ["a", "a`b", "``", " a ", "`", "a ``` b"] {
            let events: Vec<Event<'_>> = Parser::new(&code_span(text)).map(Event::into_static).collect();
            assert!(events.contains(&Event::Code(text.to_owned().into())), "{text:?}: {events:?}");
        }
        assert_eq!(code_span(" "), "");
    }

    /// Texts made of what Markdown reacts to.
    fn nasty() -> impl Strategy<Value = String> {
        let parts = vec![
            "*",
            "**",
            "_",
            "`",
            "```",
            "~~~",
            "~~",
            "#",
            "##",
            "-",
            "+",
            "=",
            "===",
            "---",
            ">",
            "|",
            "|---|",
            "1.",
            "12)",
            "[",
            "]",
            "[x]",
            "[^1]",
            "[^1]: ",
            "](http://a)",
            "![",
            "<b>",
            "<!--",
            "-->",
            "</div>",
            "<script>",
            "<http://a>",
            "&amp;",
            "&#35;",
            "&",
            "$",
            "$$",
            "\\",
            "{",
            "}",
            "{#id}",
            ":",
            ": ",
            ":--",
            "www.",
            "http://a.b",
            "a@b.c",
            "!",
            "\n",
            "\n\n",
            "\r\n",
            " ",
            "    ",
            "\t",
            "\u{a0}",
            "a",
            "中",
            "。",
            "\u{1b}",
            "\u{202e}",
            "\u{2028}",
            "> [!NOTE]",
            "^",
            "++",
            "+++",
            "%%",
            "---\n",
            "[[a]]",
            "==",
            "\"",
            "'",
            "...",
            "(",
            ")",
        ];
        let part = prop_oneof![4 => proptest::sample::select(parts).prop_map(str::to_owned), 1 => any::<String>()];
        proptest::collection::vec(part, 0..14).prop_map(|parts| parts.concat())
    }

    /// The words of a text, without the spaces, which may be others.
    fn words(text: &str) -> Vec<String> {
        text.split(|c: char| c.is_whitespace()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn no_text_becomes_markup_wherever_it_stands(text in nasty()) {
            let expected = words(&visible(&text));
            let line = escape_line(&text);
            prop_assert!(!line.contains('\n'));
            prop_assert_eq!(words(&read(&line)), expected.clone());
            let item = read(&format!("- 用户: {line}\n- b\n"));
            prop_assert_eq!(words(&item), words(&format!("用户: {} b", visible(&text))), "{}", item);
            let heading = format!("# {line}\n");
            let inside: Vec<Event<'_>> = Parser::new(&heading).collect();
            prop_assert!(inside.iter().skip(1).rev().skip(1).all(|event| matches!(event, Event::Text(_))), "{inside:?}");
            let lines = format!("- **AI** (12:00): {}\n- b\n", escape_lines(&text, "  "));
            prop_assert_eq!(words(&read(&lines)), words(&format!("AI (12:00): {} b", visible(&text))), "{}", lines);
        }
    }
}
