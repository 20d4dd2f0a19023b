//! What is sent to whoever plans the next behavior (docs/protocol.md): within a fixed window, however long the notebook is.

use serde_json::{Map, Value, json};

use crate::notebook::cell::Cell;
use crate::notebook::protocol::brief::{MOST_NAME_BYTES, MOST_OUTPUT_BYTES, cell, cut, first, last, size, variables};
use crate::notebook::protocol::feedback::Feedback;
use crate::notebook::protocol::names::{PayloadObject, older};
use crate::notebook::protocol::progress::{ProgressDetail, goals, progress};
use crate::notebook::state::{Fsm, NotebookState};

/// How many of the last cells are sent.
pub const MOST_CELLS: usize = 20;

/// The most bytes of an observation, as JSON. The parts below have shares of it.
pub const MOST_BYTES: usize = 64 * 1024;

/// The most bytes of the cells. Where the last ones are larger together, the earlier of them are left out.
const MOST_CELLS_BYTES: usize = 26 * 1024;

/// The most bytes of the variables.
const MOST_VARIABLES_BYTES: usize = 14 * 1024;

/// The most bytes of the todo list, of the effects and of the completed sections, each.
const MOST_LIST_BYTES: usize = 4 * 1024;

/// How much longer than a name an item of the todo list or an effect may be.
const WIDE: usize = 5;

/// What an observation is made from.
pub struct ObservationSource<'a> {
    /// The id of the notebook: that of the session.
    pub notebook_id: &'a str,
    pub state: &'a NotebookState,
    /// Its last cells, in order: [`MOST_CELLS`] are enough.
    pub cells: &'a [Cell],
    /// The variables that may be sent, without what is sensitive. Those that the state holds need not be among them.
    pub variables: Map<String, Value>,
    pub feedback: Option<&'a Feedback>,
    /// Whether the actions of the answer may come one by one.
    pub stream: bool,
    /// `options.include_progress`: whether `progress`, `goals` and `FSM` of docs/notebook.md are sent, too.
    pub include_progress: bool,
}

/// The observation in the new form. Never larger than [`MOST_BYTES`], and none of its parts grows with the notebook.
pub fn observation(seen: &ObservationSource<'_>) -> Value {
    let location = &seen.state.location;
    let name = |id: &Option<String>| id.as_deref().map(|id| cut(id, MOST_NAME_BYTES));
    let mut place = json!({
        "current_stage_id": name(&location.stage_id),
        "current_step_id": name(&location.step_id),
        "behavior_id": name(&location.behavior_id),
        "behavior_iteration": location.behavior_iteration,
    });
    let mut context = json!({
        "variables": known_variables(seen),
        "todo_list": todo_list(seen.state),
        "effects": effects(seen.state),
        "section_progress": section_progress(seen.state),
        "notebook": {
            "title": title(seen.state),
            "cell_count": seen.state.cell_count,
            "cells": cells(seen.cells),
        },
    });
    let mut options = json!({"stream": seen.stream, "include_workflow_segment": false});
    if seen.include_progress {
        put(&mut place, "progress", progress(seen.state, ProgressDetail::Ids));
        put(&mut place, "goals", goals(seen.state));
        put(&mut context, "FSM", machine(&seen.state.fsm));
        put(&mut options, "include_progress", Value::Bool(true));
    }
    let mut whole = json!({"observation": {"location": place, "context": context}});
    if let Some(feedback) = seen.feedback {
        put(&mut whole, "behavior_feedback", told(feedback));
    }
    put(&mut whole, "options", options);
    whole
}

/// The same in the older form, with the older names: for servers that know no other. Its window is the same.
pub fn older_observation(seen: &ObservationSource<'_>) -> Value {
    let state = seen.state;
    let location = &state.location;
    let name = |id: &Option<String>| id.as_deref().map(|id| cut(id, MOST_NAME_BYTES));
    let iteration = Some(location.behavior_iteration).filter(|iteration| *iteration > 0);
    let mut current = json!({});
    put(&mut current, older(PayloadObject::Location, "current_stage_id"), json!(name(&location.stage_id)));
    put(&mut current, older(PayloadObject::Location, "current_step_id"), json!(name(&location.step_id)));
    put(&mut current, "behavior_id", json!(name(&location.behavior_id)));
    put(&mut current, "behavior_iteration", json!(iteration));
    let mut context = json!({"variables": known_variables(seen)});
    put(&mut context, older(PayloadObject::Context, "todo_list"), json!(todo_list(state)));
    put(&mut context, "effects", effects(state));
    put(&mut context, "section_progress", section_progress(state));
    let output = state.last_output.as_deref().map(|output| cut(output, MOST_OUTPUT_BYTES));
    let notebook = json!({
        "notebook_id": seen.notebook_id,
        "title": title(state),
        "cell_count": state.cell_count,
        "last_cell_type": state.last_cell_type,
        "last_output": output,
        "cells": cells(seen.cells),
        "metadata": {"title": title(state)},
    });
    put(&mut context, "notebook", notebook);
    put(&mut context, "FSM", machine(&state.fsm));
    let place = json!({"current": current, "progress": progress(state, ProgressDetail::Whole), "goals": goals(state)});
    let mut whole = json!({"observation": {"location": place}});
    put(&mut whole, older(PayloadObject::Request, "context"), context);
    if let Some(feedback) = seen.feedback {
        // It came with the new form, and is sent to older servers under its own name: who does not know it passes it over.
        put(&mut whole, "behavior_feedback", told(feedback));
    }
    put(&mut whole, "options", json!({"stream": seen.stream}));
    whole
}

