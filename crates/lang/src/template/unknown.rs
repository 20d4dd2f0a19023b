//! Messages and suggestions for unknown filters, tests and functions in expressions, texts and templates.

use crate::message::message::Joint;
use crate::message::message::Message;
use crate::message::msg;
use std::ops::Range;

use crate::source::near::{near, suggestion};
use crate::template::features::{FILTERS, FeatureKind, TESTS};

/// A change of a source that corrects a mistake. The edits are applied together and do not overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRepair {
    /// A description, as an imperative.
    pub title: Message,
    /// The byte ranges that are replaced, and the new texts.
    pub edits: Vec<(Range<usize>, String)>,
    /// Whether the source does not parse without the change and the meaning is unambiguous, so that no confirmation is needed.
    pub sure: bool,
}

impl SourceRepair {
    pub fn one(title: impl Into<Message>, range: Range<usize>, text: impl Into<String>) -> Self {
        Self { title: title.into(), edits: vec![(range, text.into())], sure: false }
    }

    /// Marks the change as needing no confirmation.
    pub(crate) fn surely(mut self) -> Self {
        self.sure = true;
        self
    }

    /// Applies the edits to the source; `None` if they do not fit it.
    pub fn apply(&self, source: &str) -> Option<String> {
        let mut edits: Vec<&(Range<usize>, String)> = self.edits.iter().collect();
        edits.sort_by_key(|(range, _)| (range.start, range.end));
        let (mut out, mut at) = (String::with_capacity(source.len()), 0);
        for (range, text) in edits {
            out.push_str(source.get(at..range.start)?);
            out.push_str(text);
            at = range.end;
        }
        out.push_str(source.get(at..)?);
        Some(out)
    }
}

/// The message for an unknown name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    pub message: Message,
    pub help: Message,
    /// The intended name, if it is certain.
    pub instead: Option<&'static str>,
}

/// Names of filters in other languages, and ours.
const OTHER_FILTERS: &[(&str, &str)] = &[
    ("len", "length"),
    ("size", "length"),
    ("lowercase", "lower"),
    ("tolower", "lower"),
    ("tolowercase", "lower"),
    ("uppercase", "upper"),
    ("toupper", "upper"),
    ("touppercase", "upper"),
    ("strip", "trim"),
    ("integer", "int"),
    ("number", "float"),
    ("str", "string"),
    ("tostring", "string"),
    ("to_string", "string"),
    ("json", "tojson"),
    ("to_json", "tojson"),
    ("stringify", "tojson"),
    ("uniq", "unique"),
    ("distinct", "unique"),
    ("reversed", "reverse"),
    ("sorted", "sort"),
    ("concat", "join"),
    ("fallback", "default"),
];

/// Names of tests in other languages, and ours.
const OTHER_TESTS: &[(&str, &str)] = &[
    ("null", "none"),
    ("nil", "none"),
    ("None", "none"),
    ("matching", "regex"),
    ("match", "regex"),
    ("matches", "regex"),
    ("search", "regex"),
    ("bool", "boolean"),
    ("str", "string"),
    ("text", "string"),
    ("list", "sequence"),
    ("array", "sequence"),
    ("dict", "mapping"),
    ("object", "mapping"),
    ("map", "mapping"),
    ("equal", "eq"),
    ("equals", "eq"),
    ("greater", "gt"),
    ("less", "lt"),
    ("startswith", "startingwith"),
    ("endswith", "endingwith"),
    ("exists", "defined"),
];

/// The help for a filter or test of another language without a direct equivalent.
fn advice(kind: FeatureKind, name: &str) -> Option<&'static str> {
    match (kind, name) {
        (FeatureKind::Test, "empty" | "blank") => {
            Some("write `x is none` for a value that was not set, `x == ''` for a string, `x | length == 0` for a list")
        }
        (FeatureKind::Test, "set" | "present" | "truthy" | "filled") => Some("write `x is not none`"),
        (FeatureKind::Test | FeatureKind::Filter, "contains" | "includes" | "containing") => {
            Some("write it the other way round, as in `'…' in x`")
        }
        (FeatureKind::Filter, "match" | "matches" | "regex" | "regex_search") => Some("write `x is regex('…')`"),
        _ => None,
    }
}

