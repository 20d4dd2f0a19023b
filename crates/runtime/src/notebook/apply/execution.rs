//! What running a cell leaves behind in the cell and in the state.

use serde_json::{Map, Value};

use crate::notebook::action::ExecAction;
use crate::notebook::cell::{Cell, CellEnd};
use crate::notebook::effects::{MOST_QUOTED, quoted};
use crate::notebook::kernel::contract::Execution;
use crate::notebook::state::{MOST_VARIABLE_BYTES, NotebookState};

/// The key, in `extra` of the metadata of a cell, of what `exec` said of the debug button.
const DEBUG_BUTTON: &str = "keep_debug_button_visible";

/// See [`crate::notebook::apply::ran`].
pub(crate) fn ran(state: &mut NotebookState, mut cell: Cell, exec: &ExecAction, execution: Execution) -> Cell {
    let mut effects = vec![format!("Executed code: {}", quoted(&cell.content))];
    let mut outputs = execution.outputs;
    if !exec.need_output {
        outputs.retain(is_error);
    }
    let said = first_words(&outputs);
    if !said.is_empty() {
        effects.push(format!("Output: {}", quoted(&said)));
    }
    let error = error_of(&outputs).or_else(|| ended_badly(execution.ended).map(str::to_owned));
    effects.extend(error.iter().map(|error| format!("Error: {}", quoted(error))));
    let last = if said.is_empty() { error.unwrap_or_default() } else { said };
    state.last_output = Some(quoted(&last)).filter(|last| !last.is_empty());
    state.effects.now(effects);
    state.executed = state.executed.saturating_add(1);
    state.kernel_variables = within_bound(execution.variables);
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

/// The text of what code gave, in order, as far as it is quoted.
fn first_words(outputs: &[Value]) -> String {
    let mut words = String::new();
    for output in outputs {
        if words.len() > MOST_QUOTED {
            break;
        }
        let text = output.get("text").or_else(|| output.get("data")?.get("text/plain"));
        if !words.is_empty() && !words.ends_with('\n') {
            words.push('\n');
        }
        // nbformat writes a text of many lines as a list, too.
        match text {
            Some(Value::String(text)) => words.push_str(begin(text)),
            Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).for_each(|line| {
                if words.len() <= MOST_QUOTED {
                    words.push_str(begin(line));
                }
            }),
            _ => {}
        }
    }
    words.trim_end().to_owned()
}

/// As much of a text as may be needed of it.
fn begin(text: &str) -> &str {
    text.get(..text.floor_char_boundary(4 * MOST_QUOTED)).unwrap_or_default()
}

/// The name and the value of the first error.
fn error_of(outputs: &[Value]) -> Option<String> {
    let error = outputs.iter().find(|output| is_error(output))?;
    let field = |name| error.get(name).and_then(Value::as_str).unwrap_or_default();
    Some(match (field("ename"), field("evalue")) {
        (name, "") => name.to_owned(),
        (name, value) => format!("{name}: {}", begin(value)),
    })
}

/// What is told of code that did not run through and left no error behind.
const fn ended_badly(ended: CellEnd) -> Option<&'static str> {
    match ended {
        CellEnd::Ok => None,
        CellEnd::Error => Some("the code failed"),
        CellEnd::TimedOut => Some("the code ran out of time"),
        CellEnd::Died => Some("the kernel died"),
        CellEnd::Interrupted => Some("the code was interrupted"),
    }
}

/// The first of the kernel's variables that are not too much together.
fn within_bound(variables: Map<String, Value>) -> Map<String, Value> {
    let mut left = MOST_VARIABLE_BYTES;
    let mut fits = |name: &String, value: &Value| {
        let size = name.len() + value.to_string().len();
        let fits = size <= left;
        left = left.saturating_sub(if fits { size } else { 0 });
        fits
    };
    variables.into_iter().filter(|(name, value)| fits(name, value)).collect()
}
