//! What a report contains. Its JSON form is documented in docs/reports.md: fields may be added, never renamed or removed.

use bcc_lang::message::message::Message;
use bcc_lang::value::exact::ExactValue;
use serde::Serialize;
use serde_json::Value;

/// The version of the JSON form.
pub const REPORT_VERSION: u32 = 1;

/// The report about one session. Sensitive values are masked.
#[derive(Clone, Debug, Serialize)]
pub struct SessionReport {
    pub version: u32,
    /// Always `report`: the first fields tell what a file is.
    pub kind: &'static str,
    pub session: ReportedSession,
    pub steps: Vec<ReportedStep>,
    pub decisions: Vec<ReportedDecision>,
    /// The push-backs: each began another iteration.
    pub iterations: Vec<PushBack>,
    pub failures: Vec<ReportedFailure>,
    pub timeline: Vec<TimelineEntry>,
    /// As in an export.
    pub variables: ExactValue,
    pub transcript: TranscriptExcerpt,
    /// What ran, as a Mermaid flowchart.
    pub diagram: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct ReportedSession {
    pub id: String,
    pub script: String,
    pub title: String,
    pub user: String,
    pub status: String,
    /// Why it failed, stopped or was cancelled.
    pub reason: Option<Message>,
    pub started_at: String,
    /// The time of its last event.
    pub updated_at: String,
    /// From the start to the last event.
    pub duration_ms: Option<u64>,
    /// As in an export: `turns`, `model_calls`, `tokens`, `active_ms`.
    pub used: Value,
    /// The totals of its model calls, as in an export.
    pub usage: Value,
    /// The session that it repeats from a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    Done,
    Failed,
    Rejected,
    PushedBack,
    Skipped,
    Waiting,
    Running,
    Stopped,
    Cancelled,
    /// It was done, and its compensation has undone it.
    Undone,
    /// The session continued elsewhere before the step was done.
    Left,
}

impl StepStatus {
    pub const ALL: [Self; 11] = [
        Self::Done,
        Self::Failed,
        Self::Rejected,
        Self::PushedBack,
        Self::Skipped,
        Self::Waiting,
        Self::Running,
        Self::Stopped,
        Self::Cancelled,
        Self::Undone,
        Self::Left,
    ];

    /// The words that people read.
    pub fn label(self) -> Message {
        Message::word(match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::PushedBack => "pushed back",
            Self::Skipped => "skipped",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
            Self::Undone => "undone",
            Self::Left => "left",
        })
    }
}

/// One visit of an action.
#[derive(Clone, Debug, Serialize)]
pub struct ReportedStep {
    /// The instance path of the location.
    pub path: String,
    pub phase_id: String,
    pub topic_id: String,
    pub action_id: String,
    pub action_type: String,
    /// How often this path was visited, up to here.
    pub visit: u32,
    pub status: StepStatus,
    pub exit_reason: Option<String>,
    pub started_at: String,
    pub ended_at: Option<String>,
    pub duration_ms: Option<u64>,
    /// The part of the duration in which it waited for an answer, a decision or a time.
    pub waited_ms: u64,
    /// How often what it does outside was attempted.
    pub attempts: u64,
    pub exit_code: Option<i64>,
    /// The number of rounds, each a message and its answer; 1 for an action that has none.
    pub rounds: u64,
    pub model_calls: u64,
    /// What it set.
    pub variables: Vec<String>,
    /// Why it failed or was skipped.
    pub error: Option<Message>,
}

/// A decision about a request, or that its time came.
#[derive(Clone, Debug, Serialize)]
pub struct ReportedDecision {
    pub request_id: String,
    pub path: String,
    pub action_id: String,
    pub prompt: String,
    /// Null if the time came before a decision.
    pub decision: Option<String>,
    pub by: Option<String>,
    pub comment: Option<String>,
    pub values: ExactValue,
    pub iteration: u64,
    pub opened_at: Option<String>,
    pub at: String,
    /// How long the request was open.
    pub waited_ms: Option<u64>,
}

/// A push-back, which begins the iteration after `iteration`.
#[derive(Clone, Debug, Serialize)]
pub struct PushBack {
    pub path: String,
    pub action_id: String,
    pub iteration: u64,
    pub by: Option<String>,
    pub comment: Option<String>,
    pub at: String,
    /// The action where the session continued.
    pub back_to: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ReportedFailure {
    pub at: String,
    pub path: String,
    /// Empty for an error of the session or of a phase or topic.
    pub action_id: String,
    pub exit_reason: Option<String>,
    pub message: Message,
    pub exit_code: Option<i64>,
    pub stdout: Option<OutputExcerpt>,
    pub stderr: Option<OutputExcerpt>,
}

/// The end of an output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutputExcerpt {
    pub text: String,
    /// The bytes before the text that are left out, of all that the program wrote.
    pub left_out: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct TimelineEntry {
    pub seq: u64,
    pub at: String,
    /// The time since the start of the session.
    pub after_ms: Option<u64>,
    /// The type of the event (docs/sessions.md).
    pub r#type: String,
    /// The instance path of the location; the id of a phase.
    pub path: String,
    /// Of a step.
    pub duration_ms: Option<u64>,
    pub text: Option<Message>,
}

/// The first and the last messages.
#[derive(Clone, Debug, Serialize)]
pub struct TranscriptExcerpt {
    /// The number of all messages.
    pub messages: u64,
    /// The number of messages between `first` and `last`.
    pub left_out: u64,
    pub first: Vec<ReportedMessage>,
    pub last: Vec<ReportedMessage>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ReportedMessage {
    pub role: String,
    /// The name of the speaker in the script.
    pub speaker: String,
    pub text: String,
    /// The characters at the end of the text that are left out.
    pub left_out: u64,
    pub at: String,
    pub action_id: String,
}
