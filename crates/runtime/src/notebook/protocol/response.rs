//! Reads responses and reflections (docs/protocol.md), in the new form and all legacy forms.

use bcc_lang::message::message::Message;
use bcc_lang::script::fields::shortened;
use serde_json::{Map, Value, json};

use crate::notebook::protocol::brief::{cut, size};
use crate::notebook::protocol::context::{ContextUpdate, TodoUpdate};
use crate::notebook::protocol::names::{PayloadObject, current_names};
use crate::notebook::protocol::notes::PayloadNotes;
use crate::notebook::protocol::read::{boolean, count, object, text, texts};
use crate::notebook::protocol::signals::signals;
use crate::notebook::workflow::Workflow;

/// The maximum number of actions of one response; further ones are omitted.
pub(crate) const MAX_ACTIONS: usize = 1_000;

/// The maximum size of one action as JSON, in bytes; larger ones are omitted.
pub(crate) const MAX_ACTION_BYTES: usize = 1024 * 1024;

/// The maximum number of variables of one update.
pub const MAX_VARIABLES: usize = 200;

/// The maximum size of one variable of an update as JSON, in bytes; larger ones are omitted.
pub(crate) const MAX_VARIABLE_BYTES: usize = 16 * 1024;

/// The maximum size of a plan as JSON, in bytes.
pub const MAX_PLAN_BYTES: usize = 1024 * 1024;

/// The maximum size of a target, a reason or an id, in bytes.
const MAX_TEXT_BYTES: usize = 2_000;

/// A response: the next behavior.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// The id of the behavior, if the server gave one.
    pub behavior_id: Option<String>,
    /// Its number within its step, if the server counts.
    pub iteration: Option<u32>,
    /// Its target.
    pub target: String,
    /// The actions, each in any form: [`crate::notebook::action::read`] reads them.
    pub actions: Vec<Value>,
    pub transition: Transition,
    pub context_update: ContextUpdate,
    /// Notes for a log on omitted parts and on parts that are no longer in the protocol.
    pub notes: Vec<String>,
    /// Those of the notes that say what was not understood, which its source should know.
    pub ignored: Vec<String>,
}

/// Where a session continues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transition {
    pub next_stage_id: Option<String>,
    pub next_step_id: Option<String>,
    /// Whether more behaviors follow; `None` if not given.
    pub continue_behaviors: Option<bool>,
    /// Whether the target of the step is achieved; `None` if not given.
    pub target_achieved: Option<bool>,
    pub reason: String,
    pub workflow_update: Option<Workflow>,
}

/// The reflection on a behavior.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reflection {
    /// Whether the target of the step is achieved; `None` if not given.
    pub target_achieved: Option<bool>,
    pub reason: String,
    pub transition: Transition,
    pub context_update: ContextUpdate,
    /// Whether the stage is completed with the step, which only older servers say.
    pub completes_stage: bool,
    /// Actions with which an older server comments on the result.
    pub remarks: Vec<Value>,
    /// See [`Response::notes`].
    pub notes: Vec<String>,
    /// See [`Response::ignored`].
    pub ignored: Vec<String>,
}

impl Reflection {
    /// Whether the target is achieved according to the reflection itself, else to its transition; `None` if neither says so.
    /// `metadata` has no effect.
    pub fn is_target_achieved(&self) -> Option<bool> {
        self.target_achieved.or(self.transition.target_achieved)
    }
}

/// The error of an invalid response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnreadableResponse {
    /// The error. Contains nothing that was sent except field names.
    pub message: Message,
}

/// The fields that identify a response or a reflection.
const FIELDS: [&str; 13] = [
    "behavior",
    "actions",
    "transition",
    "context_update",
    "metadata",
    "target_achieved",
    "continue_behaviors",
    "next_stage_id",
    "next_step_id",
    "workflow_update",
    "todo_list_update",
    "reason",
    "next_state",
];

