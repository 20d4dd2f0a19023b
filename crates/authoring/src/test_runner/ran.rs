//! What came of one case of a conversation test: all that its readers (the terminal, JUnit, coverage) need.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use bcc_lang::message::told::Told;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_runtime::program::event::Speaker;
use bcc_runtime::program::program::Program;

/// What came of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// Everything was as expected.
    Passed,
    /// Something was not.
    Failed,
    /// It was not run, for a reason that is none of its own.
    Skipped,
    /// It could not be run: the test or its script is wrong, or something broke inside of the interpreter.
    Broken,
}

impl Status {
    /// The word for it in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Broken => "broken",
        }
    }
}

/// One line of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Who said it.
    pub speaker: Speaker,
    /// What.
    pub text: String,
    /// The action in which it was said; empty outside of any.
    pub action_id: String,
    /// The `seq` of its event.
    pub seq: u64,
}

/// Something that was not as expected.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The place in the test's file that expected it.
    pub span: Span,
    /// The line of that place, from 1.
    pub line: usize,
    /// What is wrong, as a sentence.
    pub message: String,
    /// What was expected, in words or as it is written.
    pub expected: Told,
    /// The text that was expected word for word, where it was: it can be compared with [`Failure::found`].
    pub exact: Option<String>,
    /// What came.
    pub found: Told,
    /// What to do, where something is known.
    pub help: Option<String>,
    /// How many lines of [`Ran::transcript`] were said by then.
    pub said: usize,
}

/// One case that was run, or could not be.
#[derive(Clone)]
pub struct Ran {
    /// The file of the test.
    pub file: Arc<SourceFile>,
    /// Where that file really is.
    pub real: PathBuf,
    /// `test`: what it shows.
    pub test: String,
    /// Which case of it.
    pub case: Option<String>,
    /// The number of the case in its file, from 0.
    pub number: usize,
    /// What came of it.
    pub status: Status,
    /// Why it was skipped or is broken.
    pub why: Option<String>,
    /// What was not as expected, in the order in which it was found.
    pub failures: Vec<Failure>,
    /// What somebody should know though it is no failure: replies that nobody asked for, errors of the model.
    pub notes: Vec<String>,
    /// The file of its snapshot, when it asks for one.
    pub snapshot: Option<PathBuf>,
    /// What was said.
    pub transcript: Vec<Line>,
    /// The journal of its session: each event as its JSON line. [`Ran::events`] reads them.
    pub journal: Vec<String>,
    /// What it ran; none when nothing could be run. Cases of one script share it.
    pub program: Option<Arc<Program>>,
    /// The file of the script, where it really is.
    pub script: Option<PathBuf>,
    /// The turns of its session.
    pub turns: u64,
    /// The model calls of its session.
    pub model_calls: u64,
    /// How often its session was begun or taken up.
    pub sessions: u64,
    /// How long it really took.
    pub took: Duration,
}

impl Ran {
    /// The events of its session, in their order.
    pub fn events(&self) -> Vec<Value> {
        self.journal.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Test and case in one line.
    pub fn title(&self) -> String {
        match &self.case {
            Some(case) => format!("{} [{case}]", self.test),
            None => self.test.clone(),
        }
    }

    /// Whether it counts as failure.
    pub fn failed(&self) -> bool {
        matches!(self.status, Status::Failed | Status::Broken)
    }
}
