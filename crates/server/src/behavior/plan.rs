//! Plans for clients: the stages of a workflow, the steps of a stage, or the next behavior of a step.

use std::collections::BTreeSet;

use bcc_lang::message::message::Message;
use bcc_runtime::notebook::protocol::brief::cut;
use serde_json::{Map, Value, json};

use crate::behavior::goal::GoalLevel;
use crate::behavior::request::BehaviorRequest;
use crate::behavior::workflow_state::WorkflowState;

/// The maximum number of stages, steps, artifacts or conditions in one list.
const MAX_ITEMS: usize = 50;

/// The maximum size of a text of a plan, in bytes.
const MAX_TEXT_BYTES: usize = 4_000;

/// The maximum size of an id or a title, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// What is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanLevel {
    Stages,
    Steps,
    Behavior,
}

impl PlanLevel {
    /// Its name for templates and scripts.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stages => "stages",
            Self::Steps => "steps",
            Self::Behavior => "behavior",
        }
    }

    /// The fields of a reply about it.
    pub(crate) const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Stages => &["title", "focus", "stages"],
            Self::Steps => &["focus", "goals", "steps"],
            Self::Behavior => &["behavior"],
        }
    }

    /// The level whose goal is planned for.
    pub(crate) const fn goal_level(self) -> GoalLevel {
        match self {
            Self::Stages => GoalLevel::Workflow,
            Self::Steps => GoalLevel::Stage,
            Self::Behavior => GoalLevel::Step,
        }
    }

    /// What a client in this state needs next. None if it needs no plan.
    pub(crate) const fn of_state(state: WorkflowState) -> Option<Self> {
        match state {
            WorkflowState::Idle => Some(Self::Stages),
            WorkflowState::StageRunning => Some(Self::Steps),
            WorkflowState::StepRunning => Some(Self::Behavior),
            _ => None,
        }
    }
}

/// A stage or a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlannedItem {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) goal: String,
    /// What it produces: names with descriptions.
    pub(crate) artifacts: Vec<(String, String)>,
    /// What it needs.
    pub(crate) required: Vec<(String, String)>,
}

/// A behavior: one piece of work of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlannedBehavior {
    pub(crate) id: String,
    pub(crate) step_id: String,
    pub(crate) agent: String,
    pub(crate) task: String,
    pub(crate) inputs: Vec<(String, String)>,
    pub(crate) outputs: Vec<(String, String)>,
    /// Conditions that can be checked.
    pub(crate) acceptance: Vec<String>,
}

/// A plan for one level. It is never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkflowPlan {
    Stages { title: String, focus: String, stages: Vec<PlannedItem> },
    Steps { focus: String, goals: String, steps: Vec<PlannedItem> },
    Behavior(PlannedBehavior),
}

impl WorkflowPlan {
    /// Reads the reply of a model or a script.
    ///
    /// # Errors
    /// It has no stage, no step, or no task.
    pub(crate) fn read(level: PlanLevel, reply: &Value, request: &BehaviorRequest) -> Result<Self, Message> {
        let reply = match (level, reply) {
            // A list alone is the list of the level.
            (PlanLevel::Stages | PlanLevel::Steps, Value::Array(_)) => &json!({ level.name(): reply }),
            _ => reply,
        };
        let fields = reply.as_object().ok_or_else(|| Message::word("it is not an object"))?;
        let text = |name: &str| text_of(fields, &[name], MAX_TEXT_BYTES);
        match level {
            PlanLevel::Stages => {
                let stages = items(fields.get("stages"), "stage");
                if stages.is_empty() {
                    return Err(Message::word("`stages` has no stage with a goal or a title"));
                }
                let title = text_of(fields, &["title"], MAX_NAME_BYTES);
                Ok(Self::Stages { title, focus: text("focus"), stages })
            }
            PlanLevel::Steps => {
                let steps = items(fields.get("steps"), "step");
                if steps.is_empty() {
                    return Err(Message::word("`steps` has no step with a goal or a title"));
                }
                Ok(Self::Steps { focus: text("focus"), goals: text("goals"), steps })
            }
            PlanLevel::Behavior => {
                let fields = fields.get("behavior").and_then(Value::as_object).unwrap_or(fields);
                let task = text_of(fields, &["task", "target", "goal"], MAX_TEXT_BYTES);
                if task.is_empty() {
                    return Err(Message::word("`behavior` has no task"));
                }
                Ok(Self::Behavior(PlannedBehavior {
                    agent: text_of(fields, &["agent"], MAX_NAME_BYTES),
                    task,
                    inputs: named(fields.get("inputs")),
                    outputs: named(fields.get("outputs")),
                    acceptance: texts(fields.get("acceptance")),
                    ..PlannedBehavior::of(request)
                }))
            }
        }
    }

