//! The snapshot of a finished conversation: compares it with the stored one, or overwrites that.

use bcc_lang::message::ToMessage;
use bcc_lang::message::msg;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::test_runner::find::{TestFile, Tests};
use crate::test_runner::result::{TestFailure, TestResult, TestStatus};
use crate::test_runner::snapshots::compare::{self, SnapshotComparison, SnapshotOutcome, compare, update};
use crate::test_runner::snapshots::content::{SnapshotContent, content, variables};
use crate::test_runner::snapshots::files::place;
use bcc_lang::message::message::Message;
use bcc_lang::script::test::test::WrittenTest;
use bcc_runtime::run::session::Session;

/// Compares the snapshot of a successful conversation with the stored one, or overwrites it (`--update`); records the
/// result in `ran`.
pub fn snapshot(test: &TestFile, written: &WrittenTest, session: &Session, overwrite: bool, ran: &mut TestResult) {
    let Some(wanted) = &written.snapshot else { return };
    let case = ran.case.as_deref();
    let (file, name) = (place(&test.real, case), shown(test, case));
    ran.snapshot = Some(file.clone());
    let variables = variables(session);
    let events = ran.exact_events();
    let data = SnapshotContent { events: &events, variables: &variables, masker: &session.masker };
    let now = match content(&wanted.value, &data) {
        Ok(now) => now,
        Err(error) => {
            (ran.status, ran.reason) = (TestStatus::Broken, Some(error.to_message()));
            return;
        }
    };
    if overwrite {
        match update(&test.boundary, &file, &now) {
            Ok(SnapshotOutcome::Same) => {}
            Ok(SnapshotOutcome::New) => ran.notes.push(msg!("the snapshot {name} is new")),
            Ok(SnapshotOutcome::Changed) => ran.notes.push(msg!("the snapshot {name} was updated")),
            Err(reason) => {
                (ran.status, ran.reason) =
                    (TestStatus::Broken, Some(msg!("the snapshot {name} cannot be written: {reason}")));
            }
        }
        return;
    }
    let (message, found, help) = match compare(&test.boundary, &file, &now) {
        SnapshotComparison::Same => return,
        SnapshotComparison::Missing => {
            let help = "run the test with `--update` to save it, and review what is saved";
            (msg!("there is no snapshot {name} yet"), String::new(), help)
        }
        SnapshotComparison::Differs(difference) => {
            let help = "`-` is the stored snapshot, `+` is the current result; if the new one is correct, run the test with `--update`";
            (msg!("the conversation differs from the snapshot {name}"), difference, help)
        }
        SnapshotComparison::Unreadable(reason) => {
            let help = "fix or delete the file; `--update` writes it again";
            (msg!("the snapshot {name} cannot be read: {reason}"), String::new(), help)
        }
    };
    ran.status = TestStatus::Failed;
    let span = wanted.span;
    ran.failures.push(TestFailure {
        span,
        line: test.file.line(span.start),
        message,
        expected: Message::text(""),
        exact: None,
        found: Message::text(found),
        help: Some(Message::word(help)),
        transcript_lines: ran.transcript.len(),
    });
}

/// The stale snapshots of these tests, as messages name them. Tests that could not be run are skipped, because they may
/// still need theirs.
pub fn stale(tests: &Tests, ran: &[TestResult]) -> Vec<String> {
    let mut stale = Vec::new();
    for test in &tests.files {
        let mut of_test = ran.iter().filter(|ran| ran.file.name() == test.file.name()).peekable();
        if of_test.peek().is_none() {
            continue;
        }
        let mut used: BTreeSet<PathBuf> = BTreeSet::new();
        let mut all_ran = true;
        for ran in of_test {
            all_ran &= matches!(ran.status, TestStatus::Passed | TestStatus::Failed);
            // A failed test stored nothing, but its file is not stale.
            used.insert(place(&test.real, ran.case.as_deref()));
            if ran.status == TestStatus::Passed && ran.snapshot.is_none() {
                used.remove(&place(&test.real, ran.case.as_deref()));
            }
        }
        if all_ran {
            let folder = Path::new(test.file.name()).parent().unwrap_or_else(|| Path::new(""));
            let real = test.real.parent().unwrap_or_else(|| Path::new(""));
            let named = |file: PathBuf| file.strip_prefix(real).map(|end| folder.join(end)).unwrap_or(file);
            let files = compare::stale(&test.boundary, &test.real, &used).into_iter().map(named);
            stale.extend(files.map(|file| file.to_string_lossy().replace('\\', "/")));
        }
    }
    stale
}

/// The file of a snapshot as messages name it, relative to the test's name.
fn shown(test: &TestFile, case: Option<&str>) -> String {
    place(Path::new(test.file.name()), case).to_string_lossy().replace('\\', "/")
}
