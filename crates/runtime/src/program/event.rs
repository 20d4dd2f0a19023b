//! The events that the interpreter emits, as docs/sessions.md lists them.

use bcc_lang::message::message::Message;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::program::cell_rerun::CellRerunPiece;
use crate::program::location::EventLocation;
use crate::program::outcome::Outcome;
use crate::program::output_piece::OutputPiece;
use crate::program::question::QuestionPiece;
use crate::program::recorder::RecordedExchange;
use crate::program::shown_cell::ShownCell;
use crate::program::tool_called::ToolCalled;
use crate::program::tool_progress::ToolProgressPiece;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_llm::model::reply::SkippedModel;

/// Something that happened in a session.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs)] // the fields are those of the table in docs/sessions.md
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
        why: Message,
        /// `known` if what the action asks for is known already.
        #[serde(skip_serializing_if = "Option::is_none")]
        skipped: Option<&'static str>,
    },
    MessageDiscarded {
        message_id: String,
    },
    Message {
        message_id: String,
        role: Speaker,
        text: String,
        /// Of an answer: the id that its sender chose, so that the same answer is recognized when it is sent again.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer_id: Option<String>,
    },
    VariableSet {
        name: String,
        scope: &'static str,
        value: ExactValue,
        source: String,
    },
    ModelCall(Box<ModelCall>),
    Outcome {
        action_type: &'static str,
        #[serde(flatten)]
        outcome: Box<Outcome>,
    },
    #[serde(rename = "routed")]
    RouteTaken {
        reason: &'static str,
        route: String,
        from: String,
        why: Message,
        /// The level of the `on_exit` table with the route, as in [`crate::program::route_table::RouteLevel::name`]; none if no table had
        /// one, and for what follows from a route that was reported before.
        #[serde(skip_serializing_if = "Option::is_none")]
        table: Option<&'static str>,
    },
    Triggered {
        reason: String,
        route: String,
        from: String,
        why: Message,
    },
    MonitorFeedback {
        action_id: String,
        action_type: String,
        round: u32,
        analysis: Value,
        /// Whether a turn used it; then this is the event of that turn.
        used: bool,
        /// If used: the `seq` of the event that contains the analysis.
        #[serde(skip_serializing_if = "Option::is_none")]
        feedback: Option<u64>,
    },
    Orchestrated {
        reason: String,
        route: &'static str,
        from: String,
        why: Message,
        accepted: bool,
        plan: Value,
        original: Vec<String>,
        now: Vec<String>,
    },
    EffectStarted {
        effect_id: String,
        kind: String,
        summary: Message,
    },
    EffectFinished {
        effect_id: String,
        kind: String,
        summary: Message,
    },
    /// A call of a tool that is over.
    ToolCalled(Box<ToolCalled>),
    /// One action on the notebook: the request and its result.
    NotebookAction {
        action: String,
        /// `script`, `model` or `server`.
        by: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cell_id: Option<String>,
        success: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Message>,
        effects: Vec<String>,
    },
    /// A new or changed cell of the notebook, in its current state.
    Cell(Box<ShownCell>),
    /// One round of a behavior loop (docs/protocol.md): the target, the feedback and the decision.
    Behavior {
        behavior_id: String,
        iteration: u32,
        target: String,
        feedback: Value,
        target_achieved: bool,
        /// What decided that: `reflection`, `transition`, or `bound`.
        decided_by: &'static str,
        why: Message,
    },
    /// A plan was created, changed or deleted (docs/plans.md).
    PlanChanged {
        plan_id: u64,
        operation: String,
        /// The name of the task; without a task, the title of the plan.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        task_id: Option<u64>,
        /// What the task is now; without a task, the plan.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'static str>,
    },
    /// The compensation of an action is over. It is `complete` if nothing of it failed (docs/failures.md).
    Undone {
        complete: bool,
    },
    BudgetReached {
        reason: &'static str,
        route: String,
        from: String,
        why: Message,
    },
    Warning {
        code: &'static str,
        message: Message,
        help: Option<Message>,
    },
    Error {
        code: &'static str,
        message: Message,
        help: Option<Message>,
    },
    /// The last answer was taken back; `answers` are left.
    TakenBack {
        /// The first and the last event that no longer count.
        from_seq: u64,
        to_seq: u64,
        answers: u64,
        /// The number of effects among them, which are not undone.
        effects: u64,
        /// The names of the variables of the user that they set, and the plans that they changed, which stay as they are.
        globals: Vec<String>,
        plans: Vec<u64>,
    },
    Waiting {
        r#for: &'static str,
        prompt: String,
        answer_id: String,
        /// The request that it waits for, if that is not a question of the conversation.
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    RequestOpened {
        request_id: String,
        kind: &'static str,
        prompt: String,
        schema: Option<Value>,
        decisions: Vec<&'static str>,
        approvers: Vec<String>,
        due_at: Option<String>,
        /// How often it was asked before, plus one.
        iteration: u32,
    },
    RequestAnswered {
        request_id: String,
        kind: &'static str,
        /// None if the time came before a decision.
        decision: Option<&'static str>,
        by: Option<String>,
        comment: Option<String>,
        values: ExactValues,
        iteration: u32,
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
    SessionCancelled {
        summary: Summary,
    },
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// The interpreter: text of the model or of the author.
    Ai,
    /// The person.
    User,
}

impl Speaker {
    /// The name in events, exports and the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ai => "ai",
            Self::User => "user",
        }
    }
}