    /// The plan when nobody made a usable one: the goal undivided.
    pub(crate) fn undivided(level: PlanLevel, request: &BehaviorRequest, without_goal: &str) -> Self {
        let found = request.goal(level.goal_level());
        let goal = if found.is_empty() { without_goal.to_owned() } else { found };
        let title = cut(goal.lines().next().unwrap_or_default(), MAX_NAME_BYTES);
        let item = |id: &str| PlannedItem {
            id: id.to_owned(),
            title: title.clone(),
            goal: goal.clone(),
            ..PlannedItem::default()
        };
        match level {
            PlanLevel::Stages => {
                Self::Stages { title: title.clone(), focus: String::new(), stages: vec![item("stage_1")] }
            }
            PlanLevel::Steps => Self::Steps { focus: String::new(), goals: goal.clone(), steps: vec![item("step_1")] },
            PlanLevel::Behavior => Self::Behavior(PlannedBehavior { task: goal, ..PlannedBehavior::of(request) }),
        }
    }
}

impl PlannedBehavior {
    /// The next behavior of the current step, without a task.
    fn of(request: &BehaviorRequest) -> Self {
        let step_id = request.observed.location.step_id.clone().unwrap_or_else(|| "step_1".to_owned());
        Self { id: format!("{step_id}_b{}", request.next_behavior()), step_id, ..Self::default() }
    }
}

fn text_of(fields: &Map<String, Value>, names: &[&str], max: usize) -> String {
    let found = names.iter().filter_map(|name| fields.get(*name)?.as_str()).map(str::trim);
    found.filter(|text| !text.is_empty()).map(|text| cut(text, max)).next().unwrap_or_default()
}

/// The stages or steps of a list. Each has an id of its own; what has neither a goal nor a title is left out.
fn items(list: Option<&Value>, kind: &str) -> Vec<PlannedItem> {
    let mut ids = BTreeSet::new();
    let mut items: Vec<PlannedItem> = Vec::new();
    for sent in list.and_then(Value::as_array).into_iter().flatten().take(MAX_ITEMS) {
        let one = match sent {
            Value::String(title) => json!({ "title": title }),
            other => other.clone(),
        };
        let Some(fields) = one.as_object() else { continue };
        let title = text_of(fields, &["title", "name"], MAX_NAME_BYTES);
        let goal = text_of(fields, &["goal", "description"], MAX_TEXT_BYTES);
        if title.is_empty() && goal.is_empty() {
            continue;
        }
        let written = text_of(fields, &[&format!("{kind}_id"), "id"], MAX_NAME_BYTES);
        let is_id = |id: &str| id.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
        let numbered = format!("{kind}_{}", items.len() + 1);
        let mut id = if !written.is_empty() && is_id(&written) { written } else { numbered };
        while !ids.insert(id.clone()) {
            id.push_str("_2");
        }
        let title = if title.is_empty() { cut(&goal, MAX_NAME_BYTES) } else { title };
        let goal = if goal.is_empty() { title.clone() } else { goal };
        let artifacts = ["verified_artifacts", "artifacts", "outputs"].iter().find_map(|name| fields.get(*name));
        let required = ["required_variables", "inputs"].iter().find_map(|name| fields.get(*name));
        items.push(PlannedItem { id, title, goal, artifacts: named(artifacts), required: named(required) });
    }
    items
}

/// Names with descriptions: an object, a list of objects with `name` and `description`, or a list of names.
fn named(value: Option<&Value>) -> Vec<(String, String)> {
    let described = |value: &Value| match value {
        Value::String(text) => cut(text.trim(), MAX_TEXT_BYTES),
        Value::Null => String::new(),
        other => cut(&other.to_string(), MAX_TEXT_BYTES),
    };
    let all: Vec<(String, String)> = match value {
        Some(Value::Object(fields)) => {
            fields.iter().take(MAX_ITEMS).map(|(name, value)| (name.clone(), described(value))).collect()
        }
        Some(Value::Array(list)) => {
            let one = |item: &Value| match item {
                Value::String(name) => Some((name.clone(), String::new())),
                Value::Object(fields) => Some((
                    fields.get("name")?.as_str()?.to_owned(),
                    fields.get("description").map(described).unwrap_or_default(),
                )),
                _ => None,
            };
            list.iter().take(MAX_ITEMS).filter_map(one).collect()
        }
        _ => vec![],
    };
    all.into_iter()
        .map(|(name, text)| (cut(name.trim(), MAX_NAME_BYTES), text))
        .filter(|(name, _)| !name.is_empty())
        .collect()
}

/// A list of texts, or a single text.
fn texts(value: Option<&Value>) -> Vec<String> {
    let list = match value {
        Some(Value::Array(list)) => list.as_slice(),
        Some(text @ Value::String(_)) => std::slice::from_ref(text),
        _ => &[],
    };
    let texts = list.iter().take(MAX_ITEMS).filter_map(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    texts.map(|text| cut(text, MAX_TEXT_BYTES)).collect()
}
