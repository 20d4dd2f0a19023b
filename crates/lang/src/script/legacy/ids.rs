//! Creates ids from names: letters of any script, digits, `_`, `.` and `-` are kept; everything else becomes `_`.

use std::collections::{BTreeMap, BTreeSet};

/// The maximum length of a created id, in characters. It leaves space for a number that makes the id unique.
const MAX_CHARS: usize = 90;

#[derive(Debug, Default)]
pub struct Ids {
    taken: BTreeSet<String>,
    /// The next number to try for each id that is already taken.
    next: BTreeMap<String, usize>,
}

impl Ids {
    /// Reserves an id that the author wrote.
    pub(crate) fn reserve(&mut self, id: &str) {
        self.taken.insert(id.to_owned());
    }

    /// A unique id for the part called `name`; `None` if no character of the name is valid in an id.
    pub fn create(&mut self, name: &str) -> Option<String> {
        let base_id = base_id(name);
        if base_id.is_empty() {
            return None;
        }
        Some(self.unique(base_id))
    }

    /// Reserves this id as it is, if no other part has it.
    pub(crate) fn try_take(&mut self, id: &str) -> bool {
        self.taken.insert(id.to_owned())
    }

    /// This id, or this id with the first number that makes it unique in the session.
    pub fn unique(&mut self, wanted: String) -> String {
        let mut id = wanted.clone();
        while self.taken.contains(&id) {
            let number = self.next.entry(wanted.clone()).or_insert(1);
            *number += 1;
            id = format!("{wanted}_{number}");
        }
        self.taken.insert(id.clone());
        id
    }
}

/// Whether the text is a valid id (docs/language.md).
pub fn is_id(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= 100 && text.chars().all(is_id_char)
}

fn is_id_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-')
}

/// The name as an id that may be taken already; empty if no character is valid. Invalid characters at its ends are dropped.
fn base_id(name: &str) -> String {
    let words = name.split(|c| !is_id_char(c)).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_").chars().take(MAX_CHARS).collect()
}

/// An id as a YAML scalar that is read as text, quoted if necessary.
pub fn as_scalar(id: &str) -> String {
    let valid_start = id.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    let reserved =
        matches!(id.to_ascii_lowercase().as_str(), "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n");
    if valid_start && !reserved { id.to_owned() } else { format!("\"{id}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_ids() {
        let mut ids = Ids::default();
        ids.reserve("intake");
        let table = [
            ("CBT 初次评估", Some("CBT_初次评估")),
            ("问候（一）", Some("问候_一")),
            ("问候(一)", Some("问候_一_2")),
            ("intake", Some("intake_2")),
            ("  Hello, world!  ", Some("Hello_world")),
            ("v1.2-beta_3", Some("v1.2-beta_3")),
            ("？！", None),
            ("", None),
        ];
        for (name, id) in table {
            assert_eq!(ids.create(name).as_deref(), id, "{name}");
        }
        assert_eq!(ids.create(&"长".repeat(300)).map(|id| id.chars().count()), Some(MAX_CHARS));
    }

    #[test]
    fn ids_that_yaml_does_not_read_as_text_are_quoted() {
        for (id, written) in
            [("问候", "问候"), ("2024", "\"2024\""), ("No", "\"No\""), ("-x", "\"-x\""), ("a.b", "a.b")]
        {
            assert_eq!(as_scalar(id), written);
        }
    }
}
