//! Compares a snapshot with the stored one, and updates the stored one on request.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use similar::TextDiff;

use crate::test_runner::snapshots::files::{FOLDER, test_name};
use bcc_engine::files::within::{read_within, replace_within, resolve_within};

/// The first line of every file.
pub(crate) const HEAD: &str =
    "# What a conversation was, kept by `bcc-script test --update`: read what changed before you commit it.\n";

/// The maximum number of displayed lines of a difference.
const MAX_LINES: usize = 200;

/// The maximum size of a file that is read, in bytes: a snapshot is not larger than its conversation.
pub(crate) const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The result of comparing a stored snapshot with the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotComparison {
    Same,
    Missing,
    /// The differing lines, with some context.
    Differs(String),
    Unreadable(Message),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotOutcome {
    /// It was up to date, and was not written.
    Same,
    New,
    Changed,
}

/// Compares a snapshot with its file, which no link may lead out of `project`.
pub fn compare(project: &Path, file: &Path, now: &str) -> SnapshotComparison {
    match read(project, file) {
        Ok(None) => SnapshotComparison::Missing,
        Ok(Some(stored)) => {
            let stored = body(&stored);
            if stored == now { SnapshotComparison::Same } else { SnapshotComparison::Differs(difference(&stored, now)) }
        }
        Err(reason) => SnapshotComparison::Unreadable(reason),
    }
}

/// Stores a snapshot atomically, unless it is unchanged.
/// Errors: why it cannot be written.
pub fn update(project: &Path, file: &Path, now: &str) -> Result<SnapshotOutcome, Message> {
    let before = read(project, file).unwrap_or_default();
    if before.as_deref().map(body).as_deref() == Some(now) {
        return Ok(SnapshotOutcome::Same);
    }
    replace_within(project, file, format!("{HEAD}{now}").as_bytes()).map_err(|error| error.to_message())?;
    Ok(if before.is_some() { SnapshotOutcome::Changed } else { SnapshotOutcome::New })
}

/// The stale snapshot files of this test, which are not in `used`: of removed cases, or of a test without snapshots.
/// Other files are ignored.
pub fn stale(project: &Path, test: &Path, used: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let folder = test.parent().unwrap_or_else(|| Path::new("")).join(FOLDER);
    let name = test_name(test);
    let cases = folder.join(&name);
    let entries = resolve_within(project, &cases).and_then(fs::read_dir).into_iter().flatten();
    let cases = entries.filter_map(|entry| Some(cases.join(entry.ok()?.file_name())));
    let of_cases = cases.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let mut stale: Vec<PathBuf> = of_cases
        .chain([folder.join(format!("{name}.yaml"))])
        .filter(|path| path.is_file() && !used.contains(path))
        .collect();
    stale.sort();
    stale
}

/// The text of a file; `None` if it does not exist.
fn read(project: &Path, file: &Path) -> Result<Option<String>, Message> {
    match read_within(project, file, MAX_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_message()),
        Ok(bytes) if bytes.len() as u64 > MAX_BYTES => Err(Message::word("it is too large for a snapshot")),
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| Message::word("it is not UTF-8 text")),
    }
}

/// A stored text without its leading comments, with normalized line endings: version control may have changed them.
fn body(stored: &str) -> String {
    let lines = stored.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let comments: usize = lines.split_inclusive('\n').take_while(|line| line.starts_with('#')).map(str::len).sum();
    lines.get(comments..).unwrap_or_default().to_owned()
}

/// The lines that differ: `-` as stored, `+` as now.
fn difference(stored: &str, now: &str) -> String {
    let diff = TextDiff::from_lines(stored, now);
    let full_diff = diff.unified_diff().context_radius(3).missing_newline_hint(false).to_string();
    let mut lines: Vec<&str> = full_diff.lines().collect();
    let more = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
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
    fn a_snapshot_is_missing_then_the_same_then_different() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("snapshots/a/小林.yaml");
        assert_eq!(compare(folder.path(), &file, "transcript: []\n"), SnapshotComparison::Missing);
        assert_eq!(update(folder.path(), &file, "transcript:\n- ai: 您好\n"), Ok(SnapshotOutcome::New));
        assert_eq!(compare(folder.path(), &file, "transcript:\n- ai: 您好\n"), SnapshotComparison::Same);
        let SnapshotComparison::Differs(difference) = compare(folder.path(), &file, "transcript:\n- ai: 你好\n")
        else {
            panic!("it differs")
        };
        assert!(difference.ends_with(" transcript:\n-- ai: 您好\n+- ai: 你好"), "{difference}");
        assert_eq!(update(folder.path(), &file, "transcript:\n- ai: 你好\n"), Ok(SnapshotOutcome::Changed));
        assert_eq!(compare(folder.path(), &file, "transcript:\n- ai: 你好\n"), SnapshotComparison::Same);
        let left: Vec<_> = fs::read_dir(file.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing is left beside it");
    }

    #[test]
    fn an_unchanged_snapshot_is_not_written_whatever_line_ends_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        let kept = "\u{feff}# somebody's remark\r\n# another\r\ntranscript:\r\n- ai: a\r\n";
        fs::write(&file, kept).unwrap();
        assert_eq!(update(folder.path(), &file, "transcript:\n- ai: a\n"), Ok(SnapshotOutcome::Same));
        assert_eq!(fs::read_to_string(&file).unwrap(), kept);
        assert_eq!(compare(folder.path(), &file, "transcript:\n- ai: a\n"), SnapshotComparison::Same);
    }

    #[test]
    fn snapshots_of_removed_cases_are_stale_and_those_of_other_tests_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let of = |path: &str| folder.path().join("snapshots").join(path);
        for path in ["a.yaml", "a/one.yaml", "a/two.yaml", "a/notes.txt", "b.yaml", "ab.yaml", "b/one.yaml"] {
            update(folder.path(), &of(path), "transcript: []\n").unwrap();
        }
        let used = BTreeSet::from([of("a/one.yaml")]);
        assert_eq!(stale(folder.path(), &folder.path().join("a.yaml"), &used), [of("a/two.yaml"), of("a.yaml")]);
        assert_eq!(stale(folder.path(), &folder.path().join("c.yaml"), &used), Vec::<PathBuf>::new());
    }

    #[test]
    fn an_unreadable_snapshot_is_not_reported_as_missing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        fs::write(&file, [0xff, 0xfe, 0xff]).unwrap();
        assert!(matches!(compare(folder.path(), &file, "transcript: []\n"), SnapshotComparison::Unreadable(_)));
    }

    #[test]
    fn a_long_difference_is_truncated() {
        let one: String = (0..1_000).map(|number| format!("- ai: {number}\n")).collect();
        let difference = difference(&one, "");
        assert_eq!(difference.lines().count(), MAX_LINES + 1);
        assert!(difference.ends_with("more lines"));
    }
}
