//! How a session moves through its plan, and what a response changes in the context.

use bcc_runtime::notebook::protocol::context::{ContextUpdate, TodoUpdate};
use bcc_runtime::notebook::state::{
    MAX_COMPLETED_SECTIONS, MAX_TODO_ITEM_BYTES, MAX_TODO_ITEMS, MAX_VARIABLES, MAX_VARIABLES_BYTES, NotebookState,
    SectionProgress,
};
use bcc_runtime::notebook::workflow::Workflow;
use serde_json::{Value, json};

use crate::notebook::book::AT;

fn script() -> Workflow {
    Workflow::read(&json!([{"id": "p", "steps": ["t1", "t2"]}, {"id": "q", "steps": ["t3"]}])).unwrap()
}

fn started() -> NotebookState {
    let mut state = NotebookState::default();
    assert!(state.enter_topic("p", "t1", script, AT));
    state
}

/// Stage, step, completed steps, state of the machine.
fn place(state: &NotebookState) -> Value {
    let location = &state.location;
    json!([location.stage_id, location.step_id, location.completed_steps, state.fsm.state])
}

#[test]
fn the_first_topic_makes_the_plan_and_later_ones_move_along_it() {
    let mut state = started();
    assert_eq!(place(&state), json!(["p", "t1", [], "STEP_RUNNING"]));
    let before = state.clone();
    assert!(!state.enter_topic("p", "t1", || panic!("the plan is there"), "later"));
    assert_eq!(state, before, "the same topic again changes nothing");
    assert!(state.enter_topic("p", "t2", || panic!("the plan is there"), AT));
    assert_eq!(place(&state), json!(["p", "t2", ["t1"], "STEP_RUNNING"]));
    assert!(state.enter_topic("q", "t3", script, AT));
    assert_eq!(state.location.completed_stages, ["p"]);
    assert!(state.enter_topic("p", "t1", script, AT), "going back opens the step again");
    assert_eq!(place(&state), json!(["p", "t1", ["t2", "t3"], "STEP_RUNNING"]));
    assert_eq!(state.location.completed_stages, ["q"]);
}

#[test]
fn the_plan_of_a_script_is_truncated_so_that_its_steps_can_be_changed() {
    let mut state = NotebookState::default();
    let steps: Vec<_> = (0..200)
        .map(|step| json!({"id": format!("t{step}"), "name": "名".repeat(300), "goal": "标".repeat(5_000)}))
        .collect();
    let plan = json!([{"id": "p", "goal": "目".repeat(5_000), "steps": steps}, {"id": "q", "steps": ["last"]}]);
    state.enter_topic("p", "t0", || Workflow::read(&plan).unwrap(), AT);
    state.workflow.as_ref().unwrap().check().unwrap();
    let goal = &state.current_step().unwrap().goal;
    assert!(goal.starts_with("标标") && goal.ends_with("标…") && goal.len() <= 512, "{}", goal.len());
    assert!(state.current_step().unwrap().name.ends_with("名…"));
}

#[test]
fn the_script_also_moves_the_session_from_a_step_that_a_server_chose() {
    let mut state = started();
    state.go_to(Some("q"), None, AT).unwrap();
    assert_eq!(place(&state), json!(["q", "t3", [], "STEP_RUNNING"]));
    state.enter_topic("p", "t2", script, AT);
    assert_eq!(place(&state), json!(["p", "t2", [], "STEP_RUNNING"]), "nobody said that t1 or t3 is completed");
}

#[test]
fn a_topic_that_the_plan_no_longer_has_moves_nothing() {
    let mut state = started();
    state.workflow_pending = Some(Workflow::read(&json!([{"id": "n", "steps": ["x", "t2"]}])).unwrap());
    assert!(state.apply_pending_plan());
    assert_eq!(place(&state), json!(["n", "x", [], "STEP_RUNNING"]));
    state.enter_topic("q", "t3", script, AT);
    assert_eq!(place(&state), json!(["n", "x", [], "STEP_RUNNING"]));
    state.enter_topic("p", "t2", script, AT);
    assert_eq!(place(&state), json!(["n", "t2", [], "STEP_RUNNING"]), "in whatever stage it is now");
}

