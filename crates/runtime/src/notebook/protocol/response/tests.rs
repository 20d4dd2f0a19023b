//! Tests of responses and reflections in every form.

use serde_json::{Value, json};

use crate::notebook::protocol::context::TodoUpdate;
use crate::notebook::protocol::response::{
    MAX_ACTION_BYTES, MAX_ACTIONS, MAX_VARIABLE_BYTES, MAX_VARIABLES, reflection, response,
};

fn add(content: &str) -> Value {
    json!({"type": "add_content", "content_type": "text", "content": content})
}

#[test]
fn the_form_of_the_protocol_is_read_completely() {
    let read = response(&json!({
        "behavior": {"id": "behavior_004", "iteration": 4, "target": "Finish the gauges", "priority": "high"},
        "actions": [add("one"), add("two")],
        "transition": {
            "strategy": "server_controlled", "next_stage_id": null, "next_step_id": "compare", "continue_behaviors": true,
            "target_achieved": false, "reason": "more to see", "workflow_update": null,
        },
        "context_update": {
            "variables": {"rows": 12},
            "todo_list_update": {"operation": "remove", "items": ["the gauges"]},
            "section_progress": {"current_section_id": "missing", "current_section_number": 3},
        },
        "metadata": {"actions_count": 2, "confidence": 0.85},
    }))
    .unwrap();
    assert_eq!(
        (read.behavior_id.as_deref(), read.iteration, read.target.as_str()),
        (Some("behavior_004"), Some(4), "Finish the gauges")
    );
    assert_eq!(read.actions, [add("one"), add("two")]);
    let transition = &read.transition;
    assert_eq!((transition.next_stage_id.as_deref(), transition.next_step_id.as_deref()), (None, Some("compare")));
    assert_eq!((transition.continue_behaviors, transition.target_achieved), (Some(true), Some(false)));
    assert_eq!((transition.reason.as_str(), &transition.workflow_update), ("more to see", &None));
    assert_eq!(read.context_update.variables.get("rows"), Some(&json!(12)));
    assert_eq!(read.context_update.todo, Some(TodoUpdate::Remove(vec!["the gauges".into()])));
    assert_eq!(read.context_update.section_progress.unwrap().len(), 2);
    assert!(read.notes.is_empty(), "{:?}", read.notes);
}

#[test]
fn every_legacy_form_of_a_response_gives_the_same_actions() {
    let list = json!([{"action": add("one")}, {"action": add("two")}]);
    for form in [
        list.clone(),
        json!({ "actions": list }),
        json!({ "steps": list }),
        json!({"response": {"actions": list}}),
        json!({"data": {"steps": list}}),
        json!({"behavior": {"actions": list}}),
    ] {
        assert_eq!(Value::Array(response(&form).unwrap().actions), list, "{form}");
    }
    assert_eq!(response(&json!({"action": "finish_thinking"})).unwrap().actions.len(), 1);
    assert_eq!(response(&json!([])).unwrap().actions.len(), 0);
}

#[test]
fn legacy_names_are_read_in_every_place() {
    let legacy = response(&json!({
        "actions": [], "targetAchieved": true, "nextStageId": "tell", "continueBehaviors": false,
        "updated_workflow": {"name": "w", "stages": [{"stage_id": "tell", "title": "Tell", "steps": [{"step_id": "s"}]}]},
        "toDoListUpdate": {"operation": "add", "items": "one more"},
        "sectionProgress": {"currentSectionId": "x"},
    }))
    .unwrap();
    let current = response(&json!({
        "actions": [],
        "transition": {
            "target_achieved": true, "next_stage_id": "tell", "continue_behaviors": false,
            "workflow_update": {"name": "w", "stages": [{"id": "tell", "name": "Tell", "steps": [{"id": "s"}]}]},
        },
        "context_update": {
            "todo_list_update": {"operation": "add", "items": ["one more"]},
            "section_progress": {"current_section_id": "x"},
        },
    }))
    .unwrap();
    assert_eq!((&legacy.transition, &legacy.context_update), (&current.transition, &current.context_update));
    assert_eq!(legacy.notes.len(), 7, "{:?}", legacy.notes);
    assert!(current.notes.is_empty());
}

#[test]
fn every_operation_on_the_todo_list_is_read() {
    let todo = |update: Value| response(&json!({"context_update": {"todo_list_update": update}})).unwrap();
    let update_of = |operation: &str| todo(json!({"operation": operation, "items": ["a"]})).context_update.todo;
    let one = || vec!["a".to_owned()];
    assert_eq!(update_of("add"), Some(TodoUpdate::Add(one())));
    assert_eq!(update_of("remove"), Some(TodoUpdate::Remove(one())));
    assert_eq!(update_of("replace"), Some(TodoUpdate::Replace(one())));
    assert_eq!(todo(json!({"operation": "clear"})).context_update.todo, Some(TodoUpdate::Clear));
    assert_eq!(todo(json!(["a"])).context_update.todo, Some(TodoUpdate::Replace(one())));
    for wrong in [json!({"operation": "burn", "items": ["a"]}), json!({"operation": "add"}), json!(7)] {
        let read = todo(wrong.clone());
        assert_eq!((read.context_update.todo, read.notes.len()), (None, 1), "{wrong}");
    }
}