/// The fields of `context_update`.
const UPDATE_FIELDS: [&str; 4] = ["variables", "todo_list_update", "todo_list", "section_progress"];

/// The fields of `section_progress`.
const SECTION_FIELDS: [&str; 4] =
    ["current_section_id", "current_section_number", "completed_sections", "total_expected"];

fn unreadable(message: &'static str) -> UnreadableResponse {
    UnreadableResponse { message: Message::word(message) }
}

/// Reads a response in any form: that of docs/protocol.md, a list of actions, `{"actions": […]}` or `{"steps": […]}`, or a
/// single action, each with current or legacy names.
/// Errors: It is neither an object nor a list, reports an error, contains no field of a response, or its actions are not a list.
pub fn response(value: &Value) -> Result<Response, UnreadableResponse> {
    let mut notes = PayloadNotes::default();
    let payload = match value {
        Value::Array(_) => json!({ "actions": value }),
        Value::Object(one) if is_action(one) => json!({ "actions": [value] }),
        Value::Object(_) => value.clone(),
        _ => return Err(unreadable("a response must be an object or a list of actions")),
    };
    let payload = unwrap_payload(
        &payload,
        "a response contains `actions`, `behavior`, `transition` or `context_update`, but this contains none of them",
        &mut notes,
    )?;
    let behavior = object(&payload, "behavior", &mut notes.ignored).unwrap_or_default();
    let actions = match payload.get("actions").or_else(|| behavior.get("actions")) {
        None | Some(Value::Null) => vec![],
        Some(Value::Array(actions)) => valid_actions(actions, &mut notes),
        Some(_) => return Err(unreadable("`actions` of a response is not a list")),
    };
    let mut transition = transition(&payload, &mut notes);
    transition.target_achieved =
        transition.target_achieved.or_else(|| boolean(&payload, "target_achieved", &mut notes.ignored));
    let behavior_id = short_text(&behavior, "id", &mut notes.ignored)
        .or_else(|| short_text(&behavior, "behavior_id", &mut notes.ignored));
    let iteration = count(&behavior, "iteration", &mut notes.ignored).and_then(|count| u32::try_from(count).ok());
    let target = short_text(&behavior, "target", &mut notes.ignored).unwrap_or_default();
    let context_update = context_update(&payload, &mut notes);
    let (notes, ignored) = notes.limited();
    Ok(Response { behavior_id, iteration, target, actions, transition, context_update, notes, ignored })
}

/// Reads a reflection in any form: that of docs/protocol.md, `{"targetAchieved": …}` of legacy servers, a complete response, or
/// just `true` or `false`.
/// Errors: Those of [`response`]. A missing statement on the target is not an error: the transition then decides.
pub fn reflection(value: &Value) -> Result<Reflection, UnreadableResponse> {
    let mut notes = PayloadNotes::default();
    let payload = match value {
        Value::Bool(achieved) => json!({ "target_achieved": achieved }),
        Value::Object(_) => value.clone(),
        _ => return Err(unreadable("a judgement must be an object with `target_achieved`")),
    };
    let payload = unwrap_payload(
        &payload,
        "a judgement contains `target_achieved` or `transition`, but this contains neither",
        &mut notes,
    )?;
    let target_achieved = boolean(&payload, "target_achieved", &mut notes.ignored);
    let transition = transition(&payload, &mut notes);
    let signals = signals(&payload).unwrap_or_default();
    let target_achieved = target_achieved.or(signals.achieved.filter(|_| transition.target_achieved.is_none()));
    let reason = short_text(&payload, "reason", &mut notes.ignored)
        .or_else(|| Some(cut(&signals.reason, MAX_TEXT_BYTES)).filter(|reason| !reason.is_empty()))
        .unwrap_or_else(|| transition.reason.clone());
    let (completes_stage, remarks) = (signals.completes_stage, signals.remarks);
    let context_update = context_update(&payload, &mut notes);
    let (notes, ignored) = notes.limited();
    Ok(Reflection { target_achieved, reason, transition, context_update, completes_stage, remarks, notes, ignored })
}

