//! The outcome of an action's turn (docs/routes.md).

use std::collections::BTreeMap;

use bcc_lang::message::message::Message;
use bcc_lang::message::stored::StoredMessage;
use bcc_lang::value::exact::ExactValues;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Why an action ended, or what prevents it from continuing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    /// EXIT was yes.
    ExitCriteriaMet,
    /// The answered round was the last one.
    MaxRoundsReached,
    /// A required slot was asked for as often as allowed, and has no value.
    SlotsMissing,
    /// The person cannot or does not want to continue with this.
    UserBlocked,
    OffTopic,
    Approved,
    Rejected,
    /// There was no decision in time.
    TimedOut,
    /// The program that was run reported a failure.
    Failed,
    /// A branch failed.
    BranchFailed,
    /// The action did not start, because its condition is false.
    Skipped,
    Error,
}

impl ExitReason {
    /// The name that routes and events use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ExitCriteriaMet => "exit_criteria_met",
            Self::MaxRoundsReached => "max_rounds_reached",
            Self::SlotsMissing => "slots_missing",
            Self::UserBlocked => "user_blocked",
            Self::OffTopic => "off_topic",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::TimedOut => "timed_out",
            Self::Failed => "failed",
            Self::BranchFailed => "branch_failed",
            Self::Skipped => "skipped",
            Self::Error => "error",
        }
    }

    pub const ALL: [Self; 12] = [
        Self::ExitCriteriaMet,
        Self::MaxRoundsReached,
        Self::SlotsMissing,
        Self::UserBlocked,
        Self::OffTopic,
        Self::Approved,
        Self::Rejected,
        Self::TimedOut,
        Self::Failed,
        Self::BranchFailed,
        Self::Skipped,
        Self::Error,
    ];

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// Whether this reason fails the session if no route is defined for it (docs/routes.md).
    pub const fn fails(self) -> bool {
        matches!(self, Self::Rejected | Self::TimedOut | Self::Failed | Self::BranchFailed | Self::Error)
    }
}

/// A model's suggestion for the next step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgressSuggestion {
    /// More is needed.
    #[default]
    ContinueNeeded,
    Completed,
    Blocked,
    OffTopic,
}

impl ProgressSuggestion {
    /// The name in replies and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ContinueNeeded => "continue_needed",
            Self::Completed => "completed",
            Self::Blocked => "blocked",
            Self::OffTopic => "off_topic",
        }
    }

    /// The suggestion with this name; any other name counts as `continue_needed`.
    pub fn parse(name: &str) -> Self {
        match name {
            "completed" => Self::Completed,
            "blocked" => Self::Blocked,
            "off_topic" => Self::OffTopic,
            _ => Self::ContinueNeeded,
        }
    }
}

/// The JSON pointer of the error message in an outcome.
pub(crate) const ERROR_MESSAGE: &str = "/metadata/error_message";

/// The result of one turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Whether the turn succeeded. An unreadable reply still counts as success: the conversation continues.
    pub success: bool,
    pub completed: bool,
    /// The message of the reply, whether or not it was sent.
    pub ai_message: Option<String>,
    /// The author's variables that this turn set. Never a metric.
    pub extracted_variables: ExactValues,
    /// The model's assessment of the state of the action. Never a variable. Empty on an opening turn.
    pub metrics: Map<String, Value>,
    pub progress_suggestion: ProgressSuggestion,
    /// Why the action ended, or what prevents it from continuing; none while it simply continues.
    pub exit_reason: Option<ExitReason>,
    /// `current_round`, `max_rounds`, `exit_reason`, `parse_retry_count`, `parse_error`, and the reply's own `metadata`; after a
    /// degraded reply also `error_message` and `raw_response`.
    pub metadata: Map<String, Value>,
    /// `llm_prompt`, `llm_response`, `parse_error`, tokens and times.
    pub debug_info: Map<String, Value>,
    /// The messages behind texts of `metadata` and `debug_info`, by JSON pointer. They are stored with the outcome, and no event shows
    /// them to programs ([`crate::program::stored_event`]).
    #[serde(default, rename = "_messages", skip_serializing_if = "BTreeMap::is_empty")]
    pub messages: BTreeMap<String, StoredMessage>,
}

impl Outcome {
    /// The outcome of an action that succeeded without a model.
    pub fn done(reason: ExitReason) -> Self {
        Self { success: true, completed: true, exit_reason: Some(reason), ..Self::default() }
    }

    /// The error message, if there is one.
    pub fn error_message(&self) -> Option<Message> {
        let stored = || self.metadata.get("error_message").and_then(Value::as_str).map(Message::text);
        self.messages.get(ERROR_MESSAGE).map(|message| message.0.clone()).or_else(stored)
    }

    /// The part that decides where a session continues: without prompts, replies and metrics, which may be long.
    pub fn deciding(&self) -> Self {
        Self { metadata: self.metadata.clone(), messages: self.messages.clone(), ..self.brief() }
    }

    /// The part that other actions may need: without prompts, replies and metrics.
    pub fn brief(&self) -> Self {
        Self {
            success: self.success,
            completed: self.completed,
            extracted_variables: self.extracted_variables.clone(),
            exit_reason: self.exit_reason,
            ..Self::default()
        }
    }

    /// The outcome of an action that failed.
    pub fn failed(message: &Message) -> Self {
        let mut metadata = Map::new();
        metadata.insert("exit_reason".into(), ExitReason::Error.name().into());
        metadata.insert("error_message".into(), message.to_string().into());
        let messages = BTreeMap::from([(ERROR_MESSAGE.to_owned(), StoredMessage(message.clone()))]);
        Self { completed: true, exit_reason: Some(ExitReason::Error), metadata, messages, ..Self::default() }
    }
}
