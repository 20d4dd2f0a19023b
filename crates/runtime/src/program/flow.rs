//! How an action goes on after a turn, and why it cannot.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::stored;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::effects::behaviors::ServerError;
use crate::program::outcome::Outcome;
use bcc_llm::model::error::ModelError;

/// How an action goes on after a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Flow {
    /// Not before this has come.
    Wait(WaitReason),
    /// At once, with another turn (at most 100 in a row).
    Again,
    /// At once, with another turn, as often as bounds of its own let it: for actions that count what they do.
    Onward,
    /// An outside effect is to begin. That it does is committed first; the next turn finds it in [`TurnResources::effect`] and carries
    /// it out, or, in another process, decides what becomes of it (docs/sessions.md).
    ///
    /// [`TurnResources::effect`]: crate::program::turn::TurnResources::effect
    Effect(Announced),
    Done(Box<Outcome>),
    /// These steps first; the outcome of the last of them reaches this action's next turn.
    Enter(StepBlock),
    /// This skill first, in a scope of its own; its outputs reach this action's next turn as `extracted_variables`.
    Call(Call),
    /// It is not done, but something stands in its way, and a table has a route for that (`routed` of the turn said so). When
    /// the route leads back here, the action's next turn finds `resumed`.
    Exit(Box<Outcome>),
    /// It is done, and chose itself where the session goes on: at the topic or phase of this id, for this reason.
    Goto(Box<Outcome>, String, Message),
}

impl Flow {
    pub fn done(outcome: Outcome) -> Self {
        Self::Done(Box::new(outcome))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    Input,
    /// A word of the person about an outside effect that was found open: nobody knows how far it came.
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

/// An outside effect that is to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announced {
    /// What it is: `exec`, `command`, …
    pub kind: &'static str,
    /// What it does, in a few words: nothing that a person or a model said.
    pub summary: Message,
}

/// An outside effect that was announced and is not closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenEffect {
    /// Its id, unique in the session.
    pub id: String,
    pub kind: String,
    #[serde(with = "stored")]
    pub summary: Message,
    /// What the person said of it, when it was found open and they were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<String>,
}

/// A list of steps inside an action, by the name that the action gives it. The name is what a frame keeps, so that a
/// resumed session finds the same steps again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepBlock(pub String);

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub skill: String,
    pub inputs: Map<String, Value>,
}

/// Why a turn gave no flow.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// The model gave no reply after its retries: the session stops and can be resumed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// What sends behaviors gave nothing that can be used: the session stops and can be resumed, as with a model.
    #[error(transparent)]
    Source(#[from] ServerError),
    /// The action cannot do its work: it ends with `error`.
    #[error("{message}")]
    Failed {
        /// A stable slug.
        code: &'static str,
        /// What is wrong and where. Holds nothing that a person or a model said.
        message: Message,
        help: Option<Message>,
    },
}

impl ToMessage for ActionError {
    fn to_message(&self) -> Message {
        match self {
            Self::Model(error) => error.to_message(),
            Self::Source(error) => error.message.clone(),
            Self::Failed { message, .. } => message.clone(),
        }
    }
}

impl ActionError {
    pub fn failed(code: &'static str, message: impl Into<Message>) -> Self {
        Self::Failed { code, message: message.into(), help: None }
    }
}