/// One model call: its cost and its result.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ModelCall {
    /// Unique in the session.
    pub call_id: String,
    /// The purpose of the call: `action`, `monitor`, …
    pub purpose: &'static str,
    /// The provider and its model: the one that answered.
    pub model: String,
    /// The models that were tried before it without success, in order.
    #[serde(rename = "passed_over", skip_serializing_if = "Vec::is_empty")]
    pub skipped_models: Vec<SkippedModel>,
    /// Tokens of the prompt, if the provider counted them.
    pub tokens_in: Option<u64>,
    /// Tokens of the reply, if the provider counted them.
    pub tokens_out: Option<u64>,
    /// The cost, if a price is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The currency of `cost`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Milliseconds from the request to the end of the reply.
    pub ms: u64,
    /// Milliseconds to the first piece of the reply.
    pub first_token_ms: Option<u64>,
    /// The number of attempts of the provider.
    pub attempts: u32,
    /// The number of this retry in its turn, from 1; 0 if the call does not retry because of an earlier reply.
    #[serde(skip_serializing_if = "is_zero")]
    pub reask: u32,
    /// Whether the reply was truncated at its token limit.
    #[serde(skip_serializing_if = "is_false")]
    pub cut_off: bool,
    /// Why the reply ended, in the words of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// Whether the model refused to answer, or a content filter removed the answer.
    #[serde(rename = "refusal", skip_serializing_if = "is_false")]
    pub refused: bool,
    /// The number of the strategy that read the reply, or of strategies tried.
    pub parse_retry_count: Option<u8>,
    /// The repairs of `repair_json`: kinds and offsets.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub repairs: Value,
    /// The coercions that made the reply fit.
    #[serde(rename = "bent")]
    pub coercions: Value,
    /// Why there is no reply, or why it could not be read.
    pub error: Option<Message>,
    /// `llm_prompt`, `llm_response` and `parse_error` of a call that no outcome contains: of a monitor or a planner, or of a rejected
    /// reply after which the model was called again.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub debug_info: Map<String, Value>,
    /// What was sent and received, if the session is being recorded.
    #[serde(skip)]
    pub exchange: Option<Arc<RecordedExchange>>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde wants a reference
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde wants a reference
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The totals of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The number of answers that were accepted.
    pub answers: u64,
    /// The number of turns.
    pub turns: u64,
    /// The number of model calls.
    pub model_calls: u64,
    /// Tokens of all prompts, as far as they were counted.
    pub tokens_in: u64,
    /// Tokens of all replies, as far as they were counted.
    pub tokens_out: u64,
    /// Milliseconds during which a process was running the session.
    pub active_ms: u64,
    /// Why it ended, unless it simply completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Message>,
}

/// An event with its number, time and location: one line of the journal.
#[derive(Serialize)]
pub(crate) struct StampedEvent<'a> {
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
    pub location: &'a EventLocation,
}

