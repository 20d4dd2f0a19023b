//! `auto_debug`: code that failed is mended by a model and runs again, a few times at most. What it gave is committed before
//! any model is asked, and each run is announced as an effect of its own.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Value, json};

use crate::actions::notebook::perform::{ActionOrigin, PerformStep, RunningAction};
use crate::notebook::cell::{Cell, CellEnd, CellKind};
use crate::notebook::effects::quoted;
use crate::program::event::Event;
use crate::program::exchange::{Ask, Exchange, PROMPT_NAMES};
use crate::program::flow::{ActionError, Flow};
use crate::program::output::Outputs;
use crate::program::prompt::PromptOf;
use crate::program::transcript::cut_in_the_middle;
use crate::program::turn::Turn;
use bcc_lang::schema::embedded;
use bcc_llm::reply::shape::ReplyShape;

/// How often a model is asked to mend one cell.
pub const MOST: u32 = 3;

/// The name of the template and of the reply's schema.
pub const TEMPLATE: &str = "exec";

pub const VERSION: u32 = 1;

pub const PROMPT: PromptOf = PromptOf {
    common: &PROMPT_NAMES,
    names: &["code", "failure", "earlier_code", "attempt", "most_attempts"],
    outputs: false,
};

/// The most characters of code that a prompt shows.
const MOST_CODE: usize = 20_000;

/// The most characters of what went wrong that a prompt shows.
const MOST_FAILURE: usize = 8_000;

/// How many cells before it a prompt shows, where they hold code.
const MOST_EARLIER: usize = 10;

/// The most characters of one of them.
const MOST_EARLIER_CODE: usize = 2_000;

/// The most bytes of code that a model may give.
const MOST_MENDED: usize = 100_000;

/// The most characters of its explanation that are kept.
const MOST_EXPLANATION: usize = 1_000;

/// What follows code that ran: the model, when it failed and may be mended.
pub fn after(running: RunningAction) -> PerformStep {
    let failed = matches!(running.so_far.ended, Some(CellEnd::Error | CellEnd::TimedOut | CellEnd::Died));
    if failed && running.auto_debug && running.mended < MOST {
        return PerformStep::On(Flow::Onward, Box::new(RunningAction { mend: true, ..running }));
    }
    PerformStep::Done(Box::new(running.so_far))
}

/// Asks the model to mend the code of a cell, and lets it run again.
pub async fn mend(turn: &Turn<'_>, running: RunningAction) -> Result<PerformStep, ActionError> {
    let running = RunningAction { mend: false, mended: running.mended + 1, ..running };
    let Some(cell) = turn.cell(&running.cell_id).await? else { return Ok(PerformStep::Done(Box::new(running.so_far))) };
    let exchange = match ask(turn, &cell, running.mended).await {
        Ok(exchange) => exchange,
        Err(ActionError::Failed { message, help, .. }) => {
            turn.warn("auto-debug-failed", msg!("the model was not asked to fix the code: {message}"), help);
            return Ok(PerformStep::Done(Box::new(running.so_far)));
        }
        Err(error) => return Err(error),
    };
    let said = |name: &str| match &exchange.reading {
        Ok(reply) if exchange.held_back.is_none() => {
            reply.object.get(name).and_then(Value::as_str).unwrap_or_default().trim_end().to_owned()
        }
        _ => String::new(),
    };
    let code = without_fence(&said("code")).to_owned();
    if code.trim().is_empty() || code == cell.content || code.len() > MOST_MENDED {
        turn.warn("auto-debug-failed", "the model did not provide different code for the failed cell", None);
        return Ok(PerformStep::Done(Box::new(running.so_far)));
    }
    let explanation: String = said("explanation").chars().take(MOST_EXPLANATION).collect();
    take(turn, cell, code, &explanation, running.mended);
    Ok(running.announced())
}

/// The cell takes over the code that the model gave.
fn take(turn: &Turn<'_>, mut cell: Cell, code: String, explanation: &str, mended: u32) {
    let original = std::mem::replace(&mut cell.content, code);
    let extra = &mut cell.metadata.extra;
    extra.entry("original_code").or_insert_with(|| Value::from(original));
    extra.insert("mended".to_owned(), json!({ "times": mended, "explanation": explanation }));
    (cell.outputs, cell.execution_count, cell.ended) = (vec![], None, None);
    let effects = vec![format!("Mended code: {}", quoted(&cell.content))];
    let cell_id = Some(cell.id.clone());
    turn.put_cell(cell);
    let mut state = turn.notebook_state();
    state.effects.now(effects.clone());
    turn.set_notebook_state(state);
    let (action, by) = ("auto_debug".to_owned(), ActionOrigin::Model.name());
    turn.tell_notebook(Event::NotebookAction { action, by, cell_id, success: true, error: None, effects });
}

