//! Builds the observation for the source of the next behavior (docs/protocol.md). Its size is limited, regardless of the length
//! of the notebook.

use serde_json::{Map, Value, json};

use crate::notebook::cell::Cell;
use crate::notebook::protocol::brief::{MAX_NAME_BYTES, MAX_OUTPUT_BYTES, cell, cut, first, last, size, variables};
use crate::notebook::protocol::feedback::Feedback;
use crate::notebook::protocol::names::{PayloadObject, legacy_name};
use crate::notebook::protocol::progress::{ProgressDetail, goals, progress};
use crate::notebook::state::{Fsm, NotebookState};

/// The number of last cells that are sent.
pub const MAX_CELLS: usize = 20;

/// The maximum size of an observation as JSON, in bytes. The limits below are parts of it.
pub const MAX_BYTES: usize = 64 * 1024;

/// The maximum size of the cells, in bytes. If the last ones are larger in total, earlier ones are omitted.
const MAX_CELLS_BYTES: usize = 26 * 1024;

/// The maximum size of the variables, in bytes.
const MAX_VARIABLES_BYTES: usize = 14 * 1024;

/// The maximum size of the todo list, of the effects and of the completed sections, in bytes each.
const MAX_LIST_BYTES: usize = 4 * 1024;

/// The factor by which an item of the todo list or an effect may be longer than a name.
const LENGTH_FACTOR: usize = 5;

/// The data of an observation.
pub struct ObservationSource<'a> {
    /// The id of the notebook, which is that of the session.
    pub notebook_id: &'a str,
    pub state: &'a NotebookState,
    /// Its last cells, in order; at most [`MAX_CELLS`] are used.
    pub cells: &'a [Cell],
    /// The variables that may be sent, without sensitive ones. Variables of the state need not be included.
    pub variables: Map<String, Value>,
    pub feedback: Option<&'a Feedback>,
    /// Whether the answer may send its actions one by one.
    pub stream: bool,
    /// `options.include_progress`: whether `progress`, `goals` and `FSM` of docs/notebook.md are sent as well.
    pub include_progress: bool,
}

/// The observation in the new form. It is at most [`MAX_BYTES`] large, and the size of no part depends on the length of the
/// notebook.
pub fn observation(source: &ObservationSource<'_>) -> Value {
    let location = &source.state.location;
    let name = |id: &Option<String>| id.as_deref().map(|id| cut(id, MAX_NAME_BYTES));
    let mut location_json = json!({
        "current_stage_id": name(&location.stage_id),
        "current_step_id": name(&location.step_id),
        "behavior_id": name(&location.behavior_id),
        "behavior_iteration": location.behavior_iteration,
    });
    let mut context = json!({
        "variables": known_variables(source),
        "todo_list": todo_list(source.state),
        "effects": effects(source.state),
        "section_progress": section_progress(source.state),
        "notebook": {
            "title": title(source.state),
            "cell_count": source.state.cell_count,
            "cells": cells(source.cells),
        },
    });
    let mut options = json!({"stream": source.stream, "include_workflow_segment": false});
    if source.include_progress {
        put(&mut location_json, "progress", progress(source.state, ProgressDetail::Ids));
        put(&mut location_json, "goals", goals(source.state));
        put(&mut context, "FSM", machine(&source.state.fsm));
        put(&mut options, "include_progress", Value::Bool(true));
    }
    let mut payload = json!({"observation": {"location": location_json, "context": context}});
    if let Some(feedback) = source.feedback {
        put(&mut payload, "behavior_feedback", feedback_json(feedback));
    }
    put(&mut payload, "options", options);
    payload
}

/// The observation in the legacy form, with the legacy names, for servers that do not support the new form. Its size has the
/// same limit.
pub fn legacy_observation(source: &ObservationSource<'_>) -> Value {
    let state = source.state;
    let location = &state.location;
    let name = |id: &Option<String>| id.as_deref().map(|id| cut(id, MAX_NAME_BYTES));
    let iteration = Some(location.behavior_iteration).filter(|iteration| *iteration > 0);
    let mut current = json!({});
    put(&mut current, legacy_name(PayloadObject::Location, "current_stage_id"), json!(name(&location.stage_id)));
    put(&mut current, legacy_name(PayloadObject::Location, "current_step_id"), json!(name(&location.step_id)));
    put(&mut current, "behavior_id", json!(name(&location.behavior_id)));
    put(&mut current, "behavior_iteration", json!(iteration));
    let mut context = json!({"variables": known_variables(source)});
    put(&mut context, legacy_name(PayloadObject::Context, "todo_list"), json!(todo_list(state)));
    put(&mut context, "effects", effects(state));
    put(&mut context, "section_progress", section_progress(state));
    let output = state.last_output.as_deref().map(|output| cut(output, MAX_OUTPUT_BYTES));
    let notebook = json!({
        "notebook_id": source.notebook_id,
        "title": title(state),
        "cell_count": state.cell_count,
        "last_cell_type": state.last_cell_type,
        "last_output": output,
        "cells": cells(source.cells),
        "metadata": {"title": title(state)},
    });
    put(&mut context, "notebook", notebook);
    put(&mut context, "FSM", machine(&state.fsm));
    let location_json =
        json!({"current": current, "progress": progress(state, ProgressDetail::Full), "goals": goals(state)});
    let mut payload = json!({"observation": {"location": location_json}});
    put(&mut payload, legacy_name(PayloadObject::Request, "context"), context);
    if let Some(feedback) = source.feedback {
        // This field was added by the new form. It is also sent to legacy servers under its own name; servers that do not know
        // it ignore it.
        put(&mut payload, "behavior_feedback", feedback_json(feedback));
    }
    put(&mut payload, "options", json!({"stream": source.stream}));
    payload
}

