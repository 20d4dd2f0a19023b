//! A filter, test or function that does not exist: what is said about it, in expressions and in texts alike.

use crate::message::message::Joint;
use crate::message::message::Message;
use crate::message::msg;
use std::ops::Range;

use crate::source::near::{asked, near};
use crate::template::features::{FILTERS, FeatureKind, TESTS};

/// A change of a source that would settle a mistake. The edits are made together and do not overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRepair {
    /// What it does, as an imperative.
    pub title: Message,
    /// What is replaced, in bytes of the source, and what stands there afterwards.
    pub edits: Vec<(Range<usize>, String)>,
    /// Whether the source could not be read without it and only one thing can be meant, so that nobody need be asked.
    pub sure: bool,
}

impl SourceRepair {
    pub fn one(title: impl Into<Message>, range: Range<usize>, text: impl Into<String>) -> Self {
        Self { title: title.into(), edits: vec![(range, text.into())], sure: false }
    }

    /// The same, for which nobody need be asked.
    pub fn surely(mut self) -> Self {
        self.sure = true;
        self
    }

    /// The source as it is after the change; `None` when the edits do not fit it.
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

/// What is said about a name that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    pub message: Message,
    pub help: Message,
    /// The name that was certainly meant, where one is.
    pub instead: Option<&'static str>,
}

/// What other languages call our filters.
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

/// What other languages call our tests.
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

/// What to write where a test of another language has no counterpart of one word.
fn advice(what: FeatureKind, name: &str) -> Option<&'static str> {
    match (what, name) {
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

/// What is said about `name`, of which there is no filter, test or function; `functions` are those that there are here.
pub fn unknown(what: FeatureKind, name: &str, functions: &'static [&'static str]) -> Unknown {
    let (known, others): (Vec<&'static str>, &[(&str, &'static str)]) = match what {
        FeatureKind::Filter => (FILTERS.split('|').collect(), OTHER_FILTERS),
        FeatureKind::Test => (TESTS.split('|').collect(), OTHER_TESTS),
        FeatureKind::Function => (functions.to_vec(), &[]),
    };
    let other = others.iter().find(|(other, _)| *other == name || *other == name.to_lowercase());
    let advice = advice(what, name);
    let near = near(name, known.iter().copied());
    let instead = match (other, near.as_slice()) {
        (Some((_, ours)), _) => Some(*ours),
        (None, [only]) if advice.is_none() => known.iter().copied().find(|ours| ours == only),
        _ => None,
    };
    let written = |name: &str| match what {
        FeatureKind::Filter => format!("`x | {name}`"),
        FeatureKind::Test if name == "regex" => "`is regex('…')`".to_owned(),
        FeatureKind::Test => format!("`is {name}`"),
        FeatureKind::Function => format!("`{name}(…)`"),
    };
    let help = match (advice, other) {
        (Some(advice), _) => Message::word(advice),
        (None, Some((_, ours))) => msg!("write {}", written(ours)),
        (None, None) if let Some(question) = asked(&near) => question,
        _ => match what {
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
    Unknown { message: msg!("there is no {} `{name}`", Message::word(what.word())), help, instead }
}

/// What is said about `name` where something is called that is no function.
pub fn unknown_function(name: &str, functions: &'static [&'static str]) -> Unknown {
    let mut said = unknown(FeatureKind::Function, name, functions);
    if let Some(filter) = filter_called(name).filter(|_| said.instead.is_none()) {
        said.help = msg!("`{filter}` is a filter: write `x | {filter}`");
    }
    said
}

/// The filter that somebody means who calls `name` as a function or as a method.
pub fn filter_called(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let own = FILTERS.split('|').find(|filter| *filter == name);
    own.or_else(|| OTHER_FILTERS.iter().find(|(other, _)| *other == lower).map(|(_, ours)| *ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_languages_call_it_is_known_and_exists_here() {
        for (other, ours) in OTHER_FILTERS {
            let is = |name: &str| FILTERS.split('|').any(|filter| filter == name);
            assert!(is(ours) && !is(other), "{other}");
        }
        for (other, ours) in OTHER_TESTS {
            let is = |name: &str| TESTS.split('|').any(|test| test == name);
            assert!(is(ours) && !is(other), "{other}");
        }
    }

    #[test]
    fn a_repair_puts_its_edits_into_the_source() {
        let repair = SourceRepair {
            title: Message::text(""),
            edits: vec![(5..6, "==".into()), (0..1, "年龄".into())],
            sure: false,
        };
        assert_eq!(repair.apply("a    = 5").unwrap(), "年龄    == 5");
        assert_eq!(SourceRepair::one("", 3..99, "x").apply("short"), None);
    }
}
