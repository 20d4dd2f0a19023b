//! What an author probably meant by an expression that is none: habits of other languages and full-width punctuation.

use std::ops::Range;

/// A slip that was recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes.
    pub range: Range<usize>,
    /// What to write.
    pub help: String,
}

/// Full-width punctuation, and what is meant by it. An input method types it without being asked.
const FULL_WIDTH: &[(char, &str)] = &[
    ('“', "\""),
    ('”', "\""),
    ('‘', "'"),
    ('’', "'"),
    ('＂', "\""),
    ('＇', "'"),
    ('＝', "="),
    ('＞', ">"),
    ('＜', "<"),
    ('≥', ">="),
    ('≤', "<="),
    ('≠', "!="),
    ('！', "!"),
    ('（', "("),
    ('）', ")"),
    ('，', ","),
    ('。', "."),
    ('：', ":"),
    ('；', ";"),
    ('【', "["),
    ('】', "]"),
    ('｛', "{"),
    ('｝', "}"),
    ('＋', "+"),
    ('－', "-"),
    ('×', "*"),
    ('÷', "/"),
    ('％', "%"),
    ('｜', "|"),
    ('～', "~"),
    ('＆', "&"),
    ('　', " "),
    ('、', ","),
];

/// The first slip in `source`, outside of quoted texts. Only for a source that does not parse.
pub fn hint(source: &str) -> Option<Hint> {
    let mut quote: Option<char> = None;
    let mut escaped = false;
    let mut brackets = 0_usize;
    let mut previous = ' ';
    let mut word_start = None;
    for (at, character) in source.char_indices().chain([(source.len(), ' ')]) {
        if let Some(open) = quote {
            if !escaped && character == open {
                quote = None;
            }
            escaped = !escaped && character == '\\';
            continue;
        }
        let rest = source.get(at..).unwrap_or_default();
        let found = |length: usize, message: &str, help: &str| {
            Some(Hint { message: message.to_owned(), range: at..at + length, help: help.to_owned() })
        };
        if let Some((wide, meant)) = FULL_WIDTH.iter().find(|(wide, _)| *wide == character) {
            let name = if *meant == " " { "a space" } else { meant };
            let message = format!("`{wide}` is full-width punctuation, which means nothing in an expression");
            return found(wide.len_utf8(), &message, &format!("write {name} (half-width)").replace("  ", " "));
        }
        // Words: `AND`, `OR`, `NOT` are names for minijinja.
        if character.is_alphanumeric() || character == '_' {
            word_start.get_or_insert(at);
        } else if let Some(start) = word_start.take() {
            let word = source.get(start..at).unwrap_or_default();
            if let lower @ ("and" | "or" | "not") = word.to_ascii_lowercase().as_str()
                && lower != word
            {
                return Some(Hint {
                    message: format!("`{word}` is no operator"),
                    range: start..at,
                    help: format!("write `{lower}` in small letters"),
                });
            }
        }
        match character {
            '"' | '\'' => quote = Some(character),
            '(' => brackets += 1,
            ')' => brackets = brackets.saturating_sub(1),
            '{' if rest.starts_with("{{") || rest.starts_with("{%") => {
                return found(2, "an expression stands without `{{ }}`", "leave the braces out");
            }
            '$' if rest.starts_with("${") => return found(2, "an expression stands without `${ }`", "leave them out"),
            '&' if rest.starts_with("&&") => return found(2, "`&&` is no operator here", "write `and`"),
            '|' if rest.starts_with("||") => return found(2, "`||` is no operator here", "write `or`"),
            '=' if rest.starts_with("===") => return found(3, "`===` is no operator here", "write `==`"),
            '!' if !rest.starts_with("!=") => return found(1, "`!` is no operator here", "write `not`"),
            '?' => return found(1, "`?` is no operator here", "write `x if condition else y`"),
            '=' if brackets == 0 && !rest.starts_with("==") && !matches!(previous, '=' | '!' | '<' | '>') => {
                return found(1, "`=` assigns, and an expression cannot", "did you mean `==`?");
            }
            _ => {}
        }
        previous = character;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_quoted_texts_left_alone() {
        let table = [
            ("年龄 = 18", Some(("=", "did you mean `==`?"))),
            ("a && b", Some(("&&", "write `and`"))),
            ("a || b", Some(("||", "write `or`"))),
            ("!a", Some(("!", "write `not`"))),
            ("a AND b", Some(("AND", "write `and` in small letters"))),
            ("not a OR b", Some(("OR", "write `or` in small letters"))),
            ("a ? b : c", Some(("?", "write `x if condition else y`"))),
            ("{{ a }}", Some(("{{", "leave the braces out"))),
            ("name == “小林”", Some(("“", "write \" (half-width)"))),
            ("年龄 ＞ 18", Some(("＞", "write > (half-width)"))),
            ("a　b", Some(("　", "write a space (half-width)"))),
            ("${a} > 1", Some(("${", "leave them out"))),
            ("a === b", Some(("===", "write `==`"))),
            ("'a = b && “c”' b", None),
            ("'it\\'s = ' b", None),
            ("x | default(value=1) y", None),
            ("a == b != c >= d <= e", None),
            ("", None),
        ];
        for (source, expected) in table {
            let found = hint(source);
            let found = found.as_ref().map(|hint| (&source[hint.range.clone()], hint.help.as_str()));
            assert_eq!(found, expected, "{source}");
        }
    }
}