fn put(object: &mut Value, name: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}

fn title(state: &NotebookState) -> Option<String> {
    state.title.as_deref().map(|title| cut(title, MOST_NAME_BYTES * WIDE))
}

/// Those of the script, those that servers keep, and those of the kernel; of one name, the first.
fn known_variables(seen: &ObservationSource<'_>) -> Map<String, Value> {
    let (kept, kernel) = (&seen.state.variables, &seen.state.kernel_variables);
    let kept = kept.iter().filter(|(name, _)| !seen.variables.contains_key(*name));
    let of_kernel = kernel
        .iter()
        .filter(|(name, _)| !seen.variables.contains_key(*name) && !seen.state.variables.contains_key(*name));
    let all = seen.variables.iter().chain(kept).chain(of_kernel);
    variables(all.map(|(name, value)| (name.clone(), value.clone())), MOST_VARIABLES_BYTES)
}

fn todo_list(state: &NotebookState) -> Vec<Value> {
    first(state.todo_list.iter(), WIDE, MOST_LIST_BYTES)
}

fn effects(state: &NotebookState) -> Value {
    let current = last(state.effects.current.iter(), WIDE, MOST_LIST_BYTES / 2);
    json!({"current": current, "history": last(state.effects.history.iter(), WIDE, MOST_LIST_BYTES / 2)})
}

fn section_progress(state: &NotebookState) -> Value {
    let sections = &state.section_progress;
    json!({
        "current_section_id": sections.current_section_id.as_deref().map(|id| cut(id, MOST_NAME_BYTES)),
        "current_section_number": sections.current_section_number,
        "completed_sections": last(sections.completed_sections.iter(), 1, MOST_LIST_BYTES),
        "total_expected": sections.total_expected,
    })
}

fn machine(fsm: &Fsm) -> Value {
    let word = |text: &Option<String>| text.as_deref().map(|text| cut(text, MOST_NAME_BYTES));
    json!({
        "state": cut(&fsm.state, MOST_NAME_BYTES),
        "last_transition": word(&fsm.last_transition),
        "timestamp": word(&fsm.timestamp),
    })
}

fn told(feedback: &Feedback) -> Value {
    let bounded = Feedback {
        behavior_id: cut(&feedback.behavior_id, MOST_NAME_BYTES),
        last_action_result: cut(&feedback.last_action_result, MOST_OUTPUT_BYTES),
        ..feedback.clone()
    };
    serde_json::to_value(bounded).unwrap_or_default()
}

