//! Performs one action on the notebook: for the kinds in YAML, for models and for servers. Actions that run code take several
//! turns: the caller stores a [`RunningAction`] in its frame and passes it to [`advance`].

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::message::stored;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::actions::notebook::debug;
use crate::actions::notebook::initial_plan;
use crate::actions::notebook::review;
use crate::actions::notebook::run;
use crate::notebook::action::{ExecAction, LAST_ADDED, NotebookAction};
use crate::notebook::apply::{apply, failure, target};
use crate::notebook::cell::{Cell, CellEnd, CellKind};
use crate::notebook::error::ActionRejection;
use crate::notebook::kernel::contract::KernelError;
use crate::notebook::state::{NotebookState, RanCell};
use crate::program::event::Event;
use crate::program::flow::{ActionError, EffectAnnouncement, Flow};
use crate::program::program::ProgramSteps;
use crate::program::turn::Turn;

/// The kind of the effect that runs code.
pub(crate) const EXEC: &str = "exec";

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

/// Options of an action in addition to its own fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerformOptions {
    pub by: ActionOrigin,
    /// The `action_id` in the result of a failure (docs/notebook.md); without it, that of the action of the script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
    /// How long its code may run; without it, the limit of the kernel of the session applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

impl PerformOptions {
    /// The default options for this origin.
    pub fn by(by: ActionOrigin) -> Self {
        Self { by, ..Self::default() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PerformedAction {
    /// Whether it succeeded.
    pub success: bool,
    /// The response of docs/notebook.md: `{"success": false, "error", "action_id"}` if it failed.
    pub result: Value,
    /// The error, if it failed. Contains no text of a person, a model or a server.
    #[serde(with = "stored::option")]
    pub error: Option<Message>,
    pub cells_added: u32,
    pub sections_added: u32,
    pub executed: u32,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// The cell that it added, changed or ran.
    pub cell_id: Option<String>,
    /// How the code ended, if it ran.
    pub ended: Option<CellEnd>,
    /// A stable slug if the action was rejected or the code could not run at all. Nothing was done then.
    #[serde(skip)]
    pub rejected: Option<&'static str>,
    /// Help for that error.
    #[serde(skip)]
    pub help: Option<Message>,
    /// Whether the author or a person decided that the action fails because its code was interrupted.
    #[serde(skip)]
    pub given_up: bool,
}

impl PerformedAction {
    /// The same action as a failure.
    pub fn failed(self, turn: &Turn<'_>, options: &PerformOptions, error: impl Into<Message>) -> Self {
        let error = error.into();
        let action_id = options.action_id.as_deref().or(turn.place.action_id.as_deref());
        let result = failure(&error, action_id.unwrap_or_default());
        Self { success: false, result, error: Some(error), ..self }
    }
}

/// Code with which a model wants to replace that of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeProposal {
    pub code: String,
    pub explanation: String,
}

/// The state of an action that runs code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunningAction {
    #[serde(rename = "how")]
    pub options: PerformOptions,
    pub cell_id: String,
    pub need_output: bool,
    pub auto_debug: bool,
    pub keep_debug_button_visible: bool,
    /// How often a model was asked to fix the code.
    #[serde(default, rename = "mended")]
    pub fixes: u32,
    /// Whether a person was asked whether the code may run.
    #[serde(default, rename = "review", skip_serializing_if = "std::ops::Not::not")]
    pub is_under_review: bool,
    /// The code of a model that a person is asked about, in place of that of the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<CodeProposal>,
    /// Whether the model must be asked next.
    #[serde(default, rename = "mend")]
    pub needs_fix: bool,
    /// Whether the next turn starts the kernel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub starts_kernel: bool,
    /// Whether it was reported that the kernel starts without the memory of earlier cells.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_memory_told: bool,
    /// How the same code ended when it ran before. The cell does not say so any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_end: Option<CellEnd>,
    /// The result so far.
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

    pub fn announcement(&self) -> EffectAnnouncement {
        let summary = match self.fixes {
            0 => msg!("runs the code of `{}`", self.cell_id),
            times => {
                msg!(
                    "runs the code of `{}`, fixed by a model ({times} of at most {})",
                    self.cell_id,
                    debug::MAX_ATTEMPTS
                )
            }
        };
        EffectAnnouncement { kind: EXEC, summary }
    }

    /// Announces that the code will run. The turn in which the effect is due runs it.
    pub(crate) fn announce(self) -> PerformStep {
        PerformStep::Continue(Flow::Effect(self.announcement()), Box::new(self))
    }
}

/// The result of a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum PerformStep {
    /// Run this flow first; in the next turn, call [`advance`] with this action.
    Continue(Flow, Box<RunningAction>),
    Done(Box<PerformedAction>),
}

