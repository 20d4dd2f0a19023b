//! Compares a snapshot with the one that is kept, and keeps another when it is told to.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use similar::TextDiff;

use crate::test_runner::snapshots::files::{FOLDER, test_name};
use bcc_engine::files::write::replace;

/// The first lines of every file.
const HEAD: &str =
    "# What a conversation was, kept by `bcc-script test --update`: read what changed before you commit it.\n";

/// Lines of a difference that are shown at most.
const MOST_SHOWN: usize = 200;

/// The largest file that is read, in bytes: a snapshot is no larger than the conversation that it is of.
const LARGEST: u64 = 64 * 1024 * 1024;

/// How what is kept compares with what is there now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotComparison {
    Same,
    Missing,
    /// It is otherwise: the differing lines, with some around them.
    Differs(String),
    Unreadable(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotOutcome {
    /// It was as it should be, and was not touched.
    Same,
    New,
    Changed,
}

/// Compares a snapshot with the file that keeps it.
pub fn compare(file: &Path, now: &str) -> SnapshotComparison {
    match read(file) {
        Ok(None) => SnapshotComparison::Missing,
        Ok(Some(kept)) => {
            let kept = body(&kept);
            if kept == now { SnapshotComparison::Same } else { SnapshotComparison::Differs(difference(&kept, now)) }
        }
        Err(why) => SnapshotComparison::Unreadable(why),
    }
}

/// Keeps a snapshot in this file. It is there whole or not at all, and is not written when it is the same.
/// Errors: Why it cannot be written, in words.
pub fn update(file: &Path, now: &str) -> Result<SnapshotOutcome, String> {
    let before = read(file).unwrap_or_default();
    if before.as_deref().map(body).as_deref() == Some(now) {
        return Ok(SnapshotOutcome::Same);
    }
    replace(file, format!("{HEAD}{now}").as_bytes()).map_err(|error| error.to_string())?;
    Ok(if before.is_some() { SnapshotOutcome::Changed } else { SnapshotOutcome::New })
}

/// The files beside this test that keep snapshots of it, `used` not among them: of cases that are gone, or of a test that asks
/// for none any more. Files of other tests, and whatever else lies there, are left alone.
pub fn stale(test: &Path, used: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let folder = test.parent().unwrap_or_else(|| Path::new("")).join(FOLDER);
    let name = test_name(test);
    let cases = fs::read_dir(folder.join(&name)).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let of_cases = cases.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let mut stale: Vec<PathBuf> = of_cases
        .chain([folder.join(format!("{name}.yaml"))])
        .filter(|path| path.is_file() && !used.contains(path))
        .collect();
    stale.sort();
    stale
}

/// The text of a file; none when there is no such file.
fn read(file: &Path) -> Result<Option<String>, String> {
    match fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
        Ok(about) if about.len() > LARGEST => return Err("it is too large for a snapshot".to_owned()),
        Ok(_) => {}
    }
    fs::read_to_string(file).map(Some).map_err(|error| error.to_string())
}

/// A kept text without the comments before it, with the line ends that snapshots have: version control may have changed them.
fn body(kept: &str) -> String {
    let lines = kept.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let comments: usize = lines.split_inclusive('\n').take_while(|line| line.starts_with('#')).map(str::len).sum();
    lines.get(comments..).unwrap_or_default().to_owned()
}

/// The lines that differ: `-` as it was kept, `+` as it is now.
fn difference(kept: &str, now: &str) -> String {
    let diff = TextDiff::from_lines(kept, now);
    let whole = diff.unified_diff().context_radius(3).missing_newline_hint(false).to_string();
    let mut lines: Vec<&str> = whole.lines().collect();
    let more = lines.len().saturating_sub(MOST_SHOWN);
    lines.truncate(MOST_SHOWN);
    let mut shown = lines.join("\n");
    if more > 0 {
        shown += &format!("\n… and {more} more lines");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_missing_then_the_same_then_another() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("snapshots/a/小林.yaml");
        assert_eq!(compare(&file, "transcript: []\n"), SnapshotComparison::Missing);
        assert_eq!(update(&file, "transcript:\n- ai: 您好\n"), Ok(SnapshotOutcome::New));
        assert_eq!(compare(&file, "transcript:\n- ai: 您好\n"), SnapshotComparison::Same);
        let SnapshotComparison::Differs(difference) = compare(&file, "transcript:\n- ai: 你好\n") else {
            panic!("it differs")
        };
        assert!(difference.ends_with(" transcript:\n-- ai: 您好\n+- ai: 你好"), "{difference}");
        assert_eq!(update(&file, "transcript:\n- ai: 你好\n"), Ok(SnapshotOutcome::Changed));
        assert_eq!(compare(&file, "transcript:\n- ai: 你好\n"), SnapshotComparison::Same);
        let left: Vec<_> = fs::read_dir(file.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_is_the_same_is_not_written_whatever_line_ends_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        let kept = "\u{feff}# somebody's remark\r\n# another\r\ntranscript:\r\n- ai: a\r\n";
        fs::write(&file, kept).unwrap();
        assert_eq!(update(&file, "transcript:\n- ai: a\n"), Ok(SnapshotOutcome::Same));
        assert_eq!(fs::read_to_string(&file).unwrap(), kept);
        assert_eq!(compare(&file, "transcript:\n- ai: a\n"), SnapshotComparison::Same);
    }

    #[test]
    fn snapshots_of_cases_that_are_gone_are_told_and_those_of_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let of = |path: &str| folder.path().join("snapshots").join(path);
        for path in ["a.yaml", "a/one.yaml", "a/two.yaml", "a/notes.txt", "b.yaml", "ab.yaml", "b/one.yaml"] {
            update(&of(path), "transcript: []\n").unwrap();
        }
        let used = BTreeSet::from([of("a/one.yaml")]);
        assert_eq!(stale(&folder.path().join("a.yaml"), &used), [of("a/two.yaml"), of("a.yaml")]);
        assert_eq!(stale(&folder.path().join("c.yaml"), &used), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_a_missing_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        fs::write(&file, [0xff, 0xfe, 0xff]).unwrap();
        assert!(matches!(compare(&file, "transcript: []\n"), SnapshotComparison::Unreadable(_)));
    }

    #[test]
    fn a_difference_of_many_lines_is_cut() {
        let one: String = (0..1_000).map(|number| format!("- ai: {number}\n")).collect();
        let difference = difference(&one, "");
        assert_eq!(difference.lines().count(), MOST_SHOWN + 1);
        assert!(difference.ends_with("more lines"));
    }
}
