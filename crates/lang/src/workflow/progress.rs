//! What the events of a session change in its state file. Events are read in their public form, so that the same code serves a running
//! session and its journal.

use serde_json::{Map, Value, json};

use crate::workflow::compare::WaitingSteps;
use crate::workflow::state_text::{StateText, StateTextError};
use crate::workflow::status::StateStatus;

/// The maximum length of an output of a program in `result`, in characters. The journal has more of it.
const MAX_OUTPUT_CHARS: usize = 2_000;

/// What `result` contains of the metadata of an outcome.
const RESULT_FIELDS: [&str; 15] = [
    "status",
    "exit_code",
    "signal",
    "stdout",
    "stderr",
    "duration_ms",
    "attempts",
    "simulated",
    "skipped",
    "error",
    "branch",
    "decision",
    "by",
    "comment",
    "iteration",
];

/// A variable that the engine sets after a decision. It belongs to the session.
const APPROVAL: &str = "approval";

/// Applies an event. Returns whether the text changed.
///
/// # Errors
/// A field cannot be edited; the text may then contain a part of the change.
pub fn apply_event(text: &mut StateText, event: &Value) -> Result<bool, StateTextError> {
    let field = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
    let action = event.pointer("/location/action_id").and_then(Value::as_str).unwrap_or_default();
    let step = text.step_of(action).map(str::to_owned);
    let mut writer = EventWriter { text, action, at: field("at"), is_changed: false };
    match (field("type"), step) {
        ("session_started", _) => writer.top_status("running")?,
        ("action_started", Some(step)) => writer.started(&step)?,
        ("skipped", Some(_)) => writer.skipped()?,
        ("effect_started", Some(_)) => writer.resumed()?,
        ("request_opened", Some(_)) => writer.waits(field("kind"))?,
        ("waiting", step) if field("for") != "approval" && field("for") != "time" => match step {
            Some(_) => writer.waits("")?,
            None => writer.top_status("waiting")?,
        },
        ("message", None) if field("role") == "user" => writer.top_status("running")?,
        ("request_answered", _) => writer.top_status("running")?,
        ("outcome", Some(_)) => writer.ended(event)?,
        ("undone", Some(step)) => writer.undone(&step)?,
        ("variable_set", _) if field("name") != APPROVAL && field("scope") == "session" => {
            let value = event.get("value").unwrap_or(&Value::Null);
            writer.is_changed |= writer.text.set_variable(field("name"), value)?;
        }
        ("session_completed", _) => writer.top_status("completed")?,
        ("session_failed", _) => writer.top_status("failed")?,
        ("session_cancelled", _) => writer.top_status("cancelled")?,
        ("session_stopped", _) => writer.top_status("waiting")?,
        _ => {}
    }
    Ok(writer.is_changed)
}

/// Notes which steps wait for a decision.
pub fn note_waiting(waiting: &mut WaitingSteps, event: &Value) {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
    let request = text("/request_id").unwrap_or_default();
    match (text("/type"), text("/kind"), text("/location/action_id")) {
        (Some("request_opened"), Some("approval"), Some(step)) => {
            waiting.insert(step.to_owned(), request.to_owned());
        }
        (Some("request_answered"), ..) => waiting.retain(|_, open| open != request),
        _ => {}
    }
}

struct EventWriter<'a> {
    text: &'a mut StateText,
    /// The step or sub task.
    action: &'a str,
    at: &'a str,
    is_changed: bool,
}

