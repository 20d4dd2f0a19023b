//! Runs the code of one cell in the turn in which its effect is due, or handles code that was interrupted.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::time::Duration;

use serde_json::{Value, json};

use crate::actions::notebook::debug;
use crate::actions::notebook::perform::{ActionOrigin, EXEC, PerformStep, PerformedAction, RunningAction, report};
use crate::actions::notebook::rerun;
use crate::actions::notebook::rerun::RestoredMemory;
use crate::notebook::apply::apply_execution;
use crate::notebook::cell::{Cell, CellEnd};
use crate::notebook::kernel::contract::{Execution, Kernel, KernelLoss, KernelSource, ServerKernel};
use crate::notebook::kernel::traced::execute_traced;
use crate::notebook::state::RanCell;
use crate::program::flow::{ActionError, Flow, WaitReason};
use crate::program::interrupted_effects::{Decision, decide};
use crate::program::turn::Turn;
use crate::program::turn_output::TurnOutput;

/// The maximum length of the name of an error in a result, in characters.
const MAX_NAME_CHARS: usize = 60;

/// The part of an error in which names of environment variables are looked for, in bytes.
const MAX_ERROR_BYTES: usize = 2_000;

/// Shorter names may be anything, in bytes.
const MIN_NAME_BYTES: usize = 3;

/// What can be done about lost memory.
const RESTART_HELP: &str =
    "it restarts when the next code is run; use `session.kernel: { on_resume: rerun }` to run the earlier cells again";

/// One turn of a cell that runs: its effect is announced, due or interrupted.
pub async fn run(turn: &Turn<'_>, running: RunningAction) -> Result<PerformStep, ActionError> {
    match decide(turn, || running.announcement()) {
        Decision::First(flow) => {
            if let (Flow::Wait(_), Some(cell)) = (&flow, turn.cell(&running.cell_id).await?) {
                turn.name_effect_code(&cell.content);
            }
            Ok(PerformStep::Continue(flow, Box::new(running)))
        }
        Decision::Run => {
            let Some(cell) = turn.cell(&running.cell_id).await? else {
                turn.close_effect("the cell does not exist");
                let message = Message::word("the cell is no longer in the notebook");
                return Ok(PerformStep::Done(Box::new(reject(turn, running, "no-such-cell", message))));
            };
            execute(turn, running, cell).await
        }
        Decision::Skip => Ok(PerformStep::Done(Box::new(interrupted(turn, running).await?))),
        Decision::Fail => {
            let done = interrupted(turn, running).await?;
            Ok(PerformStep::Done(Box::new(PerformedAction { given_up: true, ..done })))
        }
    }
}

/// Marks the cell of interrupted code that does not run again. It is not known how much of the code ran.
async fn interrupted(turn: &Turn<'_>, running: RunningAction) -> Result<PerformedAction, ActionError> {
    if let Some(cell) = turn.cell(&running.cell_id).await? {
        turn.put_cell(Cell { ended: Some(CellEnd::Interrupted), ..cell });
    }
    let done = PerformedAction { ended: Some(CellEnd::Interrupted), cell_id: Some(running.cell_id), ..running.so_far };
    let done = done.failed(turn, &running.options, "Code execution was interrupted");
    report(turn, EXEC, running.options.by, &done, vec![]);
    Ok(done)
}

/// When code is announced, prepares its kernel: starts it, and reports a memory that is lost. Until the kernel is there, nothing has begun
/// that could be interrupted: if this turn is cut off, the next process repeats it, and nobody is asked. A start has a turn of its own: it may
/// take a minute and may fail, and what was done before is stored by then.
pub async fn prepare_kernel(turn: &Turn<'_>, step: &mut PerformStep) -> Result<(), ActionError> {
    let PerformStep::Continue(flow @ Flow::Effect(_), running) = step else { return Ok(()) };
    let (kernel, settings) = (&turn.services.host.kernel, &turn.program.kernel);
    if !running.starts_kernel && kernel.needs_start(settings) {
        running.starts_kernel = true;
        *flow = Flow::Onward;
        return Ok(());
    }
    running.starts_kernel = false;
    start_on_server(turn).await?;
    kernel.prepare(settings).await.map_err(ActionError::Kernel)?;
    running.is_memory_told = rerun::report_missing_memory(turn, running).await?;
    Ok(())
}

/// Starts the kernel of the session on its server. Its id is stored before code runs there, so that the session finds it again whatever
/// happens to this process.
async fn start_on_server(turn: &Turn<'_>) -> Result<(), ActionError> {
    let settings = &turn.program.kernel;
    let KernelSource::Server(ServerKernel { kernel_id: None, .. }) = &settings.source else { return Ok(()) };
    let mut state = turn.notebook_state();
    if state.started_kernel(turn.session_id).is_none()
        && let Some(attached) = turn.services.host.kernel.attach(settings, None).await.map_err(ActionError::Kernel)?
    {
        state.set_started_kernel(attached.started, &settings.source, turn.session_id);
        turn.set_notebook_state(state);
    }
    Ok(())
}

