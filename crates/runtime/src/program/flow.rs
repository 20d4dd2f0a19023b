//! The result of an action's turn: how the action continues, or why it cannot.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::stored;
use bcc_lang::value::exact::ExactValues;
use serde::{Deserialize, Serialize};

use crate::effects::behaviors::ServerError;
use crate::notebook::kernel::contract::KernelError;
use crate::program::decision::{DecisionRequest, RequestKind};
use crate::program::outcome::Outcome;
use bcc_llm::model::error::ModelError;

/// How an action continues after a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Flow {
    /// Wait for this.
    Wait(WaitReason),
    /// Wait for a decision or for a time, outside of the conversation. The next turn finds what was given in
    /// [`TurnResources::decision`].
    ///
    /// [`TurnResources::decision`]: crate::program::turn::TurnResources::decision
    Request(Box<DecisionRequest>),
    /// The action was pushed back: the session continues at this earlier action of the same list, and comes here again.
    Rewind(Box<Outcome>, String),
    /// Immediately, with another turn (at most 100 in a row).
    Again,
    /// Immediately, with another turn, limited only by the action itself: for actions that count their own steps.
    Onward,
    /// Start an external effect. The announcement is committed first; the next turn finds it in [`TurnResources::effect`] and runs
    /// the effect, or, in another process, decides how to handle it (docs/sessions.md).
    ///
    /// [`TurnResources::effect`]: crate::program::turn::TurnResources::effect
    Effect(EffectAnnouncement),
    Done(Box<Outcome>),
    /// Run these steps first; the outcome of the last one is passed to this action's next turn.
    Enter(StepBlock),
    /// Run these blocks first, at the same time. The next turn finds in [`TurnResources::entered`] how each of them ended: `branches` in
    /// its `metadata`, with the ids of [`BranchBlock`] and the names of [`BranchEnd`](crate::run::branch_state::BranchEnd).
    ///
    /// [`TurnResources::entered`]: crate::program::turn::TurnResources::entered
    Branch(Vec<BranchBlock>, BranchLimits),
    /// Run this skill first, in its own scope; its outputs are passed to this action's next turn as `extracted_variables`.
    Call(Call),
    /// The action is not done, but something prevents it from continuing, and a table has a route for that (the turn lists these reasons in
    /// `reasons_with_route`). If the route leads back to this action, its next turn finds `resumed`.
    Exit(Box<Outcome>),
    /// The action is done and chose where the session continues: at the topic, phase or action with this id, for this reason.
    Goto(Box<Outcome>, String, Message),
}

impl Flow {
    pub fn done(outcome: Outcome) -> Self {
        Self::Done(Box::new(outcome))
    }

    /// Whether it waits for a person, other than for a decision about an effect that was interrupted.
    pub(crate) fn waits_for_person(&self) -> bool {
        match self {
            Self::Wait(what) => *what == WaitReason::Input,
            Self::Request(request) => request.kind == RequestKind::Approval,
            _ => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    Input,
    /// The person's decision about an external effect that was found open: it is not known how far it got.
    InterruptedEffect,
}

impl WaitReason {
    /// The name in events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::InterruptedEffect => "interrupted_effect",
        }
    }
}

/// An external effect that is about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectAnnouncement {
    /// The kind of effect: `exec`, `command`, …
    pub kind: &'static str,
    /// What it does, in a few words; contains no text of a person or a model.
    pub summary: Message,
}

/// An external effect that was announced and is not closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenEffect {
    /// Its id, unique in the session.
    pub id: String,
    pub kind: String,
    #[serde(with = "stored")]
    pub summary: Message,
    /// The person's answer about it, if it was found open and the session asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "word")]
    pub answer: Option<String>,
    /// Whether the session that this one repeats has had it already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_earlier: bool,
    /// The code that it runs, if the turn that asks about it has named it. Sensitive values are masked.
    #[serde(skip)]
    pub code: Option<String>,
}

/// A list of steps inside an action, by the action's name for it. Frames store the name, so that a resumed session finds the
/// same steps again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepBlock(pub String);

/// A list of steps inside an action that runs at the same time as others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchBlock {
    /// Its id, unique in the action.
    pub id: String,
    /// The name of its steps, as in [`StepBlock`].
    pub block: String,
    /// The ids of the branches that must have completed before it starts. They are earlier in the list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

/// How the branches of an action run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchLimits {
    /// Whether the others end when one fails.
    pub fail_fast: bool,
    /// How many of them run at the same time.
    pub at_once: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub skill: String,
    pub inputs: ExactValues,
    /// Which part of the action calls it, from 1, if each part does so once; 0 if the action calls skills as often as it likes.
    pub part: u32,
}

/// Why a turn returned no flow.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// The model gave no reply after its retries: the session stops and can be resumed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The source of behaviors returned nothing usable: the session stops and can be resumed, as with a model.
    #[error(transparent)]
    Source(#[from] ServerError),
    /// The kernel that the action needs is not installed or does not start. The session stops and can be resumed, unless the author
    /// has a route for `error`.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// No reply of the model could be used, again and again: the session stops and can be resumed.
    #[error("{message}")]
    Unusable { message: Message, help: Option<Message> },
    /// The prompt cannot be rendered because of a mistake in a template. The session stops, so that the answers of the person are
    /// kept until it is repaired, unless the author has a route for `error`.
    #[error("{message}")]
    Prompt { message: Message, help: Option<Message> },
    /// The action cannot continue: it ends with `error`.
    #[error("{message}")]
    Failed {
        /// A stable slug.
        code: &'static str,
        /// What is wrong and where. Contains no text of a person or a model.
        message: Message,
        help: Option<Message>,
    },
}

/// The code of [`ActionError::Prompt`].
pub(crate) const PROMPT_FAILED: &str = "prompt-failed";

impl ToMessage for ActionError {
    fn to_message(&self) -> Message {
        match self {
            Self::Model(error) => error.to_message(),
            Self::Source(error) => error.message.clone(),
            Self::Kernel(error) => error.message.clone(),
            Self::Failed { message, .. } | Self::Unusable { message, .. } | Self::Prompt { message, .. } => {
                message.clone()
            }
        }
    }
}

impl ActionError {
    /// The error of an action of a `finally` or `compensate` that would wait for a person.
    pub(crate) fn waits_in_cleanup() -> Self {
        let message = Message::word("the action would wait for a person, which `finally` and `compensate` do not");
        Self::failed("cleanup-cannot-wait", message)
    }

    /// The kind for traces; contains no text of a person or a model.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::Model(error) => error.kind(),
            Self::Source(_) => "behavior_server",
            Self::Kernel(error) => error.code,
            Self::Unusable { .. } => "replies-unusable",
            Self::Prompt { .. } => PROMPT_FAILED,
            Self::Failed { code, .. } => code,
        }
    }

    pub fn failed(code: &'static str, message: impl Into<Message>) -> Self {
        Self::Failed { code, message: message.into(), help: None }
    }
}
