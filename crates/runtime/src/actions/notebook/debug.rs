//! `auto_debug`: a model fixes code that failed, and the code runs again, a limited number of times. The outputs of the failed
//! run are committed before the model is asked, and each run is announced as a separate effect.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Value, json};

use crate::actions::notebook::perform::{ActionOrigin, CodeProposal, PerformStep, RunningAction};
use crate::actions::notebook::review;
use crate::notebook::cell::{Cell, CellEnd, CellKind};
use crate::notebook::effects::quoted;
use crate::program::event::Event;
use crate::program::exchange::{Ask, Exchange, PROMPT_NAMES};
use crate::program::flow::{ActionError, Flow};
use crate::program::output::Outputs;
use crate::program::prompt::PromptNames;
use crate::program::transcript::cut_in_the_middle;
use crate::program::turn::Turn;
use bcc_lang::schema::embedded;
use bcc_lang::value::quoting::{indented, quote};
use bcc_llm::reply::shape::ReplyShape;

/// The maximum number of times that a model is asked to fix one cell.
pub const MAX_ATTEMPTS: u32 = 3;

/// The name of the template and of the reply schema.
pub const TEMPLATE: &str = "exec";

pub const VERSION: u32 = 1;

pub(crate) const PROMPT: PromptNames = PromptNames {
    common: &PROMPT_NAMES,
    names: &["code", "failure", "earlier_code", "attempt", "most_attempts"],
    outputs: false,
};

/// The maximum length of the code in a prompt, in characters.
const MAX_CODE_CHARS: usize = 20_000;

/// The maximum length of the error in a prompt, in characters.
const MAX_FAILURE_CHARS: usize = 8_000;

/// The number of preceding cells whose code a prompt shows.
const MAX_EARLIER_CELLS: usize = 10;

/// The maximum length of the code of one of them, in characters.
const MAX_EARLIER_CODE_CHARS: usize = 2_000;

/// The maximum size of the code of a model, in bytes.
const MAX_CODE_BYTES: usize = 100_000;

/// The maximum length of a stored explanation, in characters.
const MAX_EXPLANATION_CHARS: usize = 1_000;

/// The next step after code ran: asks the model if the code failed and may be fixed.
pub fn next_step(running: RunningAction) -> PerformStep {
    let failed = matches!(running.so_far.ended, Some(CellEnd::Error | CellEnd::TimedOut | CellEnd::Died));
    if failed && running.auto_debug && running.fixes < MAX_ATTEMPTS {
        // The code that a model writes has not run before.
        let running = RunningAction { needs_fix: true, earlier_end: None, ..running };
        return PerformStep::Continue(Flow::Onward, Box::new(running));
    }
    PerformStep::Done(Box::new(running.so_far))
}

/// Asks the model to fix the code of a cell, and runs it again.
pub async fn fix(turn: &Turn<'_>, running: RunningAction) -> Result<PerformStep, ActionError> {
    let running = RunningAction { needs_fix: false, fixes: running.fixes + 1, ..running };
    let Some(cell) = turn.cell(&running.cell_id).await? else { return Ok(PerformStep::Done(Box::new(running.so_far))) };
    let exchange = match ask(turn, &cell, running.fixes).await {
        Ok(exchange) => exchange,
        Err(ActionError::Failed { message, help, .. } | ActionError::Prompt { message, help }) => {
            turn.warn("auto-debug-failed", msg!("the model was not asked to fix the code: {message}"), help);
            return Ok(PerformStep::Done(Box::new(running.so_far)));
        }
        Err(error) => return Err(error),
    };
    let text_field = |name: &str| match &exchange.reading {
        Ok(reply) if exchange.held_back.is_none() => {
            reply.object.get(name).and_then(Value::as_str).unwrap_or_default().trim_end().to_owned()
        }
        _ => String::new(),
    };
    let code = strip_fence(&text_field("code")).to_owned();
    if code.trim().is_empty() || code == cell.content || code.len() > MAX_CODE_BYTES {
        turn.warn("auto-debug-failed", "the model did not provide different code for the failed cell", None);
        return Ok(PerformStep::Done(Box::new(running.so_far)));
    }
    let explanation: String = text_field("explanation").chars().take(MAX_EXPLANATION_CHARS).collect();
    let proposal = CodeProposal { code, explanation };
    if review::is_wanted(turn) {
        return Ok(review::propose(turn, &cell, proposal, running));
    }
    replace_code(turn, cell, &proposal, running.fixes);
    Ok(running.announce())
}

