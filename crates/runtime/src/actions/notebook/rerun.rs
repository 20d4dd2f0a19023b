//! Handles a kernel that lost its memory after the notebook ran code: reports a warning, and reruns the earlier cells first if
//! the script requests it (`session.kernel: { on_resume: rerun }`).

use crate::effects::output::NoOutputObserver;
use crate::notebook::cell::{Cell, CellEnd, CellKind};
use crate::notebook::kernel::contract::{AttachedKernel, OnResume};
use crate::notebook::kernel::traced::execute_traced;
use crate::notebook::state::NotebookState;
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

/// Called before `next` runs: handles a lost memory. Returns the effect of it as text.
pub(crate) async fn restore_memory(turn: &Turn<'_>, next: &Cell) -> Result<RestoredMemory, ActionError> {
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
    if executed == 0 || has_memory {
        return Ok(RestoredMemory::Done(None));
    }
    if settings.on_resume == OnResume::Fresh {
        let message = match (is_foreign, earlier_memory) {
            (false, _) => "the kernel starts with empty memory: what earlier cells defined is lost",
            (true, Some(_)) => {
                "this is not the kernel in which the earlier cells ran, or it was started again: what they defined is not in its memory"
            }
            (true, None) => "the earlier cells did not run in this kernel: what they defined may not be in its memory",
        };
        turn.warn(
            "kernel-memory-gone",
            message,
            Some(Message::word("use `session.kernel: { on_resume: rerun }` to run the earlier cells again first")),
        );
        return Ok(RestoredMemory::Done(None));
    }
    let Some(earlier) = earlier_cells(turn, next).await? else {
        turn.warn(
            "kernel-memory-gone",
            msg!("the kernel starts with empty memory: more than {MAX_CELLS} cells ran before, too many to run again"),
            None,
        );
        return Ok(RestoredMemory::Done(None));
    };
    let total = earlier.len();
    let mut now_failing = Vec::new();
    for (done, cell) in earlier.iter().enumerate() {
        // The stored outputs of these cells are not changed.
        let caller = Some((turn.session_id, turn.last_seq));
        let ran = execute_traced(kernel.as_ref(), &cell.content, settings.timeout, settings, caller, &NoOutputObserver);
        let ran = ran.await;
        let is_undecided =
            ran.as_ref().is_ok_and(|execution| execution.is_interrupted_by_person || execution.is_queued);
        let ended = ran.map(|execution| execution.ended);
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
            true => RestoredMemory::Interrupted,
            false => RestoredMemory::Done(Some(format!("Ran earlier cells again: {done}"))),
        });
    }
    let mut effect = format!("Ran earlier cells again: {total}");
    let message = if now_failing.is_empty() {
        msg!("the kernel started with empty memory; earlier cells that were run again first: {total}")
    } else {
        let more = if now_failing.len() > MAX_NAMED { ", …" } else { "" };
        now_failing.truncate(MAX_NAMED);
        let cells = now_failing.join(", ") + more;
        effect.push_str(&format!("; these ran before and now raise an error: {cells}"));
        msg!(
            "the kernel started with empty memory; earlier cells that were run again first: {total}; these ran before and now raise an error: {cells}"
        )
    };
    turn.warn("kernel-memory-gone", message, None);
    Ok(RestoredMemory::Done(Some(effect)))
}

/// The cells whose code ran before and was not interrupted, in order; `None` if there are too many.
async fn earlier_cells(turn: &Turn<'_>, next: &Cell) -> Result<Option<Vec<Cell>>, ActionError> {
    let mut found = Vec::new();
    let mut after = 0;
    loop {
        let page = turn.cells_after(after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(Some(found)) };
        after = last.number;
        found.extend(page.into_iter().filter(|cell| {
            cell.kind == CellKind::Code
                && cell.number != next.number
                && matches!(cell.ended, Some(CellEnd::Ok | CellEnd::Error))
        }));
        if found.len() > MAX_CELLS {
            return Ok(None);
        }
    }
}
