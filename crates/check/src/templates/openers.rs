//! Finds the tag of a template that is still open at a place, for messages about missing ends.

use std::ops::Range;

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use bcc_lang::template::limits::bytes;

/// The tags that need an end. (`set` only if it has no `=`.)
pub(crate) const STATEMENTS: [&str; 9] = ["if", "for", "block", "macro", "filter", "with", "call", "set", "raw"];

/// A tag that is still open.
pub(crate) struct OpenTag {
    pub name: &'static str,
    /// Its keyword.
    pub range: Range<usize>,
    /// The keyword of its `else`, after which only its end may follow.
    pub last: Option<Range<usize>>,
}

/// The innermost tag that is open at the end of `source`.
pub(crate) fn innermost(source: &str) -> Option<OpenTag> {
    let mut open: Vec<OpenTag> = Vec::new();
    let opened = |name, range| OpenTag { name, range, last: None };
    let (mut at_start, mut setting) = (false, None);
    // The first invalid token ends the search; the tags opened before it count.
    for (token, span) in tokenize(source, false, SyntaxConfig::default()).map_while(Result::ok) {
        match token {
            Token::BlockStart => {
                at_start = true;
                continue;
            }
            Token::Ident(word) if at_start => {
                if let Some(name) = STATEMENTS.iter().find(|name| **name == word) {
                    if *name == "set" {
                        setting = Some(bytes(span));
                    } else {
                        open.push(opened(*name, bytes(span)));
                    }
                } else if let Some(name) = word.strip_prefix("end")
                    && let Some(at) = open.iter().rposition(|tag| tag.name == name)
                {
                    open.truncate(at);
                } else if word == "else"
                    && let Some(tag) = open.last_mut()
                {
                    tag.last = Some(bytes(span));
                }
            }
            Token::Assign => setting = None,
            Token::BlockEnd => open.extend(setting.take().map(|at| opened("set", at))),
            _ => {}
        }
        at_start = false;
    }
    open.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_open_tag_is_found() {
        let table = [
            ("{% if a %}x", Some("if")),
            ("{% if a %}{% for x in y %}", Some("for")),
            ("{% if a %}{% for x in y %}{% endfor %}", Some("if")),
            ("{% if a %}{% endif %}", None),
            ("{% set x = 1 %}", None),
            ("{% set x %}", Some("set")),
            ("{% include 'a.md' %}", None),
            ("text { and }}", None),
        ];
        for (source, expected) in table {
            assert_eq!(innermost(source).map(|tag| tag.name), expected, "{source}");
        }
    }
}
