//! Handles a kernel that lost its memory after the notebook ran code: reports a warning, and reruns the earlier cells first if
//! the script requests it (`session.kernel: { on_resume: rerun }`).

use crate::actions::notebook::perform::RunningAction;
use crate::actions::notebook::review::waits_for_approval;
use crate::effects::output::NoOutputObserver;
use crate::notebook::cell::{Cell, CellEnd, CellKind};
use crate::notebook::kernel::contract::{AttachedKernel, OnResume};
use crate::notebook::kernel::traced::execute_traced;
use crate::notebook::state::NotebookState;
use crate::program::cell_rerun::CellRerunPiece;
use crate::program::flow::ActionError;
use crate::program::turn::Turn;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

/// The maximum number of cells that run again.
const MAX_CELLS: usize = 500;

/// The maximum number of cells that a warning names.
const MAX_NAMED: usize = 5;

/// The number of cells that are read at once.
const PAGE: usize = 100;

/// What came of the memory of the kernel.
pub(crate) enum RestoredMemory {
    /// The code can run; with the effect as text, if there is one.
    Done(Option<String>),
    /// A person interrupted the cells that ran again, or one of them waits in the kernel.
    Interrupted,
}

/// A memory that does not have what earlier cells defined.
struct MissingMemory {
    /// Whether the kernel is one that goes on without this process.
    is_foreign: bool,
    /// The memory of such a kernel in which the earlier cells ran, if it is known.
    earlier: Option<String>,
}

impl MissingMemory {
    fn message(&self) -> &'static str {
        match (self.is_foreign, &self.earlier) {
            (false, _) => "the kernel starts with empty memory: what earlier cells defined is lost",
            (true, Some(_)) => {
                "this is not the kernel in which the earlier cells ran, or it was started again: what they defined is not in its memory"
            }
            (true, None) => "the earlier cells did not run in this kernel: what they defined may not be in its memory",
        }
    }
}

/// Called when code is announced, so that a lost memory that is not restored is told before the code runs. Returns whether it was told.
pub(crate) async fn report_missing_memory(turn: &Turn<'_>, next: &RunningAction) -> Result<bool, ActionError> {
    let is_new = turn.services.host.kernel.executed_cells() == 0;
    if !is_new || turn.of_notebook_state(|state| state.executed) == 0 {
        return Ok(false);
    }
    if turn.cell(&next.cell_id).await?.is_none() {
        return Ok(false);
    }
    let reruns = turn.program.kernel.on_resume == OnResume::Rerun;
    // What is run again has an effect of its own, which is not announced yet.
    if reruns && earlier_cells(turn, next).await?.is_some() {
        return Ok(false);
    }
    let Some(lost) = missing_memory(turn).await? else { return Ok(false) };
    match reruns {
        true => warn_of_too_many(turn),
        false => turn.warn(
            "kernel-memory-gone",
            lost.message(),
            Some(Message::word("use `session.kernel: { on_resume: rerun }` to run the earlier cells again first")),
        ),
    }
    Ok(true)
}

fn warn_of_too_many(turn: &Turn<'_>) {
    let message =
        msg!("the kernel starts with empty memory: more than {MAX_CELLS} cells ran before, too many to run again");
    turn.warn("kernel-memory-gone", message, None);
}

fn warn_of_unapproved(turn: &Turn<'_>, cells: Vec<String>) {
    let cells = first_names(cells);
    let message = msg!("these earlier cells do not run again, because nobody has approved their code: {cells}");
    let help = "a model or a server wrote it; the question comes when an `exec` runs one of them";
    turn.warn("kernel-memory-gone", message, Some(Message::word(help)));
}

/// The first of these names as one text.
fn first_names(mut names: Vec<String>) -> String {
    let more = if names.len() > MAX_NAMED { ", …" } else { "" };
    names.truncate(MAX_NAMED);
    names.join(", ") + more
}

/// Connects to a kernel that goes on without this process. Returns whether the memory of earlier cells is gone.
async fn missing_memory(turn: &Turn<'_>) -> Result<Option<MissingMemory>, ActionError> {
    let kernel = &turn.services.host.kernel;
    let settings = &turn.program.kernel;
    let (executed, earlier_memory, started) = turn.of_notebook_state(|state| {
        let started = state.started_kernel(turn.session_id).map(str::to_owned);
        (state.executed, state.kernel_memory.clone(), started)
    });
    let attached = kernel.attach(settings, started.as_deref()).await.map_err(ActionError::Kernel)?;
    let is_foreign = attached.is_some();
    let has_memory = match attached {
        Some(AttachedKernel { memory, started }) => {
            let has_memory = earlier_memory.as_ref() == Some(&memory);
            let mut state = NotebookState { kernel_memory: Some(memory), ..turn.notebook_state() };
            state.set_started_kernel(started, &settings.source, turn.session_id);
            turn.set_notebook_state(state);
            has_memory
        }
        None => kernel.executed_cells() > 0,
    };
    let is_lost = executed > 0 && !has_memory;
    Ok(is_lost.then_some(MissingMemory { is_foreign, earlier: earlier_memory }))
}