/// Replaces the code of the cell with that of the model.
pub(crate) fn replace_code(turn: &Turn<'_>, mut cell: Cell, proposal: &CodeProposal, fixes: u32) -> Cell {
    let original = std::mem::replace(&mut cell.content, proposal.code.clone());
    (cell.written_by, cell.approved) = (Some(ActionOrigin::Model.name().to_owned()), None);
    let extra = &mut cell.metadata.extra;
    extra.entry("original_code").or_insert_with(|| Value::from(original));
    extra.insert("mended".to_owned(), json!({ "times": fixes, "explanation": proposal.explanation }));
    (cell.outputs, cell.execution_count, cell.ended) = (vec![], None, None);
    let effects = vec![format!("Mended code: {}", quoted(&cell.content))];
    let cell_id = Some(cell.id.clone());
    turn.put_cell(cell.clone());
    let mut state = turn.notebook_state();
    state.effects.set_current(effects.clone());
    turn.set_notebook_state(state);
    let (action, by) = ("auto_debug".to_owned(), ActionOrigin::Model.name());
    turn.emit_notebook_event(Event::NotebookAction { action, by, cell_id, success: true, error: None, effects });
    cell
}

async fn ask(turn: &Turn<'_>, cell: &Cell, attempt: u32) -> Result<Exchange, ActionError> {
    let failed = |message: Message| ActionError::failed("reply-shape", message);
    let schema = embedded::reply_rules(TEMPLATE).unwrap_or_default();
    let shape = ReplyShape::new(&schema, &[]).map_err(|error| failed(error.to_message()))?;
    let code = cut_in_the_middle(&cell.content, MAX_CODE_CHARS);
    let mut names = turn.names(1);
    for name in ["tone", "exit"] {
        names.set_text(name, "");
    }
    names.set("understanding_threshold", Value::Null);
    names.set_text("code", indented(&code));
    names.set_text("failure", &*quote(&cut_in_the_middle(&failure(cell), MAX_FAILURE_CHARS)));
    names.set("earlier_code", earlier_code(turn, cell).await?);
    names.set("attempt", Value::from(attempt));
    names.set("most_attempts", Value::from(MAX_ATTEMPTS));
    let outputs = Outputs::new(vec![]);
    let ask = Ask::new((TEMPLATE, VERSION), &shape, &outputs, &code, names);
    turn.exchange(Ask { without_outcome: true, ..ask }).await
}

/// The code of the preceding cells.
async fn earlier_code(turn: &Turn<'_>, cell: &Cell) -> Result<Value, ActionError> {
    let after = cell.number.saturating_sub(1 + MAX_EARLIER_CELLS as u64);
    let cells = turn.cells_after(after, MAX_EARLIER_CELLS).await?;
    let code = cells.iter().filter(|earlier| earlier.kind == CellKind::Code && earlier.number < cell.number);
    Ok(code
        .map(|earlier| Value::from(indented(&cut_in_the_middle(&earlier.content, MAX_EARLIER_CODE_CHARS))))
        .collect())
}

/// The error according to the outputs of the cell.
fn failure(cell: &Cell) -> String {
    let error = cell.outputs.iter().rev().find(|output| output.get("ename").is_some());
    let Some(error) = error else {
        let message = match cell.ended {
            Some(CellEnd::TimedOut) => "the code ran longer than it may, and was interrupted",
            Some(CellEnd::Died) => "the kernel died while the code ran",
            _ => "the code failed",
        };
        return message.to_owned();
    };
    let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let traceback = error.get("traceback").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let traceback = traceback.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
    let traceback = strip_escapes(&traceback);
    if traceback.trim().is_empty() { format!("{}: {}", text("ename"), text("evalue")) } else { traceback }
}

/// The text without terminal escape sequences.
fn strip_escapes(text: &str) -> String {
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

/// The code without a code fence that a model may add.
fn strip_fence(code: &str) -> &str {
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
    fn a_fence_around_code_is_removed() {
        let table = [
            ("x = 1", "x = 1"),
            ("```python\nx = 1\n```", "x = 1"),
            ("```\nx = 1\ny = 2\n```\n", "x = 1\ny = 2"),
            ("```x", "```x"),
            ("s = '''\n```\n'''", "s = '''\n```\n'''"),
        ];
        for (given, code) in table {
            assert_eq!(strip_fence(given), code, "{given}");
        }
    }

    #[test]
    fn a_failure_is_reported_without_colors() {
        let error = json!({ "output_type": "error", "ename": "NameError", "evalue": "x",
            "traceback": ["\u{1b}[0;31mNameError\u{1b}[0m: x", "line \u{1b}[1;32m1\u{1b}[0m"] });
        let cell = Cell { outputs: vec![error], ..Cell::default() };
        assert_eq!(failure(&cell), "NameError: x\nline 1");
        let cell = Cell { ended: Some(CellEnd::TimedOut), ..Cell::default() };
        assert_eq!(failure(&cell), "the code ran longer than it may, and was interrupted");
        assert_eq!(strip_escapes("a\u{1b}["), "a");
    }
}
