//! What comes back to an observation (docs/protocol.md), in the new form and every older one.

use bcc_lang::message::message::Message;
use serde_json::{Map, Value, json};

use crate::notebook::protocol::brief::{cut, size};
use crate::notebook::protocol::context::{ContextUpdate, TodoUpdate};
use crate::notebook::protocol::names::{PayloadObject, newer};
use crate::notebook::protocol::read::{count, object, text, texts, truth};
use crate::notebook::workflow::Workflow;

/// The most actions of one response; more are left out.
pub const MOST_ACTIONS: usize = 1_000;

/// The most bytes of one action, as JSON; a larger one is left out.
pub const MOST_ACTION_BYTES: usize = 1024 * 1024;

/// The most variables of one update.
pub const MOST_VARIABLES: usize = 200;

/// The most bytes of one variable of an update, as JSON; a larger one is left out.
pub const MOST_VARIABLE_BYTES: usize = 16 * 1024;

/// The most bytes of a plan, as JSON.
pub const MOST_PLAN_BYTES: usize = 1024 * 1024;

/// The most bytes of a target, a reason or an id.
const MOST_WORDS_BYTES: usize = 2_000;

/// The most notes of one payload.
const MOST_NOTES: usize = 50;

/// What is to be done next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// The id of the behavior, when the server gives it one.
    pub behavior_id: Option<String>,
    /// Which one of its step, when the server counts.
    pub iteration: Option<u32>,
    /// What it is for.
    pub target: String,
    /// The actions, each in whatever form: [`crate::notebook::action::read`] reads them.
    pub actions: Vec<Value>,
    pub transition: Transition,
    pub context_update: ContextUpdate,
    /// What was read though it is no longer part of the protocol, and what was left out, in words for a log.
    pub notes: Vec<String>,
}

/// Where a session goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transition {
    pub next_stage_id: Option<String>,
    pub next_step_id: Option<String>,
    /// Whether more behaviors follow; nothing when it was not said.
    pub continue_behaviors: Option<bool>,
    /// Whether the target of the step is achieved; nothing when it was not said.
    pub target_achieved: Option<bool>,
    pub reason: String,
    pub workflow_update: Option<Workflow>,
}

/// The judgement of a behavior.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reflection {
    /// Whether the target of the step is achieved; nothing when it was not said.
    pub target_achieved: Option<bool>,
    pub reason: String,
    pub transition: Transition,
    pub context_update: ContextUpdate,
    /// As of [`Response::notes`].
    pub notes: Vec<String>,
}

impl Reflection {
    /// Whether the target is achieved: what the judgement says of it, else what its transition says; nothing when neither does.
    /// What stands in `metadata` decides nothing.
    pub fn decides(&self) -> Option<bool> {
        self.target_achieved.or(self.transition.target_achieved)
    }
}

/// What is no response at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnreadableResponse {
    /// What is wrong. Holds nothing that was sent beyond names of fields.
    pub message: Message,
}

/// The fields that make an object a response or a judgement.
const FIELDS: [&str; 12] = [
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
];

fn rubbish(message: &'static str) -> UnreadableResponse {
    UnreadableResponse { message: Message::word(message) }
}

/// Reads a response in any form: that of docs/protocol.md, a list of actions alone, `{"actions": […]}` or `{"steps": […]}`, one action alone,
/// and any of it with older names.
/// Errors: When it is no object or list, reports an error, holds nothing that a response has, or its actions are no list.
pub fn response(value: &Value) -> Result<Response, UnreadableResponse> {
    let mut notes = Vec::new();
    let whole = match value {
        Value::Array(_) => json!({ "actions": value }),
        Value::Object(one) if is_action(one) => json!({ "actions": [value] }),
        Value::Object(_) => value.clone(),
        _ => return Err(rubbish("a response must be an object or a list of actions")),
    };
    let whole = opened(
        &whole,
        "a response contains `actions`, `behavior`, `transition` or `context_update`, but this contains none of them",
        &mut notes,
    )?;
    let behavior = object(&whole, "behavior", &mut notes).unwrap_or_default();
    let actions = match whole.get("actions").or_else(|| behavior.get("actions")) {
        None | Some(Value::Null) => vec![],
        Some(Value::Array(actions)) => taken(actions, &mut notes),
        Some(_) => return Err(rubbish("`actions` of a response is not a list")),
    };
    let mut transition = transition(&whole, &mut notes);
    transition.target_achieved = transition.target_achieved.or_else(|| truth(&whole, "target_achieved", &mut notes));
    let behavior_id = words(&behavior, "id", &mut notes).or_else(|| words(&behavior, "behavior_id", &mut notes));
    let iteration = count(&behavior, "iteration", &mut notes).and_then(|count| u32::try_from(count).ok());
    let target = words(&behavior, "target", &mut notes).unwrap_or_default();
    let context_update = context_update(&whole, &mut notes);
    notes.truncate(MOST_NOTES);
    Ok(Response { behavior_id, iteration, target, actions, transition, context_update, notes })
}

