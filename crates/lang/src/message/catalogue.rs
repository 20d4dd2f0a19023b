//! The catalogue of a language: maps each literal of the source to its translation.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::message::chinese;
use crate::message::pattern::bracketed;

/// The translations of a language. Loaded once, when the first text is requested.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    literals: HashMap<String, String>,
}

impl Catalogue {
    pub(crate) fn chinese() -> &'static Self {
        static CHINESE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::from_entries(chinese::entries()));
        &CHINESE
    }

    /// The literals of the Chinese catalogue, with their constant parts in `⟦ ⟧`.
    pub(crate) fn pseudo() -> &'static Self {
        static PSEUDO: LazyLock<Catalogue> = LazyLock::new(|| {
            Catalogue::from_entries(chinese::entries().map(|(english, _)| {
                let bracketed = bracketed(&english);
                (english, bracketed)
            }))
        });
        &PSEUDO
    }

    /// Creates a catalogue of literals and their translations. If a literal occurs twice, the first translation is used.
    pub(crate) fn from_entries(entries: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut literals = HashMap::new();
        for (english, translation) in entries {
            literals.entry(english).or_insert(translation);
        }
        Self { literals }
    }

    pub(crate) fn literal(&self, english: &str) -> Option<&str> {
        self.literals.get(english).map(String::as_str)
    }
}
