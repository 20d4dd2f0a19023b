//! Carries out one action on the notebook: for the kinds of YAML, for models and for servers. What runs code takes several
//! turns: whoever carries it out keeps a [`RunningAction`] in its frame and gives it to [`advance`].

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::message::stored;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::actions::notebook::debug;
use crate::actions::notebook::initial_plan;
use crate::actions::notebook::run;
use crate::notebook::action::{ExecAction, NotebookAction};
use crate::notebook::apply::{apply, failure, target};
use crate::notebook::cell::{Cell, CellEnd};
use crate::notebook::error::ActionRejection;
use crate::notebook::state::NotebookState;
use crate::program::event::Event;
use crate::program::flow::{ActionError, Announced, Flow};
use crate::program::turn::Turn;

/// The kind of the effect that runs code.
pub const EXEC: &str = "exec";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionOrigin {
    /// The author, in YAML.
    #[default]
    Script,
    Model,
    Server,
}

impl ActionOrigin {
    /// The name in events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Model => "model",
            Self::Server => "server",
        }
    }
}

/// How an action is carried out, beside what it says itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerformOptions {
    pub by: ActionOrigin,
    /// `action_id` of a failure's result (docs/notebook.md); without one, that of the script's action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
    /// How long its code may run; else as long as the session's kernel allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

