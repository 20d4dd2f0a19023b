//! Explains author texts and templates that do not parse because they are written as in another language.

use crate::message::msg;
use std::ops::Range;

use crate::expr::parse::common_mistake;
use crate::template::text::{TextError, TextErrorKind};
use crate::template::unknown::SourceRepair;

/// The error for a text that does not parse, with an error of minijinja at the byte `at`, if it has a common mistake.
pub fn explain_mistake(source: &str, at: usize) -> Option<TextError> {
    else_if(source, at).or_else(|| mistake_in_tag(source, at))
}

/// The error for `{% else if … %}` and the like, if the parser stopped in these words. (It never stops so in a comment or raw block.)
fn else_if(source: &str, at: usize) -> Option<TextError> {
    let open = source.match_indices("{%").map(|(open, _)| open).take_while(|open| *open <= at).last()?;
    let inner = source.get(open + 2..)?;
    let inner = inner.get(..inner.find("%}").unwrap_or(inner.len()))?;
    let body = inner.strip_prefix(['-', '+']).unwrap_or(inner).trim_start();
    let mut words = body.split_whitespace();
    let length = match (words.next()?, words.next()) {
        (word @ ("elseif" | "elsif"), _) => word.len(),
        ("else", Some("if")) => body.find("if")? + 2,
        _ => return None,
    };
    let start = open + 2 + inner.len() - body.len();
    let range = start..start + length;
    if !range.contains(&at) {
        return None;
    }
    let word = source.get(range.clone())?.split_whitespace().collect::<Vec<_>>().join(" ");
    let repair = Some(Box::new(SourceRepair::one("write `elif`", range.clone(), "elif").surely()));
    let (message, help) = (msg!("`{word}` is not a tag"), Some(msg!("write `elif`")));
    Some(TextError { kind: TextErrorKind::Syntax, message, range: Some(range), help, unknown: None, repair })
}

/// The error for a mistake in the expression of the tag that contains the byte `at`, with the same help and repair as in a condition.
fn mistake_in_tag(source: &str, at: usize) -> Option<TextError> {
    let place = expression_at(source, at)?;
    let inner = source.get(place.clone())?;
    let error = common_mistake(inner)?;
    let moved = |range: &Range<usize>| range.start + place.start..range.end + place.start;
    let repair = error.repair.map(|repair| {
        let edits = repair.edits.iter().map(|(range, text)| (moved(range), text.clone())).collect();
        Box::new(SourceRepair { edits, ..*repair })
    });
    Some(TextError {
        kind: TextErrorKind::Syntax,
        message: error.message,
        range: error.range.as_ref().map(moved),
        help: error.help,
        unknown: None,
        repair,
    })
}

/// The expression of the tag that contains the byte `at`: of `{{ … }}`, `{% if … %}`, `{% elif … %}`, `{% set x = … %}` and
/// `{% for x in … %}`.
fn expression_at(source: &str, at: usize) -> Option<Range<usize>> {
    let opens = |opening| source.match_indices(opening).map(|(at, _)| at).take_while(|start| *start <= at).last();
    let (value, block) = (opens("{{"), opens("{%"));
    let is_block = block > value;
    let start = block.max(value)? + 2;
    let length = source.get(start..)?.find(if is_block { "%}" } else { "}}" })?;
    let inner = source.get(start..start + length)?;
    // The tag of the error is not closed if another one opens before the end.
    if at >= start + length || inner.contains("{{") || inner.contains("{%") {
        return None;
    }
    let inner = inner.strip_suffix(['-', '+']).unwrap_or(inner);
    let mut rest = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    if is_block {
        let body = rest.trim_start();
        let (word, after) = body.split_at(body.find(char::is_whitespace)?);
        rest = match word {
            "if" | "elif" => after,
            "set" => after.split_once('=')?.1,
            "for" => after.split_once(" in ")?.1,
            _ => return None,
        };
    }
    // What is left ends where the inner part ends.
    let end = start + inner.len();
    Some(end - rest.len()..end)
}

#[cfg(test)]
mod tests {
    use crate::template::text::AuthorTexts;

    #[test]
    fn operators_of_other_languages_in_tags_are_explained_and_repaired() {
        let table = [
            ("{% if a == 'x' && b %}y{% endif %}", Some("{% if a == 'x' and b %}y{% endif %}")),
            ("{%- if !b -%}y{% endif %}", Some("{%- if not b -%}y{% endif %}")),
            ("{% if b %}y{% elseif a > 3 %}z{% endif %}", Some("{% if b %}y{% elif a > 3 %}z{% endif %}")),
            ("{% if b %}y{% elsif a > 3 %}z{% endif %}", Some("{% if b %}y{% elif a > 3 %}z{% endif %}")),
            ("{% if b %}y{%- else  if a > 3 %}z{% endif %}", Some("{% if b %}y{%- elif a > 3 %}z{% endif %}")),
            ("你好{% if a == “x” %}y{% endif %}", Some("你好{% if a == 'x' %}y{% endif %}")),
            ("{{ b }}{% if a ≥ 3 %}y{% endif %}", Some("{{ b }}{% if a >= 3 %}y{% endif %}")),
            ("{% if b and a = 3 %}y{% endif %}", Some("{% if b and a == 3 %}y{% endif %}")),
            ("{{ a ? 'x' : 'y' }}", None),
            ("{{ a && b }} and {{ a }}", Some("{{ a and b }} and {{ a }}")),
            ("{% set c = a || b %}{{ c }}", Some("{% set c = a or b %}{{ c }}")),
        ];
        for (source, expected) in table {
            let error = AuthorTexts::new().add(source).unwrap_err();
            let place = error.range.clone().and_then(|range| source.get(range)).unwrap_or_default();
            assert!(!place.is_empty(), "{source}: {error:?}");
            assert!(error.help.is_some(), "{source}: {error:?}");
            let repaired = error.repair.as_ref().and_then(|repair| repair.apply(source));
            if expected.is_some() {
                assert_eq!(repaired.as_deref(), expected, "{source}: {error:?}");
            }
        }
        let hidden = ["{# {% else if a #}{{ a b }}", "{% raw %}{% elseif a %}{% endraw %}{{ a b }}"];
        for source in ["{% if b %}y", "{{ a b }}", "{{ a", "{% nothing a && b %}"].into_iter().chain(hidden) {
            let error = AuthorTexts::new().add(source).unwrap_err();
            assert!(error.help.is_none() && error.repair.is_none(), "{source}: {error:?}");
        }
    }
}
