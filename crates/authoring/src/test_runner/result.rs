//! The result of one case of a conversation test, for all reports (terminal, JUnit, coverage).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use bcc_lang::message::message::Message;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::value::exact::ExactValue;
use bcc_runtime::program::event::Speaker;
use bcc_runtime::program::program::Program;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TestStatus {
    Passed,
    Failed,
    /// Not run, for an external reason.
    Skipped,
    /// It could not be run: the test or its script has errors, or the interpreter failed.
    Broken,
}

impl TestStatus {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Broken => "broken",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptLine {
    pub speaker: Speaker,
    pub text: String,
    /// The action that sent it; empty outside of actions.
    pub action_id: String,
    /// The `seq` of its event.
    pub seq: u64,
}

/// A value that a failure shows as expected or found: a message, or a plain text.
pub(crate) trait Shown {
    fn shown(self) -> Message;
}

impl Shown for Message {
    fn shown(self) -> Message {
        self
    }
}

impl Shown for String {
    fn shown(self) -> Message {
        Message::text(self)
    }
}

/// An expectation that was not met.
#[derive(Clone, Debug)]
pub struct TestFailure {
    /// The position of the expectation in the test file.
    pub span: Span,
    /// Its line, from 1.
    pub line: usize,
    /// The problem, as a sentence.
    pub message: Message,
    /// The expected value, as a description or as written.
    pub expected: Message,
    /// The exact expected text, if there is one: it can be compared with [`TestFailure::found`].
    pub exact: Option<String>,
    pub found: Message,
    pub help: Option<Message>,
    /// The number of lines of [`TestResult::transcript`] at the time of the failure.
    pub transcript_lines: usize,
}

/// The result of a case, whether it was run or not.
#[derive(Clone)]
pub struct TestResult {
    pub file: Arc<SourceFile>,
    /// The real path of the file.
    pub real: PathBuf,
    /// The value of `test`: the name of the test.
    pub test: String,
    pub case: Option<String>,
    /// The index of the case in its file, from 0.
    pub number: usize,
    pub status: TestStatus,
    pub reason: Option<Message>,
    /// What is wrong with the test or its script, if it could not be run because of that.
    pub errors: Vec<Diagnostic>,
    /// The failures, in the order in which they were found.
    pub failures: Vec<TestFailure>,
    /// Remarks that are not failures: unused replies, errors of the model.
    pub notes: Vec<Message>,
    /// The file of its snapshot, if the test has one.
    pub snapshot: Option<PathBuf>,
    pub transcript: Vec<TranscriptLine>,
    /// The journal of its session: each event as a JSON line. [`TestResult::events`] parses them.
    pub journal: Vec<String>,
    /// The program; `None` if nothing could be run. Cases of one script share it.
    pub program: Option<Arc<Program>>,
    /// The real path of the script file.
    pub script: Option<PathBuf>,
    pub turns: u64,
    pub model_calls: u64,
    /// How often its session was started or resumed.
    pub sessions: u64,
    /// The real duration.
    pub took: Duration,
}

impl TestResult {
    /// The events of its session, in order, with the digits of their numbers.
    pub(crate) fn exact_events(&self) -> Vec<ExactValue> {
        self.journal.iter().filter_map(|line| ExactValue::parse(line).ok()).collect()
    }

    /// The events of its session, in order.
    pub fn events(&self) -> Vec<Value> {
        self.journal.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub fn title(&self) -> String {
        match &self.case {
            Some(case) => format!("{} [{case}]", self.test),
            None => self.test.clone(),
        }
    }

    pub fn failed(&self) -> bool {
        matches!(self.status, TestStatus::Failed | TestStatus::Broken)
    }
}
