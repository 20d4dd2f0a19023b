//! Actions that only older servers send.

use crate::notebook::apply::clean::clean;
use crate::notebook::cell::Cell;
use crate::notebook::error::ActionRejection;

/// The thought of `set_effect_as_thinking` without a text.
const FINISHED: &str = "finished thinking";

/// `update_last_text`: the last text with another content.
pub(crate) fn update_text(text: &str, found: Option<Cell>) -> Result<Cell, ActionRejection> {
    let Some(mut cell) = found else {
        return Err(ActionRejection::new("no-such-cell", "no text cell has been added yet that could be updated"));
    };
    clean(text, cell.kind).clone_into(&mut cell.content);
    Ok(cell)
}

/// `set_effect_as_thinking`: the cell as the result of a thought that has ended.
pub(crate) fn as_thinking(mut cell: Cell, thought: Option<&str>) -> Cell {
    cell.metadata.finished_thinking = true;
    cell.metadata.thinking_text = Some(thought.unwrap_or(FINISHED).to_owned());
    cell
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::notebook::action::{Read, read};
    use crate::notebook::apply::{apply, target};
    use crate::notebook::state::NotebookState;
    use crate::notebook::workflow::Workflow;

    /// Applies an action to a notebook with these cells.
    fn done(state: &mut NotebookState, cells: &mut Vec<Cell>, sent: &Value) -> Result<(), ActionRejection> {
        let Ok(Read::Known(action)) = read(sent) else { panic!("{sent}") };
        let found = target(&action, state).and_then(|id| cells.iter().find(|cell| cell.id == id).cloned());
        for cell in apply(state, &action, found, "at")?.cells {
            cells.retain(|other| other.id != cell.id);
            cells.push(cell);
        }
        Ok(())
    }

    #[test]
    fn texts_and_thoughts_of_older_servers_change_the_last_cells() {
        let (mut state, mut cells) = (NotebookState::default(), Vec::new());
        let update = json!({ "type": "update_last_text", "text": "```changed" });
        assert_eq!(done(&mut state, &mut cells, &update).unwrap_err().code, "no-such-cell");
        done(&mut state, &mut cells, &json!({ "type": "set_effect_as_thinking" })).unwrap();
        assert!(cells.is_empty());
        for sent in [
            json!({ "type": "update_title", "content": "T" }),
            json!({ "type": "add-text", "content": "one" }),
            json!({ "type": "comment_result", "content": "two" }),
            json!({ "type": "new_section", "content": "S" }),
            json!({ "type": "add", "shot_type": "action", "content": "x" }),
            update,
            json!({ "type": "set_effect_as_thinking" }),
            json!({ "type": "complete_reflection", "reason": "r" }),
        ] {
            done(&mut state, &mut cells, &sent).unwrap();
        }
        cells.sort_by_key(|cell| cell.number);
        let contents: Vec<&str> = cells.iter().map(|cell| cell.content.as_str()).collect();
        assert_eq!(contents, ["# T", "one", "```changed", "### S", "x"]);
        assert_eq!(cells[4].metadata.thinking_text.as_deref(), Some(FINISHED));
        assert!(cells[4].metadata.finished_thinking);
        assert_eq!(state.effects.current, ["Thinking completed"]);
        assert!(state.effects.history.iter().any(|effect| effect == "Added content: two"));
    }

    #[test]
    fn a_stage_is_completed_with_all_of_its_steps() {
        let plan =
            json!([{ "id": "s", "steps": ["a", "b"] }, { "id": "t", "steps": ["c"] }, { "id": "u", "steps": [] }]);
        let mut state = NotebookState { workflow: Some(Workflow::read(&plan).unwrap()), ..NotebookState::default() };
        state.go_to(None, Some("a"), "at").unwrap();
        let cells = &mut Vec::new();
        let stage = |id: Value| json!({ "type": "mark_stage_complete", "stage_id": id });
        assert_eq!(done(&mut state, cells, &stage(json!("never"))).unwrap_err().code, "unknown-stage");
        done(&mut state, cells, &stage(Value::Null)).unwrap();
        assert_eq!(state.location.completed_steps, ["a", "b"]);
        assert_eq!(state.location.step_id.as_deref(), Some("c"));
        done(&mut state, cells, &stage(json!("u"))).unwrap();
        assert_eq!((state.location.completed_stages.len(), state.location.step_id.as_deref()), (2, Some("c")));
        done(&mut state, cells, &json!({ "type": "mark_step_complete" })).unwrap();
        assert_eq!((state.location.completed_stages.len(), state.location.step_id.as_deref()), (3, None));
        assert_eq!(done(&mut state, cells, &stage(Value::Null)).unwrap_err().code, "no-step");
    }
}
