//! A request of a client: where it is, what it knows, and how it wants the answer.

use bcc_lang::message::msg;
use bcc_runtime::notebook::protocol::brief::{cut, first, size, variables};
use bcc_runtime::notebook::protocol::feedback::Feedback;
use bcc_runtime::notebook::protocol::names::REMOVED;
use bcc_runtime::notebook::protocol::read_observation::{ObservedState, read_observation};
use serde_json::{Map, Value};

use crate::behavior::workflow_state::WorkflowState;
use crate::problem::Problem;

/// The maximum size of what a prompt shows of a request, in bytes.
const MAX_SHOWN_BYTES: usize = 64 * 1024;

/// The limits of what is shown: the bytes of a text, and the items of a list, of which the last ones are shown. The second ones are
/// for requests of which the first ones leave too much.
const SHOWN: [(usize, usize); 2] = [(4_000, 20), (400, 10)];

/// The maximum size of the todo list and of the variables, in bytes, and by which factor an item of the list may be longer than a name:
/// as in the observations that this program sends.
const MAX_TODO_BYTES: usize = 4 * 1024;
const MAX_VARIABLES_BYTES: usize = 14 * 1024;
const TODO_LENGTH_FACTOR: usize = 5;

/// How deep the shown values are nested at most.
const MAX_SHOWN_LEVELS: usize = 12;

/// The maximum length of the id of a notebook, in bytes.
pub(crate) const MAX_NOTEBOOK_ID_BYTES: usize = 200;

/// A request after reading, in any form of docs/protocol.md.
#[derive(Clone, Debug)]
pub(crate) struct BehaviorRequest {
    pub(crate) observed: ObservedState,
    pub(crate) feedback: Option<Feedback>,
    /// Whether it reports a behavior, so that it asks for a judgement.
    pub(crate) reports: bool,
    pub(crate) notebook_id: Option<String>,
    /// The name of the client's token, if it has one.
    caller: Option<String>,
    /// Whether the client wants the actions one by one.
    pub(crate) stream: bool,
    /// The state of the workflow. None if it was not sent, or has no name of the protocol.
    pub(crate) state: Option<WorkflowState>,
    /// `location.progress` as it was sent.
    pub(crate) progress: Map<String, Value>,
    /// What prompts and scripts see: the request, limited in size.
    pub(crate) shown: Value,
}

impl BehaviorRequest {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// `InvalidRequest`: it has neither a location nor a context.
    pub(crate) fn read(body: Map<String, Value>) -> Result<Self, Problem> {
        let shown = shown(&body);
        let reports = ["behavior_feedback", "behaviorFeedback", "feedback"]
            .iter()
            .any(|name| body.get(*name).is_some_and(Value::is_object));
        let given_id = body.get("notebook_id").and_then(Value::as_str).map(str::to_owned);
        let body = Value::Object(body);
        let read = read_observation(&body).map_err(|error| {
            Problem::invalid(msg!("the observation cannot be read: {}", error.message))
                .with_help("`bcc-script schema protocol-request` describes it")
        })?;
        for note in &read.notes {
            tracing::debug!(%note, "a request holds what is not part of the protocol");
        }
        let state = read.observed.fsm.as_ref().and_then(|fsm| WorkflowState::parse(&fsm.state));
        let location = body.pointer("/observation/location").or_else(|| body.get("location"));
        let progress = location.and_then(|location| location.get("progress")).and_then(Value::as_object);
        let notebook_id =
            read.notebook_id.or(given_id).filter(|id| !id.is_empty() && id.len() <= MAX_NOTEBOOK_ID_BYTES);
        Ok(Self {
            feedback: read.feedback.map(Feedback::limited),
            reports,
            notebook_id,
            caller: None,
            stream: read.stream,
            state,
            progress: progress.cloned().unwrap_or_default(),
            shown,
            observed: read.observed,
        })
    }

    /// The same request, sent by the caller with this token.
    pub(crate) fn of_caller(self, caller: Option<String>) -> Self {
        Self { caller, ..self }
    }

    /// The user to whom the notebook belongs: the same id of another caller is another notebook. None without an id.
    pub(crate) fn notebook_user(&self) -> Option<String> {
        let notebook = self.notebook_id.as_ref()?;
        Some(match &self.caller {
            Some(caller) => format!("token:{caller}/notebook:{notebook}"),
            None => format!("notebook:{notebook}"),
        })
    }

    /// The current stage, step or behavior as an object with a goal, if it was sent as one.
    pub(crate) fn current(&self, level: &str) -> Option<&Map<String, Value>> {
        self.progress.get(level)?.get("current")?.as_object()
    }

    /// The todo list, limited in size.
    pub(crate) fn todo_list(&self) -> Vec<String> {
        let items = first(self.observed.todo_list.iter(), TODO_LENGTH_FACTOR, MAX_TODO_BYTES);
        items.into_iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    }

