//! Ids made from names: letters of any script, digits, `_`, `.` and `-` stay, whatever else becomes `_`.

use std::collections::{BTreeMap, BTreeSet};

/// The longest id that is made, in characters: room is left for what tells it from another one.
const LONGEST: usize = 90;

#[derive(Debug, Default)]
pub struct Ids {
    taken: BTreeSet<String>,
    /// The next number to try for each id that others have too.
    next: BTreeMap<String, usize>,
}

impl Ids {
    /// Notes an id that the author wrote.
    pub fn written(&mut self, id: &str) {
        self.taken.insert(id.to_owned());
    }

    /// An id of its own for the part that is called `name`; `None` when the name holds nothing that an id may hold.
    pub fn made(&mut self, name: &str) -> Option<String> {
        let plain = plain(name);
        if plain.is_empty() {
            return None;
        }
        Some(self.unique(plain))
    }

    /// Takes this id as it is, if no other part has it.
    pub fn takes(&mut self, id: &str) -> bool {
        self.taken.insert(id.to_owned())
    }

    /// This id, or this with the first number that makes it unique in the session.
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

/// Whether the text may be an id as it is (docs/language.md).
pub fn is_id(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= 100 && text.chars().all(may_stand)
}

fn may_stand(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-')
}

/// The name as an id that others may have too; empty when nothing of it may stand in an id. What is left out at its ends
/// leaves nothing behind.
fn plain(name: &str) -> String {
    let words = name.split(|c| !may_stand(c)).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_").chars().take(LONGEST).collect()
}

/// An id as YAML reads it for text, in quotes where it has to.
pub fn as_scalar(id: &str) -> String {
    let begins = id.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    let word =
        matches!(id.to_ascii_lowercase().as_str(), "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n");
    if begins && !word { id.to_owned() } else { format!("\"{id}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_ids() {
        let mut ids = Ids::default();
        ids.written("intake");
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
            assert_eq!(ids.made(name).as_deref(), id, "{name}");
        }
        assert_eq!(ids.made(&"长".repeat(300)).map(|id| id.chars().count()), Some(LONGEST));
    }

    #[test]
    fn ids_that_yaml_would_read_as_something_else_stand_in_quotes() {
        for (id, written) in
            [("问候", "问候"), ("2024", "\"2024\""), ("No", "\"No\""), ("-x", "\"-x\""), ("a.b", "a.b")]
        {
            assert_eq!(as_scalar(id), written);
        }
    }
}