impl EventWriter<'_> {
    fn set(&mut self, field: &str, value: &Value) -> Result<(), StateTextError> {
        self.is_changed |= self.text.set(self.action, field, value)?;
        Ok(())
    }

    fn status(&mut self, status: StateStatus) -> Result<(), StateTextError> {
        self.set("status", &status.name().into())
    }

    fn top_status(&mut self, status: &str) -> Result<(), StateTextError> {
        self.is_changed |= self.text.set_top("status", &status.into())?;
        Ok(())
    }

    fn started(&mut self, step: &str) -> Result<(), StateTextError> {
        self.status(StateStatus::Running)?;
        self.set("started_at", &self.at.into())?;
        if self.text.get(self.action, "completed_at").is_some_and(|at| !at.is_null()) {
            self.set("completed_at", &Value::Null)?;
        }
        self.is_changed |= self.text.set_top("current_step", &step.into())?;
        self.top_status("running")
    }

    /// What was undone has to run again, and so has the step that contains it.
    fn undone(&mut self, step: &str) -> Result<(), StateTextError> {
        self.status(StateStatus::Pending)?;
        if step != self.action {
            self.is_changed |= self.text.set(step, "status", &StateStatus::Pending.name().into())?;
        }
        self.is_changed |= self.text.set_top("current_step", &step.into())?;
        Ok(())
    }

    /// A step that was done before is reported as skipped, but stays what it was.
    fn skipped(&mut self) -> Result<(), StateTextError> {
        let status = self.text.get(self.action, "status");
        let is_done =
            status.as_ref().and_then(Value::as_str).and_then(StateStatus::parse).is_some_and(StateStatus::is_done);
        if is_done { Ok(()) } else { self.status(StateStatus::Skipped) }
    }

    /// A step that waited for an answer about an interruption runs again.
    fn resumed(&mut self) -> Result<(), StateTextError> {
        self.status(StateStatus::Running)?;
        self.top_status("running")
    }

    fn waits(&mut self, kind: &str) -> Result<(), StateTextError> {
        let is_approval = self.text.get(self.action, "type").is_some_and(|written| written == "approval");
        let status =
            if kind == "approval" && is_approval { StateStatus::WaitingApproval } else { StateStatus::Waiting };
        self.status(status)?;
        self.top_status(status.name())
    }

    fn ended(&mut self, event: &Value) -> Result<(), StateTextError> {
        if event.get("completed").and_then(Value::as_bool) != Some(true) {
            return Ok(());
        }
        let result = result(event);
        if event.pointer("/metadata/decision").is_some_and(|decision| decision == "push_back") {
            self.status(StateStatus::Pending)?;
            return self.set("result", &result);
        }
        const FAILURES: [&str; 5] = ["failed", "timed_out", "rejected", "branch_failed", "error"];
        let reason = event.get("exit_reason").and_then(Value::as_str).unwrap_or_default();
        let is_failure = FAILURES.contains(&reason);
        self.status(if is_failure { StateStatus::Failed } else { StateStatus::Completed })?;
        self.set("completed_at", &self.at.into())?;
        if result.as_object().is_some_and(|fields| !fields.is_empty()) { self.set("result", &result) } else { Ok(()) }
    }
}

fn result(event: &Value) -> Value {
    let mut result = Map::new();
    let metadata = event.get("metadata").and_then(Value::as_object);
    for name in RESULT_FIELDS {
        let Some(value) = metadata.and_then(|metadata| metadata.get(name)).filter(|value| !value.is_null()) else {
            continue;
        };
        match value.as_str() {
            Some("") => {}
            Some(text) if text.chars().count() > MAX_OUTPUT_CHARS => {
                let cut: String = text.chars().take(MAX_OUTPUT_CHARS).collect();
                result.insert(name.to_owned(), json!(cut));
                result.insert(format!("{name}_truncated"), json!(true));
            }
            _ => _ = result.insert(name.to_owned(), value.clone()),
        }
    }
    let values =
        event.get("extracted_variables").filter(|values| values.as_object().is_some_and(|all| !all.is_empty()));
    if let (Some(values), true) = (values, result.contains_key("decision")) {
        result.insert("values".to_owned(), values.clone());
    }
    Value::Object(result)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::text::SourceFile;

    const FILE: &str = r#"{
  "workflow_id": "w",
  "status": "pending",
  "current_step": "a",
  "variables": {"n": 1},
  "steps": [
    {"id": "a", "type": "action", "status": "pending", "mine": [1,  2]},
    {"id": "b", "type": "approval", "status": "pending"}
  ]
}
"#;

    fn at(action: &str, kind: &str, more: Value) -> Value {
        let mut event = json!({ "type": kind, "at": "T", "location": { "action_id": action } });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    }

    #[test]
    fn a_run_is_written_event_by_event() {
        let mut text = StateText::new(&Arc::new(SourceFile::new("w.json", FILE))).unwrap();
        let mut apply = |event: Value| {
            apply_event(&mut text, &event).unwrap();
            text.text()
        };
        apply(at("", "session_started", json!({})));
        let started = apply(at("a", "action_started", json!({})));
        let running = FILE
            .replace("pending\",\n  \"current", "running\",\n  \"current")
            .replace(r#""action", "status": "pending""#, r#""action", "status": "running", "started_at": "T""#);
        assert_eq!(started, running);
        apply(at("", "variable_set", json!({ "name": "n", "scope": "session", "value": 2 })));
        let metadata = json!({ "exit_code": 0, "stdout": "", "stderr": "x", "stdout_bytes": 0 });
        let ended = apply(at(
            "a",
            "outcome",
            json!({ "completed": true, "exit_reason": "exit_criteria_met", "metadata": metadata }),
        ));
        let completed = running.replace("\"n\": 1", "\"n\": 2").replace(
            r#""running", "started_at": "T""#,
            r#""completed", "started_at": "T", "completed_at": "T", "result": {"exit_code": 0, "stderr": "x"}"#,
        );
        assert_eq!(ended, completed);
        apply(at("b", "action_started", json!({})));
        let waiting = apply(at("b", "request_opened", json!({ "kind": "approval" })));
        assert!(waiting.contains(r#""current_step": "b""#) && waiting.matches("waiting_approval").count() == 2);
        let metadata = json!({ "decision": "push_back", "by": "x", "comment": "again", "iteration": 1 });
        let pushed = apply(at("b", "outcome", json!({ "completed": true, "metadata": metadata })));
        assert!(pushed.contains(r#""approval", "status": "pending""#) && pushed.contains(r#""decision": "push_back""#));
    }
}
