//! The plan of a state document: complete under `workflow`, or as far as its progress names it.

use std::collections::HashSet;
use std::sync::Arc;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::yaml::YamlNode;
use serde_json::{Value, json};

use crate::notebook::protocol::state_document::fields::StateObject;
use crate::notebook::state::Location;
use crate::notebook::workflow::{PlanStep, Stage, Workflow, read_steps};

/// The fields of a plan.
const PLAN_FIELDS: [&str; 3] = ["stages", "name", "title"];

/// The items of one level of the progress.
#[derive(Default)]
pub(crate) struct ProgressItems {
    pub completed: Vec<Value>,
    pub current: Option<Value>,
    pub remaining: Vec<Value>,
}

impl ProgressItems {
    /// Reads `progress.stages` or `progress.steps`.
    pub(crate) fn read(progress: Option<&StateObject<'_>>, level: &str) -> Self {
        let Some(list) = progress.and_then(|progress| progress.object(level, None)) else { return Self::default() };
        let items =
            |name: &str| list.list(name).unwrap_or_default().iter().map(|item| item.to_json()).collect::<Vec<_>>();
        let read = Self {
            completed: items("completed"),
            current: list.take("current").map(|item| item.to_json()),
            remaining: items("remaining"),
        };
        ignore_derived(&list);
        list.finish();
        read
    }

    fn in_order(&self) -> impl Iterator<Item = &Value> {
        self.completed.iter().chain(&self.current).chain(&self.remaining)
    }
}

/// Fields of the legacy form that are empty, or follow from the plan.
pub(crate) fn ignore_derived(list: &StateObject<'_>) {
    list.ignore(&["current_outputs"]);
    let focus = list.take("focus");
    if let Some(focus) = focus.filter(|focus| focus.as_scalar().is_none_or(|scalar| !scalar.text.trim().is_empty())) {
        let place = list.place_of("focus");
        let message = msg!("`{place}` is not taken over: it is what the server made of its plan");
        list.report().warn("unknown-key", message, focus.span);
    }
}

