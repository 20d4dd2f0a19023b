//! Tests that both forms of a state are read as the same.

use serde_json::{Value, json};

use crate::notebook::cell::{Cell, CellKind, Metadata};
use crate::notebook::effects::Effects;
use crate::notebook::protocol::feedback::Feedback;
use crate::notebook::protocol::observation::{ObservationSource, legacy_observation, observation};
use crate::notebook::protocol::read_observation::{ObservedProgress, read_observation};
use crate::notebook::state::{BEHAVIOR_RUNNING, NotebookState};

fn state() -> NotebookState {
    let mut state = NotebookState {
        title: Some("Rivers".into()),
        cell_count: 40,
        last_cell_type: Some("code".into()),
        last_output: Some("12 gauges".into()),
        todo_list: vec!["look for gaps".into(), "draw the map".into()],
        effects: Effects { current: vec!["Executed code".into()], history: ["Created section".to_owned()].into() },
        ..NotebookState::default()
    };
    state.section_progress.current_section_id = Some("gauges".into());
    state.section_progress.completed_sections = vec!["introduction".into()];
    state.fsm.state = BEHAVIOR_RUNNING.into();
    state.fsm.last_transition = Some("START_BEHAVIOR".into());
    state.fsm.timestamp = Some("2026-11-22T08:00:00Z".into());
    state.location.stage_id = Some("read".into());
    state.location.step_id = Some("gauges".into());
    state.location.behavior_id = Some("gauges_b2".into());
    state.location.behavior_iteration = 2;
    state.location.completed_steps = vec!["begin".into()];
    state.workflow = serde_json::from_value(json!({"stages": [
        {"id": "read", "goal": "to see", "steps": [{"id": "begin"}, {"id": "gauges", "goal": "to count"}, {"id": "gaps"}]},
        {"id": "tell", "steps": []},
    ]}))
    .unwrap();
    state
}

fn cells() -> Vec<Cell> {
    let metadata = Metadata { is_section: true, section_id: Some("gauges".into()), ..Metadata::default() };
    let outputs = vec![json!({"output_type": "stream", "name": "stdout", "text": "12 gauges"})];
    vec![
        Cell { number: 39, id: "a".into(), content: "### Gauges".into(), metadata, ..Cell::default() },
        Cell {
            number: 40,
            id: "b".into(),
            kind: CellKind::Code,
            content: "count()".into(),
            outputs,
            ..Cell::default()
        },
    ]
}

#[test]
fn both_forms_of_a_state_are_read_as_the_same() {
    let (state, cells) = (state(), cells());
    let feedback = Feedback { behavior_id: "gauges_b1".into(), actions_executed: 3, ..Feedback::default() };
    let source = ObservationSource {
        notebook_id: "n-1",
        state: &state,
        cells: &cells,
        variables: json!({"river": "长江", "rows": 12}).as_object().cloned().unwrap(),
        feedback: Some(&feedback),
        stream: true,
        include_progress: true,
    };
    let newer = read_observation(&observation(&source)).unwrap();
    let legacy = read_observation(&legacy_observation(&source)).unwrap();
    assert_eq!(newer.observed, legacy.observed);
    assert_eq!((newer.feedback.as_ref(), legacy.feedback.as_ref()), (Some(&feedback), Some(&feedback)));
    assert_eq!((newer.stream, legacy.stream, newer.include_progress), (true, true, true));
    assert_eq!(legacy.notebook_id.as_deref(), Some("n-1"));
    let observed = newer.observed;
    assert_eq!((observed.title.as_deref(), observed.cell_count, observed.cells.len()), (Some("Rivers"), 40, 2));
    assert_eq!(observed.steps.completed, ["begin"]);
    assert_eq!(observed.step_goal.as_deref(), Some("to count"));
    assert_eq!(observed.fsm.unwrap(), state.fsm);
    assert!(newer.notes.is_empty(), "{:?}", newer.notes);
    assert!(legacy.notes.iter().any(|note| note == "`state` is a deprecated name of `context`"), "{:?}", legacy.notes);
}

