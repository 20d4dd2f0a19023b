//! What came of one case of a conversation test: all that its readers (the terminal, JUnit, coverage) need.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use bcc_lang::message::message::Message;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_runtime::program::event::Speaker;
use bcc_runtime::program::program::Program;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TestStatus {
    Passed,
    Failed,
    /// It was not run, for a reason that is none of its own.
    Skipped,
    /// It could not be run: the test or its script is wrong, or something broke inside of the interpreter.
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
    /// The action in which it was said; empty outside of any.
    pub action_id: String,
    /// The `seq` of its event.
    pub seq: u64,
}

/// What a failure shows as expected or found: a message, or a text as it is.
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

/// Something that was not as expected.
#[derive(Clone, Debug)]
pub struct TestFailure {
    /// The place in the test's file that expected it.
    pub span: Span,
    /// The line of that place, from 1.
    pub line: usize,
    /// What is wrong, as a sentence.
    pub message: Message,
    /// What was expected, in words or as it is written.
    pub expected: Message,
    /// The text that was expected word for word, where it was: it can be compared with [`TestFailure::found`].
    pub exact: Option<String>,
    pub found: Message,
    pub help: Option<Message>,
    /// How many lines of [`TestResult::transcript`] were said by then.
    pub said: usize,
}

/// One case that was run, or could not be.
#[derive(Clone)]
pub struct TestResult {
    pub file: Arc<SourceFile>,
    /// Where that file really is.
    pub real: PathBuf,
    /// `test`: what it shows.
    pub test: String,
    pub case: Option<String>,
    /// The number of the case in its file, from 0.
    pub number: usize,
    pub status: TestStatus,
    pub why: Option<Message>,
    /// What was not as expected, in the order in which it was found.
    pub failures: Vec<TestFailure>,
    /// What somebody should know though it is no failure: replies that nobody asked for, errors of the model.
    pub notes: Vec<Message>,
    /// The file of its snapshot, when it asks for one.
    pub snapshot: Option<PathBuf>,
    pub transcript: Vec<TranscriptLine>,
    /// The journal of its session: each event as its JSON line. [`TestResult::events`] reads them.
    pub journal: Vec<String>,
    /// What it ran; none when nothing could be run. Cases of one script share it.
    pub program: Option<Arc<Program>>,
    /// The file of the script, where it really is.
    pub script: Option<PathBuf>,
    pub turns: u64,
    pub model_calls: u64,
    /// How often its session was begun or taken up.
    pub sessions: u64,
    /// How long it really took.
    pub took: Duration,
}

impl TestResult {
    /// The events of its session, in their order.
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
