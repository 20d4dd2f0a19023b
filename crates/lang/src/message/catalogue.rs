//! The catalogue of a language: the translation of each literal of the source, by the literal.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::message::chinese;

/// The translations of a language. Read once, when the first text is asked for.
#[derive(Debug, Default)]
pub struct Catalogue {
    literals: HashMap<String, String>,
}

impl Catalogue {
    pub fn chinese() -> &'static Self {
        static CHINESE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::of(chinese::entries()));
        &CHINESE
    }

    /// A catalogue of these literals with their translations. If a literal is given twice, the first translation counts.
    pub fn of(entries: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut literals = HashMap::new();
        for (english, translation) in entries {
            literals.entry(english).or_insert(translation);
        }
        Self { literals }
    }

    pub fn literal(&self, english: &str) -> Option<&str> {
        self.literals.get(english).map(String::as_str)
    }
}