impl Event {
    /// Whether it is a message of the AI with a text.
    pub(crate) fn says_something(&self) -> bool {
        matches!(self, Self::Message { text, .. } if !text.trim().is_empty())
    }

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
            Self::RouteTaken { .. } => "routed",
            Self::Triggered { .. } => "triggered",
            Self::Orchestrated { .. } => "orchestrated",
            Self::MonitorFeedback { .. } => "monitor_feedback",
            Self::EffectStarted { .. } => "effect_started",
            Self::EffectFinished { .. } => "effect_finished",
            Self::ToolCalled(_) => "tool_called",
            Self::NotebookAction { .. } => "notebook_action",
            Self::Cell(_) => "cell",
            Self::Behavior { .. } => "behavior",
            Self::PlanChanged { .. } => "plan_changed",
            Self::Undone { .. } => "undone",
            Self::BudgetReached { .. } => "budget_reached",
            Self::Warning { .. } => "warning",
            Self::Error { .. } => "error",
            Self::TakenBack { .. } => "taken_back",
            Self::Waiting { .. } => "waiting",
            Self::SessionCompleted { .. } => "session_completed",
            Self::SessionFailed { .. } => "session_failed",
            Self::SessionStopped { .. } => "session_stopped",
            Self::SessionCancelled { .. } => "session_cancelled",
            Self::RequestOpened { .. } => "request_opened",
            Self::RequestAnswered { .. } => "request_answered",
        }
    }
}

/// A fragment of a message that is being written. It is not final until its `message` is committed, so it has no `seq`.
#[derive(Debug, Serialize)]
pub struct Delta<'a> {
    /// When, RFC 3339, UTC.
    pub at: &'a str,
    /// The session.
    pub session_id: &'a str,
    /// `message_delta`.
    pub r#type: &'static str,
    /// The message that the fragment belongs to.
    pub message_id: &'a str,
    /// The text of the fragment.
    pub text: &'a str,
    /// Where.
    pub location: &'a EventLocation,
}

/// A committed event, typed and as its JSON line. Sensitive values are masked in both.
#[derive(Clone, Copy, Debug)]
pub struct Committed<'a> {
    /// Counts from 1 in a session, without gaps.
    pub seq: u64,
    /// RFC 3339, UTC.
    pub at: &'a str,
    /// Where it happened.
    pub place: &'a EventLocation,
    /// What happened.
    pub event: &'a Event,
    /// The whole event as JSON, as `--json` writes it, without a line end.
    pub line: &'a str,
}

/// A receiver of events, such as the terminal, the JSON lines and the tests; the interpreter itself prints nothing.
pub trait Observer: Send + Sync {
    /// An event was committed.
    fn committed(&self, committed: &Committed<'_>) {
        let _ = committed;
    }

    /// All events of a commit were received. With an error, the session does not take another turn in this process.
    ///
    /// # Errors
    /// Why the session must not go on: for example, its state file cannot be written.
    fn commit_ended(&self) -> Result<(), Message> {
        Ok(())
    }

    /// Whether [`Observer::commit_ended`] may give an error. What an action announces is then not written together with the end of the
    /// action before it, so that a session which does not go on has not announced what it never did.
    fn can_halt(&self) -> bool {
        false
    }

    /// Whether it makes no difference when it receives the events of turns that take no time, so that these can be written together. Then
    /// pieces of messages may come before them.
    fn can_wait(&self) -> bool {
        false
    }

    /// A fragment of a message was received.
    fn delta(&self, delta: &Delta<'_>) {
        let _ = delta;
    }

    /// A running command printed something.
    fn output(&self, output: &OutputPiece<'_>) {
        let _ = output;
    }

    /// An earlier cell begins to run again, or has ended.
    fn cell_rerun(&self, piece: &CellRerunPiece<'_>) {
        let _ = piece;
    }

    /// A tool that is being called reported its progress.
    fn tool_progress(&self, progress: &ToolProgressPiece<'_>) {
        let _ = progress;
    }

    /// A model or a behavior server is asked, or no longer.
    fn question(&self, question: &QuestionPiece<'_>) {
        let _ = question;
    }
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug)]
pub struct NoObserver;

impl Observer for NoObserver {}
