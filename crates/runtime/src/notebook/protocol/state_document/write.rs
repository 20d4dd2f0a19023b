//! Writes the state of a session as a document in the form of an observation, but whole: with all cells and the complete plan. A
//! session that begins from it has the same state.

use serde_json::{Map, Value, json};

use crate::notebook::kernel_variables::KernelVariables;
use crate::notebook::protocol::feedback::Feedback;
use crate::notebook::state::{BEHAVIOR_COMPLETED, NotebookState};

/// What a document is written from.
pub struct StateDocumentSource<'a> {
    pub state: &'a NotebookState,
    /// All cells as they are stored, with their outputs.
    pub cells: Vec<Value>,
    /// The variables of the script that are not sensitive.
    pub variables: Map<String, Value>,
    /// The results of the last behavior.
    pub feedback: Option<Feedback>,
    /// Whether the current behavior is completed, and waits for its judgement.
    pub is_judged_next: bool,
}

pub fn state_document(source: StateDocumentSource<'_>) -> Value {
    let StateDocumentSource { state, cells, mut variables, feedback, is_judged_next } = source;
    for (name, value) in state.variables.iter().chain(state.kernel_variables.iter()) {
        variables.entry(name.clone()).or_insert_with(|| value.clone());
    }
    let next = state.given.as_ref().and_then(|given| given.next.as_ref());
    let machine = if is_judged_next { BEHAVIOR_COMPLETED } else { &state.fsm.state };
    let mut context = json!({
        "variables": variables,
        "todo_list": state.todo_list,
        "effects": state.effects,
        "section_progress": state.section_progress,
        "notebook": {
            "title": state.title,
            "cell_count": state.cell_count,
            "last_cell_type": state.last_cell_type,
            "last_output": state.last_output,
            "cells": cells,
        },
        "FSM": {"state": machine, "last_transition": state.fsm.last_transition, "timestamp": state.fsm.timestamp},
    });
    let optional = [
        ("workflow", json!(state.workflow)),
        ("workflow_pending", json!(state.workflow_pending)),
        (
            "kernel_variables",
            Some(&state.kernel_variables).filter(|all| !all.is_empty()).map(KernelVariables::to_map).into(),
        ),
    ];
    let location = &state.location;
    let mut document = json!({"observation": {
        "location": {
            "current_stage_id": location.stage_id,
            "current_step_id": location.step_id,
            "behavior_id": location.behavior_id,
            "behavior_iteration": location.behavior_iteration,
            "progress": progress(state),
            "goals": goals(state),
        },
    }});
    if let Some(fields) = context.as_object_mut() {
        fields.extend(
            optional.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value)),
        );
    }
    if let Some(observation) = document.get_mut("observation").and_then(Value::as_object_mut) {
        observation.insert("context".to_owned(), context);
    }
    let feedback = feedback.or_else(|| next.and_then(|next| next.feedback.clone()));
    if let (Some(feedback), Some(fields)) = (feedback, document.as_object_mut()) {
        fields.insert("behavior_feedback".to_owned(), json!(feedback));
    }
    document
}

/// The ids of the stages, and of the steps of the current one. The completed steps are those of all stages.
fn progress(state: &NotebookState) -> Value {
    let location = &state.location;
    let remaining_stages: Vec<&str> = state.remaining_stages().iter().map(|stage| stage.id.as_str()).collect();
    let remaining_steps: Vec<&str> = state.remaining_steps().iter().map(|step| step.id.as_str()).collect();
    json!({
        "stages": {"completed": location.completed_stages, "current": location.stage_id, "remaining": remaining_stages},
        "steps": {"completed": location.completed_steps, "current": location.step_id, "remaining": remaining_steps},
        "behaviors": {"completed": [], "current": location.behavior_id, "iteration": location.behavior_iteration},
    })
}

fn goals(state: &NotebookState) -> Value {
    let given = state.given.as_ref();
    let goal = |goal: &str| Some(goal).filter(|goal| !goal.is_empty()).map(str::to_owned);
    let stage = state.current_stage().and_then(|stage| goal(&stage.goal));
    let step = state.current_step().and_then(|step| goal(&step.goal));
    let stage = stage.or_else(|| given?.goal.clone().filter(|_| state.location.stage_id.is_none()));
    let behavior = given.and_then(|given| goal(&given.next.as_ref()?.task));
    json!({"stage": stage, "step": step, "behavior": behavior})
}