async fn execute(turn: &Turn<'_>, mut running: RunningAction, cell: Cell) -> Result<PerformStep, ActionError> {
    let settings = &turn.program.kernel;
    let timeout = running.options.timeout.unwrap_or(settings.timeout);
    let kernel = &turn.services.host.kernel;
    let rerun_effect = match rerun::restore_memory(turn, &running).await? {
        RestoredMemory::Done(effect) => effect,
        // The code itself has not begun: the person who interrupted the earlier cells decides.
        RestoredMemory::Interrupted => {
            turn.name_effect_code(&cell.content);
            return Ok(PerformStep::Continue(Flow::Wait(WaitReason::InterruptedEffect), Box::new(running)));
        }
    };
    let (caller, live) = (Some((turn.session_id, turn.last_seq)), TurnOutput::of_cell(turn, &running.cell_id));
    let ran = execute_traced(kernel.as_ref(), &cell.content, timeout, settings, caller, &live).await;
    live.finish();
    let execution = match ran {
        Ok(execution) => execution,
        Err(error) => return Err(ActionError::Kernel(error)),
    };
    let (ended, ms, is_queued) = (execution.ended, execution.ms, execution.is_queued);
    let is_undecided = is_queued || execution.is_interrupted_by_person;
    let (ignored_interrupt, lost_with_variables) = (execution.ignored_interrupt, execution.lost_with_variables);
    let error = error_of(&execution, timeout);
    let withheld = withheld(&execution, kernel.as_ref()).filter(|_| !settings.source.is_foreign());
    let mut state = turn.notebook_state();
    if is_undecided {
        turn.name_effect_code(&cell.content);
    }
    let cell = apply_execution(&mut state, cell, &running.exec(), execution);
    if running.so_far.cells_added > 0 && ended == CellEnd::Ok {
        let added_by = (running.options.by == ActionOrigin::Script).then(|| turn.place.action_id.clone()).flatten();
        state.ran_when_added = Some(RanCell { cell_id: running.cell_id.clone(), added_by });
    }
    if let Some(rerun_effect) = rerun_effect {
        state.effects.current.insert(0, rerun_effect);
    }
    let effects = state.effects.current.clone();
    turn.put_cell_with_outputs(cell, &mut state).await?;
    turn.set_notebook_state(state);
    if is_queued {
        turn.warn(
            "kernel-busy",
            "the kernel runs code of another program: the code of the cell waits there, and runs when that code has ended",
            Some(Message::word("answer `skip` to continue without its result, or wait until it has run before you decide")),
        );
    }
    if ignored_interrupt || ended == CellEnd::Died {
        warn_of_kernel(turn, ignored_interrupt, settings.source.is_foreign());
    }
    if let Some(loss) = lost_with_variables {
        warn_of_variables(turn, loss, settings.source.is_foreign());
    }
    if is_undecided {
        // The effect stays open: a person decides, as about code whose process died.
        return Ok(PerformStep::Continue(Flow::Wait(WaitReason::InterruptedEffect), Box::new(running)));
    }
    turn.close_effect(end_text(ended));
    if let Some(name) = withheld {
        turn.warn(
            "variable-withheld",
            msg!("the error names the environment variable `{name}`, which is set here and not passed to code"),
            Some(msg!("if the code needs it, name it in bcc-script.toml: `env = [\"{name}\"]` in `[kernel]`")),
        );
    }
    let mut done = std::mem::take(&mut running.so_far);
    done.executed += 1;
    done.ms += ms;
    done.ended = Some(ended);
    done.cell_id = Some(running.cell_id.clone());
    done.success = true;
    if let Some(error) = error {
        done = done.failed(turn, &running.options, error);
    }
    report(turn, EXEC, running.options.by, &done, effects);
    running.so_far = done;
    Ok(debug::next_step(running))
}

/// The first environment variable that an error of the code names, and that the code did not get.
fn withheld(execution: &Execution, kernel: &dyn Kernel) -> Option<String> {
    let error = execution.outputs.iter().find(|output| output.get("output_type") == Some(&json!("error")))?;
    let text = error.get("evalue")?.as_str()?;
    let start = text.get(..text.floor_char_boundary(MAX_ERROR_BYTES))?;
    let mut names = start.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    names.find(|name| name.len() >= MIN_NAME_BYTES && kernel.withholds(name)).map(str::to_owned)
}

