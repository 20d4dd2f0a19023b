//! The `Action` trait: an action takes one turn at a time and returns how it continues.

use crate::program::analysis::MonitorTarget;
use crate::program::decision::DecisionKind;
use crate::program::flow::{ActionError, Flow};
use crate::program::monitor::Monitor;
use crate::program::output::OutputVariable;
use crate::program::program::{ProgramSteps, Topic};
use crate::program::turn::Turn;
use async_trait::async_trait;
use bcc_lang::source::span::Span;
use bcc_lang::template::language::PromptLanguage;
use bcc_lang::template::text::Text;
use bcc_llm::reply::shape::ReplyShape;

/// An action of a program. It holds only its configuration: state that must survive from one turn to the next goes into the
/// turn's frame.
#[async_trait]
pub trait Action: Send + Sync {
    /// Runs one turn. `turn` gives access to all that the action may read or do; its changes are buffered and committed with its result.
    /// Errors: See [`ActionError`]: a model that cannot be reached stops the session; any other error ends the action with `error`.
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError>;

    /// What the monitor of its kind needs; `None` if no monitor observes the action (`monitor: off`).
    fn watched(&self) -> Option<&WatchedConfig> {
        None
    }

    /// Whether a turn that processed an answer can be dropped and repeated later, because it has no effect before its commit: a trigger
    /// that fires after such a turn replaces it.
    fn can_be_repeated(&self) -> bool {
        false
    }

    /// Whether it handles the failure of a skill that it called, so that an error in the skill ends the skill in any case.
    fn handles_failed_skills(&self) -> bool {
        false
    }

    /// Whether it may ask a model itself. What it calls or contains is examined separately.
    fn asks_model(&self) -> bool {
        true
    }

    /// Whether its prompts include a monitor's advice.
    fn takes_advice(&self) -> bool {
        false
    }

    /// Whether the action itself has no effects outside the session, so that a plan of the orchestrator may start it as a part of a
    /// skill. What it calls or contains is examined separately.
    fn is_free_of_effects(&self) -> bool {
        false
    }

    /// Whether it announces each effect outside the session ([`Flow::Effect`](crate::program::flow::Flow)) and asks no model, so that its
    /// turns without an open effect take no time and change nothing outside.
    fn announces_effects(&self) -> bool {
        false
    }

    /// The variables that it extracts from what it hears or is told; those of a decision are its [`Action::form`].
    fn outputs(&self) -> &[OutputVariable] {
        &[]
    }

    /// The outputs that make asking needless if they all have a value already; empty if the action always runs.
    fn known_before(&self) -> &[String] {
        &[]
    }

    /// The fields of the values that a decision about it carries.
    fn form(&self) -> &[OutputVariable] {
        &[]
    }

    /// The decisions that it permits, if somebody decides about it.
    fn decisions(&self) -> &[DecisionKind] {
        &[]
    }

    /// Whether it goes on waiting for a decision when the time for it is over.
    fn waits_beyond_time(&self) -> bool {
        false
    }

    /// The earlier action of its list where the session goes on after `push_back`.
    fn rewind_to(&self) -> Option<&str> {
        None
    }

    /// Its branches, in the author's order. The `metadata` of its outcome names the branch that was taken in `branch`.
    fn branches(&self) -> Vec<Branch<'_>> {
        vec![]
    }

    /// Whether all of its branches run, rather than one of them.
    fn runs_all_branches(&self) -> bool {
        false
    }

    /// The topic of a skill that it stands for.
    fn topic(&self) -> Option<&Topic> {
        None
    }

    fn skill(&self) -> Option<&str> {
        None
    }

    /// Every list of steps inside this action.
    fn blocks(&self) -> Vec<&ProgramSteps> {
        vec![]
    }

    /// The steps of the block `block`, for [`Flow::Enter`].
    fn steps(&self, block: &str) -> Option<&ProgramSteps> {
        let _ = block;
        None
    }
}

pub struct Branch<'a> {
    /// The name of the branch, as in `metadata` of the outcome: `case 1`, `else`.
    pub name: String,
    /// The condition, as written; `None` for the default branch.
    pub when: Option<&'a str>,
    /// Its position in the file of the action.
    pub span: Span,
    /// The actions in it, if any.
    pub steps: Option<&'a ProgramSteps>,
    /// The topic, phase or action where the session continues, if the branch has a `goto`.
    pub goto: Option<&'a str>,
    /// Whether the branch sets variables.
    pub sets: bool,
    /// The names of the branches after which it starts, if all branches run. They are earlier in the list.
    pub after: &'a [String],
}

/// What a monitor needs from the configuration of an action.
#[derive(Clone)]
pub struct WatchedConfig {
    pub monitor: &'static dyn Monitor,
    pub max_rounds: u32,
    /// Its outputs, with what they mean.
    pub targets: Vec<MonitorTarget>,
    /// When the author considers it done.
    pub exit: Option<Text>,
    /// The language of its template.
    pub language: PromptLanguage,
    pub shape: ReplyShape,
}
