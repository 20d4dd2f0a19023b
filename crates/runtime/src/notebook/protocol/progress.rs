//! How far a session is in its plan, and what for (docs/notebook.md).

use serde_json::{Value, json};

use crate::notebook::protocol::brief::{MOST_NAME_BYTES, cut, last, within};
use crate::notebook::state::NotebookState;
use crate::notebook::workflow::{PlanStep, Stage};

/// The most bytes of one list of stages or steps.
const MOST_LIST_BYTES: usize = 1_500;

/// The most bytes of one goal.
const MOST_GOAL_BYTES: usize = 1_000;

/// How much of a stage or step is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressDetail {
    /// Its id, as docs/notebook.md has it.
    Ids,
    /// Its id, title and goal, as servers of the older form know it.
    Whole,
}

/// A stage or a step, as far as it is told.
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
    fn told(&self, key: &'static str, told: ProgressDetail) -> Value {
        let id = cut(self.id, MOST_NAME_BYTES);
        match told {
            ProgressDetail::Ids => Value::String(id),
            ProgressDetail::Whole => {
                json!({ key: id, "title": cut(self.name, MOST_NAME_BYTES), "goal": cut(self.goal, MOST_GOAL_BYTES) })
            }
        }
    }
}

/// One list of the progress: what is completed, current and remaining of `all`.
fn list<'a>(
    all: impl Iterator<Item = Item<'a>>,
    completed: &[String],
    current: Option<&str>,
    key: &'static str,
    told: ProgressDetail,
) -> Value {
    let mut here = current.map_or(Value::Null, |id| Item { id, name: "", goal: "" }.told(key, told));
    let mut remaining = Vec::new();
    for item in all {
        if Some(item.id) == current {
            here = item.told(key, told);
        } else if !completed.iter().any(|done| done == item.id) {
            remaining.push(item);
        }
    }
    let remaining = within(remaining.iter().map(|item| item.told(key, told)), MOST_LIST_BYTES);
    let mut list =
        json!({"completed": last(completed.iter(), 1, MOST_LIST_BYTES), "current": here, "remaining": remaining});
    with_rest(&mut list, told);
    list
}

/// What servers of the older form find in each list, though nothing here fills it.
fn with_rest(list: &mut Value, told: ProgressDetail) {
    if let (ProgressDetail::Whole, Some(fields)) = (told, list.as_object_mut()) {
        let focus = fields.get("current").and_then(|current| current.get("goal")).cloned().unwrap_or_else(|| json!(""));
        fields.insert("focus".to_owned(), focus);
        fields.insert("current_outputs".to_owned(), json!({"expected": [], "produced": [], "in_progress": []}));
    }
}

/// `progress`: the stages of the plan, the steps of the stage that is current, and the behaviors of the step.
pub fn progress(state: &NotebookState, told: ProgressDetail) -> Value {
    let location = &state.location;
    let stages = state.workflow.as_ref().map(|plan| plan.stages.as_slice()).unwrap_or_default();
    let (stage_id, step_id) = (location.stage_id.as_deref(), location.step_id.as_deref());
    let steps = stages.iter().find(|stage| Some(stage.id.as_str()) == stage_id).map(|stage| stage.steps.as_slice());
    let steps = steps.unwrap_or_default();
    let of_stage: Vec<String> =
        location.completed_steps.iter().filter(|done| steps.iter().any(|step| step.id == **done)).cloned().collect();
    let mut behaviors = json!({
        "completed": [],
        "current": location.behavior_id.as_deref().map(|id| cut(id, MOST_NAME_BYTES)),
        "iteration": location.behavior_iteration,
    });
    with_rest(&mut behaviors, told);
    json!({
        "stages": list(stages.iter().map(Item::from), &location.completed_stages, stage_id, "stage_id", told),
        "steps": list(steps.iter().map(Item::from), &of_stage, step_id, "step_id", told),
        "behaviors": behaviors,
    })
}

/// `goals`: of the stage and the step; that of a behavior is made by whoever plans it.
pub fn goals(state: &NotebookState) -> Value {
    let location = &state.location;
    let stages = state.workflow.as_ref().map(|plan| plan.stages.as_slice()).unwrap_or_default();
    let stage = stages.iter().find(|stage| Some(&stage.id) == location.stage_id.as_ref());
    let step = stage.and_then(|stage| stage.steps.iter().find(|step| Some(&step.id) == location.step_id.as_ref()));
    let goal = |item: Item<'_>| {
        let said = if item.goal.is_empty() { item.name } else { item.goal };
        Some(cut(said, MOST_GOAL_BYTES)).filter(|goal| !goal.is_empty())
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
    fn progress_and_goals_are_those_of_000() {
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
        let whole = progress(&state, ProgressDetail::Whole);
        assert_eq!(whole["stages"]["remaining"], json!([{"stage_id": "tell", "title": "Tell", "goal": "to be heard"}]));
    }

    #[test]
    fn the_longest_plan_has_a_largest_size() {
        let mut state = state();
        let step = PlanStep { id: "s".repeat(300), goal: "g".repeat(9_999), ..PlanStep::default() };
        let stage = Stage { id: "t".repeat(300), steps: vec![step; 500], ..Stage::default() };
        state.workflow = Some(Workflow { name: "n".into(), stages: vec![stage; 200] });
        state.location.completed_steps = vec!["d".repeat(300); 10_000];
        for told in [ProgressDetail::Ids, ProgressDetail::Whole] {
            assert!(size(&progress(&state, told)) < 10_000);
        }
    }
}
