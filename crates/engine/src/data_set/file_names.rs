//! Names of files from ids, which may come from the store of somebody else: a name is a plain, portable name, or it is replaced.

use std::collections::BTreeSet;

use crate::portable::is_device;
use bcc_store::content_hash::hash;

/// The maximum length of a name, in bytes: less than the 255 of file systems, because extensions follow.
const MAX_BYTES: usize = 120;

/// The number of characters of the hash that makes a name unique.
const HASH_LENGTH: usize = 10;

/// A portable file name for `id`. Ids of scripts and sessions stay as they are; if another text had to be changed, a part of its hash
/// keeps it apart from others.
pub(crate) fn file_name(id: &str) -> String {
    let is_kept = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '.');
    let mut name: String = id.chars().map(|character| if is_kept(character) { character } else { '_' }).collect();
    while name.len() > MAX_BYTES {
        name.pop();
    }
    let name = name.trim_start_matches(['.', '-']).trim_end_matches('.');
    if name == id && !name.is_empty() && !is_device(name) {
        return name.to_owned();
    }
    with_hash(name, id)
}

fn with_hash(name: &str, id: &str) -> String {
    let hash = hash(id);
    let stem = if name.is_empty() || is_device(name) { "x" } else { name };
    format!("{stem}-{}", hash.get(..HASH_LENGTH).unwrap_or_default())
}

/// Names that are different from each other, also on systems that do not distinguish upper and lower case.
#[derive(Debug, Default)]
pub(crate) struct DistinctNames {
    taken: BTreeSet<String>,
}

impl DistinctNames {
    pub(crate) fn with(taken: &[&str]) -> Self {
        Self { taken: taken.iter().map(|name| name.to_lowercase()).collect() }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.taken.contains(&name.to_lowercase())
    }

    /// `wanted`, or the first of `wanted_2`, `wanted_3`, … that is free.
    pub(crate) fn take(&mut self, wanted: &str) -> String {
        let numbered = (2_u64..).map(|number| format!("{wanted}_{number}"));
        let mut candidates = std::iter::once(wanted.to_owned()).chain(numbered);
        candidates.find(|name| self.taken.insert(name.to_lowercase())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_leads_elsewhere() {
        for id in ["intake", "孕前_1.2-b", "one"] {
            assert_eq!(file_name(id), id);
        }
        for id in ["..", "../../etc/passwd", "", ".hidden", "-rf", "a/b", "con", "a\nb", "a.", &"长".repeat(200)] {
            let name = file_name(id);
            assert!(!name.contains(['/', '\n']) && !name.starts_with(['.', '-']), "{name}");
            assert!(name.len() < 200 && name != id && !is_device(&name), "{name}");
        }
        assert_ne!(file_name("a/b"), file_name("a\\b"));
    }

    #[test]
    fn names_that_differ_only_in_case_are_kept_apart() {
        let mut names = DistinctNames::with(&["index"]);
        let taken = ["Name", "name", "Index", "NAME"].map(|name| names.take(name));
        assert_eq!(taken, ["Name", "name_2", "Index_2", "NAME_3"]);
    }
}
