//! Reads an observation back, in the newer form and in every older one, into one and the same view of the state.

use bcc_lang::message::message::Message;
use serde_json::{Map, Value};

use crate::notebook::protocol::brief::text_of;
use crate::notebook::protocol::feedback::Feedback;
use crate::notebook::protocol::names::{PayloadObject, newer};
use crate::notebook::protocol::read::{count, list, object, text, texts};
use crate::notebook::protocol::response::UnreadableResponse;
use crate::notebook::state::{Fsm, SectionProgress};

/// The most cells of an observation that are read.
pub const MOST_READ_CELLS: usize = 1_000;

/// What an observation says of the state of a session, whichever form it came in.
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
    /// Of the last action, as it was sent: texts in docs/notebook.md, objects in docs/protocol.md.
    pub effects: Vec<Value>,
    /// Of earlier actions.
    pub effects_history: Vec<Value>,
    /// How far the content is.
    pub section_progress: SectionProgress,
    pub title: Option<String>,
    /// How many cells it has; more than those that were sent, maybe.
    pub cell_count: u64,
    /// What the last cell is.
    pub last_cell_type: Option<String>,
    /// What the last code gave.
    pub last_output: Option<String>,
    /// The cells that were sent, with the fields of today.
    pub cells: Vec<Value>,
    /// The machine, where it was sent.
    pub fsm: Option<Fsm>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedPosition {
    pub stage_id: Option<String>,
    pub step_id: Option<String>,
    pub behavior_id: Option<String>,
    /// Which one of its step, from 1; 0 before the first.
    pub behavior_iteration: u64,
}

/// What is done, under way and left, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedProgress {
    pub completed: Vec<String>,
    pub current: Option<String>,
    pub remaining: Vec<String>,
}

/// A request, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedRequest {
    pub observed: ObservedState,
    /// The id of the notebook, which only older forms send.
    pub notebook_id: Option<String>,
    pub feedback: Option<Feedback>,
    /// Whether the actions may be sent one by one.
    pub stream: bool,
    /// Whether `progress`, `goals` and `FSM` are wanted.
    pub include_progress: bool,
    /// As of [`crate::notebook::protocol::response::Response::notes`].
    pub notes: Vec<String>,
}

/// Reads a request in any form: `observation` with `context` in it or beside it, `state` in its place, names of any age, or
/// what stands under `observation` alone.
/// Errors: When it is no object, or holds neither a location nor a context.
pub fn read_observation(value: &Value) -> Result<ObservedRequest, UnreadableResponse> {
    let Value::Object(outer) = value else {
        return Err(UnreadableResponse { message: Message::word("an observation must be an object") });
    };
    let mut notes = Vec::new();
    let outer = newer(PayloadObject::Request, outer, &mut notes);
    let inner =
        object(&outer, "observation", &mut notes).map(|inner| newer(PayloadObject::Request, &inner, &mut notes));
    let both = [inner.as_ref(), Some(&outer)];
    let part = |name: &str, notes: &mut Vec<String>| both.iter().flatten().find_map(|whole| object(whole, name, notes));
    let (location, context) = (part("location", &mut notes), part("context", &mut notes));
    if location.is_none() && context.is_none() {
        return Err(UnreadableResponse {
            message: Message::word("an observation contains `location` and `context`, but this contains neither"),
        });
    }
    let feedback = part("behavior_feedback", &mut notes).map(|sent| newer(PayloadObject::Feedback, &sent, &mut notes));
    let options = part("options", &mut notes).unwrap_or_default();
    let mut observed = ObservedState::default();
    located(&location.unwrap_or_default(), &mut observed, &mut notes);
    let context = newer(PayloadObject::Context, &context.unwrap_or_default(), &mut notes);
    let notebook_id = within_context(&context, &mut observed, &mut notes);
    let switch = |name: &str| options.get(name).and_then(Value::as_bool).unwrap_or(false);
    let (stream, include_progress) = (switch("stream"), switch("include_progress"));
    let feedback = feedback.and_then(|sent| {
        serde_json::from_value(Value::Object(sent))
            .map_err(|_| notes.push("`behavior_feedback` has fields of the wrong type and was ignored".to_owned()))
            .ok()
    });
    Ok(ObservedRequest { observed, notebook_id, feedback, stream, include_progress, notes })
}