fn put(object: &mut Value, name: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}

fn title(state: &NotebookState) -> Option<String> {
    state.title.as_deref().map(|title| cut(title, MAX_NAME_BYTES * LENGTH_FACTOR))
}

/// The variables of the script, those that servers stored and those of the kernel; for the same name, the first one is used.
fn known_variables(source: &ObservationSource<'_>) -> Map<String, Value> {
    let (stored, kernel) = (&source.state.variables, &source.state.kernel_variables);
    let stored = stored.iter().filter(|(name, _)| !source.variables.contains_key(*name));
    let of_kernel = kernel
        .iter()
        .filter(|(name, _)| !source.variables.contains_key(*name) && !source.state.variables.contains_key(*name));
    let all = source.variables.iter().chain(stored).chain(of_kernel);
    variables(all.map(|(name, value)| (name.clone(), value.clone())), MAX_VARIABLES_BYTES)
}

fn todo_list(state: &NotebookState) -> Vec<Value> {
    first(state.todo_list.iter(), LENGTH_FACTOR, MAX_LIST_BYTES)
}

fn effects(state: &NotebookState) -> Value {
    let current = last(state.effects.current.iter(), LENGTH_FACTOR, MAX_LIST_BYTES / 2);
    json!({"current": current, "history": last(state.effects.history.iter(), LENGTH_FACTOR, MAX_LIST_BYTES / 2)})
}

fn section_progress(state: &NotebookState) -> Value {
    let sections = &state.section_progress;
    json!({
        "current_section_id": sections.current_section_id.as_deref().map(|id| cut(id, MAX_NAME_BYTES)),
        "current_section_number": sections.current_section_number,
        "completed_sections": last(sections.completed_sections.iter(), 1, MAX_LIST_BYTES),
        "total_expected": sections.total_expected,
    })
}

fn machine(fsm: &Fsm) -> Value {
    let word = |text: &Option<String>| text.as_deref().map(|text| cut(text, MAX_NAME_BYTES));
    json!({
        "state": cut(&fsm.state, MAX_NAME_BYTES),
        "last_transition": word(&fsm.last_transition),
        "timestamp": word(&fsm.timestamp),
    })
}

fn feedback_json(feedback: &Feedback) -> Value {
    serde_json::to_value(feedback.clone().limited()).unwrap_or_default()
}

/// The last cells that fit, in order.
fn cells(all: &[Cell]) -> Vec<Value> {
    let mut available = MAX_CELLS_BYTES;
    let mut values: Vec<Value> = Vec::new();
    for one in all.iter().rev().take(MAX_CELLS) {
        let mut sent = cell(one);
        if values.is_empty() && size(&sent) > available {
            // The content consists of characters that JSON escapes with six bytes. The last cell is always sent, with less content.
            put(&mut sent, "content", Value::String(cut(&one.content, MAX_OUTPUT_BYTES)));
            put(&mut sent, "outputs", json!([]));
        }
        let Some(rest) = available.checked_sub(size(&sent) + 1) else { break };
        available = rest;
        values.push(sent);
    }
    values.reverse();
    values
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

    fn source<'a>(
        state: &'a NotebookState,
        cells: &'a [Cell],
        feedback: Option<&'a Feedback>,
    ) -> ObservationSource<'a> {
        let variables = json!({"csv_file_path": "rivers.csv"}).as_object().cloned().unwrap();
        ObservationSource { notebook_id: "n", state, cells, variables, feedback, stream: true, include_progress: false }
    }

    #[test]
    fn the_new_form_is_that_of_the_protocol() {
        let feedback = Feedback {
            behavior_id: "behavior_002".into(),
            actions_executed: 5,
            actions_succeeded: 5,
            last_action_result: "success".into(),
            execution_time_ms: 1_234,
            ..Feedback::default()
        };
        let (state, cells) = (state(), some_cells());
        let sent = observation(&source(&state, &cells, Some(&feedback)));
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
    fn progress_goals_and_the_state_machine_are_sent_only_on_request() {
        let (state, cells) = (state(), some_cells());
        let mut source = source(&state, &cells, None);
        let plain = observation(&source);
        assert_eq!(plain.pointer("/observation/location/progress"), None);
        assert_eq!(plain.pointer("/observation/context/FSM"), None);
        source.include_progress = true;
        let asked = observation(&source);
        assert_eq!(asked.pointer("/observation/location/progress/steps/current"), Some(&json!("section_1")));
        assert_eq!(asked.pointer("/observation/context/FSM/state"), Some(&json!("IDLE")));
        assert_eq!(asked.pointer("/options/include_progress"), Some(&json!(true)));
    }

    #[test]
    fn for_the_same_name_the_variable_of_the_script_is_used() {
        let mut state = state();
        state.variables = json!({"csv_file_path": "of the server", "rows": 1}).as_object().cloned().unwrap();
        state.kernel_variables = json!({"rows": 2, "frame": "DataFrame (3, 2)"}).as_object().cloned().unwrap().into();
        let sent = observation(&source(&state, &[], None));
        let expected = json!({"csv_file_path": "rivers.csv", "rows": 1, "frame": "DataFrame (3, 2)"});
        assert_eq!(sent.pointer("/observation/context/variables"), Some(&expected));
    }

    #[test]
    fn the_size_of_an_observation_is_limited() {
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
        let mut source = source(&state, &cells, Some(&feedback));
        source.include_progress = true;
        for sent in [observation(&source), legacy_observation(&source)] {
            assert!(size(&sent) <= MAX_BYTES, "{}", size(&sent));
            let cells = sent.pointer("/observation/context/notebook/cells").or(sent.pointer("/state/notebook/cells"));
            assert!(!cells.unwrap().as_array().unwrap().is_empty());
        }
    }
}
