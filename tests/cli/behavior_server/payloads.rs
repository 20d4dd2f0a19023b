//! Tests of the payloads: their schemas, the worked example of docs/protocol.md with other content, and their size.

use std::fs;
use std::path::Path;

use bcc_lang::schema::compiled::Compiled;
use bcc_lang::schema::embedded::PROTOCOL;
use bcc_runtime::notebook::cell::{Cell, CellKind};
use bcc_runtime::notebook::protocol::feedback::Feedback;
use bcc_runtime::notebook::protocol::observation::{
    MAX_BYTES, MAX_CELLS, ObservationSource, legacy_observation, observation,
};
use bcc_runtime::notebook::protocol::read_observation::{ObservedState, read_observation};
use bcc_runtime::notebook::protocol::response::{reflection, response};
use bcc_runtime::notebook::state::NotebookState;
use serde_json::{Value, json};

fn schema(name: &str) -> Compiled {
    let (_, text) = PROTOCOL.iter().find(|(path, _)| path.ends_with(name)).unwrap();
    Compiled::new(&serde_json::from_str(text).unwrap()).unwrap()
}

/// A request with the structure of the one in docs/protocol.md, but other content.
fn request() -> Value {
    json!({
        "observation": {
            "location": {"current_stage_id": "chapter_3_rivers", "current_step_id": "section_1_begin",
                         "behavior_id": "behavior_003", "behavior_iteration": 3},
            "context": {
                "variables": {"csv_file_path": "rivers.csv", "problem_description": "请帮我看看水位", "data_loaded": true},
                "todo_list": ["Section 2: the gauges", "Section 3: what is missing", "Section 4: summary"],
                "effects": {"current": [], "history": [{"action": "data_load", "result": "success"}]},
                "section_progress": {"current_section_id": "gauges", "current_section_number": 2,
                                     "completed_sections": ["introduction", "gauges"], "total_expected": 5},
                "notebook": {"title": "Chapter 3: what rivers tell", "cells": [
                    {"id": "cell_001", "type": "markdown", "content": "## Section 1: Introduction",
                     "metadata": {"is_section": true, "section_id": "introduction", "section_number": 1}},
                    {"id": "cell_002", "type": "code", "content": "import csv\nrows = list(csv.reader(open('rivers.csv')))"},
                ]},
            },
        },
        "behavior_feedback": {"behavior_id": "behavior_002", "actions_executed": 5, "actions_succeeded": 5, "actions_failed": 0,
                              "last_action_result": "success", "execution_time_ms": 1234, "sections_added": 1,
                              "cells_added": 3, "code_cells_executed": 1},
        "options": {"stream": true, "include_workflow_segment": false},
    })
}

/// A response with the structure of the one in docs/protocol.md, but other content.
fn answer() -> Value {
    json!({
        "behavior": {"id": "behavior_004", "iteration": 4, "target": "Complete Section 2: the gauges", "priority": "high"},
        "actions": [
            {"type": "add_content", "content_type": "text", "content": "## Section 2: the gauges",
             "metadata": {"is_section": true, "section_id": "gauges_now", "section_number": 2, "belongs_to_chapter": "chapter_3"}},
            {"type": "add_content", "content_type": "text", "content": "Let us see how many there are.",
             "metadata": {"belongs_to_section": "gauges_now"}},
            {"type": "add_content", "content_type": "code", "content": "print(len(rows))",
             "metadata": {"belongs_to_section": "gauges_now", "should_execute": true}},
        ],
        "transition": {"strategy": "server_controlled", "next_stage_id": null, "next_step_id": null, "continue_behaviors": true,
                       "target_achieved": false, "reason": "Section 3 is still to come", "workflow_update": null},
        "context_update": {
            "variables": {"rows": "(12, 3)", "current_section": "gauges_now"},
            "todo_list_update": {"operation": "remove", "items": ["Section 2: the gauges"]},
            "section_progress": {"current_section_id": "missing", "current_section_number": 3,
                                 "completed_sections": ["introduction", "gauges", "gauges_now"]},
        },
        "metadata": {"target_achieved": false, "step_complete": false, "stage_complete": false, "actions_count": 3,
                     "estimated_remaining_behaviors": 2, "confidence": 0.85},
    })
}