impl PerformOptions {
    /// As `by` asks for it, with nothing else said.
    pub fn by(by: ActionOrigin) -> Self {
        Self { by, ..Self::default() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PerformedAction {
    /// Whether it did what it was to do.
    pub success: bool,
    /// The response of docs/notebook.md: `{"success": false, "error", "action_id"}` when it did not.
    pub result: Value,
    /// What is wrong, when it did not: nothing that anybody said.
    #[serde(with = "stored::option")]
    pub error: Option<Message>,
    pub cells_added: u32,
    pub sections_added: u32,
    pub executed: u32,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// The cell that it added, changed or ran.
    pub cell_id: Option<String>,
    /// Of code that ran: how it ended.
    pub ended: Option<CellEnd>,
    /// Of an action that was refused, and of code that could not run at all: a stable slug. Nothing was done then.
    #[serde(skip)]
    pub refused: Option<&'static str>,
    /// What to do about that.
    #[serde(skip)]
    pub help: Option<Message>,
    /// Of code that was interrupted: whether the author, or a person, lets the action fail for it.
    #[serde(skip)]
    pub given_up: bool,
}

impl PerformedAction {
    /// The same, as a failure.
    pub fn failed(self, turn: &Turn<'_>, how: &PerformOptions, error: impl Into<Message>) -> Self {
        let error = error.into();
        let action_id = how.action_id.as_deref().or(turn.place.action_id.as_deref());
        let result = failure(&error, action_id.unwrap_or_default());
        Self { success: false, result, error: Some(error), ..self }
    }
}

/// How far an action that runs code has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunningAction {
    pub how: PerformOptions,
    pub cell_id: String,
    pub need_output: bool,
    pub auto_debug: bool,
    pub keep_debug_button_visible: bool,
    /// How often a model was asked to mend the code.
    #[serde(default)]
    pub mended: u32,
    /// Whether the model is to be asked next.
    #[serde(default)]
    pub mend: bool,
    /// What is counted so far.
    pub so_far: PerformedAction,
}

impl RunningAction {
    pub fn exec(&self) -> ExecAction {
        ExecAction {
            codecell_id: self.cell_id.clone(),
            need_output: self.need_output,
            auto_debug: self.auto_debug,
            keep_debug_button_visible: self.keep_debug_button_visible,
        }
    }

    pub fn announcement(&self) -> Announced {
        let summary = match self.mended {
            0 => msg!("runs the code of `{}`", self.cell_id),
            times => {
                msg!("runs the code of `{}`, fixed by a model ({times} of at most {})", self.cell_id, debug::MOST)
            }
        };
        Announced { kind: EXEC, summary }
    }

    /// That the code runs is announced; the turn that finds the effect runs it.
    pub fn announced(self) -> PerformStep {
        PerformStep::On(Flow::Effect(self.announcement()), Box::new(self))
    }
}

/// What follows.
#[derive(Clone, Debug, PartialEq)]
pub enum PerformStep {
    /// This flow first; in the turn after it, [`advance`] with what stands beside it.
    On(Flow, Box<RunningAction>),
    Done(Box<PerformedAction>),
}

/// Begins an action, and ends it in the same turn unless it runs code.
/// Errors: When the store cannot be read. What is wrong with the action itself is no error: see [`PerformedAction::success`].
pub async fn start(turn: &Turn<'_>, action: &NotebookAction, how: PerformOptions) -> Result<PerformStep, ActionError> {
    let began = turn.services.clock.elapsed_ms();
    let at = turn.services.clock.at(turn.last_seq + 1);
    let mut state = turn.notebook_state();
    initial_plan::enter(turn, &mut state, &at);
    let before = (state.cell_count, state.section_count);
    let step = match change(turn, &mut state, action, &at).await? {
        Ok((changed, run)) => {
            let done = PerformedAction {
                success: true,
                result: changed.result,
                cells_added: counted(state.cell_count, before.0),
                sections_added: counted(state.section_count, before.1),
                cell_id: changed.cell_id,
                ms: turn.services.clock.elapsed_ms().saturating_sub(began),
                ..PerformedAction::default()
            };
            // What only runs code is told when it has run.
            if !matches!(action, NotebookAction::Exec(_)) {
                tell(turn, action.name(), how.by, &done, state.effects.current.clone());
            }
            match run {
                Some((cell, exec)) => begun(turn, &cell, &exec, how, done),
                None => PerformStep::Done(Box::new(done)),
            }
        }
        Err(refusal) => {
            let done = PerformedAction { refused: Some(refusal.code), ..PerformedAction::default() };
            let done = done.failed(turn, &how, refusal.message);
            tell(turn, action.name(), how.by, &done, vec![]);
            PerformStep::Done(Box::new(done))
        }
    };
    turn.set_notebook_state(state);
    Ok(step)
}

/// Goes on with an action that runs code, in the turn after the flow that it gave.
/// Errors: When the store cannot be read, or the model that is to mend the code gives no reply: then the session stops, and goes on here.
pub async fn advance(turn: &Turn<'_>, running: RunningAction) -> Result<PerformStep, ActionError> {
    if running.mend { debug::mend(turn, running).await } else { run::run(turn, running).await }
}

struct Changed {
    result: Value,
    cell_id: Option<String>,
}

type Applied = Result<(Changed, Option<(Cell, ExecAction)>), ActionRejection>;

async fn change(
    turn: &Turn<'_>,
    state: &mut NotebookState,
    action: &NotebookAction,
    at: &str,
) -> Result<Applied, ActionError> {
    if matches!(action, NotebookAction::Exec(_))
        && let Err(error) = turn.services.outside.kernel.permitted()
    {
        return Ok(Err(ActionRejection::new(error.code, error.message)));
    }
    let found = match target(action, state) {
        Some(id) => turn.cell(&id).await?,
        None => None,
    };
    let change = match apply(state, action, found, at) {
        Ok(change) => change,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let run = change.run.as_ref().map(|(cell, _)| cell);
    let cell_id = run.or(change.cells.last()).map(|cell| cell.id.clone());
    for cell in change.cells {
        turn.put_cell(cell);
    }
    Ok(Ok((Changed { result: change.result, cell_id }, change.run)))
}

/// Code is to run: that is announced first. What was added to run is added even where it may not.
fn begun(turn: &Turn<'_>, cell: &Cell, exec: &ExecAction, how: PerformOptions, done: PerformedAction) -> PerformStep {
    if let Err(error) = turn.services.outside.kernel.permitted() {
        let done = PerformedAction { refused: Some(error.code), ..done }.failed(turn, &how, error.message);
        tell(turn, EXEC, how.by, &done, vec![]);
        return PerformStep::Done(Box::new(PerformedAction { help: error.help, ..done }));
    }
    let running = RunningAction {
        how,
        cell_id: cell.id.clone(),
        need_output: exec.need_output,
        auto_debug: exec.auto_debug,
        keep_debug_button_visible: exec.keep_debug_button_visible,
        mended: 0,
        mend: false,
        so_far: done,
    };
    running.announced()
}

pub fn tell(turn: &Turn<'_>, action: &str, by: ActionOrigin, done: &PerformedAction, effects: Vec<String>) {
    turn.tell_notebook(Event::NotebookAction {
        action: action.to_owned(),
        by: by.name(),
        cell_id: done.cell_id.clone(),
        success: done.success,
        error: done.error.clone(),
        effects,
    });
}

fn counted(now: u64, before: u64) -> u32 {
    u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX)
}