/// Whether an object is an action and not a response.
fn is_action(object: &Map<String, Value>) -> bool {
    let named = matches!(object.get("action"), Some(Value::String(_) | Value::Object(_)));
    (named || object.get("type").is_some_and(Value::is_string)) && !object.contains_key("actions")
}

/// Removes wrappers and converts the object to current names.
fn unwrap_payload(
    payload: &Value,
    error_message: &'static str,
    notes: &mut PayloadNotes,
) -> Result<Map<String, Value>, UnreadableResponse> {
    let Value::Object(payload) = payload else { return Err(unreadable(error_message)) };
    let mut payload = current_names(PayloadObject::Response, payload, &mut notes.renamed);
    let known = |payload: &Map<String, Value>| FIELDS.iter().any(|field| payload.contains_key(*field));
    if !known(&payload)
        && let Some(Value::Object(inner)) = payload.get("response").or_else(|| payload.get("data"))
    {
        payload = current_names(PayloadObject::Response, inner, &mut notes.renamed);
    }
    if !known(&payload) {
        let reports = payload.get("error").is_some_and(|error| !error.is_null());
        return Err(unreadable(if reports { "the server reports an error" } else { error_message }));
    }
    let metadata = payload.get("metadata").and_then(Value::as_object);
    if metadata
        .is_some_and(|metadata| ["target_achieved", "targetAchieved"].iter().any(|name| metadata.contains_key(*name)))
    {
        notes.renamed.push("`target_achieved` in `metadata` has no effect and was ignored".to_owned());
    }
    Ok(payload)
}

/// The valid actions.
fn valid_actions(sent: &[Value], notes: &mut PayloadNotes) -> Vec<Value> {
    if sent.len() > MAX_ACTIONS {
        notes.ignored.push(format!("only the first {MAX_ACTIONS} of {sent} actions were used", sent = sent.len()));
    }
    let mut actions = Vec::new();
    for (number, action) in sent.iter().take(MAX_ACTIONS).enumerate() {
        if !action.is_object() {
            notes.ignored.push(format!("action {} is not an object and was ignored", number + 1));
        } else if size(action) > MAX_ACTION_BYTES {
            notes
                .ignored
                .push(format!("action {} is larger than {MAX_ACTION_BYTES} bytes and was ignored", number + 1));
        } else {
            actions.push(action.clone());
        }
    }
    actions
}

