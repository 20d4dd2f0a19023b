//! Whether the text around an object shows that the object is only a part of something larger.

/// Stands for an object in the text around it.
pub(crate) const OBJECT: char = '\u{1}';

/// Why the objects in `prose`, where [`OBJECT`] stands for each of them, are not the whole reply: parts of JSON are next to them.
/// `own` are the fields of the reply.
pub(crate) fn contradiction(prose: &str, own: &[&str]) -> Option<&'static str> {
    if own.iter().any(|name| assigns(prose, name)) {
        return Some("fields of the reply are outside its braces");
    }
    // `{{ … }}`, or a brace too many, is harmless if nothing else is there.
    let is_alone = !prose.contains('"') && prose.matches(OBJECT).count() == 1;
    let mut before: Option<char> = None;
    for (at, c) in prose.char_indices() {
        let after = prose.get(at + c.len_utf8()..).unwrap_or_default();
        let next = after.trim_start_matches([' ', '\t']).chars().next();
        match c {
            // A key, or the end of a text in an object or a list.
            '"' if matches!(next, Some(':' | '}' | ']')) => return Some("parts of JSON are outside its braces"),
            OBJECT => {
                if before == Some('"') || matches!(next, Some('"')) {
                    return Some("the object is inside a text");
                }
                if matches!(next, Some('}')) && !is_alone {
                    return Some("more closing braces follow its closing brace");
                }
                if continues(after.trim_start()) {
                    return Some("more fields follow its closing brace");
                }
            }
            _ => {}
        }
        if c == '\n' {
            before = None;
        } else if !c.is_whitespace() {
            before = Some(c);
        }
    }
    None
}

/// Whether `after`, the text after an object, starts with a comma and then a key or a text: the object is a field or an item.
fn continues(after: &str) -> bool {
    let Some(next) = after.strip_prefix(',').map(str::trim_start) else { return false };
    match next.chars().next() {
        Some('"' | '\'' | '`' | '“' | '{' | '[' | OBJECT) => true,
        Some(c) if is_word(c) => next.trim_start_matches(is_word).trim_start().starts_with(':'),
        _ => false,
    }
}

/// Whether `name` is used as a key in `prose`: quotes or spaces may stand between it and a colon or an equals sign.
fn assigns(prose: &str, name: &str) -> bool {
    prose.match_indices(name).any(|(at, _)| {
        let before = prose.get(..at).and_then(|before| before.chars().next_back());
        let after = prose.get(at + name.len()..).unwrap_or_default();
        let ends = after.trim_start_matches(|c: char| c.is_whitespace() || is_mark(c));
        let is_tag = before == Some('<') && after.starts_with('>');
        !before.is_some_and(is_word) && (is_tag || ends.starts_with([':', '：', '=']))
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The marks that may stand around a key, in any syntax.
pub(crate) fn is_mark(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '\\' | '“' | '”' | '‘' | '’' | '「' | '」' | '『' | '』' | '＂' | '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_json_around_an_object_are_noticed() {
        let whole = [
            "\u{1}",
            "好的：\u{1}。",
            "{\u{1}}",
            "\u{1}}",
            "[\u{1}]",
            "content 是正文。\u{1}",
            "他说\"好\"，\u{1}",
            "\u{1}, as you wished",
            "\u{1} \u{1}",
        ];
        for prose in whole {
            assert_eq!(contradiction(prose, &["content"]), None, "{prose}");
        }
        let parts = [
            "\u{1}, \"b\": 2}",
            "\u{1}, 'b': 2}",
            "\u{1}, \"b\" \"c\"}",
            "\u{1}}, \u{1}]}",
            "\"a\": \u{1}}",
            "\"\u{1}\"",
            "好 \u{1} 好\"}",
            "content: 您写道：\u{1}",
            "'content' : '\u{1}'",
            "｛“content”：“\u{1}”｝",
            "\\\"content\\\": \\\"\u{1}\\\"",
            "reply(content=\u{1})",
            "<content>\u{1}</content>",
        ];
        for prose in parts {
            assert!(contradiction(prose, &["content"]).is_some(), "{prose}");
        }
    }
}