/// Reports that the kernel is gone, or that code goes on in it, before a person decides anything.
fn warn_of_kernel(turn: &Turn<'_>, ignored_interrupt: bool, is_foreign: bool) {
    let (code, message, help) = match (ignored_interrupt, is_foreign) {
        (true, false) => (
            "kernel-died",
            "the code of the cell ignored the interrupt, so its kernel was ended: all variables are lost",
            RESTART_HELP,
        ),
        (true, true) => (
            "kernel-busy",
            "the code of the cell ignored the interrupt and may still run in the kernel",
            "the next code waits until it has ended; only who started the kernel can end it",
        ),
        (false, false) => {
            ("kernel-died", "the kernel died while running the code of a cell; its memory is lost", RESTART_HELP)
        }
        (false, true) => (
            "kernel-died",
            "the connection to the kernel was lost while the code of a cell ran: the kernel ended, was started again or cannot be reached, or its reply was lost; outputs may be missing",
            "the next code connects again, and reports whether the kernel still has its memory",
        ),
    };
    turn.warn(code, message, Some(Message::word(help)));
}

/// Reports that the kernel is gone because its variables were read, which runs code of their classes. The code of the cell has ended before.
fn warn_of_variables(turn: &Turn<'_>, loss: KernelLoss, is_foreign: bool) {
    let (code, message) = match (loss, is_foreign) {
        (KernelLoss::IgnoredInterrupt, false) => (
            "kernel-died",
            "the code of the cell has ended, but listing its variables did not, so its kernel was ended: all variables are lost",
        ),
        (KernelLoss::IgnoredInterrupt, true) => (
            "kernel-busy",
            "the code of the cell has ended, but listing its variables did not, and may still run in the kernel",
        ),
        (KernelLoss::Died, false) => (
            "kernel-died",
            "the kernel died while the variables were listed, after the code of the cell had ended: all variables are lost",
        ),
        (KernelLoss::Died, true) => (
            "kernel-died",
            "the connection to the kernel was lost while the variables were listed, after the code of the cell had ended",
        ),
    };
    let help = "the `__repr__` of a variable may not end, or may end the kernel; delete the variable at the end of the cell, or start its name with `_`";
    turn.warn(code, message, Some(Message::word(help)));
}

fn reject(turn: &Turn<'_>, running: RunningAction, code: &'static str, message: Message) -> PerformedAction {
    let done = PerformedAction { rejected: Some(code), cell_id: Some(running.cell_id), ..running.so_far };
    let done = done.failed(turn, &running.options, message);
    report(turn, EXEC, running.options.by, &done, vec![]);
    done
}

/// How the code ended, as the text that closes its effect.
const fn end_text(ended: CellEnd) -> &'static str {
    match ended {
        CellEnd::Ok => "the code ran to completion",
        CellEnd::Error => "the code raised an error",
        CellEnd::TimedOut => "the code ran too long and was interrupted",
        CellEnd::Died => "the kernel died while running the code",
        CellEnd::Interrupted => "the code was interrupted",
    }
}

/// The error of code that did not complete. The name of an error is repeated because it belongs to the language; no other
/// output of the code is.
fn error_of(execution: &Execution, timeout: Duration) -> Option<Message> {
    match execution.ended {
        CellEnd::Ok => None,
        CellEnd::Error => Some(match execution.outputs.iter().rev().find_map(error_name) {
            Some(name) => msg!("Code execution failed: {name}", name = name),
            None => Message::word("Code execution failed"),
        }),
        CellEnd::TimedOut => Some(msg!("Code execution took longer than {} seconds", timeout.as_secs_f64())),
        CellEnd::Died => Some(Message::word("Code execution failed: the kernel died")),
        CellEnd::Interrupted => Some(Message::word("Code execution was interrupted")),
    }
}

fn error_name(output: &Value) -> Option<&str> {
    let name = output.get("ename")?.as_str()?;
    let is_name_char = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':');
    (!name.is_empty() && name.chars().count() <= MAX_NAME_CHARS && name.chars().all(is_name_char)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_failure_names_the_error_and_no_other_output_of_the_code() {
        let table = [
            (json!({ "output_type": "error", "ename": "NameError", "evalue": "secret" }), Some("NameError")),
            (json!({ "output_type": "error", "ename": "pkg.Broken", "evalue": "" }), Some("pkg.Broken")),
            (json!({ "output_type": "error", "ename": "my secret is 5", "evalue": "" }), None),
            (json!({ "output_type": "error", "ename": "x".repeat(61), "evalue": "" }), None),
            (json!({ "output_type": "error", "ename": "", "evalue": "" }), None),
            (json!({ "output_type": "stream", "text": "x" }), None),
        ];
        for (output, name) in table {
            assert_eq!(error_name(&output), name, "{output}");
        }
    }
}
