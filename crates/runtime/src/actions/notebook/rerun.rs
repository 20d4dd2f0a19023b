//! What a session does when its kernel has lost its memory though the notebook ran code before: it says so, and where the
//! script wants it (`session.kernel: { on_resume: rerun }`), the cells that ran before run again first.

use crate::notebook::cell::{Cell, CellEnd, CellKind};
use crate::notebook::kernel::contract::OnResume;
use crate::program::flow::ActionError;
use crate::program::turn::Turn;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

/// The most cells that run again.
const MOST_AGAIN: usize = 500;

/// How many cells are read at once.
const PAGE: usize = 100;

/// Before `next` runs: what is to be done about a memory that is gone. Gives the effect of it, in words.
pub async fn before(turn: &Turn<'_>, next: &Cell) -> Result<Option<String>, ActionError> {
    let kernel = &turn.services.outside.kernel;
    if turn.notebook_state().executed == 0 || kernel.ran() > 0 {
        return Ok(None);
    }
    let settings = &turn.program.kernel;
    if settings.on_resume == OnResume::Fresh {
        turn.warn(
            "kernel-memory-gone",
            "the kernel starts with empty memory: what earlier cells defined is lost",
            Some(Message::word("use `session.kernel: { on_resume: rerun }` to run the earlier cells again first")),
        );
        return Ok(None);
    }
    let Some(earlier) = earlier(turn, next).await? else {
        turn.warn(
            "kernel-memory-gone",
            msg!("the kernel starts with empty memory: more than {MOST_AGAIN} cells ran before, too many to run again"),
            None,
        );
        return Ok(None);
    };
    let all = earlier.len();
    for (done, cell) in earlier.iter().enumerate() {
        // Their outputs stay as they are: what was shown once is not changed behind anybody's back.
        let ended = kernel.execute(&cell.content, settings.timeout, settings).await.map(|execution| execution.ended);
        let id = &cell.id;
        let message = match ended {
            Ok(CellEnd::Ok | CellEnd::Error) => continue,
            Ok(CellEnd::Died) => msg!(
                "the kernel started with empty memory; {done} of {all} earlier cells ran again, then the kernel died while running `{id}`"
            ),
            _ => msg!(
                "the kernel started with empty memory; {done} of {all} earlier cells ran again, then `{id}` did not finish"
            ),
        };
        turn.warn("kernel-memory-gone", message, None);
        return Ok(Some(format!("Ran earlier cells again: {done}")));
    }
    turn.warn(
        "kernel-memory-gone",
        msg!("the kernel started with empty memory; earlier cells that were run again first: {all}"),
        None,
    );
    Ok(Some(format!("Ran earlier cells again: {all}")))
}

/// The cells whose code ran before and came to an end of its own, in order; none when there are too many.
async fn earlier(turn: &Turn<'_>, next: &Cell) -> Result<Option<Vec<Cell>>, ActionError> {
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
        if found.len() > MOST_AGAIN {
            return Ok(None);
        }
    }
}