/// The message for an unknown filter, test or function `name`; `functions` are the available functions.
pub fn unknown(kind: FeatureKind, name: &str, functions: &'static [&'static str]) -> Unknown {
    let (known, others): (Vec<&'static str>, &[(&str, &'static str)]) = match kind {
        FeatureKind::Filter => (FILTERS.split('|').collect(), OTHER_FILTERS),
        FeatureKind::Test => (TESTS.split('|').collect(), OTHER_TESTS),
        FeatureKind::Function => (functions.to_vec(), &[]),
    };
    let other = others.iter().find(|(other, _)| *other == name || *other == name.to_lowercase());
    let advice = advice(kind, name);
    let near = near(name, known.iter().copied());
    let instead = match (other, near.as_slice()) {
        (Some((_, builtin)), _) => Some(*builtin),
        (None, [only]) if advice.is_none() => known.iter().copied().find(|builtin| builtin == only),
        _ => None,
    };
    let usage = |name: &str| match kind {
        FeatureKind::Filter => format!("`x | {name}`"),
        FeatureKind::Test if name == "regex" => "`is regex('…')`".to_owned(),
        FeatureKind::Test => format!("`is {name}`"),
        FeatureKind::Function => format!("`{name}(…)`"),
    };
    let help = match (advice, other) {
        (Some(advice), _) => Message::word(advice),
        (None, Some((_, builtin))) => msg!("write {}", usage(builtin)),
        (None, None) if let Some(question) = suggestion(&near) => question,
        _ => match kind {
            FeatureKind::Filter => {
                msg!(
                    "the most common ones are `length`, `default(…)`, `lower`, `upper`, `trim`, `join(…)`, `first`, `last`"
                )
            }
            FeatureKind::Test => {
                msg!(
                    "the most common ones are `none`, `defined`, `string`, `number`, `regex('…')`; to compare, write `==`"
                )
            }
            FeatureKind::Function => {
                msg!(
                    "valid functions are {}; to change a value, use a filter, as in `x | upper`",
                    Message::list(Joint::Item, functions.iter().copied().map(Message::text))
                )
            }
        },
    };
    Unknown { message: msg!("there is no {} `{name}`", Message::word(kind.word())), help, instead }
}

/// The message for a call of an unknown function `name`.
pub(crate) fn unknown_function(name: &str, functions: &'static [&'static str]) -> Unknown {
    let mut result = unknown(FeatureKind::Function, name, functions);
    if let Some(filter) = filter_called(name).filter(|_| result.instead.is_none()) {
        result.help = msg!("`{filter}` is a filter: write `x | {filter}`");
    }
    result
}

/// The filter that is probably meant by a function or method call of `name`.
pub(crate) fn filter_called(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let own = FILTERS.split('|').find(|filter| *filter == name);
    own.or_else(|| OTHER_FILTERS.iter().find(|(other, _)| *other == lower).map(|(_, builtin)| *builtin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_replacements_for_names_of_other_languages_exist() {
        for (other, builtin) in OTHER_FILTERS {
            let exists = |name: &str| FILTERS.split('|').any(|filter| filter == name);
            assert!(exists(builtin) && !exists(other), "{other}");
        }
        for (other, builtin) in OTHER_TESTS {
            let exists = |name: &str| TESTS.split('|').any(|test| test == name);
            assert!(exists(builtin) && !exists(other), "{other}");
        }
    }

    #[test]
    fn a_repair_applies_its_edits_to_the_source() {
        let repair = SourceRepair {
            title: Message::text(""),
            edits: vec![(5..6, "==".into()), (0..1, "年龄".into())],
            sure: false,
        };
        assert_eq!(repair.apply("a    = 5").unwrap(), "年龄    == 5");
        assert_eq!(SourceRepair::one("", 3..99, "x").apply("short"), None);
    }
}