async fn ask(turn: &Turn<'_>, cell: &Cell, attempt: u32) -> Result<Exchange, ActionError> {
    let failed = |why: Message| ActionError::failed("reply-shape", why);
    let schema: Value = serde_json::from_str(embedded::reply(TEMPLATE).unwrap_or_default())
        .map_err(|error| failed(Message::text(error.to_string())))?;
    let shape = ReplyShape::new(&schema, &[]).map_err(|error| failed(error.to_message()))?;
    let code = cut_in_the_middle(&cell.content, MOST_CODE);
    let mut names = turn.names(1);
    for name in ["tone", "exit"] {
        names.give_text(name, "");
    }
    names.give("understanding_threshold", Value::Null);
    names.give_text("code", code.as_str());
    names.give_text("failure", cut_in_the_middle(&failure(cell), MOST_FAILURE));
    names.give("earlier_code", earlier(turn, cell).await?);
    names.give("attempt", Value::from(attempt));
    names.give("most_attempts", Value::from(MOST));
    let ask = Ask {
        kind: TEMPLATE,
        template: TEMPLATE,
        version: VERSION,
        shape: &shape,
        content: &code,
        outputs: &Outputs::new(vec![]),
        names,
        answer: None,
        inputs: vec![],
        round: 1,
        opening: false,
        live: false,
        repair: None,
        reask: None,
    };
    turn.exchange(ask).await
}

/// The code of the cells before it.
async fn earlier(turn: &Turn<'_>, cell: &Cell) -> Result<Value, ActionError> {
    let after = cell.number.saturating_sub(1 + MOST_EARLIER as u64);
    let cells = turn.cells_after(after, MOST_EARLIER).await?;
    let code = cells.iter().filter(|earlier| earlier.kind == CellKind::Code && earlier.number < cell.number);
    Ok(code.map(|earlier| Value::from(cut_in_the_middle(&earlier.content, MOST_EARLIER_CODE))).collect())
}

/// What went wrong, as the outputs of the cell tell it.
fn failure(cell: &Cell) -> String {
    let error = cell.outputs.iter().rev().find(|output| output.get("ename").is_some());
    let Some(error) = error else {
        let how = match cell.ended {
            Some(CellEnd::TimedOut) => "the code ran longer than it may, and was interrupted",
            Some(CellEnd::Died) => "the kernel died while the code ran",
            _ => "the code failed",
        };
        return how.to_owned();
    };
    let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let traceback = error.get("traceback").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let traceback = traceback.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
    let traceback = without_colours(&traceback);
    if traceback.trim().is_empty() { format!("{}: {}", text("ename"), text("evalue")) } else { traceback }
}

/// A text without the escapes with which terminals colour it.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ';' | '?'));
        let mut chars = rest.chars();
        chars.next();
        rest = chars.as_str();
    }
    plain.push_str(rest);
    plain
}

/// Code without the fence that a model puts around it although nobody asked for one.
fn without_fence(code: &str) -> &str {
    let inner = || {
        let (_, inner) = code.trim().strip_prefix("```")?.split_once('\n')?;
        inner.trim_end().strip_suffix("```").map(str::trim_end)
    };
    inner().unwrap_or(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_around_code_is_taken_off() {
        let table = [
            ("x = 1", "x = 1"),
            ("```python\nx = 1\n```", "x = 1"),
            ("```\nx = 1\ny = 2\n```\n", "x = 1\ny = 2"),
            ("```x", "```x"),
            ("s = '''\n```\n'''", "s = '''\n```\n'''"),
        ];
        for (given, code) in table {
            assert_eq!(without_fence(given), code, "{given}");
        }
    }

    #[test]
    fn a_failure_is_told_without_colours() {
        let error = json!({ "output_type": "error", "ename": "NameError", "evalue": "x",
            "traceback": ["\u{1b}[0;31mNameError\u{1b}[0m: x", "line \u{1b}[1;32m1\u{1b}[0m"] });
        let cell = Cell { outputs: vec![error], ..Cell::default() };
        assert_eq!(failure(&cell), "NameError: x\nline 1");
        let cell = Cell { ended: Some(CellEnd::TimedOut), ..Cell::default() };
        assert_eq!(failure(&cell), "the code ran longer than it may, and was interrupted");
        assert_eq!(without_colours("a\u{1b}["), "a");
    }
}