/// One state in all forms that exist.
fn shapes() -> [Value; 4] {
    let context = json!({
        "variables": {"files": ["./rivers.csv"]},
        "todo_list": ["count"],
        "effects": {"current": [], "history": [{"action": "load", "result": "success"}]},
        "notebook": {"title": "Rivers", "cells": [
            {"id": "c1", "type": "markdown", "content": "# Rivers", "metadata": {"is_section": true, "section_id": "one"}}]},
    });
    let location = json!({"current_stage_id": "read", "current_step_id": "gauges", "behavior_id": null, "behavior_iteration": null});
    let older_context = json!({
        "variables": {"files": ["./rivers.csv"]},
        "toDoList": ["count"], "checklist": {}, "stageStatus": {}, "thinking": [],
        "effects": {"current": [], "history": [{"action": "load", "result": "success"}]},
        "notebook": {"metadata": {"title": "Rivers"}, "cell_count": 1, "last_cell_type": "markdown", "last_output": null, "cells": [
            {"id": "c1", "type": "markdown", "content": "# Rivers", "outputs": [], "metadata": {
                "is_step": false, "is_chapter": false, "isSection": true, "section_id": "one", "chapter_id": null, "extra": {}}}]},
    });
    [
        json!({"observation": {"location": location, "context": context}}),
        json!({"observation": {"location": location}, "context": context}),
        json!({"observation": {"location": {"current": {"stage_id": "read", "step_id": "gauges", "behavior_id": null}}},
               "state": older_context}),
        json!({"location": {"stage_id": "read", "step_index": "gauges"}, "state": older_context}),
    ]
}

#[test]
fn a_state_is_read_the_same_in_every_place_and_with_every_name() {
    let [first, others @ ..] = shapes();
    let first = read_observation(&first).unwrap().observed;
    assert_eq!(first.location.step_id.as_deref(), Some("gauges"));
    assert_eq!((first.todo_list.as_slice(), first.cell_count), (["count".to_owned()].as_slice(), 1));
    for other in others {
        assert_eq!(read_observation(&other).unwrap().observed, first, "{other}");
    }
}

#[test]
fn progress_is_read_from_ids_and_objects_and_a_single_goal_is_that_of_the_innermost_item() {
    let progress = json!({
        "stages": {"completed": ["begin"], "current": {"stage_id": "read", "title": "Read"}, "remaining": [{"stage_id": "tell"}, 7]},
        "steps": {"completed": [], "current": "gauges", "remaining": []},
        "behaviors": {"completed": [], "current": {"behavior_id": "gauges_b1", "step_id": "gauges", "task": "count"}, "iteration": 1},
    });
    let with = |current: Value| {
        let location = json!({"current": current, "progress": progress, "goals": " count them \n"});
        read_observation(&json!({"observation": {"location": location}, "state": {}})).unwrap().observed
    };
    let observed =
        with(json!({"stage_id": "read", "step_id": "gauges", "behavior_id": "gauges_b1", "behavior_iteration": 1}));
    let expected = ObservedProgress {
        completed: vec!["begin".into()],
        current: Some("read".into()),
        remaining: vec!["tell".into()],
    };
    assert_eq!((observed.stages, observed.behaviors.current.as_deref()), (expected, Some("gauges_b1")));
    assert_eq!(observed.behavior_goal.as_deref(), Some("count them"));
    assert_eq!(with(json!({"stage_id": "read", "step_id": "gauges"})).step_goal.as_deref(), Some("count them"));
    assert_eq!(with(json!({"stage_id": null})).stage_goal.as_deref(), Some("count them"));
}

#[test]
fn invalid_values_are_rejected_and_fields_of_wrong_types_are_omitted() {
    for invalid in [json!(null), json!([]), json!("secret"), json!({}), json!({"observation": "secret"})] {
        assert!(!read_observation(&invalid).unwrap_err().message.to_string().contains("secret"), "{invalid}");
    }
    let mistyped = json!({"observation": {"location": {"current_step_id": [], "progress": 7, "goals": 8}},
        "context": {"variables": "secret", "todo_list": {}, "effects": [], "notebook": {"cells": {}, "cell_count": -1}},
        "behavior_feedback": {"actions_executed": "secret"}});
    let read = read_observation(&mistyped).unwrap();
    assert_eq!(read.feedback, None);
    assert!(read.notes.len() >= 7 && read.notes.iter().all(|note| !note.contains("secret")), "{:?}", read.notes);
}