/// A session with the observed state.
fn state_of(observed: &ObservedState) -> (NotebookState, Vec<Cell>) {
    let mut state = NotebookState {
        title: observed.title.clone(),
        cell_count: observed.cell_count,
        todo_list: observed.todo_list.clone(),
        section_progress: observed.section_progress.clone(),
        ..NotebookState::default()
    };
    state.location.stage_id.clone_from(&observed.location.stage_id);
    state.location.step_id.clone_from(&observed.location.step_id);
    state.location.behavior_id.clone_from(&observed.location.behavior_id);
    state.location.behavior_iteration = u32::try_from(observed.location.behavior_iteration).unwrap();
    let effect_text = |effect: &Value| effect.as_str().map_or_else(|| effect.to_string(), str::to_owned);
    state.effects.current = observed.effects.iter().map(effect_text).collect();
    state.effects.history = observed.effects_history.iter().map(effect_text).collect();
    let text = |cell: &Value, name: &str| cell[name].as_str().unwrap_or_default().to_owned();
    let cells = observed.cells.iter().zip(1..).map(|(cell, number)| Cell {
        number,
        id: text(cell, "id"),
        kind: if cell["type"] == "code" { CellKind::Code } else { CellKind::Markdown },
        content: text(cell, "content"),
        metadata: serde_json::from_value(cell.get("metadata").cloned().unwrap_or(json!({}))).unwrap(),
        outputs: cell["outputs"].as_array().cloned().unwrap_or_default(),
        ..Cell::default()
    });
    (state, cells.collect())
}

/// The observation that the client would send for the state in an observation of either form.
fn sent_observation(payload: &Value, include_progress: bool) -> Value {
    sent_in(observation, payload, include_progress)
}

fn sent_in(form: fn(&ObservationSource<'_>) -> Value, payload: &Value, include_progress: bool) -> Value {
    let parsed = read_observation(payload).unwrap();
    let (state, cells) = state_of(&parsed.observed);
    let (variables, feedback) = (parsed.observed.variables.clone(), parsed.feedback.as_ref());
    let cells = &cells[cells.len().saturating_sub(MAX_CELLS)..];
    form(&ObservationSource {
        notebook_id: "n",
        state: &state,
        cells,
        variables,
        feedback,
        stream: true,
        include_progress,
    })
}

#[test]
fn the_worked_example_of_001_is_valid_and_read_both_ways() {
    assert_eq!(schema("request").violations(&request()), []);
    assert_eq!(schema("response").violations(&answer()), []);
    let parsed = response(&answer()).unwrap();
    assert_eq!((parsed.actions.len(), parsed.transition.target_achieved), (3, Some(false)));
    assert_eq!(parsed.notes.len(), 1, "metadata decides nothing: {:?}", parsed.notes);
    // Parsing and sending again gives the same request, except for effects, which are sent as text, and the cell count.
    let mut resent = sent_observation(&request(), false);
    assert_eq!(schema("request").violations(&resent), []);
    let context = resent.pointer_mut("/observation/context").unwrap();
    assert_eq!(context["notebook"].as_object_mut().unwrap().remove("cell_count"), Some(json!(2)));
    context["effects"] = request()["observation"]["context"]["effects"].clone();
    assert_eq!(resent, request());
}

#[test]
fn every_action_of_an_answer_and_every_judgement_is_valid_by_itself() {
    let actions = schema("action");
    for action in answer()["actions"].as_array().unwrap() {
        assert_eq!(actions.violations(action), []);
        assert!(actions.is_valid(&json!({ "action": action })));
    }
    for judgement in [json!({"target_achieved": true}), json!({"transition": {"continue_behaviors": true}}), answer()] {
        assert_eq!(schema("reflection").violations(&judgement), []);
        reflection(&judgement).unwrap();
    }
}

#[test]
fn our_observations_are_valid_with_and_without_progress() {
    for (name, payload) in fixtures() {
        for include_progress in [false, true] {
            let sent = sent_observation(&payload, include_progress);
            assert_eq!(schema("request").violations(&sent), [], "{name}");
        }
    }
}

#[test]
fn hostile_variants_are_not_valid() {
    let replaced = |original: &Value, pointer: &str, to: Value| {
        let mut copy = original.clone();
        *copy.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = to;
        copy
    };
    for (pointer, to) in [
        ("/observation", json!([])),
        ("/observation/location/current_step_id", json!(7)),
        ("/observation/location/behavior_iteration", json!(-1)),
        ("/observation/context/todo_list", json!("one")),
        ("/observation/context/variables", json!([])),
        ("/observation/context/notebook/cells", json!(vec![json!({"id": "a", "type": "code", "content": ""}); 21])),
        ("/observation/context/notebook/cells/0/type", json!("raw")),
        ("/observation/context", json!({"toDoList": [], "stageStatus": {}})),
        ("/behavior_feedback/actions_failed", json!("none")),
        ("/options", json!({})),
    ] {
        assert!(!schema("request").is_valid(&replaced(&request(), pointer, to)), "{pointer}");
    }
    for (pointer, to) in [
        ("/actions", json!({})),
        ("/actions/0", json!("add")),
        ("/actions/0", json!({"content": "of no type"})),
        ("/behavior/iteration", json!("4")),
        ("/transition/continue_behaviors", json!("yes")),
        ("/transition/workflow_update", json!({"stages": [{"name": "without an id"}]})),
        ("/context_update/todo_list_update/operation", json!("burn")),
        ("/context_update/todo_list_update", json!({"operation": "add"})),
        ("/context_update/variables", json!([])),
        ("", json!([])),
        ("", json!({"metadata": {}})),
    ] {
        assert!(!schema("response").is_valid(&replaced(&answer(), pointer, to)), "{pointer}");
    }
    for judgement in [json!({}), json!({"metadata": {"target_achieved": true}}), json!({"target_achieved": "yes"})] {
        assert!(!schema("reflection").is_valid(&judgement), "{judgement}");
    }
}

/// Observations in the legacy form, with its field names and the fields that were removed since.
fn fixtures() -> Vec<(String, Value)> {
    let folder = Path::new(crate::ROOT).join("tests/fixtures/payloads");
    let mut found: Vec<(String, Value)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), value)
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(found.len() >= 4);
    found
}