/// The id of a stage or a step, which may be an id or an object.
pub(crate) fn id_of(item: &Value) -> Option<String> {
    let found = match item {
        Value::Object(fields) => ["stage_id", "step_id", "id"].iter().find_map(|name| fields.get(*name)),
        other => Some(other),
    }?;
    match found {
        Value::String(id) => Some(id.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A plan in the field `name`, checked.
pub(crate) fn written_plan(object: &StateObject<'_>, name: &str) -> Option<Workflow> {
    let node = object.take(name)?;
    for entry in node.as_mapping().unwrap_or_default() {
        if !PLAN_FIELDS.contains(&entry.key.value.as_str()) {
            let place = format!("{}.{}", object.place_of(name), entry.key.value);
            let message = msg!("`{place}` is not part of a state, and is not taken over");
            object.report().warn("unknown-key", message, entry.key.span);
        }
    }
    checked(object, name, node, Workflow::read(&node.to_json()).map_err(|error| error.message))
}

fn checked(
    object: &StateObject<'_>,
    name: &str,
    node: &Arc<YamlNode>,
    plan: Result<Workflow, Message>,
) -> Option<Workflow> {
    let checked = plan.and_then(|plan| plan.check().map(|()| plan).map_err(|rejection| rejection.message));
    let place = object.place_of(name);
    checked.map_err(|why| object.report().error("wrong-type", msg!("`{place}` is no plan: {why}"), node.span)).ok()
}

/// The plan that the progress describes, or, without one, the stage and the step of the location; none if there is neither.
pub(crate) fn plan_of_progress(
    place: (&StateObject<'_>, &str),
    (stages, steps): (&ProgressItems, &ProgressItems),
    location: &Location,
) -> Option<Workflow> {
    let (object, name) = place;
    let node = object.take(name);
    let plan = plan_of_items(stages, steps, location)?;
    match (node, plan) {
        (Some(node), plan) => checked(object, name, node, plan),
        (None, plan) => plan.ok(),
    }
}

fn plan_of_items(
    stages: &ProgressItems,
    steps: &ProgressItems,
    location: &Location,
) -> Option<Result<Workflow, Message>> {
    let mut listed: Vec<Value> = stages.in_order().map(as_object).collect();
    if listed.is_empty() {
        listed.extend(location.stage_id.as_ref().map(|id| json!({ "id": id })));
    }
    if listed.is_empty() {
        return None;
    }
    let mut of_stage: Vec<Value> = steps.in_order().map(as_object).collect();
    if of_stage.is_empty() {
        of_stage.extend(location.step_id.as_ref().map(|id| json!({ "id": id })));
    }
    let plan = Workflow::read(&Value::Array(listed)).map_err(|error| error.message);
    Some(plan.and_then(|mut plan| {
        let steps = read_steps(&Value::Array(of_stage)).map_err(|error| error.message)?;
        let current = location.stage_id.as_ref();
        if let Some(stage) = plan.stages.iter_mut().find(|stage| Some(&stage.id) == current) {
            stage.steps = steps;
        }
        Ok(plan)
    }))
}

fn as_object(item: &Value) -> Value {
    match id_of(item).filter(|_| !item.is_object()) {
        Some(id) => json!({ "id": id }),
        None => item.clone(),
    }
}

/// Whether all steps of the plan that are known are completed, and no stage waits for its steps.
pub(crate) fn is_over(plan: &Workflow, location: &Location) -> bool {
    let completed: HashSet<&str> = location.completed_steps.iter().map(String::as_str).collect();
    let is_completed = |step: &PlanStep| completed.contains(step.id.as_str());
    let is_done = |stage: &Stage| {
        location.completed_stages.contains(&stage.id)
            || (!stage.steps.is_empty() && stage.steps.iter().all(is_completed))
    };
    plan.stages.iter().all(is_done)
}

/// The goals of a state, by level; a single text is that of the innermost current item.
#[derive(Default)]
pub(crate) struct ReadGoals {
    pub stage: Option<String>,
    pub step: Option<String>,
    pub behavior: Option<String>,
}

impl ReadGoals {
    pub(crate) fn read(object: &StateObject<'_>, location: &Location) -> Self {
        let Some(node) = object.take("goals") else { return Self::default() };
        if node.as_mapping().is_none() {
            let goal = object.text("goals");
            return match (&location.step_id, &location.behavior_id) {
                (_, Some(_)) => Self { behavior: goal, ..Self::default() },
                (Some(_), None) => Self { step: goal, ..Self::default() },
                (None, None) => Self { stage: goal, ..Self::default() },
            };
        }
        let Some(goals) = object.object("goals", None) else { return Self::default() };
        let read = Self { stage: goals.text("stage"), step: goals.text("step"), behavior: goals.text("behavior") };
        goals.finish();
        read
    }

    /// Completes the plan with the goals of the current stage and step. Returns the goal that belongs to no stage.
    pub(crate) fn put_into(&self, plan: Option<&mut Workflow>, location: &Location) -> Option<String> {
        let add = |goal: &mut String, name: &str, given: Option<&String>| {
            if let Some(given) = given.filter(|given| goal.is_empty() && *given != name) {
                goal.clone_from(given);
            }
        };
        let stages = plan.map(|plan| plan.stages.iter_mut()).into_iter().flatten();
        let Some(stage) = { stages }.find(|stage| Some(&stage.id) == location.stage_id.as_ref()) else {
            return self.stage.clone();
        };
        add(&mut stage.goal, &stage.name, self.stage.as_ref());
        let step = stage.steps.iter_mut().find(|step| Some(&step.id) == location.step_id.as_ref());
        if let Some(step) = step {
            add(&mut step.goal, &step.name, self.step.as_ref());
        }
        None
    }
}
