//! Reads an observation in the new form or a legacy form into the same view of the state.

use bcc_lang::message::message::Message;
use serde_json::{Map, Value};

use crate::notebook::protocol::brief::text_of;
use crate::notebook::protocol::feedback::Feedback;
use crate::notebook::protocol::names::{PayloadObject, current_names};
use crate::notebook::protocol::read::{count, list, object, text, texts};
use crate::notebook::protocol::response::UnreadableResponse;
use crate::notebook::state::{Fsm, SectionProgress};

/// The maximum number of cells of an observation that are read.
pub(crate) const MAX_READ_CELLS: usize = 1_000;

/// The state of a session according to an observation, independent of its form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedState {
    pub location: ObservedPosition,
    /// `progress` of the stages.
    pub stages: ObservedProgress,
    /// `progress` of the steps.
    pub steps: ObservedProgress,
    /// `progress` of the behaviors.
    pub behaviors: ObservedProgress,
    pub stage_goal: Option<String>,
    pub step_goal: Option<String>,
    pub behavior_goal: Option<String>,
    pub variables: Map<String, Value>,
    pub todo_list: Vec<String>,
    /// The effects of the last action as sent: texts in docs/notebook.md, objects in docs/protocol.md.
    pub effects: Vec<Value>,
    /// Those of earlier actions.
    pub effects_history: Vec<Value>,
    /// The progress of the sections.
    pub section_progress: SectionProgress,
    pub title: Option<String>,
    /// The number of cells of the notebook, which may be larger than the number of sent cells.
    pub cell_count: u64,
    /// The type of the last cell.
    pub last_cell_type: Option<String>,
    /// The output of the last code.
    pub last_output: Option<String>,
    /// The cells that were sent, with current field names.
    pub cells: Vec<Value>,
    /// The state machine, if it was sent.
    pub fsm: Option<Fsm>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedPosition {
    pub stage_id: Option<String>,
    pub step_id: Option<String>,
    pub behavior_id: Option<String>,
    /// Its number within its step, from 1; 0 before the first.
    pub behavior_iteration: u64,
}

/// The ids of completed, current and remaining items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedProgress {
    pub completed: Vec<String>,
    pub current: Option<String>,
    pub remaining: Vec<String>,
}

/// A request after reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedRequest {
    pub observed: ObservedState,
    /// The id of the notebook, which only legacy forms contain.
    pub notebook_id: Option<String>,
    pub feedback: Option<Feedback>,
    /// Whether the answer may send its actions one by one.
    pub stream: bool,
    /// Whether `progress`, `goals` and `FSM` are requested.
    pub include_progress: bool,
    /// See [`crate::notebook::protocol::response::Response::notes`].
    pub notes: Vec<String>,
}

/// Reads a request in any form: `observation` with `context` in it or next to it, or `state` instead of `context`, with current
/// or legacy names, or the content of `observation` alone.
/// Errors: It is not an object, or contains neither a location nor a context.
pub fn read_observation(value: &Value) -> Result<ObservedRequest, UnreadableResponse> {
    let Value::Object(outer) = value else {
        return Err(UnreadableResponse { message: Message::word("an observation must be an object") });
    };
    let mut notes = Vec::new();
    let outer = current_names(PayloadObject::Request, outer, &mut notes);
    let inner = object(&outer, "observation", &mut notes)
        .map(|inner| current_names(PayloadObject::Request, &inner, &mut notes));
    let both = [inner.as_ref(), Some(&outer)];
    let part =
        |name: &str, notes: &mut Vec<String>| both.iter().flatten().find_map(|fields| object(fields, name, notes));
    let (location, context) = (part("location", &mut notes), part("context", &mut notes));
    if location.is_none() && context.is_none() {
        return Err(UnreadableResponse {
            message: Message::word("an observation contains `location` and `context`, but this contains neither"),
        });
    }
    let feedback =
        part("behavior_feedback", &mut notes).map(|sent| current_names(PayloadObject::Feedback, &sent, &mut notes));
    let options = part("options", &mut notes).unwrap_or_default();
    let mut observed = ObservedState::default();
    read_location(&location.unwrap_or_default(), &mut observed, &mut notes);
    let context = current_names(PayloadObject::Context, &context.unwrap_or_default(), &mut notes);
    let notebook_id = read_context(&context, &mut observed, &mut notes);
    let switch = |name: &str| options.get(name).and_then(Value::as_bool).unwrap_or(false);
    let (stream, include_progress) = (switch("stream"), switch("include_progress"));
    let feedback = feedback.and_then(|sent| {
        serde_json::from_value(Value::Object(sent))
            .map_err(|_| notes.push("`behavior_feedback` has fields of the wrong type and was ignored".to_owned()))
            .ok()
    });
    Ok(ObservedRequest { observed, notebook_id, feedback, stream, include_progress, notes })
}