/// Reads a judgement in any form: that of docs/protocol.md, `{"targetAchieved": …}` as older servers say it, a whole response, or `true` and
/// `false` alone.
/// Errors: As [`response`]. One that says nothing of the target is no error: the transition decides then.
pub fn reflection(value: &Value) -> Result<Reflection, UnreadableResponse> {
    let mut notes = Vec::new();
    let whole = match value {
        Value::Bool(achieved) => json!({ "target_achieved": achieved }),
        Value::Object(_) => value.clone(),
        _ => return Err(rubbish("a judgement must be an object with `target_achieved`")),
    };
    let whole = opened(
        &whole,
        "a judgement contains `target_achieved` or `transition`, but this contains neither",
        &mut notes,
    )?;
    let target_achieved = truth(&whole, "target_achieved", &mut notes);
    let transition = transition(&whole, &mut notes);
    let reason = words(&whole, "reason", &mut notes).unwrap_or_else(|| transition.reason.clone());
    let context_update = context_update(&whole, &mut notes);
    notes.truncate(MOST_NOTES);
    Ok(Reflection { target_achieved, reason, transition, context_update, notes })
}

/// Whether an object is an action and not a response.
fn is_action(object: &Map<String, Value>) -> bool {
    let named = matches!(object.get("action"), Some(Value::String(_) | Value::Object(_)));
    (named || object.get("type").is_some_and(Value::is_string)) && !object.contains_key("actions")
}

/// The object with the names of today, out of what it may be wrapped in.
fn opened(
    whole: &Value,
    otherwise: &'static str,
    notes: &mut Vec<String>,
) -> Result<Map<String, Value>, UnreadableResponse> {
    let Value::Object(whole) = whole else { return Err(rubbish(otherwise)) };
    let mut whole = newer(PayloadObject::Response, whole, notes);
    let known = |whole: &Map<String, Value>| FIELDS.iter().any(|field| whole.contains_key(*field));
    if !known(&whole)
        && let Some(Value::Object(inner)) = whole.get("response").or_else(|| whole.get("data"))
    {
        whole = newer(PayloadObject::Response, inner, notes);
    }
    if !known(&whole) {
        let reports = whole.get("error").is_some_and(|error| !error.is_null());
        return Err(rubbish(if reports { "the server reports an error" } else { otherwise }));
    }
    let metadata = whole.get("metadata").and_then(Value::as_object);
    if metadata
        .is_some_and(|metadata| ["target_achieved", "targetAchieved"].iter().any(|name| metadata.contains_key(*name)))
    {
        notes.push("`target_achieved` in `metadata` has no effect and was ignored".to_owned());
    }
    Ok(whole)
}

/// The actions that can be read on their own.
fn taken(sent: &[Value], notes: &mut Vec<String>) -> Vec<Value> {
    if sent.len() > MOST_ACTIONS {
        notes.push(format!("only the first {MOST_ACTIONS} of {sent} actions were used", sent = sent.len()));
    }
    let mut kept = Vec::new();
    for (number, action) in sent.iter().take(MOST_ACTIONS).enumerate() {
        if !action.is_object() {
            notes.push(format!("action {} is not an object and was ignored", number + 1));
        } else if size(action) > MOST_ACTION_BYTES {
            notes.push(format!("action {} is larger than {MOST_ACTION_BYTES} bytes and was ignored", number + 1));
        } else {
            kept.push(action.clone());
        }
    }
    kept
}

