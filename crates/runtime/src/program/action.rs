//! What runs: an action takes one turn at a time and says how it goes on.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::effects::behaviors::ServerError;
use crate::program::monitor::Monitor;
use crate::program::outcome::Outcome;
use crate::program::program::Steps;
use crate::program::turn::Turn;
use bcc_lang::source::span::Span;
use bcc_llm::model::error::ModelError;
use bcc_llm::reply::shape::ReplyShape;

/// An action of a program. It holds what its author configured and nothing else: what it must remember from one turn to
/// the next goes into the turn's frame.
#[async_trait]
pub trait Action: Send + Sync {
    /// One turn. `turn` is everything the action may see and do; what it does is buffered and committed with its result.
    ///
    /// # Errors
    /// See [`ActionError`]: a model that cannot be reached stops the session, anything else ends the action with `error`.
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError>;

    /// What its kind's monitor must know of it; `None` for an action that no monitor looks at (`monitor: off`).
    fn watched(&self) -> Option<&WatchedConfig> {
        None
    }

    /// Whether its prompts take a monitor's advice.
    fn takes_advice(&self) -> bool {
        false
    }

    /// The ways between which it chooses, in the author's order. It tells which of them it took: `branch` in the `metadata` of
    /// its outcome.
    fn branches(&self) -> Vec<Branch<'_>> {
        vec![]
    }

    /// The id of the skill that it calls, for one that calls one.
    fn skill(&self) -> Option<&str> {
        None
    }

    /// Every list of steps inside of this action.
    fn blocks(&self) -> Vec<&Steps> {
        vec![]
    }

    /// The steps that this action calls `block`, for [`Flow::Enter`].
    fn steps(&self, block: &str) -> Option<&Steps> {
        let _ = block;
        None
    }
}

/// One of the ways between which an action chooses.
pub struct Branch<'a> {
    /// What the action calls it, as in `metadata` of its outcome: `case 1`, `else`.
    pub name: String,
    /// What must hold for it, as written; none for the way that is left.
    pub when: Option<&'a str>,
    /// Where it is written, in the file of the action.
    pub span: Span,
    /// The actions in it, when it has some.
    pub steps: Option<&'a Steps>,
    /// The topic or phase at which the session goes on, when it leads to one.
    pub goto: Option<&'a str>,
}

/// What a monitor must know of an action as it is configured.
#[derive(Clone)]
pub struct WatchedConfig {
    /// The monitor of its kind.
    pub monitor: &'static dyn Monitor,
    /// `max_rounds`.
    pub max_rounds: u32,
    /// The names of its outputs: `target_variables`.
    pub targets: Vec<String>,
    /// What the monitor's reply must look like.
    pub shape: ReplyShape,
}

/// How an action goes on after a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Flow {
    /// Not before this has come.
    Wait(For),
    /// At once, with another turn (at most 100 in a row).
    Again,
    /// At once, with another turn, as often as bounds of its own let it: for actions that count what they do.
    Onward,
    /// An outside effect is to begin. That it does is committed first; the next turn finds it in [`Lent::effect`] and carries
    /// it out, or, in another process, decides what becomes of it (LANGUAGE.md section 12).
    ///
    /// [`Lent::effect`]: crate::program::turn::Lent::effect
    Effect(Announced),
    /// It is done.
    Done(Box<Outcome>),
    /// These steps first; the outcome of the last of them reaches this action's next turn.
    Enter(Block),
    /// This skill first, in a scope of its own; its outputs reach this action's next turn as `extracted_variables`.
    Call(Call),
    /// It is not done, but something stands in its way, and a table has a route for that (`routed` of the turn said so). When
    /// the route leads back here, the action's next turn finds `resumed`.
    Exit(Box<Outcome>),
    /// It is done, and chose itself where the session goes on: at the topic or phase of this id, for this reason.
    Goto(Box<Outcome>, String, String),
}

impl Flow {
    /// The action is done, with this outcome.
    pub fn done(outcome: Outcome) -> Self {
        Self::Done(Box::new(outcome))
    }
}

/// What an action waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// An answer of the person.
    Input,
    /// A word of the person about an outside effect that was found open: nobody knows how far it came.
    InterruptedEffect,
}

impl For {
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
    pub summary: String,
}

/// An outside effect that was announced and is not closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenEffect {
    /// Its id, unique in the session.
    pub id: String,
    /// See [`Announced::kind`].
    pub kind: String,
    /// See [`Announced::summary`].
    pub summary: String,
    /// What the person said of it, when it was found open and they were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<String>,
}

/// A list of steps inside an action, by the name that the action gives it. The name is what a frame keeps, so that a
/// resumed session finds the same steps again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block(pub String);

/// A skill that is to run, with its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The id of the skill.
    pub skill: String,
    /// Values for its inputs, by name.
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
        message: String,
        /// What to do.
        help: Option<String>,
    },
}

impl ActionError {
    /// An error that ends the action.
    pub fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self::Failed { code, message: message.into(), help: None }
    }
}
