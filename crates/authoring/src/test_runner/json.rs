//! The report of tests for programs (docs/tests.md, "For programs").

use serde_json::{Value, json as value};

use crate::test_runner::result::{TestFailure, TestResult, TestStatus, TranscriptLine};
use bcc_lang::message::message::Message;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::render::visible::visible_json;

/// [`document`] as text, in English.
pub fn json(ran: &[TestResult], unreadable: usize, diagnostics: &[Diagnostic], stale: &[String]) -> String {
    let diagnostics = diagnostics.iter().map(finding).collect();
    visible_json(&format!("{:#}\n", document(ran, unreadable, diagnostics, stale, &Message::to_string))).into_owned()
}

/// The results as one document, in which messages are written with `shown`. `unreadable` is the number of files in which no test could be
/// read, `stale` are the snapshots that no test uses any more.
pub fn document(
    ran: &[TestResult],
    unreadable: usize,
    diagnostics: Vec<Value>,
    stale: &[String],
    shown: &dyn Fn(&Message) -> String,
) -> Value {
    let count = |status| ran.iter().filter(|ran| ran.status == status).count();
    value!({
        "version": 1,
        "passed": count(TestStatus::Passed),
        "failed": count(TestStatus::Failed) + count(TestStatus::Broken) + unreadable,
        "skipped": count(TestStatus::Skipped),
        "tests": ran.iter().map(|ran| case(ran, shown)).collect::<Vec<_>>(),
        "stale_snapshots": stale,
        "diagnostics": diagnostics,
    })
}

fn case(ran: &TestResult, shown: &dyn Fn(&Message) -> String) -> Value {
    value!({
        "file": ran.file.name(),
        "test": ran.test,
        "case": ran.case,
        "status": ran.status.name(),
        "why": ran.reason.as_ref().map(shown),
        "failures": ran.failures.iter().map(|failed| failure(failed, shown)).collect::<Vec<_>>(),
        "notes": ran.notes.iter().map(shown).collect::<Vec<_>>(),
        "transcript": ran.transcript.iter().map(line).collect::<Vec<_>>(),
        "turns": ran.turns,
        "model_calls": ran.model_calls,
        "sessions": ran.sessions,
        "ms": u64::try_from(ran.took.as_millis()).unwrap_or(u64::MAX),
    })
}

fn failure(failure: &TestFailure, shown: &dyn Fn(&Message) -> String) -> Value {
    value!({
        "line": failure.line,
        "message": shown(&failure.message),
        "expected": shown(&failure.expected),
        "found": shown(&failure.found),
        "help": failure.help.as_ref().map(shown),
        "after": failure.transcript_lines,
    })
}

fn line(line: &TranscriptLine) -> Value {
    value!({ "role": line.speaker.name(), "text": line.text, "action_id": line.action_id, "seq": line.seq })
}

fn finding(diagnostic: &Diagnostic) -> Value {
    let (line, column) = diagnostic.file.line_column(diagnostic.span.start);
    value!({
        "rule": diagnostic.rule,
        "severity": diagnostic.severity.name(),
        "message": diagnostic.message,
        "help": diagnostic.help,
        "file": diagnostic.file.name(),
        "line": line,
        "column": column,
    })
}