/// Called before code runs: restores a lost memory, or reports it unless that is done. Returns the effect of it as text.
pub(crate) async fn restore_memory(turn: &Turn<'_>, next: &RunningAction) -> Result<RestoredMemory, ActionError> {
    let kernel = &turn.services.host.kernel;
    let settings = &turn.program.kernel;
    let Some(lost) = missing_memory(turn).await? else { return Ok(RestoredMemory::Done(None)) };
    // Another kernel may have taken the place of one that goes on without this process.
    if next.is_memory_told && !lost.is_foreign {
        return Ok(RestoredMemory::Done(None));
    }
    if settings.on_resume == OnResume::Fresh {
        turn.warn(
            "kernel-memory-gone",
            lost.message(),
            Some(Message::word("use `session.kernel: { on_resume: rerun }` to run the earlier cells again first")),
        );
        return Ok(RestoredMemory::Done(None));
    }
    let Some(EarlierCells { cells: earlier, unapproved }) = earlier_cells(turn, next).await? else {
        warn_of_too_many(turn);
        return Ok(RestoredMemory::Done(None));
    };
    if !unapproved.is_empty() {
        warn_of_unapproved(turn, unapproved);
    }
    let total = earlier.len();
    let mut now_failing = Vec::new();
    for (done, cell) in earlier.iter().enumerate() {
        show_rerun(turn, cell, (done + 1, total), None);
        // The stored outputs of these cells are not changed.
        let caller = Some((turn.session_id, turn.last_seq));
        let ran = execute_traced(kernel.as_ref(), &cell.content, settings.timeout, settings, caller, &NoOutputObserver);
        let ran = ran.await;
        let is_undecided =
            ran.as_ref().is_ok_and(|execution| execution.is_interrupted_by_person || execution.is_queued);
        // Without its kernel, what the cell defined is gone as well.
        let ended = ran.map(|execution| execution.lost_with_variables.map_or(execution.ended, |_| CellEnd::Died));
        show_rerun(turn, cell, (done + 1, total), Some(ended.as_ref().map_or(CellEnd::Died, |ended| *ended)));
        let id = &cell.id;
        let message = match ended {
            Ok(CellEnd::Ok) => continue,
            Ok(CellEnd::Error) => {
                if cell.ended == Some(CellEnd::Ok) {
                    now_failing.push(format!("`{id}`"));
                }
                continue;
            }
            // Without a kernel, `next` cannot run either, and that is reported.
            Err(_) => return Ok(RestoredMemory::Done(None)),
            Ok(CellEnd::Died) => msg!(
                "the kernel started with empty memory; {done} of {total} earlier cells ran again, then the kernel died while running `{id}`"
            ),
            _ => msg!(
                "the kernel started with empty memory; {done} of {total} earlier cells ran again, then `{id}` did not finish"
            ),
        };
        turn.warn("kernel-memory-gone", message, None);
        return Ok(match is_undecided {
            true => {
                forget_memory(turn, lost).await;
                RestoredMemory::Interrupted
            }
            false => RestoredMemory::Done(Some(format!("Ran earlier cells again: {done}"))),
        });
    }
    let mut effect = format!("Ran earlier cells again: {total}");
    let message = if now_failing.is_empty() {
        msg!("the kernel started with empty memory; earlier cells that were run again first: {total}")
    } else {
        let cells = first_names(now_failing);
        effect.push_str(&format!("; these ran before and now raise an error: {cells}"));
        msg!(
            "the kernel started with empty memory; earlier cells that were run again first: {total}; these ran before and now raise an error: {cells}"
        )
    };
    turn.warn("kernel-memory-gone", message, None);
    Ok(RestoredMemory::Done(Some(effect)))
}

/// Makes the next code run the earlier cells again from the first one: only some of them have run, so that the memory is not what they
/// left.
async fn forget_memory(turn: &Turn<'_>, lost: MissingMemory) {
    if lost.is_foreign {
        turn.set_notebook_state(NotebookState { kernel_memory: lost.earlier, ..turn.notebook_state() });
    } else {
        turn.services.host.kernel.stop().await;
    }
}

/// Tells whoever watches that a cell begins to run again, or how it ended.
fn show_rerun(turn: &Turn<'_>, cell: &Cell, (number, total): (usize, usize), ended: Option<CellEnd>) {
    let Some(effect) = turn.effect else { return };
    turn.services.observer.cell_rerun(&CellRerunPiece {
        at: &turn.services.clock.at(turn.last_seq + 1),
        session_id: turn.session_id,
        r#type: "cell_rerun",
        cell_id: &cell.id,
        effect_id: &effect.id,
        number,
        total,
        ended,
        location: turn.place,
    });
}

/// The cells that restore a memory.
#[derive(Default)]
struct EarlierCells {
    cells: Vec<Cell>,
    /// The names of those that are left out, because a person must approve their code first.
    unapproved: Vec<String>,
}

/// The cells whose code ran before and was not interrupted, in the order of the notebook; `None` if there are too many. The cell of `next`
/// is among them if the same code ran before: later cells may need what it defined.
async fn earlier_cells(turn: &Turn<'_>, next: &RunningAction) -> Result<Option<EarlierCells>, ActionError> {
    let mut found = EarlierCells::default();
    let mut after = 0;
    loop {
        let page = turn.cells_after(after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(Some(found)) };
        after = last.number;
        for mut cell in page {
            if cell.id == next.cell_id {
                cell.ended = next.earlier_end;
            }
            let has_run = matches!(cell.ended, Some(CellEnd::Ok | CellEnd::Error));
            match cell.kind == CellKind::Code && has_run {
                true if waits_for_approval(turn, &cell) => found.unapproved.push(format!("`{}`", cell.id)),
                true => found.cells.push(cell),
                false => {}
            }
        }
        if found.cells.len() > MAX_CELLS {
            return Ok(None);
        }
    }
}