fn read_location(location: &Map<String, Value>, observed: &mut ObservedState, notes: &mut Vec<String>) {
    let current = object(location, "current", notes).unwrap_or_else(|| location.clone());
    let current = current_names(PayloadObject::Location, &current, notes);
    observed.location = ObservedPosition {
        stage_id: text(&current, "current_stage_id", notes),
        step_id: text(&current, "current_step_id", notes),
        behavior_id: text(&current, "behavior_id", notes),
        behavior_iteration: count(&current, "behavior_iteration", notes).unwrap_or_default(),
    };
    let progress = object(location, "progress", notes).unwrap_or_default();
    let mut progress_of =
        |name: &str| object(&progress, name, notes).map(|list| read_progress(&list, notes)).unwrap_or_default();
    observed.stages = progress_of("stages");
    observed.steps = progress_of("steps");
    observed.behaviors = progress_of("behaviors");
    match location.get("goals") {
        // A single text is the goal of the innermost current item.
        Some(Value::String(goal)) => {
            let goal = Some(goal.trim().to_owned()).filter(|goal| !goal.is_empty());
            let current = &observed.location;
            match (&current.step_id, &current.behavior_id) {
                (_, Some(_)) => observed.behavior_goal = goal,
                (Some(_), None) => observed.step_goal = goal,
                (None, None) => observed.stage_goal = goal,
            }
        }
        Some(Value::Object(goals)) => {
            observed.stage_goal = text(goals, "stage", notes);
            observed.step_goal = text(goals, "step", notes);
            observed.behavior_goal = text(goals, "behavior", notes);
        }
        _ => {}
    }
}

/// The id of a stage, step or behavior, which may be sent as an id or as an object.
fn id_of(item: &Value) -> Option<String> {
    const IDS: [&str; 4] = ["stage_id", "behavior_id", "step_id", "id"];
    match item {
        Value::String(id) => Some(id.clone()),
        Value::Object(fields) => {
            IDS.iter().find_map(|name| fields.get(*name)).and_then(Value::as_str).map(str::to_owned)
        }
        _ => None,
    }
}

fn read_progress(sent: &Map<String, Value>, notes: &mut Vec<String>) -> ObservedProgress {
    let mut ids = |name: &str| list(sent, name, notes).iter().filter_map(id_of).collect();
    ObservedProgress {
        completed: ids("completed"),
        remaining: ids("remaining"),
        current: sent.get("current").and_then(id_of),
    }
}

/// Reads a context and returns the id of its notebook.
fn read_context(context: &Map<String, Value>, observed: &mut ObservedState, notes: &mut Vec<String>) -> Option<String> {
    observed.variables = object(context, "variables", notes).unwrap_or_default();
    observed.todo_list = texts(context, "todo_list", notes).unwrap_or_default();
    let effects = object(context, "effects", notes).unwrap_or_default();
    observed.effects = list(&effects, "current", notes);
    observed.effects_history = list(&effects, "history", notes);
    if let Some(sections) = object(context, "section_progress", notes) {
        let sections = current_names(PayloadObject::Sections, &sections, notes);
        observed.section_progress = SectionProgress {
            current_section_id: text(&sections, "current_section_id", notes),
            current_section_number: count(&sections, "current_section_number", notes),
            completed_sections: texts(&sections, "completed_sections", notes).unwrap_or_default(),
            total_expected: count(&sections, "total_expected", notes),
        };
    }
    observed.fsm = object(context, "FSM", notes).map(|machine| Fsm {
        state: text(&machine, "state", notes).unwrap_or_else(|| Fsm::default().state),
        last_transition: text(&machine, "last_transition", notes),
        timestamp: text(&machine, "timestamp", notes),
    });
    let notebook = object(context, "notebook", notes).unwrap_or_default();
    let metadata = object(&notebook, "metadata", notes).unwrap_or_default();
    let cells = list(&notebook, "cells", notes);
    if cells.len() > MAX_READ_CELLS {
        notes.push(format!("only the last {MAX_READ_CELLS} of {sent} cells were read", sent = cells.len()));
    }
    let skipped = cells.len().saturating_sub(MAX_READ_CELLS);
    observed.cells = cells.iter().skip(skipped).filter_map(|cell| read_cell(cell, notes)).collect();
    let last = observed.cells.last();
    observed.title = text(&notebook, "title", notes).or_else(|| text(&metadata, "title", notes));
    observed.cell_count = count(&notebook, "cell_count", notes).unwrap_or(cells.len() as u64);
    observed.last_cell_type = text(&notebook, "last_cell_type", notes)
        .or_else(|| last?.get("type").and_then(Value::as_str).map(str::to_owned));
    observed.last_output = text(&notebook, "last_output", notes).or_else(|| {
        let with_output = observed.cells.iter().rev().find_map(|cell| cell.get("outputs")?.as_array());
        with_output.and_then(|outputs| text_of(outputs))
    });
    text(&notebook, "notebook_id", notes)
}

/// A cell with current names. Empty metadata, which legacy forms contain, is omitted.
fn read_cell(cell: &Value, notes: &mut Vec<String>) -> Option<Value> {
    let mut cell = current_names(PayloadObject::Action, cell.as_object()?, notes);
    if let Some(metadata) = object(&cell, "metadata", notes) {
        let is_set = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Object(fields) => !fields.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        };
        let set_fields: Map<String, Value> = current_names(PayloadObject::Action, &metadata, notes)
            .into_iter()
            .filter(|(_, value)| is_set(value))
            .collect();
        if set_fields.is_empty() {
            cell.remove("metadata");
        } else {
            cell.insert("metadata".to_owned(), Value::Object(set_fields));
        }
    }
    if cell.get("outputs").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        cell.remove("outputs");
    }
    Some(Value::Object(cell))
}

#[cfg(test)]
mod tests;