#[test]
fn the_reflection_decides_else_its_transition_and_never_the_metadata() {
    for (form, decides) in [
        (json!({"target_achieved": true, "transition": {"target_achieved": false}}), Some(true)),
        (json!({"targetAchieved": false}), Some(false)),
        (json!({"transition": {"targetAchieved": true}}), Some(true)),
        (json!({"transition": {"continue_behaviors": true}}), None),
        (json!({"metadata": {"target_achieved": true}}), None),
        (json!({"target_achieved": "perhaps"}), None),
        (json!({"target_achieved": "false"}), Some(false)),
        (json!({"actions": [], "transition": {"target_achieved": true}}), Some(true)),
        (json!(true), Some(true)),
    ] {
        assert_eq!(reflection(&form).unwrap().is_target_achieved(), decides, "{form}");
    }
    let metadata = json!({"actions": [], "metadata": {"target_achieved": true}});
    let read = response(&metadata).unwrap();
    assert_eq!((read.transition.target_achieved, read.notes.len()), (None, 1));
    let read = reflection(&json!({"target_achieved": false, "reason": "the gauges lack a day"})).unwrap();
    assert_eq!(read.reason, "the gauges lack a day");
}

#[test]
fn invalid_responses_are_rejected_without_repeating_them() {
    let error = |value: Value| response(&value).unwrap_err().message;
    for invalid in [
        json!(null),
        json!("secret"),
        json!(7),
        json!({}),
        json!({"secret": 1}),
        json!({"error": "secret"}),
        json!({"actions": "secret"}),
        json!({"behavior": 7, "actions": 12, "transition": "on", "context_update": []}),
    ] {
        assert!(!error(invalid.clone()).to_string().contains("secret"), "{invalid}");
    }
    for invalid in [json!(null), json!([]), json!("yes"), json!({"ok": 1})] {
        assert!(reflection(&invalid).is_err(), "{invalid}");
    }
    assert_eq!(error(json!({"error": "secret"})), "the server reports an error");
}

#[test]
fn a_field_of_a_wrong_type_is_omitted_with_a_note() {
    let read = response(&json!({
        "behavior": "secret", "actions": [add("kept"), 7, "secret"],
        "transition": {"next_step_id": {}, "continue_behaviors": "maybe", "workflow_update": {"stages": "secret"}},
        "context_update": {"variables": [], "todo_list_update": "secret", "section_progress": 5},
    }))
    .unwrap();
    assert_eq!(read.actions, [add("kept")]);
    assert_eq!(read.transition.next_step_id, None);
    assert_eq!(read.notes.len(), 9, "{:#?}", read.notes);
    assert!(read.notes.iter().all(|note| !note.contains("secret")));
}

#[test]
fn parts_beyond_the_limits_are_omitted() {
    let read = response(&Value::Array(vec![add("x"); MAX_ACTIONS + 1])).unwrap();
    assert_eq!((read.actions.len(), read.notes.len()), (MAX_ACTIONS, 1));
    let read = response(&json!([add(&"x".repeat(MAX_ACTION_BYTES)), add("kept")])).unwrap();
    assert_eq!((read.actions.len(), read.notes.len()), (1, 1));
    let many: serde_json::Map<String, Value> = (0..=MAX_VARIABLES).map(|n| (format!("v{n}"), json!(1))).collect();
    let read = response(&json!({"context_update": {"variables": many}})).unwrap();
    assert_eq!((read.context_update.variables.len(), read.notes.len()), (MAX_VARIABLES, 1));
    let read = response(&json!({"context_update": {"variables": {"v": "x".repeat(MAX_VARIABLE_BYTES)}}})).unwrap();
    assert!(read.context_update.variables.is_empty());
    let notes = response(&Value::Array(vec![json!(1); 900])).unwrap().notes;
    assert_eq!(notes.len(), 50);
    let long = response(&json!({"actions": [], "transition": {"reason": "r".repeat(10_000)}})).unwrap();
    assert!(long.transition.reason.len() <= 2_000);
}

#[test]
fn unknown_fields_and_operations_are_named_and_legacy_names_are_not() {
    let read = response(&json!({
        "actions": [add("one"), "secret"], "toDoList": ["x"],
        "contextUpdate": {"variables": {}, "variabels": "secret", "todo_list_update": {"operation": "burn", "items": ["secret"]},
                          "sectionProgress": {"currentSectionId": "s", "number": "secret"}},
    }))
    .unwrap();
    assert_eq!(
        read.ignored,
        [
            "action 2 is not an object and was ignored",
            "`context_update` has no field `variabels`, which was ignored",
            "`section_progress` has no field `number`, which was ignored",
            "`todo_list_update` has no operation `burn` and was ignored: use add, remove, replace or clear",
        ]
    );
    assert!(read.notes.len() > read.ignored.len());
    let many: serde_json::Map<String, Value> =
        (0..100).map(|n| (format!("{n}{}", "x".repeat(500)), json!(1))).collect();
    let read = reflection(&json!({"target_achieved": true, "context_update": many})).unwrap();
    assert!(read.ignored.len() == 5 && read.ignored.iter().all(|note| note.len() < 200), "{:?}", read.ignored);
}
