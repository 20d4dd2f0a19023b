//! The parts of a script in the oldest format: the keys of their names, ids and lists.

use crate::script::legacy_fields::current_spelling;
use crate::source::yaml::{Scalar, YamlEntry};

#[derive(Debug)]
pub struct LegacyPart {
    /// The kind of the part, used in created ids and in the `x-` key that preserves a name.
    pub kind: &'static str,
    /// The keys that held its name.
    pub names: &'static [&'static str],
    /// The current key of its id.
    pub id: &'static str,
    /// The current key of its name.
    pub name: &'static str,
    /// The current key of its goal.
    pub goal: &'static str,
    /// The legacy keys of the list of its parts.
    pub legacy_list_keys: &'static [&'static str],
    /// The current key of that list.
    pub list_key: &'static str,
    /// The parts in that list; `None` if it contains actions.
    pub inner: Option<&'static LegacyPart>,
}

/// `- session: …`
pub static SESSION: LegacyPart = LegacyPart {
    kind: "session",
    names: &["session"],
    id: "session_id",
    name: "session_name",
    goal: "global_goal",
    legacy_list_keys: &["stages"],
    list_key: "phases",
    inner: Some(&PHASE),
};

/// `- phase: …`
static PHASE: LegacyPart = LegacyPart {
    kind: "phase",
    names: &["phase", "stage"],
    id: "phase_id",
    name: "phase_name",
    goal: "phase_goal",
    legacy_list_keys: &["steps"],
    list_key: "topics",
    inner: Some(&TOPIC),
};

/// `- topic: …`
static TOPIC: LegacyPart = LegacyPart {
    kind: "topic",
    names: &["topic", "step"],
    id: "topic_id",
    name: "topic_name",
    goal: "topic_goal",
    legacy_list_keys: &[],
    list_key: "actions",
    inner: None,
};

/// The current spelling of an entry's key.
pub(crate) fn current_key(entry: &YamlEntry) -> String {
    current_spelling(&entry.key.value).unwrap_or_else(|| entry.key.value.clone())
}

/// The index of the entry whose current key is `key`, or else of the first one written with a key of `others`.
pub fn find(entries: &[YamlEntry], key: &str, others: &[&str]) -> Option<usize> {
    let found = entries.iter().position(|entry| current_key(entry) == key);
    found.or_else(|| entries.iter().position(|entry| others.contains(&entry.key.value.as_str())))
}

pub(crate) fn scalar_of(entry: &YamlEntry) -> Option<&Scalar> {
    entry.value.as_scalar().filter(|scalar| !scalar.value().is_null() && !scalar.text.trim().is_empty())
}