#[test]
fn moves_to_stages_or_steps_outside_the_plan_are_rejected() {
    let mut state = started();
    state.workflow.as_mut().unwrap().stages.push(serde_json::from_value(json!({"id": "empty"})).unwrap());
    let before = state.clone();
    for (stage, step, code) in [
        (Some("x"), None, "unknown-stage"),
        (Some("x"), Some("t1"), "unknown-stage"),
        (Some("q"), Some("t1"), "unknown-step"),
        (None, Some("x"), "unknown-step"),
        (Some("empty"), None, "empty-stage"),
    ] {
        assert_eq!(state.go_to(stage, step, AT).unwrap_err().code, code, "{stage:?} {step:?}");
        assert_eq!(state, before);
    }
    assert!(NotebookState::default().go_to(None, Some("t1"), AT).is_err(), "without a plan there is nowhere to go");
    state.go_to(None, None, "later").unwrap();
    assert_eq!(state, before);
    state.go_to(None, Some("t3"), AT).unwrap();
    assert_eq!(place(&state), json!(["q", "t3", [], "STEP_RUNNING"]));
}

#[test]
fn the_next_step_is_one_that_is_not_completed() {
    let mut state = started();
    let next = |state: &NotebookState| state.next_step().map(|(stage, step)| format!("{}/{}", stage.id, step.id));
    assert_eq!(next(&state).as_deref(), Some("p/t2"));
    state.go_to(None, Some("t2"), AT).unwrap();
    assert_eq!(next(&state).as_deref(), Some("p/t1"), "one that was passed over comes before the next stage");
    state.complete_step(Some("t1"), AT).unwrap();
    assert_eq!(next(&state).as_deref(), Some("q/t3"));
    assert_eq!(state.complete_step(None, AT).as_deref(), Ok("t2"));
    assert_eq!(place(&state), json!(["q", "t3", ["t1", "t2"], "STEP_COMPLETED"]));
    state.complete_step(None, AT).unwrap();
    assert_eq!(place(&state), json!([null, null, ["t1", "t2", "t3"], "STEP_COMPLETED"]));
    assert_eq!(next(&state), None);
    assert_eq!(state.complete_step(None, AT).unwrap_err().code, "no-step");
    state.complete_step(Some("t1"), AT).expect("what is completed may be completed again");
}

#[test]
fn behaviors_are_numbered_in_the_session_and_counted_in_their_step() {
    let mut state = started();
    assert_eq!(state.start_behavior(AT), "behavior_001");
    assert_eq!((state.fsm.state.as_str(), state.location.behavior_iteration), ("BEHAVIOR_RUNNING", 1));
    assert!(!state.end_behavior(AT));
    assert_eq!(state.fsm.state, "STEP_RUNNING");
    assert_eq!((state.start_behavior(AT).as_str(), state.location.behavior_iteration), ("behavior_002", 2));
    state.set_behavior_id(Some("theirs"), Some(7));
    state.set_behavior_id(Some("two\nlines"), None);
    assert_eq!((state.location.behavior_id.as_deref(), state.location.behavior_iteration), (Some("theirs"), 7));
    state.complete_step(None, AT).unwrap();
    state.end_behavior(AT);
    assert_eq!(state.fsm.state, "STEP_COMPLETED", "the end of a behavior does not hide what it did");
    assert_eq!((state.start_behavior(AT).as_str(), state.location.behavior_iteration), ("behavior_003", 1));
}

#[test]
fn a_behavior_does_not_outlive_its_topic() {
    let mut state = started();
    state.start_behavior(AT);
    state.workflow_pending = Some(Workflow::read(&json!([{"id": "n", "steps": ["t2"]}])).unwrap());
    state.enter_topic("p", "t2", script, AT);
    assert!(!state.behavior_is_open && state.workflow_pending.is_none());
    assert_eq!(place(&state), json!(["n", "t2", [], "STEP_RUNNING"]));
}

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

