//! The files of snapshots: `snapshots/<test>.yaml` beside the test, `snapshots/<test>/<case>.yaml` for each case of one.

use std::path::{Path, PathBuf};

use bcc_engine::pin::sha256;

/// The folder beside the tests.
pub const FOLDER: &str = "snapshots";

/// The most characters of a name that are taken into that of a file: four bytes each, and the rest, stay below the 255 that
/// file systems allow.
const LONGEST: usize = 50;

/// Names that Windows gives to devices.
const DEVICES: [&str; 22] = [
    "con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9", "lpt1", "lpt2",
    "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

/// The file of the snapshot of a test at `test`, or of this case of it.
pub fn place(test: &Path, case: Option<&str>) -> PathBuf {
    let folder = test.parent().unwrap_or_else(|| Path::new("")).join(FOLDER);
    let stem = test_name(test);
    match case {
        // A folder of its own: `a.b` may be a test, and a case `b` of a test `a`.
        Some(case) => folder.join(stem).join(format!("{}.yaml", safe(case))),
        None => folder.join(format!("{stem}.yaml")),
    }
}

/// What the files of a test are called by: its name without `.yaml`; with any other ending, whole.
pub fn test_name(test: &Path) -> String {
    let name = test.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.strip_suffix(".yaml").map_or(name.clone(), str::to_owned)
}

/// A name that can stand in any file system, and that no other name gets: letters of any script, digits, `-` and `_` stay; a
/// name that would have to change, that is long, or that another could not be told from where capitals do not count, has a
/// piece of its hash behind it.
fn safe(name: &str) -> String {
    let stays = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let plain: String = name.chars().map(|c| if stays(c) { c } else { '_' }).take(LONGEST).collect();
    let is_same = plain == name && name.to_lowercase() == name && !name.is_empty();
    if is_same && !DEVICES.contains(&name) {
        return plain;
    }
    let hash = sha256(name.as_bytes());
    let plain = plain.trim_matches('_');
    let between = if plain.is_empty() { "" } else { "-" };
    format!("{plain}{between}{}", hash.get(..8).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_snapshot_lies_beside_its_test() {
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
    fn names_that_file_systems_mix_up_or_refuse_are_told_apart() {
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
        fn no_case_leaves_the_folder_of_its_test(case in any::<String>()) {
            let file = place(Path::new("tests/a.yaml"), Some(&case));
            prop_assert_eq!(file.parent(), Some(Path::new("tests/snapshots/a")));
            prop_assert!(file.file_name().unwrap().len() < 255);
        }
    }
}
