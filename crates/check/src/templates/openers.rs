//! Finds the tag of a template that is still open at a place, for messages about missing ends.

use std::ops::Range;

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use bcc_lang::template::limits::bytes;

/// The tags that need an end. (`set` only if it has no `=`.)
pub(crate) const STATEMENTS: [&str; 9] = ["if", "for", "block", "macro", "filter", "with", "call", "set", "raw"];

/// The innermost tag that is open at the end of `source`, with the range of its keyword.
pub fn innermost(source: &str) -> Option<(&'static str, Range<usize>)> {
    let mut open: Vec<(&'static str, Range<usize>)> = Vec::new();
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
                        open.push((name, bytes(span)));
                    }
                } else if let Some(name) = word.strip_prefix("end")
                    && let Some(at) = open.iter().rposition(|(other, _)| *other == name)
                {
                    open.truncate(at);
                }
            }
            Token::Assign => setting = None,
            Token::BlockEnd => open.extend(setting.take().map(|at| ("set", at))),
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
            assert_eq!(innermost(source).map(|(name, _)| name), expected, "{source}");
        }
    }
}