fn short_text(payload: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<String> {
    text(payload, name, notes).map(|text| cut(&text, MAX_TEXT_BYTES))
}

/// Reads `transition`; missing fields are read from the payload itself, as legacy servers send them. `target_achieved` is not
/// read from there, because in a reflection it belongs to the reflection itself.
fn transition(payload: &Map<String, Value>, notes: &mut PayloadNotes) -> Transition {
    let inner = object(payload, "transition", &mut notes.ignored)
        .map(|inner| current_names(PayloadObject::Transition, &inner, &mut notes.renamed))
        .unwrap_or_default();
    let mut field_text = |name: &str| {
        short_text(&inner, name, &mut notes.ignored).or_else(|| short_text(payload, name, &mut notes.ignored))
    };
    let (next_stage_id, next_step_id) = (field_text("next_stage_id"), field_text("next_step_id"));
    let reason = field_text("reason").unwrap_or_default();
    let continue_behaviors = boolean(&inner, "continue_behaviors", &mut notes.ignored)
        .or_else(|| boolean(payload, "continue_behaviors", &mut notes.ignored));
    let plan = inner.get("workflow_update").or_else(|| payload.get("workflow_update"));
    Transition {
        next_stage_id,
        next_step_id,
        continue_behaviors,
        target_achieved: boolean(&inner, "target_achieved", &mut notes.ignored),
        reason,
        workflow_update: plan.filter(|plan| !plan.is_null()).and_then(|sent| read_plan(sent, notes)),
    }
}

/// Reads a plan, directly or from the field `workflow` of an object.
fn read_plan(sent: &Value, notes: &mut PayloadNotes) -> Option<Workflow> {
    let sent = sent.get("workflow").unwrap_or(sent);
    if size(sent) > MAX_PLAN_BYTES {
        notes.ignored.push(format!("`workflow_update` is larger than {MAX_PLAN_BYTES} bytes and was ignored"));
        return None;
    }
    let plan = Workflow::read(sent).ok();
    if plan.is_none() {
        notes.ignored.push("`workflow_update` is not a plan with stages and steps and was ignored".to_owned());
    }
    plan
}

/// Reads `context_update`; missing fields are read from the payload itself, as legacy servers send them.
fn context_update(payload: &Map<String, Value>, notes: &mut PayloadNotes) -> ContextUpdate {
    let inner = object(payload, "context_update", &mut notes.ignored)
        .map(|inner| current_names(PayloadObject::Update, &inner, &mut notes.renamed))
        .unwrap_or_default();
    notes.unknown_fields("context_update", &inner, &UPDATE_FIELDS);
    let fields_of = |name: &str| if inner.contains_key(name) { &inner } else { payload };
    let mut variables = Map::new();
    for (name, value) in object(fields_of("variables"), "variables", &mut notes.ignored).unwrap_or_default() {
        if variables.len() >= MAX_VARIABLES {
            notes.ignored.push(format!("more than {MAX_VARIABLES} variables were sent; only the first ones were used"));
            break;
        }
        if size(&value) > MAX_VARIABLE_BYTES {
            notes.ignored.push(format!("a variable is larger than {MAX_VARIABLE_BYTES} bytes and was ignored"));
        } else {
            variables.insert(name, value);
        }
    }
    let sections = object(fields_of("section_progress"), "section_progress", &mut notes.ignored);
    let section_progress =
        sections.map(|sections| current_names(PayloadObject::Sections, &sections, &mut notes.renamed));
    if let Some(sections) = &section_progress {
        notes.unknown_fields("section_progress", sections, &SECTION_FIELDS);
    }
    let todo = match fields_of("todo_list_update").get("todo_list_update") {
        Some(Value::Null) | None => {
            texts(fields_of("todo_list"), "todo_list", &mut notes.ignored).map(TodoUpdate::Replace)
        }
        Some(Value::Array(_)) => {
            texts(fields_of("todo_list_update"), "todo_list_update", &mut notes.ignored).map(TodoUpdate::Replace)
        }
        Some(_) => object(fields_of("todo_list_update"), "todo_list_update", &mut notes.ignored)
            .and_then(|update| todo(&update, notes)),
    };
    ContextUpdate { variables, todo, section_progress }
}

fn todo(update: &Map<String, Value>, notes: &mut PayloadNotes) -> Option<TodoUpdate> {
    let operation = text(update, "operation", &mut notes.ignored).unwrap_or_default();
    let items = texts(update, "items", &mut notes.ignored);
    let with = |variant: fn(Vec<String>) -> TodoUpdate| items.clone().map(variant);
    let read = match operation.as_str() {
        "add" => with(TodoUpdate::Add),
        "remove" => with(TodoUpdate::Remove),
        "replace" => with(TodoUpdate::Replace),
        "clear" => Some(TodoUpdate::Clear),
        "" => None,
        unknown => {
            let unknown = shortened(unknown);
            notes.ignored.push(format!(
                "`todo_list_update` has no operation `{unknown}` and was ignored: use add, remove, replace or clear"
            ));
            return None;
        }
    };
    match read {
        Some(_) => notes.unknown_fields("todo_list_update", update, &["operation", "items"]),
        None => notes.ignored.push(
            "`todo_list_update` needs `operation` (add, remove, replace, clear) and `items`, and was ignored"
                .to_owned(),
        ),
    }
    read
}

#[cfg(test)]
mod tests;