/// Starts an action, and finishes it in the same turn unless it runs code.
/// Errors: The store cannot be read. Errors of the action itself are not returned as errors: see [`PerformedAction::success`].
pub async fn start(
    turn: &Turn<'_>,
    action: &NotebookAction,
    options: PerformOptions,
) -> Result<PerformStep, ActionError> {
    let start_ms = turn.services.clock.elapsed_ms();
    let at = turn.services.clock.at(turn.last_seq + 1);
    let mut state = turn.notebook_state();
    initial_plan::enter(turn, &mut state, &at);
    let ran_when_added =
        state.ran_when_added.take().filter(|ran| follows(turn, options.by, ran)).map(|ran| ran.cell_id);
    if let NotebookAction::Exec(exec) = action
        && exec.codecell_id == LAST_ADDED
        && ran_when_added.is_some()
        && ran_when_added == state.last_code_cell
    {
        // Models and servers often send both: the code has just run, and what it did must not be done twice.
        let (result, ended) = (Value::Object(Map::new()), Some(CellEnd::Ok));
        let done =
            PerformedAction { success: true, result, ended, cell_id: ran_when_added, ..PerformedAction::default() };
        report(turn, action.name(), options.by, &done, state.effects.current.clone());
        turn.set_notebook_state(state);
        return Ok(PerformStep::Done(Box::new(done)));
    }
    let before = (state.cell_count, state.section_count);
    let mut step = match change(turn, &mut state, action, options.by, &at).await? {
        Ok((changed, run)) => {
            let done = PerformedAction {
                success: true,
                result: changed.result,
                cells_added: count_added(state.cell_count, before.0),
                sections_added: count_added(state.section_count, before.1),
                cell_id: changed.cell_id,
                ms: turn.services.clock.elapsed_ms().saturating_sub(start_ms),
                ..PerformedAction::default()
            };
            // An action that only runs code is reported when the code has run.
            if !matches!(action, NotebookAction::Exec(_)) {
                report(turn, action.name(), options.by, &done, state.effects.current.clone());
            }
            match run {
                Some((cell, exec)) => announce_run(turn, (&cell, changed.earlier_end), &exec, options, done)?,
                None => PerformStep::Done(Box::new(done)),
            }
        }
        Err(rejection) => {
            let done = PerformedAction { rejected: Some(rejection.code), ..PerformedAction::default() };
            let done = done.failed(turn, &options, rejection.message);
            report(turn, action.name(), options.by, &done, vec![]);
            PerformStep::Done(Box::new(done))
        }
    };
    turn.set_notebook_state(state);
    run::prepare_kernel(turn, &mut step).await?;
    Ok(step)
}

/// Whether this action directly follows the one that added a cell and ran its code. Between the actions of a script, others may have
/// changed what the code reads.
fn follows(turn: &Turn<'_>, by: ActionOrigin, ran: &RanCell) -> bool {
    match (by, turn.place.action_id.as_deref()) {
        (ActionOrigin::Script, Some(id)) => {
            ran.added_by.is_some() && step_before(&turn.topic.steps, id) == ran.added_by.as_deref()
        }
        (ActionOrigin::Script, None) => false,
        (ActionOrigin::Model | ActionOrigin::Server, _) => ran.added_by.is_none(),
    }
}

/// The id of the step before the step `id` in its list.
fn step_before<'s>(steps: &'s ProgramSteps, id: &str) -> Option<&'s str> {
    let mut before = None;
    for step in steps.iter() {
        if step.id == id {
            return before;
        }
        if let Some(found) = step.lists().into_iter().find_map(|inner| step_before(inner, id)) {
            return Some(found);
        }
        before = Some(step.id.as_str());
    }
    None
}

