//! Applies the result of running a cell to the cell and the state.

use serde_json::{Map, Value};

use crate::notebook::action::ExecAction;
use crate::notebook::cell::{Cell, CellEnd};
use crate::notebook::effects::{MAX_QUOTED_BYTES, quoted};
use crate::notebook::json_size::json_size;
use crate::notebook::kernel::contract::Execution;
use crate::notebook::state::{MAX_VARIABLES_BYTES, NotebookState};

/// The key of the debug button option of `exec` in the `extra` metadata of a cell.
const DEBUG_BUTTON: &str = "keep_debug_button_visible";

/// See [`crate::notebook::apply::ran`].
pub(crate) fn ran(state: &mut NotebookState, mut cell: Cell, exec: &ExecAction, execution: Execution) -> Cell {
    let mut effects = vec![format!("Executed code: {}", quoted(&cell.content))];
    let mut outputs = execution.outputs;
    if !exec.need_output {
        outputs.retain(is_error);
    }
    let output_text = text_of(&outputs);
    if !output_text.is_empty() {
        effects.push(format!("Output: {}", quoted(&output_text)));
    }
    let error = error_of(&outputs).or_else(|| failure_text(execution.ended).map(str::to_owned));
    effects.extend(error.iter().map(|error| format!("Error: {}", quoted(error))));
    let last = if output_text.is_empty() { error.unwrap_or_default() } else { output_text };
    state.last_output = Some(quoted(&last)).filter(|last| !last.is_empty());
    state.effects.set_current(effects);
    state.executed = state.executed.saturating_add(1);
    if !execution.language.is_empty() {
        state.kernel_language = execution.language;
    }
    state.kernel_variables.replace(limit_variables(execution.variables));
    if exec.keep_debug_button_visible {
        cell.metadata.extra.insert(DEBUG_BUTTON.to_owned(), Value::Bool(true));
    } else {
        cell.metadata.extra.shift_remove(DEBUG_BUTTON);
    }
    Cell { outputs, execution_count: execution.execution_count, ended: Some(execution.ended), ..cell }
}

fn is_error(output: &Value) -> bool {
    output.get("output_type").and_then(Value::as_str) == Some("error")
}

/// The text output of the code, in order, as far as it is quoted.
fn text_of(outputs: &[Value]) -> String {
    let mut joined = String::new();
    for output in outputs {
        if joined.len() > MAX_QUOTED_BYTES {
            break;
        }
        let text = output.get("text").or_else(|| output.get("data")?.get("text/plain"));
        if !joined.is_empty() && !joined.ends_with('\n') {
            joined.push('\n');
        }
        // nbformat may write a text with several lines as a list.
        match text {
            Some(Value::String(text)) => joined.push_str(prefix(text)),
            Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).for_each(|line| {
                if joined.len() <= MAX_QUOTED_BYTES {
                    joined.push_str(prefix(line));
                }
            }),
            _ => {}
        }
    }
    joined.trim_end().to_owned()
}

/// The start of a text, as far as it may be needed.
fn prefix(text: &str) -> &str {
    text.get(..text.floor_char_boundary(4 * MAX_QUOTED_BYTES)).unwrap_or_default()
}

/// The name and the value of the first error.
fn error_of(outputs: &[Value]) -> Option<String> {
    let error = outputs.iter().find(|output| is_error(output))?;
    let field = |name| error.get(name).and_then(Value::as_str).unwrap_or_default();
    Some(match (field("ename"), field("evalue")) {
        (name, "") => name.to_owned(),
        (name, value) => format!("{name}: {}", prefix(value)),
    })
}

/// The error text for code that did not complete and has no error output.
const fn failure_text(ended: CellEnd) -> Option<&'static str> {
    match ended {
        CellEnd::Ok => None,
        CellEnd::Error => Some("the code failed"),
        CellEnd::TimedOut => Some("the code ran out of time"),
        CellEnd::Died => Some("the kernel died"),
        CellEnd::Interrupted => Some("the code was interrupted"),
    }
}

/// The variables of the kernel that fit into the limit, in order.
fn limit_variables(variables: Map<String, Value>) -> Map<String, Value> {
    let mut available = MAX_VARIABLES_BYTES;
    let mut fits = |name: &String, value: &Value| {
        let size = name.len() + json_size(value);
        let fits = size <= available;
        available = available.saturating_sub(if fits { size } else { 0 });
        fits
    };
    variables.into_iter().filter(|(name, value)| fits(name, value)).collect()
}