    /// The variables, limited in size.
    pub(crate) fn variables(&self) -> Map<String, Value> {
        variables(self.observed.variables.clone().into_iter(), MAX_VARIABLES_BYTES)
    }

    /// The number of the next behavior of the current step, from 1.
    pub(crate) fn next_behavior(&self) -> u64 {
        let location = &self.observed.location;
        let completed = self.observed.behaviors.completed.iter().chain(&location.behavior_id);
        let in_ids = completed.clone().filter_map(|id| id.rsplit_once("_b")?.1.parse().ok()).max().unwrap_or(0);
        in_ids.max(location.behavior_iteration).max(completed.count() as u64).saturating_add(1)
    }
}

fn shown(body: &Map<String, Value>) -> Value {
    let mut parts = body.clone();
    for name in ["options", "notebook_id"] {
        parts.remove(name);
    }
    let parts = Value::Object(parts);
    let mut shown = Value::Null;
    for limits in SHOWN {
        shown = shortened(&parts, limits, MAX_SHOWN_LEVELS);
        if size(&shown) <= MAX_SHOWN_BYTES {
            return shown;
        }
    }
    // What is left has very many fields: a text need not be JSON.
    Value::String(cut(&shown.to_string(), MAX_SHOWN_BYTES))
}

fn shortened(value: &Value, limits: (usize, usize), levels: usize) -> Value {
    let (max_bytes, max_items) = limits;
    match value {
        Value::String(text) => Value::String(cut(text, max_bytes)),
        Value::Array(_) | Value::Object(_) if levels == 0 => Value::String("…".to_owned()),
        Value::Array(items) => {
            let skipped = items.len().saturating_sub(max_items);
            items.iter().skip(skipped).map(|item| shortened(item, limits, levels - 1)).collect()
        }
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| !REMOVED.contains(&name.as_str()));
            Value::Object(
                kept.map(|(name, value)| (cut(name, max_bytes), shortened(value, limits, levels - 1))).collect(),
            )
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> BehaviorRequest {
        let Value::Object(body) = body else { panic!("no object") };
        BehaviorRequest::read(body).unwrap()
    }

    #[test]
    fn the_state_is_found_where_each_form_has_it() {
        for body in [
            json!({"observation": {"location": {}}, "state": {"FSM": {"state": "STEP_RUNNING"}}}),
            json!({"observation": {"location": {}, "context": {"FSM": {"state": "step_running"}}}}),
            json!({"location": {}, "context": {"fsm": {"state": "STEP_RUNNING"}}}),
        ] {
            assert_eq!(read(body.clone()).state, Some(WorkflowState::StepRunning), "{body}");
        }
        assert_eq!(read(json!({"location": {}})).state, None);
    }

    #[test]
    fn the_next_behavior_has_a_number_of_its_own() {
        for (current, completed, next) in [
            (json!({}), json!([]), 1),
            (json!({"behavior_iteration": 2}), json!([]), 3),
            (json!({"behavior_id": "s_b4", "behavior_iteration": 1}), json!([]), 5),
            (json!({"behavior_id": null}), json!(["s_b1", {"behavior_id": "s_b2"}]), 3),
        ] {
            let location =
                json!({"current": current, "progress": {"behaviors": {"completed": completed, "current": null}}});
            assert_eq!(read(json!({"observation": {"location": location}})).next_behavior(), next);
        }
    }

    #[test]
    fn what_prompts_see_is_limited_and_has_nothing_that_was_removed_from_the_protocol() {
        let cells: Vec<Value> =
            (0..500).map(|n| json!({"type": "code", "content": "x".repeat(9_000), "n": n})).collect();
        let mut deep = json!(1);
        for _ in 0..60 {
            deep = json!([deep]);
        }
        let body = json!({
            "observation": {"location": {}}, "options": {"stream": true},
            "state": {"notebook": {"cells": cells}, "checklist": {"secret": 1}, "variables": {"deep": deep}},
        });
        let request = read(body);
        let text = request.shown.to_string();
        assert!(text.len() <= MAX_SHOWN_BYTES, "{}", text.len());
        assert!(text.contains("\"n\":499") && !text.contains("\"n\":1,"), "{text}");
        assert!(!text.contains("checklist") && !text.contains("options"));
        let many: Map<String, Value> = (0..20_000).map(|n| (format!("v{n}"), json!(n))).collect();
        let request = read(json!({"observation": {"location": {}}, "state": {"variables": many}}));
        assert!(request.shown.as_str().unwrap().len() <= MAX_SHOWN_BYTES);
    }

    #[test]
    fn a_body_without_an_observation_is_invalid() {
        for body in [json!({}), json!({"observation": {}}), json!({"observation": 7})] {
            let problem = BehaviorRequest::read(body.as_object().unwrap().clone()).unwrap_err();
            assert!(problem.detail().contains("the observation cannot be read"), "{body}");
        }
    }
}
