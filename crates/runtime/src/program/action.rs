//! What runs: an action takes one turn at a time and says how it goes on.

use crate::program::flow::{ActionError, Flow};
use crate::program::monitor::Monitor;
use crate::program::program::ProgramSteps;
use crate::program::turn::Turn;
use async_trait::async_trait;
use bcc_lang::source::span::Span;
use bcc_llm::reply::shape::ReplyShape;

/// An action of a program. It holds what its author configured and nothing else: what it must remember from one turn to
/// the next goes into the turn's frame.
#[async_trait]
pub trait Action: Send + Sync {
    /// One turn. `turn` is everything the action may see and do; what it does is buffered and committed with its result.
    /// Errors: See [`ActionError`]: a model that cannot be reached stops the session, anything else ends the action with `error`.
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

    fn skill(&self) -> Option<&str> {
        None
    }

    /// Every list of steps inside of this action.
    fn blocks(&self) -> Vec<&ProgramSteps> {
        vec![]
    }

    /// The steps that this action calls `block`, for [`Flow::Enter`].
    fn steps(&self, block: &str) -> Option<&ProgramSteps> {
        let _ = block;
        None
    }
}

pub struct Branch<'a> {
    /// What the action calls it, as in `metadata` of its outcome: `case 1`, `else`.
    pub name: String,
    /// What must hold for it, as written; none for the way that is left.
    pub when: Option<&'a str>,
    /// Where it is written, in the file of the action.
    pub span: Span,
    /// The actions in it, when it has some.
    pub steps: Option<&'a ProgramSteps>,
    /// The topic or phase at which the session goes on, when it leads to one.
    pub goto: Option<&'a str>,
}

/// What a monitor must know of an action as it is configured.
#[derive(Clone)]
pub struct WatchedConfig {
    pub monitor: &'static dyn Monitor,
    pub max_rounds: u32,
    /// The names of its outputs: `target_variables`.
    pub targets: Vec<String>,
    pub shape: ReplyShape,
}
