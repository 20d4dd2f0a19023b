//! The files of snapshots: `snapshots/<test>.yaml` next to the test, `snapshots/<test>/<case>.yaml` for each of its cases.

use std::path::{Path, PathBuf};

use bcc_engine::pin::sha256;

/// The folder next to the tests.
pub const FOLDER: &str = "snapshots";

/// The maximum number of characters of a name in a file name: with four bytes each and the suffix, the file name stays
/// below the usual limit of 255 bytes.
const MAX_CHARACTERS: usize = 50;

/// Names that Windows reserves for devices.
const DEVICES: [&str; 22] = [
    "con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9", "lpt1", "lpt2",
    "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

/// The snapshot file of the test at `test`, or of one of its cases.
pub fn place(test: &Path, case: Option<&str>) -> PathBuf {
    let folder = test.parent().unwrap_or_else(|| Path::new("")).join(FOLDER);
    let stem = test_name(test);
    match case {
        // A separate folder: `a.b` may be a test, and `b` a case of a test `a`.
        Some(case) => folder.join(stem).join(format!("{}.yaml", safe(case))),
        None => folder.join(format!("{stem}.yaml")),
    }
}

/// The base name of the files of a test: its name without `.yaml`; other extensions are kept.
pub(crate) fn test_name(test: &Path) -> String {
    let name = test.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.strip_suffix(".yaml").map_or(name.clone(), str::to_owned)
}

/// A file name that is valid on any file system and unique: letters of any script, digits, `-` and `_` are kept. A name
/// that would change, that is too long, or that differs from another only in case gets a part of its hash as suffix.
fn safe(name: &str) -> String {
    let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let plain: String = name.chars().map(|c| if is_allowed(c) { c } else { '_' }).take(MAX_CHARACTERS).collect();
    let is_same = plain == name && name.to_lowercase() == name && !name.is_empty();
    if is_same && !DEVICES.contains(&name) {
        return plain;
    }
    let hash = sha256(name.as_bytes());
    let plain = plain.trim_matches('_');
    let separator = if plain.is_empty() { "" } else { "-" };
    format!("{plain}{separator}{}", hash.get(..8).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_snapshot_is_stored_next_to_its_test() {
        let of = |test: &str, case| place(Path::new(test), case).to_string_lossy().into_owned();
        assert_eq!(of("tests/intake/greets.yaml", None), "tests/intake/snapshots/greets.yaml");
        assert_eq!(of("greets.yml", None), "snapshots/greets.yml.yaml");
        assert_eq!(of("tests/问候.yaml", Some("小林")), "tests/snapshots/问候/小林.yaml");
        assert_eq!(
            of("a.yaml", Some("年龄=5")),
            format!("snapshots/a/年龄_5-{}.yaml", &sha256("年龄=5".as_bytes())[..8])
        );
    }

    #[test]
    fn names_that_file_systems_confuse_or_reject_get_different_files() {
        let names = [
            "a",
            "A",
            "a/b",
            "a_b",
            "a:b",
            "",
            ".",
            "..",
            "../../etc/passwd",
            "con",
            "NUL",
            "x y",
            "x\0y",
            "é",
            "É",
            "长".repeat(300).as_str(),
        ]
        .map(str::to_owned);
        let mut known: HashMap<String, String> = HashMap::new();
        for name in names {
            let safe = safe(&name);
            assert!(
                safe.len() < 240 && !safe.starts_with('.') && !safe.contains(['/', '\\', '\0', ':', ' ']),
                "{safe}"
            );
            if let Some(other) = known.insert(safe.to_lowercase(), name.clone()) {
                panic!("{other:?} and {name:?} are both {safe}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_snapshot_is_in_the_folder_of_its_test(case in any::<String>()) {
            let file = place(Path::new("tests/a.yaml"), Some(&case));
            prop_assert_eq!(file.parent(), Some(Path::new("tests/snapshots/a")));
            prop_assert!(file.file_name().unwrap().len() < 255);
        }
    }
}
