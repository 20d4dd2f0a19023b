//! The parts of a script as the oldest form has them: how each of them is named, and what it holds.

use crate::script::legacy_fields::todays_spelling;
use crate::source::yaml::{Scalar, YamlEntry};

#[derive(Debug)]
pub struct LegacyPart {
    /// What it is, as in ids that are made for it, and in the author's own key under which a name is kept beside another one.
    pub word: &'static str,
    /// The keys that held its name.
    pub names: &'static [&'static str],
    /// Today's key of its id.
    pub id: &'static str,
    /// Today's key of its name.
    pub name: &'static str,
    /// Today's key of its goal.
    pub goal: &'static str,
    /// Older keys of the list of its parts.
    pub held: &'static [&'static str],
    /// Today's key of that list.
    pub holds: &'static str,
    /// What that list holds, unless it holds actions.
    pub inner: Option<&'static LegacyPart>,
}

/// `- session: …`
pub static SESSION: LegacyPart = LegacyPart {
    word: "session",
    names: &["session"],
    id: "session_id",
    name: "session_name",
    goal: "global_goal",
    held: &["stages"],
    holds: "phases",
    inner: Some(&PHASE),
};

/// `- phase: …`
static PHASE: LegacyPart = LegacyPart {
    word: "phase",
    names: &["phase", "stage"],
    id: "phase_id",
    name: "phase_name",
    goal: "phase_goal",
    held: &["steps"],
    holds: "topics",
    inner: Some(&TOPIC),
};

/// `- topic: …`
static TOPIC: LegacyPart = LegacyPart {
    word: "topic",
    names: &["topic", "step"],
    id: "topic_id",
    name: "topic_name",
    goal: "topic_goal",
    held: &[],
    holds: "actions",
    inner: None,
};

/// The key of an entry in today's spelling.
pub fn today(entry: &YamlEntry) -> String {
    todays_spelling(&entry.key.value).unwrap_or_else(|| entry.key.value.clone())
}

/// The entry whose key is `key` in today's spelling, or else the one that is written with one of `others`.
pub fn find(entries: &[YamlEntry], key: &str, others: &[&str]) -> Option<usize> {
    let found = entries.iter().position(|entry| today(entry) == key);
    found.or_else(|| entries.iter().position(|entry| others.contains(&entry.key.value.as_str())))
}

pub fn words(entry: &YamlEntry) -> Option<&Scalar> {
    entry.value.as_scalar().filter(|scalar| !scalar.value().is_null() && !scalar.text.trim().is_empty())
}
