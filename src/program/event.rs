//! What leaves the interpreter: events, as INTERFACES.md has them.

use serde::Serialize;
use serde_json::Value;

use crate::program::outcome::Outcome;
use crate::program::place::Place;

/// Something that happened in a session.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs)] // the fields are those of the table in INTERFACES.md
pub enum Event {
    SessionStarted {
        script: String,
        model: String,
    },
    SessionResumed {
        script: String,
        model: String,
        last_seq: u64,
        answers: u64,
    },
    PhaseEntered {
        name: Option<String>,
    },
    TopicEntered {
        name: Option<String>,
    },
    ActionStarted {
        name: String,
    },
    Skipped {
        name: String,
        why: String,
    },
    MessageDiscarded {
        message_id: String,
    },
    Message {
        message_id: String,
        role: Speaker,
        text: String,
    },
    VariableSet {
        name: String,
        scope: &'static str,
        value: Value,
        source: String,
    },
    ModelCall(Box<ModelCall>),
    Outcome {
        action_type: &'static str,
        #[serde(flatten)]
        outcome: Box<Outcome>,
    },
    Routed {
        reason: &'static str,
        route: String,
        from: String,
        why: String,
        /// Whose `on_exit` the route stands in, as [`crate::program::routes::Level::name`] has it; none where no table had one,
        /// and for what follows from a route that was told before.
        #[serde(skip_serializing_if = "Option::is_none")]
        table: Option<&'static str>,
    },
    Triggered {
        reason: String,
        route: String,
        from: String,
        why: String,
    },
    MonitorFeedback {
        action_id: String,
        action_type: String,
        round: u32,
        analysis: Value,
        /// Whether a turn used it: then this is the event of that turn.
        used: bool,
        /// Of a use: the `seq` of the event that brought it.
        #[serde(skip_serializing_if = "Option::is_none")]
        feedback: Option<u64>,
    },
    Orchestrated {
        reason: String,
        route: &'static str,
        from: String,
        why: String,
        accepted: bool,
        plan: Value,
        original: Vec<String>,
        now: Vec<String>,
    },
    BudgetReached {
        reason: &'static str,
        route: String,
        from: String,
        why: String,
    },
    Warning {
        code: &'static str,
        message: String,
        help: Option<String>,
    },
    Error {
        code: &'static str,
        message: String,
        help: Option<String>,
    },
    Waiting {
        r#for: &'static str,
        prompt: String,
        answer_id: String,
    },
    SessionCompleted {
        summary: Summary,
    },
    SessionFailed {
        summary: Summary,
    },
    SessionStopped {
        summary: Summary,
    },
}

/// Who said a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// The interpreter, in the model's or the author's words.
    Ai,
    /// The person.
    User,
}

impl Speaker {
    /// The name in events, exports and the archive.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ai => "ai",
            Self::User => "user",
        }
    }
}

/// One exchange with a model: what it cost and what came of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ModelCall {
    /// Unique in the session.
    pub call_id: String,
    /// Why the model was asked: `action`, `monitor`, …
    pub purpose: &'static str,
    /// The provider and its model.
    pub model: String,
    /// Tokens of the prompt, when the provider counted them.
    pub tokens_in: Option<u64>,
    /// Tokens of the reply, when the provider counted them.
    pub tokens_out: Option<u64>,
    /// Milliseconds from asking to the end of the reply.
    pub ms: u64,
    /// Milliseconds to the first piece of the reply.
    pub first_token_ms: Option<u64>,
    /// How often the provider tried.
    pub attempts: u32,
    /// Which strategy read the reply, or how many were tried.
    pub parse_retry_count: Option<u8>,
    /// What was bent to make the reply fit.
    pub bent: Value,
    /// Why there is no reply, or why it could not be read.
    pub error: Option<String>,
}

/// What a session came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// How many answers of the person were taken.
    pub answers: u64,
    /// How many turns were run.
    pub turns: u64,
    /// How many model calls were made.
    pub model_calls: u64,
    /// Tokens of all prompts that were counted.
    pub tokens_in: u64,
    /// Tokens of all replies that were counted.
    pub tokens_out: u64,
    /// Milliseconds while some process drove it.
    pub active_ms: u64,
    /// Why it ended, when it did not simply complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An event with its stamp: one line of the journal.
#[derive(Serialize)]
pub struct Stamped<'a> {
    /// Counts from 1, without gaps.
    pub seq: u64,
    /// RFC 3339, UTC.
    pub at: &'a str,
    /// The session.
    pub session_id: &'a str,
    /// What happened.
    #[serde(flatten)]
    pub event: &'a Event,
    /// Where.
    pub location: &'a Place,
}

impl Event {
    /// The `type` of the event.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::SessionStarted { .. } => "session_started",
            Self::SessionResumed { .. } => "session_resumed",
            Self::PhaseEntered { .. } => "phase_entered",
            Self::TopicEntered { .. } => "topic_entered",
            Self::ActionStarted { .. } => "action_started",
            Self::Skipped { .. } => "skipped",
            Self::MessageDiscarded { .. } => "message_discarded",
            Self::Message { .. } => "message",
            Self::VariableSet { .. } => "variable_set",
            Self::ModelCall(_) => "model_call",
            Self::Outcome { .. } => "outcome",
            Self::Routed { .. } => "routed",
            Self::Triggered { .. } => "triggered",
            Self::Orchestrated { .. } => "orchestrated",
            Self::MonitorFeedback { .. } => "monitor_feedback",
            Self::BudgetReached { .. } => "budget_reached",
            Self::Warning { .. } => "warning",
            Self::Error { .. } => "error",
            Self::Waiting { .. } => "waiting",
            Self::SessionCompleted { .. } => "session_completed",
            Self::SessionFailed { .. } => "session_failed",
            Self::SessionStopped { .. } => "session_stopped",
        }
    }
}

/// Fields of events and exports that are the engine's own: what a person said never stands there, so masks leave them.
pub const OWN_FIELDS: [&str; 28] = [
    "seq",
    "at",
    "timestamp",
    "session_id",
    "type",
    "location",
    "message_id",
    "call_id",
    "answer_id",
    "action_id",
    "action_type",
    "exit_reason",
    "progress_suggestion",
    "scope",
    "source",
    "name",
    "round",
    "role",
    "model",
    "tokens_in",
    "tokens_out",
    "ms",
    "attempts",
    "parse_retry_count",
    "current_round",
    "max_rounds",
    "retry_count",
    "strategies",
];

/// A piece of a message that is being written. It counts for nothing until its `message` is committed, so it has no `seq`.
#[derive(Debug, Serialize)]
pub struct Delta<'a> {
    /// When, RFC 3339, UTC.
    pub at: &'a str,
    /// The session.
    pub session_id: &'a str,
    /// `message_delta`.
    pub r#type: &'static str,
    /// The message that it is a piece of.
    pub message_id: &'a str,
    /// The piece.
    pub text: &'a str,
    /// Where.
    pub location: &'a Place,
}

/// A reader of events. The terminal, the JSON lines and the tests are such readers; the interpreter itself prints nothing.
pub trait Observer: Send + Sync {
    /// An event was committed. `line` is the whole event as JSON, without a line end.
    fn committed(&self, kind: &str, line: &str);

    /// A piece of a message arrived.
    fn delta(&self, delta: &Delta<'_>);
}
