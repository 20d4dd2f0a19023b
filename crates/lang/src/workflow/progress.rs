//! What the events of a session change in its state file. Events are read in their public form, so that the same code serves a running
//! session and its journal.

use serde_json::{Map, Value, json};

use crate::workflow::compare::WaitingSteps;
use crate::workflow::state_text::{StateText, StateTextError, StepProgress};
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
    let place = EventPlace::of(text, event);
    let action = place.as_ref().map_or("", |place| place.action);
    let mut writer = EventWriter { text, action, at: field("at"), is_changed: false };
    let own = place.as_ref().filter(|place| !place.is_inner);
    match (field("type"), own) {
        ("session_started", _) => writer.top_status("running")?,
        ("action_started", Some(place)) => writer.started(&place.step)?,
        ("skipped", Some(_)) => writer.skipped()?,
        ("effect_started", Some(_)) => writer.resumed()?,
        ("request_opened", _) if place.is_some() => writer.waits(field("kind"))?,
        ("waiting", _) if field("for") != "approval" && field("for") != "time" => match &place {
            Some(_) => writer.waits("")?,
            None => writer.top_status("waiting")?,
        },
        ("message", _) if place.is_none() && field("role") == "user" => writer.top_status("running")?,
        // In the skill of a step, or in what undoes it.
        ("request_answered" | "effect_started", None) if place.is_some() => writer.resume_inner()?,
        ("request_answered", _) => writer.top_status("running")?,
        ("outcome", Some(place)) => {
            writer.ended(event)?;
            writer.update_waiting_status(&place.step)?;
        }
        // What could not be undone completely stays what it is: running it again would do twice what is left of it.
        ("undone", _) if event.get("complete") != Some(&Value::Bool(false)) => {
            if let Some(place) = &place {
                writer.undone(&place.step)?;
            }
        }
        ("variable_set", own) if field("name") != APPROVAL && is_written(field("scope"), own) => {
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

/// Whether a variable is one of the file: the session's, or one that a sub task itself has set. The session has that when all branches
/// have ended, but another session, which goes on from the edited file, does not run a completed sub task again.
fn is_written(scope: &str, own: Option<&EventPlace<'_>>) -> bool {
    scope == "session" || scope == "topic" && own.is_some_and(|place| place.action != place.step)
}

/// Notes which steps wait for a decision.
pub fn note_waiting(text: &StateText, waiting: &mut WaitingSteps, event: &Value) {
    let field = |name: &str| event.get(name).and_then(Value::as_str);
    let request = field("request_id").unwrap_or_default();
    match (field("type"), field("kind"), EventPlace::of(text, event)) {
        (Some("request_opened"), Some("approval"), Some(EventPlace { action, is_inner: false, .. })) => {
            waiting.insert(action.to_owned(), request.to_owned());
        }
        (Some("request_answered"), ..) => waiting.retain(|_, open| open != request),
        _ => {}
    }
}

/// Where in a state file something happened.
pub struct EventPlace<'a> {
    /// The step, or the sub task.
    pub action: &'a str,
    /// The step, or the one that contains the sub task.
    step: String,
    /// Whether it happened in an action of the skill that the step runs, or of its `compensate`. These have ids of their own, which may be
    /// those of other steps.
    pub is_inner: bool,
}

impl<'a> EventPlace<'a> {
    /// The place of an event; `None` if it happened outside of all steps.
    pub fn of(text: &StateText, event: &'a Value) -> Option<Self> {
        let field = |name: &str| event.pointer("/location")?.get(name)?.as_str();
        let Some(path) = field("path") else {
            let action = field("action_id")?;
            return Some(Self { action, step: text.step_of(action)?.to_owned(), is_inner: false });
        };
        // After the topic come the step, its sub task, and what runs in it, each with the number of its visit: `steps/deploy#2/web`.
        let mut ids = path.split('/').skip(1).map(|part| part.split_once('#').map_or(part, |(id, _)| id));
        let step = ids.next()?;
        if text.step_of(step) != Some(step) {
            return None;
        }
        let mut action = step;
        let mut inner = ids.next();
        if let Some(id) = inner.filter(|id| *id != step && text.step_of(id) == Some(step)) {
            action = id;
            inner = ids.next();
        }
        Some(Self { action, step: step.to_owned(), is_inner: inner.is_some() })
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
        match self.status_of(self.action) {
            Some(status) if status.is_done() => self.reset_later_steps(step, "started_at")?,
            // What a route led to after its failure has led back.
            Some(StateStatus::Failed) if step == self.action => self.reset_later_steps(step, "completed_at")?,
            _ => {}
        }
        self.status(StateStatus::Running)?;
        self.set("started_at", &self.at.into())?;
        if self.text.get(self.action, "completed_at").is_some_and(|at| !at.is_null()) {
            self.set("completed_at", &Value::Null)?;
        }
        self.is_changed |= self.text.set_top("current_step", &step.into())?;
        self.top_status("running")
    }

    fn status_of(&self, id: &str) -> Option<StateStatus> {
        self.text.get(id, "status").as_ref().and_then(Value::as_str).and_then(StateStatus::parse)
    }

    /// A step runs again, because a route has led back to it: what started since the time in this field of it is to run again, too, and so
    /// is what was skipped among these. After a failure, a route can also have led to an earlier step, which has just run.
    fn reset_later_steps(&mut self, step: &str, since: &str) -> Result<(), StateTextError> {
        let Some(Value::String(since)) = self.text.get(self.action, since) else { return Ok(()) };
        let all = self.text.progress();
        let is_failure = self.status_of(self.action) == Some(StateStatus::Failed);
        let first = all.iter().position(|known| known.id == step).unwrap_or_default();
        let started_later =
            |known: &StepProgress| known.id != self.action && known.started_at.as_ref().is_some_and(|at| *at >= since);
        let last = all.iter().rposition(started_later).unwrap_or_default();
        for (place, known) in all.iter().enumerate() {
            let must_rerun = match known.status {
                StateStatus::Completed => started_later(known) && (!is_failure || place > first),
                StateStatus::Skipped => first < place && place < last,
                _ => false,
            };
            if must_rerun {
                self.is_changed |= self.text.set(&known.id, "status", &StateStatus::Pending.name().into())?;
            }
        }
        Ok(())
    }

    /// What waited in the skill of a step goes on.
    fn resume_inner(&mut self) -> Result<(), StateTextError> {
        let waits = matches!(self.status_of(self.action), Some(StateStatus::Waiting | StateStatus::WaitingApproval));
        if waits { self.resumed() } else { Ok(()) }
    }

    /// After a sub task has ended, the others may all be waiting.
    fn update_waiting_status(&mut self, step: &str) -> Result<(), StateTextError> {
        if step == self.action {
            return Ok(());
        }
        let sub_tasks = self.text.progress_of(step).into_iter().filter(|known| known.id != step);
        let statuses: Vec<StateStatus> = sub_tasks.map(|known| known.status).collect();
        let has = |status: StateStatus| statuses.contains(&status);
        match () {
            () if has(StateStatus::Running) => Ok(()),
            () if has(StateStatus::WaitingApproval) => self.top_status(StateStatus::WaitingApproval.name()),
            () if has(StateStatus::Waiting) => self.top_status(StateStatus::Waiting.name()),
            () => Ok(()),
        }
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
        if self.status_of(self.action).is_some_and(StateStatus::is_done) {
            Ok(())
        } else {
            self.status(StateStatus::Skipped)
        }
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

    #[test]
    fn only_variables_of_the_session_and_of_sub_tasks_are_written() {
        let file = r#"{"workflow_id": "w", "variables": {}, "steps": [{"id": "par", "sub_tasks": [{"id": "p1"}, {"id": "s"}]}, {"id": "z"}]}"#;
        let mut text = StateText::new(&Arc::new(SourceFile::new("w.json", file))).unwrap();
        let event = |name: &str, scope: &str, path: &str| json!({ "type": "variable_set", "name": name, "scope": scope, "value": 1, "location": { "path": path } });
        let ignored = [
            event("x", "topic", "steps/par/s/skill"),
            event("x", "topic", "steps/par/s/skill/p1"),
            event("approval", "topic", "steps/par/p1"),
            event("x", "topic", "steps/z"),
        ];
        for event in ignored {
            assert_eq!(apply_event(&mut text, &event), Ok(false), "{event}");
        }
        for (name, scope, path) in
            [("x", "topic", "steps/par/p1"), ("y", "topic", "steps/par#2/p1#2"), ("z", "session", "steps/z")]
        {
            assert_eq!(apply_event(&mut text, &event(name, scope, path)), Ok(true));
            assert!(text.text().contains(&format!("\"{name}\": 1")), "{}", text.text());
        }
    }
}
