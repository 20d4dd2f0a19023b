//! The variables that sub tasks set. A session merges them when all branches of the step have ended, but a session that goes on from the edited
//! file does not run a completed sub task again, so its values must be in the file by then.

use serde_json::Value;

use crate::workflow::state_text::{StateText, StateTextError};

/// A variable that the engine sets after a decision. It belongs to the session.
const APPROVAL: &str = "approval";

/// Sets the variable that an event sets in a sub task itself, not in what it calls. Returns whether the text changed.
///
/// # Errors
/// As [`StateText::set_variable`].
pub fn set_sub_task_value(text: &mut StateText, event: &Value) -> Result<bool, StateTextError> {
    let field = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (task, name) = (field("/location/action_id"), field("/name"));
    if field("/type") != "variable_set" || field("/scope") != "topic" || name == APPROVAL {
        return Ok(false);
    }
    // What a skill sets inside has another path.
    let is_own = |step: &&str| *step != task && field("/location/path").ends_with(&format!("/{step}/{task}"));
    if text.step_of(task).filter(is_own).is_none() {
        return Ok(false);
    }
    text.set_variable(name, event.get("value").unwrap_or(&Value::Null))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::source::text::SourceFile;

    #[test]
    fn only_what_a_sub_task_itself_sets_is_written() {
        let file = r#"{"workflow_id": "w", "variables": {}, "steps": [{"id": "par", "sub_tasks": [{"id": "p1"}, {"id": "s"}]}, {"id": "z"}]}"#;
        let mut text = StateText::new(&Arc::new(SourceFile::new("w.json", file))).unwrap();
        let event = |name: &str, scope: &str, action: &str, path: &str| json!({ "type": "variable_set", "name": name, "scope": scope, "value": 1, "location": { "action_id": action, "path": path } });
        let ignored = [
            event("x", "topic", "s", "steps/par/s/skill"),
            event("x", "topic", "p1", "steps/par/s/skill/p1"),
            event("x", "session", "p1", "steps/par/p1"),
            event("approval", "topic", "p1", "steps/par/p1"),
            event("x", "topic", "z", "steps/z"),
        ];
        for event in ignored {
            assert_eq!(set_sub_task_value(&mut text, &event), Ok(false), "{event}");
        }
        assert_eq!(set_sub_task_value(&mut text, &event("x", "topic", "p1", "steps/par/p1")), Ok(true));
        assert!(text.text().contains(r#""x": 1"#), "{}", text.text());
    }
}