/// The last cells that fit, in order.
fn cells(all: &[Cell]) -> Vec<Value> {
    let mut left = MOST_CELLS_BYTES;
    let mut kept: Vec<Value> = Vec::new();
    for one in all.iter().rev().take(MOST_CELLS) {
        let mut sent = cell(one);
        if kept.is_empty() && size(&sent) > left {
            // Nothing but characters that JSON writes with six: the last cell is told all the same.
            put(&mut sent, "content", Value::String(cut(&one.content, MOST_OUTPUT_BYTES)));
            put(&mut sent, "outputs", json!([]));
        }
        let Some(rest) = left.checked_sub(size(&sent) + 1) else { break };
        left = rest;
        kept.push(sent);
    }
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notebook::cell::{CellKind, Metadata};
    use crate::notebook::effects::Effects;
    use crate::notebook::state::{Location, SectionProgress};

    fn state() -> NotebookState {
        NotebookState {
            title: Some("Chapter 3: what the rivers tell".into()),
            cell_count: 2,
            location: Location {
                stage_id: Some("chapter_3".into()),
                step_id: Some("section_1".into()),
                behavior_id: Some("behavior_003".into()),
                behavior_iteration: 3,
                ..Location::default()
            },
            todo_list: vec!["Section 2: what the gauges say".into(), "Section 3: what is missing".into()],
            effects: Effects { current: vec![], history: ["Loaded the gauges".to_owned()].into() },
            section_progress: SectionProgress {
                current_section_id: Some("gauges".into()),
                current_section_number: Some(2),
                completed_sections: vec!["introduction".into()],
                total_expected: Some(5),
            },
            ..NotebookState::default()
        }
    }

    fn some_cells() -> Vec<Cell> {
        let metadata = Metadata {
            is_section: true,
            section_id: Some("introduction".into()),
            section_number: Some(1),
            ..Metadata::default()
        };
        let heading =
            Cell { number: 1, id: "cell_001".into(), content: "## Section 1".into(), metadata, ..Cell::default() };
        let code = Cell {
            number: 2,
            id: "cell_002".into(),
            kind: CellKind::Code,
            content: "import csv".into(),
            ..Cell::default()
        };
        vec![heading, code]
    }

    fn seen<'a>(state: &'a NotebookState, cells: &'a [Cell], feedback: Option<&'a Feedback>) -> ObservationSource<'a> {
        let variables = json!({"csv_file_path": "rivers.csv"}).as_object().cloned().unwrap();
        ObservationSource { notebook_id: "n", state, cells, variables, feedback, stream: true, include_progress: false }
    }

    #[test]
    fn the_new_form_is_that_of_001() {
        let feedback = Feedback {
            behavior_id: "behavior_002".into(),
            actions_executed: 5,
            actions_succeeded: 5,
            last_action_result: "success".into(),
            execution_time_ms: 1_234,
            ..Feedback::default()
        };
        let (state, cells) = (state(), some_cells());
        let sent = observation(&seen(&state, &cells, Some(&feedback)));
        assert_eq!(
            sent,
            json!({
                "observation": {
                    "location": {
                        "current_stage_id": "chapter_3", "current_step_id": "section_1",
                        "behavior_id": "behavior_003", "behavior_iteration": 3,
                    },
                    "context": {
                        "variables": {"csv_file_path": "rivers.csv"},
                        "todo_list": ["Section 2: what the gauges say", "Section 3: what is missing"],
                        "effects": {"current": [], "history": ["Loaded the gauges"]},
                        "section_progress": {
                            "current_section_id": "gauges", "current_section_number": 2,
                            "completed_sections": ["introduction"], "total_expected": 5,
                        },
                        "notebook": {"title": "Chapter 3: what the rivers tell", "cell_count": 2, "cells": [
                            {"id": "cell_001", "type": "markdown", "content": "## Section 1",
                             "metadata": {"is_section": true, "section_id": "introduction", "section_number": 1}},
                            {"id": "cell_002", "type": "code", "content": "import csv"},
                        ]},
                    },
                },
                "behavior_feedback": {
                    "behavior_id": "behavior_002", "actions_executed": 5, "actions_succeeded": 5, "actions_failed": 0,
                    "last_action_result": "success", "execution_time_ms": 1234, "sections_added": 0, "cells_added": 0,
                    "code_cells_executed": 0,
                },
                "options": {"stream": true, "include_workflow_segment": false},
            })
        );
    }

    #[test]
    fn progress_goals_and_the_machine_are_sent_only_where_they_are_asked_for() {
        let (state, cells) = (state(), some_cells());
        let mut seen = seen(&state, &cells, None);
        let plain = observation(&seen);
        assert_eq!(plain.pointer("/observation/location/progress"), None);
        assert_eq!(plain.pointer("/observation/context/FSM"), None);
        seen.include_progress = true;
        let asked = observation(&seen);
        assert_eq!(asked.pointer("/observation/location/progress/steps/current"), Some(&json!("section_1")));
        assert_eq!(asked.pointer("/observation/context/FSM/state"), Some(&json!("IDLE")));
        assert_eq!(asked.pointer("/options/include_progress"), Some(&json!(true)));
    }

    #[test]
    fn of_one_name_the_variable_of_the_script_counts() {
        let mut state = state();
        state.variables = json!({"csv_file_path": "of the server", "rows": 1}).as_object().cloned().unwrap();
        state.kernel_variables = json!({"rows": 2, "frame": "DataFrame (3, 2)"}).as_object().cloned().unwrap();
        let sent = observation(&seen(&state, &[], None));
        let expected = json!({"csv_file_path": "rivers.csv", "rows": 1, "frame": "DataFrame (3, 2)"});
        assert_eq!(sent.pointer("/observation/context/variables"), Some(&expected));
    }

    #[test]
    fn nothing_can_make_it_larger_than_its_window() {
        let wide = "\u{1}字".repeat(100_000);
        let mut state = state();
        state.title = Some(wide.clone());
        state.todo_list = vec![wide.clone(); 200];
        state.effects.current = vec![wide.clone(); 50];
        state.effects.history = vec![wide.clone(); 50].into();
        state.section_progress.completed_sections = vec![wide.clone(); 200];
        state.section_progress.current_section_id = Some(wide.clone());
        state.variables = (0..10_000).map(|number| (format!("v{number}"), json!("word"))).collect();
        state.last_output = Some(wide.clone());
        state.location.step_id = Some(wide.clone());
        state.fsm.state.clone_from(&wide);
        let cell = Cell { id: wide.clone(), content: wide.clone(), ..Cell::default() };
        let cells = vec![cell; 100];
        let feedback = Feedback { last_action_result: wide, ..Feedback::default() };
        let mut seen = seen(&state, &cells, Some(&feedback));
        seen.include_progress = true;
        for sent in [observation(&seen), older_observation(&seen)] {
            assert!(size(&sent) <= MOST_BYTES, "{}", size(&sent));
            let cells = sent.pointer("/observation/context/notebook/cells").or(sent.pointer("/state/notebook/cells"));
            assert!(!cells.unwrap().as_array().unwrap().is_empty());
        }
    }
}