/// Continues an action that runs code, in the turn after its flow.
/// Errors: The store cannot be read, or the model that should fix the code gives no reply. The session then stops, and
/// continues here when it is resumed.
pub async fn advance(turn: &Turn<'_>, running: RunningAction) -> Result<PerformStep, ActionError> {
    let mut step = match &running {
        RunningAction { is_under_review: true, .. } => review::decided(turn, running).await,
        RunningAction { needs_fix: true, .. } => debug::fix(turn, running).await,
        _ => run::run(turn, running).await,
    }?;
    run::prepare_kernel(turn, &mut step).await?;
    Ok(step)
}

struct ChangeResult {
    result: Value,
    cell_id: Option<String>,
    /// How the code that runs now ended before.
    earlier_end: Option<CellEnd>,
}

type Applied = Result<(ChangeResult, Option<(Cell, ExecAction)>), ActionRejection>;

async fn change(
    turn: &Turn<'_>,
    state: &mut NotebookState,
    action: &NotebookAction,
    by: ActionOrigin,
    at: &str,
) -> Result<Applied, ActionError> {
    if matches!(action, NotebookAction::Exec(_))
        && let Some(denied) = denied_code(turn, by)?
    {
        return Ok(Err(ActionRejection::new(denied.code, denied.message)));
    }
    let cell = match target(action, state) {
        Some(id) => turn.cell(&id).await?,
        None => None,
    };
    let earlier_end = cell.as_ref().filter(|_| matches!(action, NotebookAction::Exec(_))).and_then(|cell| cell.ended);
    let change = match apply(state, action, cell, at) {
        Ok(change) => change,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let run = change.run.as_ref().map(|(cell, _)| cell);
    let cell_id = run.or(change.cells.last()).map(|cell| cell.id.clone());
    // Whoever approves code must know that of models and servers, also when a script runs it later.
    let writes_code = by != ActionOrigin::Script && !matches!(action, NotebookAction::Exec(_));
    let signed = |cell: Cell| match writes_code && cell.kind == CellKind::Code {
        true => Cell { written_by: Some(by.name().to_owned()), approved: None, ..cell },
        false => cell,
    };
    for cell in change.cells {
        turn.put_cell(signed(cell));
    }
    let run = change.run.map(|(cell, exec)| (signed(cell), exec));
    Ok(Ok((ChangeResult { result: change.result, cell_id, earlier_end }, run)))
}

/// Why code may not run, if this is a failure of its action: a model is not offered to run code, and a script that needs it is refused
/// before it runs. Code that a server sends, or for which only the trust of the person is missing, stops the session instead: it runs
/// when the session is resumed with the permission.
fn denied_code(turn: &Turn<'_>, by: ActionOrigin) -> Result<Option<KernelError>, ActionError> {
    let host = &turn.services.host;
    match host.kernel.check_permission() {
        Ok(()) => Ok(None),
        Err(error) if by != ActionOrigin::Server && !host.permissions.withheld.contains("exec") => Ok(Some(error)),
        Err(error) => Err(ActionError::Kernel(error)),
    }
}

/// Announces that the code of a cell will run. A cell that a model added to be run is added even if code may not run.
fn announce_run(
    turn: &Turn<'_>,
    (cell, earlier_end): (&Cell, Option<CellEnd>),
    exec: &ExecAction,
    options: PerformOptions,
    done: PerformedAction,
) -> Result<PerformStep, ActionError> {
    if let Some(error) = denied_code(turn, options.by)? {
        let done = PerformedAction { rejected: Some(error.code), ..done }.failed(turn, &options, error.message);
        report(turn, EXEC, options.by, &done, vec![]);
        return Ok(PerformStep::Done(Box::new(PerformedAction { help: error.help, ..done })));
    }
    let running = RunningAction {
        options,
        cell_id: cell.id.clone(),
        need_output: exec.need_output,
        auto_debug: exec.auto_debug,
        keep_debug_button_visible: exec.keep_debug_button_visible,
        fixes: 0,
        is_under_review: false,
        proposal: None,
        needs_fix: false,
        starts_kernel: false,
        is_memory_told: false,
        earlier_end,
        so_far: done,
    };
    Ok(review::announce(turn, cell, running))
}

pub fn report(turn: &Turn<'_>, action: &str, by: ActionOrigin, done: &PerformedAction, effects: Vec<String>) {
    turn.emit_notebook_event(Event::NotebookAction {
        action: action.to_owned(),
        by: by.name(),
        cell_id: done.cell_id.clone(),
        success: done.success,
        error: done.error.clone(),
        effects,
    });
}

fn count_added(now: u64, before: u64) -> u32 {
    u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX)
}