fn apply_todo(state: &mut NotebookState, todo: TodoUpdate) -> Vec<String> {
    ContextUpdate { todo: Some(todo), ..ContextUpdate::default() }
        .apply(state)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn items_of_the_todo_list_are_added_removed_replaced_and_cleared() {
    let mut state = NotebookState::default();
    assert!(apply_todo(&mut state, TodoUpdate::Add(texts(&["a", " b ", "", "a"]))).is_empty());
    assert_eq!(state.todo_list, ["a", "b"]);
    apply_todo(&mut state, TodoUpdate::Add(texts(&["a", "c"])));
    assert_eq!(state.todo_list, ["a", "b", "c"], "what is there stays where it is");
    apply_todo(&mut state, TodoUpdate::Remove(texts(&["b", "nothing"])));
    assert_eq!(state.todo_list, ["a", "c"]);
    apply_todo(&mut state, TodoUpdate::Replace(texts(&["d"])));
    assert_eq!(state.todo_list, ["d"]);
    apply_todo(&mut state, TodoUpdate::Clear);
    assert!(state.todo_list.is_empty());
}

#[test]
fn todo_items_over_the_limit_are_reported_without_their_text() {
    let mut state = NotebookState::default();
    let mut items: Vec<String> = (0..MAX_TODO_ITEMS + 3).map(|item| format!("item {item}")).collect();
    items.push("秘".repeat(MAX_TODO_ITEM_BYTES));
    let notes = apply_todo(&mut state, TodoUpdate::Add(items));
    assert_eq!(state.todo_list.len(), MAX_TODO_ITEMS);
    assert_eq!(notes.len(), 2);
    assert!(notes[1].contains(": 3 ") && !notes.concat().contains("item 2") && !notes.concat().contains('秘'));
}

fn apply_progress(before: &SectionProgress, sent: Value) -> (SectionProgress, usize) {
    let mut state = NotebookState { section_progress: before.clone(), ..NotebookState::default() };
    let update = ContextUpdate { section_progress: sent.as_object().cloned(), ..ContextUpdate::default() };
    let notes = update.apply(&mut state);
    (state.section_progress, notes.len())
}

#[test]
fn the_progress_of_sections_takes_only_the_fields_that_were_sent() {
    let before = SectionProgress {
        current_section_id: Some("a".to_owned()),
        current_section_number: Some(1),
        completed_sections: texts(&["z"]),
        total_expected: Some(5),
    };
    let sent = json!({"current_section_id": "b", "current_section_number": "2", "completed_sections": ["a", "a"]});
    let expected = SectionProgress {
        current_section_id: Some("b".to_owned()),
        current_section_number: Some(2),
        completed_sections: texts(&["a"]),
        total_expected: Some(5),
    };
    assert_eq!(apply_progress(&before, sent), (expected, 0));
    assert_eq!(apply_progress(&before, json!({})), (before.clone(), 0));
    let nothing = apply_progress(&before, json!({"current_section_id": null, "completed_sections": []})).0;
    assert_eq!((nothing.current_section_id, nothing.completed_sections), (None, vec![]));
    let many: Vec<String> = (0..=MAX_COMPLETED_SECTIONS).map(|item| item.to_string()).collect();
    for invalid in [
        json!({"current_section_id": {}}),
        json!({"current_section_number": -1}),
        json!({"total_expected": "many"}),
        json!({"completed_sections": [{}]}),
        json!({"completed_sections": [""]}),
        json!({"completed_sections": many}),
    ] {
        assert_eq!(apply_progress(&before, invalid.clone()), (before.clone(), 1), "{invalid}");
    }
}

#[test]
fn undeclared_variables_are_stored_within_limits() {
    let mut state = NotebookState::default();
    state.store_variable("shape", json!("(2, 3)")).unwrap();
    state.store_variable("shape", json!([2, 3])).unwrap();
    assert_eq!(state.variables, *json!({"shape": [2, 3]}).as_object().unwrap());
    assert!(state.store_variable("big", json!("x".repeat(MAX_VARIABLES_BYTES))).is_err());
    assert!(state.store_variable("two\nlines", json!(1)).is_err());
    state.store_variable("shape", Value::Null).unwrap();
    assert!(state.variables.is_empty());
    for number in 0..MAX_VARIABLES {
        state.store_variable(&format!("v{number}"), json!(number)).unwrap();
    }
    assert_eq!(state.store_variable("more", json!(1)).unwrap_err().code, "too-many-variables");
    state.store_variable("v0", json!("another value")).expect("what is there may change");
}