fn words(whole: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<String> {
    text(whole, name, notes).map(|text| cut(&text, MOST_WORDS_BYTES))
}

/// `transition`; what it does not say may stand beside it, as older servers have it. Whether the target is achieved is not taken
/// from there: of a judgement, that is the judgement itself.
fn transition(whole: &Map<String, Value>, notes: &mut Vec<String>) -> Transition {
    let inner = object(whole, "transition", notes)
        .map(|inner| newer(PayloadObject::Transition, &inner, notes))
        .unwrap_or_default();
    let mut words_of = |name: &str| words(&inner, name, notes).or_else(|| words(whole, name, notes));
    let (next_stage_id, next_step_id) = (words_of("next_stage_id"), words_of("next_step_id"));
    let reason = words_of("reason").unwrap_or_default();
    let continue_behaviors =
        truth(&inner, "continue_behaviors", notes).or_else(|| truth(whole, "continue_behaviors", notes));
    let plan = inner.get("workflow_update").or_else(|| whole.get("workflow_update"));
    Transition {
        next_stage_id,
        next_step_id,
        continue_behaviors,
        target_achieved: truth(&inner, "target_achieved", notes),
        reason,
        workflow_update: plan.filter(|plan| !plan.is_null()).and_then(|sent| plan_of(sent, notes)),
    }
}

/// A plan, by itself or as the `workflow` of an object.
fn plan_of(sent: &Value, notes: &mut Vec<String>) -> Option<Workflow> {
    let sent = sent.get("workflow").unwrap_or(sent);
    if size(sent) > MOST_PLAN_BYTES {
        notes.push(format!("`workflow_update` is larger than {MOST_PLAN_BYTES} bytes and was ignored"));
        return None;
    }
    let plan = Workflow::read(sent).ok();
    if plan.is_none() {
        notes.push("`workflow_update` is not a plan with stages and steps and was ignored".to_owned());
    }
    plan
}

/// `context_update`; what it does not say may stand beside it, as older servers have it.
fn context_update(whole: &Map<String, Value>, notes: &mut Vec<String>) -> ContextUpdate {
    let inner = object(whole, "context_update", notes)
        .map(|inner| newer(PayloadObject::Update, &inner, notes))
        .unwrap_or_default();
    let of = |name: &str| if inner.contains_key(name) { &inner } else { whole };
    let mut variables = Map::new();
    for (name, value) in object(of("variables"), "variables", notes).unwrap_or_default() {
        if variables.len() >= MOST_VARIABLES {
            notes.push(format!("more than {MOST_VARIABLES} variables were sent; only the first ones were used"));
            break;
        }
        if size(&value) > MOST_VARIABLE_BYTES {
            notes.push(format!("a variable is larger than {MOST_VARIABLE_BYTES} bytes and was ignored"));
        } else {
            variables.insert(name, value);
        }
    }
    let sections = object(of("section_progress"), "section_progress", notes);
    let section_progress = sections.map(|sections| newer(PayloadObject::Sections, &sections, notes));
    let todo = match of("todo_list_update").get("todo_list_update") {
        Some(Value::Null) | None => texts(of("todo_list"), "todo_list", notes).map(TodoUpdate::Replace),
        Some(Value::Array(_)) => texts(of("todo_list_update"), "todo_list_update", notes).map(TodoUpdate::Replace),
        Some(_) => object(of("todo_list_update"), "todo_list_update", notes).and_then(|update| todo(&update, notes)),
    };
    ContextUpdate { variables, todo, section_progress }
}

fn todo(update: &Map<String, Value>, notes: &mut Vec<String>) -> Option<TodoUpdate> {
    let operation = text(update, "operation", notes).unwrap_or_default();
    let items = texts(update, "items", notes);
    let with = |of: fn(Vec<String>) -> TodoUpdate| items.clone().map(of);
    let read = match operation.as_str() {
        "add" => with(TodoUpdate::Add),
        "remove" => with(TodoUpdate::Remove),
        "replace" => with(TodoUpdate::Replace),
        "clear" => Some(TodoUpdate::Clear),
        _ => None,
    };
    if read.is_none() {
        notes.push(
            "`todo_list_update` needs `operation` (add, remove, replace, clear) and `items`, and was ignored"
                .to_owned(),
        );
    }
    read
}

#[cfg(test)]
mod tests;