#[test]
fn the_current_form_of_the_same_information_is_smaller_on_every_fixture() {
    let mut table = String::new();
    for (name, payload) in fixtures() {
        let size = |form, include_progress| sent_in(form, &payload, include_progress).to_string().len();
        let (legacy, same, usual) = (size(legacy_observation, true), size(observation, true), size(observation, false));
        let by = |size: usize| 100 - size * 100 / legacy;
        table += &format!("| {name} | {legacy} | {same} | {}% | {usual} | {}% |\n", by(same), by(usual));
        assert!(usual < same && same < legacy, "{name}: {usual}, {same}, {legacy} bytes");
    }
    let page = fs::read_to_string(Path::new(crate::ROOT).join("docs/protocol.md")).unwrap();
    assert!(page.contains(&table), "docs/protocol.md shows other sizes than these:\n{table}");
}

#[test]
fn the_older_and_the_newer_form_of_every_fixture_are_read_as_the_same() {
    for (name, legacy) in fixtures() {
        let was = read_observation(&legacy).unwrap();
        let is = read_observation(&sent_observation(&legacy, false)).unwrap();
        assert!(is.notes.is_empty(), "{name}: {:?}", is.notes);
        let (was, is) = (was.observed, is.observed);
        assert_eq!(is.location, was.location, "{name}");
        assert_eq!((&is.variables, &is.todo_list), (&was.variables, &was.todo_list), "{name}");
        assert_eq!(is.section_progress, was.section_progress, "{name}");
        assert_eq!((&is.title, is.cell_count), (&was.title, was.cell_count), "{name}");
        let last = &was.cells[was.cells.len().saturating_sub(MAX_CELLS)..];
        let content = |cells: &[Value]| -> Vec<Value> { cells.iter().map(|cell| cell["content"].clone()).collect() };
        assert_eq!(content(&is.cells), content(last), "{name}");
        // The new form sends effects as text.
        assert_eq!(is.effects.len(), was.effects.len(), "{name}");
        assert_eq!(is.effects_history.len(), was.effects_history.len(), "{name}");
    }
}

#[test]
fn a_notebook_of_any_length_takes_at_most_the_window() {
    let cell = |number: u64| Cell {
        number,
        id: format!("cell-{number:06}"),
        content: format!("line {number:06} of the notebook, and a little more of it"),
        ..Cell::default()
    };
    let size = |count: u64| {
        let cells: Vec<Cell> = (count.saturating_sub(MAX_CELLS as u64) + 1..=count).map(cell).collect();
        let state = NotebookState { cell_count: count, ..NotebookState::default() };
        let feedback = Feedback::default();
        let variables = serde_json::Map::new();
        let source = ObservationSource {
            notebook_id: "n",
            state: &state,
            cells: &cells,
            variables,
            feedback: Some(&feedback),
            stream: true,
            include_progress: true,
        };
        observation(&source).to_string().len()
    };
    let (ten, hundred, many) = (size(10), size(100), size(10_000));
    // Beyond the window, only the digits of the cell count increase the size.
    assert!(ten < hundred && many - hundred <= 2, "{ten}, {hundred}, {many}");
    assert!(many <= MAX_BYTES);
}
