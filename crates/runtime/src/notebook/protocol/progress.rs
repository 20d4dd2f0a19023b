//! The progress of a session in its plan, and its goals (docs/notebook.md).

use serde_json::{Value, json};

use crate::notebook::protocol::brief::{MAX_NAME_BYTES, cut, fitting, last};
use crate::notebook::state::NotebookState;
use crate::notebook::workflow::{PlanStep, Stage};

/// The maximum size of one list of stages or steps, in bytes.
const MAX_LIST_BYTES: usize = 1_500;

/// The maximum size of one goal, in bytes.
const MAX_GOAL_BYTES: usize = 1_000;

/// The level of detail of a stage or step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressDetail {
    /// Its id, as in docs/notebook.md.
    Ids,
    /// Its id, title and goal, as in the legacy form.
    Full,
}

/// The data of a stage or a step.
struct Item<'a> {
    id: &'a str,
    name: &'a str,
    goal: &'a str,
}

impl<'a> From<&'a Stage> for Item<'a> {
    fn from(stage: &'a Stage) -> Self {
        Self { id: &stage.id, name: &stage.name, goal: &stage.goal }
    }
}

impl<'a> From<&'a PlanStep> for Item<'a> {
    fn from(step: &'a PlanStep) -> Self {
        Self { id: &step.id, name: &step.name, goal: &step.goal }
    }
}

impl Item<'_> {
    fn to_json(&self, key: &'static str, detail: ProgressDetail) -> Value {
        let id = cut(self.id, MAX_NAME_BYTES);
        match detail {
            ProgressDetail::Ids => Value::String(id),
            ProgressDetail::Full => {
                json!({ key: id, "title": cut(self.name, MAX_NAME_BYTES), "goal": cut(self.goal, MAX_GOAL_BYTES) })
            }
        }
    }
}

/// One list of the progress: the completed, current and remaining items of `all`.
fn list<'a>(
    all: impl Iterator<Item = Item<'a>>,
    completed: &[String],
    current: Option<&str>,
    key: &'static str,
    detail: ProgressDetail,
) -> Value {
    let mut current_item = current.map_or(Value::Null, |id| Item { id, name: "", goal: "" }.to_json(key, detail));
    let mut remaining = Vec::new();
    for item in all {
        if Some(item.id) == current {
            current_item = item.to_json(key, detail);
        } else if !completed.iter().any(|done| done == item.id) {
            remaining.push(item);
        }
    }
    let remaining = fitting(remaining.iter().map(|item| item.to_json(key, detail)), MAX_LIST_BYTES);
    let mut list = json!({"completed": last(completed.iter(), 1, MAX_LIST_BYTES), "current": current_item, "remaining": remaining});
    add_legacy_fields(&mut list, detail);
    list
}

/// Adds the fields of the legacy form, which are always empty except for `focus`.
fn add_legacy_fields(list: &mut Value, detail: ProgressDetail) {
    if let (ProgressDetail::Full, Some(fields)) = (detail, list.as_object_mut()) {
        let focus = fields.get("current").and_then(|current| current.get("goal")).cloned().unwrap_or_else(|| json!(""));
        fields.insert("focus".to_owned(), focus);
        fields.insert("current_outputs".to_owned(), json!({"expected": [], "produced": [], "in_progress": []}));
    }
}

/// `progress`: the stages of the plan, the steps of the current stage, and the behaviors of the step.
pub fn progress(state: &NotebookState, detail: ProgressDetail) -> Value {
    let location = &state.location;
    let stages = state.workflow.as_ref().map(|plan| plan.stages.as_slice()).unwrap_or_default();
    let (stage_id, step_id) = (location.stage_id.as_deref(), location.step_id.as_deref());
    let steps = stages.iter().find(|stage| Some(stage.id.as_str()) == stage_id).map(|stage| stage.steps.as_slice());
    let steps = steps.unwrap_or_default();
    let of_stage: Vec<String> =
        location.completed_steps.iter().filter(|done| steps.iter().any(|step| step.id == **done)).cloned().collect();
    let mut behaviors = json!({
        "completed": [],
        "current": location.behavior_id.as_deref().map(|id| cut(id, MAX_NAME_BYTES)),
        "iteration": location.behavior_iteration,
    });
    add_legacy_fields(&mut behaviors, detail);
    json!({
        "stages": list(stages.iter().map(Item::from), &location.completed_stages, stage_id, "stage_id", detail),
        "steps": list(steps.iter().map(Item::from), &of_stage, step_id, "step_id", detail),
        "behaviors": behaviors,
    })
}

/// `goals`: those of the stage and of the step; that of a behavior is set by its source.
pub fn goals(state: &NotebookState) -> Value {
    let location = &state.location;
    let stages = state.workflow.as_ref().map(|plan| plan.stages.as_slice()).unwrap_or_default();
    let stage = stages.iter().find(|stage| Some(&stage.id) == location.stage_id.as_ref());
    let step = stage.and_then(|stage| stage.steps.iter().find(|step| Some(&step.id) == location.step_id.as_ref()));
    let goal = |item: Item<'_>| {
        let text = if item.goal.is_empty() { item.name } else { item.goal };
        Some(cut(text, MAX_GOAL_BYTES)).filter(|goal| !goal.is_empty())
    };
    json!({
        "stage": stage.and_then(|stage| goal(Item::from(stage))),
        "step": step.and_then(|step| goal(Item::from(step))),
        "behavior": null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notebook::protocol::brief::size;
    use crate::notebook::workflow::Workflow;

    fn state() -> NotebookState {
        let plan = json!({"name": "n", "stages": [
            {"id": "read", "name": "Read", "steps": [{"id": "a", "goal": "to see"}, {"id": "b"}, {"id": "c"}]},
            {"id": "tell", "name": "Tell", "goal": "to be heard", "steps": []},
        ]});
        let mut state = NotebookState {
            workflow: Some(serde_json::from_value::<Workflow>(plan).unwrap()),
            ..NotebookState::default()
        };
        state.location.stage_id = Some("read".into());
        state.location.step_id = Some("b".into());
        state.location.behavior_id = Some("b_b2".into());
        state.location.behavior_iteration = 2;
        state.location.completed_steps = vec!["a".into(), "from another plan".into()];
        state
    }

    #[test]
    fn progress_and_goals_have_the_documented_form() {
        let state = state();
        assert_eq!(
            progress(&state, ProgressDetail::Ids),
            json!({
                "stages": {"completed": [], "current": "read", "remaining": ["tell"]},
                "steps": {"completed": ["a"], "current": "b", "remaining": ["c"]},
                "behaviors": {"completed": [], "current": "b_b2", "iteration": 2},
            })
        );
        assert_eq!(goals(&state), json!({"stage": "Read", "step": null, "behavior": null}));
        let full = progress(&state, ProgressDetail::Full);
        assert_eq!(full["stages"]["remaining"], json!([{"stage_id": "tell", "title": "Tell", "goal": "to be heard"}]));
    }

    #[test]
    fn the_size_of_the_progress_is_limited() {
        let mut state = state();
        let step = PlanStep { id: "s".repeat(300), goal: "g".repeat(9_999), ..PlanStep::default() };
        let stage = Stage { id: "t".repeat(300), steps: vec![step; 500], ..Stage::default() };
        state.workflow = Some(Workflow { name: "n".into(), stages: vec![stage; 200] });
        state.location.completed_steps = vec!["d".repeat(300); 10_000];
        for detail in [ProgressDetail::Ids, ProgressDetail::Full] {
            assert!(size(&progress(&state, detail)) < 10_000);
        }
    }
}