fn located(location: &Map<String, Value>, observed: &mut ObservedState, notes: &mut Vec<String>) {
    let here = object(location, "current", notes).unwrap_or_else(|| location.clone());
    let here = newer(PayloadObject::Location, &here, notes);
    observed.location = ObservedPosition {
        stage_id: text(&here, "current_stage_id", notes),
        step_id: text(&here, "current_step_id", notes),
        behavior_id: text(&here, "behavior_id", notes),
        behavior_iteration: count(&here, "behavior_iteration", notes).unwrap_or_default(),
    };
    let progress = object(location, "progress", notes).unwrap_or_default();
    let mut way = |name: &str| object(&progress, name, notes).map(|list| way(&list, notes)).unwrap_or_default();
    observed.stages = way("stages");
    observed.steps = way("steps");
    observed.behaviors = way("behaviors");
    match location.get("goals") {
        // One text is that of the innermost thing under way.
        Some(Value::String(goal)) => {
            let goal = Some(goal.trim().to_owned()).filter(|goal| !goal.is_empty());
            let here = &observed.location;
            match (&here.step_id, &here.behavior_id) {
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

/// Stages, steps and behaviors are told by their ids, or whole.
fn id_of(item: &Value) -> Option<String> {
    const IDS: [&str; 4] = ["stage_id", "behavior_id", "step_id", "id"];
    match item {
        Value::String(id) => Some(id.clone()),
        Value::Object(whole) => IDS.iter().find_map(|name| whole.get(*name)).and_then(Value::as_str).map(str::to_owned),
        _ => None,
    }
}

fn way(sent: &Map<String, Value>, notes: &mut Vec<String>) -> ObservedProgress {
    let mut ids = |name: &str| list(sent, name, notes).iter().filter_map(id_of).collect();
    ObservedProgress {
        completed: ids("completed"),
        remaining: ids("remaining"),
        current: sent.get("current").and_then(id_of),
    }
}

/// Reads a context, and gives the id of its notebook.
fn within_context(
    context: &Map<String, Value>,
    observed: &mut ObservedState,
    notes: &mut Vec<String>,
) -> Option<String> {
    observed.variables = object(context, "variables", notes).unwrap_or_default();
    observed.todo_list = texts(context, "todo_list", notes).unwrap_or_default();
    let effects = object(context, "effects", notes).unwrap_or_default();
    observed.effects = list(&effects, "current", notes);
    observed.effects_history = list(&effects, "history", notes);
    if let Some(sections) = object(context, "section_progress", notes) {
        let sections = newer(PayloadObject::Sections, &sections, notes);
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
    if cells.len() > MOST_READ_CELLS {
        notes.push(format!("only the last {MOST_READ_CELLS} of {sent} cells were read", sent = cells.len()));
    }
    let skipped = cells.len().saturating_sub(MOST_READ_CELLS);
    observed.cells = cells.iter().skip(skipped).filter_map(|cell| told(cell, notes)).collect();
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

/// A cell with the names of today. Metadata that says nothing, as older forms send it, is left out.
fn told(cell: &Value, notes: &mut Vec<String>) -> Option<Value> {
    let mut cell = newer(PayloadObject::Action, cell.as_object()?, notes);
    if let Some(metadata) = object(&cell, "metadata", notes) {
        let says = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Object(fields) => !fields.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        };
        let kept: Map<String, Value> =
            newer(PayloadObject::Action, &metadata, notes).into_iter().filter(|(_, value)| says(value)).collect();
        if kept.is_empty() {
            cell.remove("metadata");
        } else {
            cell.insert("metadata".to_owned(), Value::Object(kept));
        }
    }
    if cell.get("outputs").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        cell.remove("outputs");
    }
    Some(Value::Object(cell))
}

#[cfg(test)]
mod tests;
