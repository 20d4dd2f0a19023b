//! Compares a state file that somebody else changed with what was last written into it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::message::message::Message;
use crate::message::msg;
use crate::workflow::fields::STEP_FIELDS;
use crate::workflow::status::StateStatus;

/// What somebody changed in a state file, if it does not contradict what has run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignChange {
    /// The decisions about steps that wait, in the order of the ids of the steps.
    pub decisions: Vec<FileDecision>,
    /// Whether what is still to do has changed, or a variable.
    pub is_replanned: bool,
}

/// A decision that was made by editing the status of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDecision {
    pub step: String,
    /// The request that the step waits for.
    pub request: String,
    pub is_approved: bool,
    /// `by` or `approved_by` of its `result`.
    pub by: Option<String>,
    /// `comment` of its `result`.
    pub comment: Option<String>,
    /// `values` of its `result`: an object with those of the form, if it is as it should be.
    pub values: Value,
}

/// The steps that wait for a decision, each with the id of its request.
pub type WaitingSteps = BTreeMap<String, String>;

/// Fields that do not decide what a step does.
const NOT_A_PLAN: [&str; 6] = ["name", "description", "status", "started_at", "completed_at", "result"];

/// Compares `found` with what was `written`, both as JSON. `waiting` are the steps that wait for a
/// decision, each with its request.
///
/// # Errors
/// The change contradicts what has run, or what runs now.
pub fn compare(written: &Value, found: &Value, waiting: &WaitingSteps) -> Result<ForeignChange, Message> {
    let (ours, theirs) = (Outline::of(written), Outline::of(found));
    if ours.id != theirs.id {
        return Err(msg!("its `workflow_id` is now `{}`", theirs.id));
    }
    let mut change = ForeignChange::default();
    for (id, step) in &ours.steps {
        let Some(other) = theirs.steps.get(id) else {
            if step.status == Some(StateStatus::Pending) {
                change.is_replanned = true;
                continue;
            }
            return Err(msg!("the step `{id}` is missing now, but it is `{}`", status_name(step.status)));
        };
        change.is_replanned |= step.plan != other.plan;
        if step.status == other.status {
            continue;
        }
        if let Some(request) = waiting.get(id).filter(|_| decides(step, other)) {
            change.decisions.push(decision((id, request), other));
        } else if step.status == Some(StateStatus::Pending) && other.status.is_some_and(StateStatus::is_done) {
            change.is_replanned = true;
        } else {
            let (is, found) = (status_name(step.status), status_name(other.status));
            return Err(msg!("the step `{id}` is `{is}`, but the file now says `{found}`"));
        }
    }
    if let Some((id, step)) = theirs.steps.iter().find(|(id, step)| {
        !ours.steps.contains_key(*id) && !matches!(step.status, Some(StateStatus::Pending | StateStatus::Skipped))
    }) {
        let status = status_name(step.status);
        return Err(msg!("the step `{id}` is new and has not run, but its status is `{status}`"));
    }
    change.is_replanned |=
        ours.order != theirs.order || ours.variables != theirs.variables || ours.tools != theirs.tools;
    if change.decisions.is_empty() && (ours.current != theirs.current || ours.status != theirs.status) {
        return Err(match ours.current != theirs.current {
            true => msg!("`current_step` is now `{}`", theirs.current),
            false => msg!("`status` is now `{}`", theirs.status),
        });
    }
    Ok(change)
}

/// The decisions that somebody made by editing a state file, also if the file contradicts what has run otherwise. The arguments are those of
/// [`compare`].
pub fn decisions(written: &Value, found: &Value, waiting: &WaitingSteps) -> Vec<FileDecision> {
    let (ours, theirs) = (Outline::of(written), Outline::of(found));
    if ours.id != theirs.id {
        return vec![];
    }
    let decided = waiting.iter().filter_map(|(id, request)| {
        let (step, other) = (ours.steps.get(id)?, theirs.steps.get(id)?);
        decides(step, other).then(|| decision((id, request), other))
    });
    decided.collect()
}

/// Whether the status of a step that waits for a decision was edited to one.
fn decides(step: &StepOutline, other: &StepOutline) -> bool {
    step.status != other.status && matches!(other.status, Some(StateStatus::Completed | StateStatus::Failed))
}

/// What the steps of a state file do, without their progress: the fields that must be trusted before commands run.
pub fn plan(root: &Value) -> Value {
    let known: BTreeSet<&str> = STEP_FIELDS.into_iter().filter(|name| !NOT_A_PLAN.contains(name)).collect();
    let steps = root.get("steps").and_then(Value::as_array);
    let plans: Vec<Value> = steps.into_iter().flatten().map(|step| plan_of_step(step, &known)).collect();
    let mut plan = serde_json::json!({ "workflow_id": root.get("workflow_id"), "steps": plans });
    // Which tools may be called, and who is asked before.
    if let (Some(tools), Some(plan)) = (root.get("tools"), plan.as_object_mut()) {
        plan.insert("tools".to_owned(), tools.clone());
    }
    plan
}

/// What makes a step run something by itself. Any other one is decided by a person, who reads its `prompt`, `description` or `name`.
const RUNS: [&str; 5] = ["command", "skill", "tool", "simulate", "cases"];

fn plan_of_step(step: &Value, known: &BTreeSet<&str>) -> Value {
    let Some(fields) = step.as_object() else { return step.clone() };
    let is_decided = !fields.contains_key("sub_tasks") && !RUNS.iter().any(|runs| fields.contains_key(*runs));
    let is_read = |name: &str| is_decided && matches!(name, "name" | "description");
    // In the order of their names, whatever it is in the file.
    let plan: BTreeMap<&str, Value> = fields
        .iter()
        .filter(|(name, _)| known.contains(name.as_str()) || is_read(name))
        .map(|(name, value)| match value.as_array().filter(|_| name == "sub_tasks") {
            Some(tasks) => (name.as_str(), Value::Array(tasks.iter().map(|task| plan_of_step(task, known)).collect())),
            None => (name.as_str(), value.clone()),
        })
        .collect();
    serde_json::json!(plan)
}

/// What a comparison needs of a state file.
struct Outline {
    id: String,
    status: String,
    current: String,
    variables: Value,
    tools: Value,
    /// The ids of steps and sub tasks, in their order.
    order: Vec<String>,
    steps: BTreeMap<String, StepOutline>,
}

struct StepOutline {
    /// `None` if there is no such status.
    status: Option<StateStatus>,
    /// The fields that decide what the step does.
    plan: Map<String, Value>,
    result: Map<String, Value>,
}

impl Outline {
    fn of(root: &Value) -> Self {
        let text = |name: &str| root.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut outline = Self {
            id: text("workflow_id"),
            status: text("status"),
            current: text("current_step"),
            variables: root.get("variables").cloned().unwrap_or_default(),
            tools: root.get("tools").cloned().unwrap_or_default(),
            order: vec![],
            steps: BTreeMap::new(),
        };
        for step in root.get("steps").and_then(Value::as_array).into_iter().flatten() {
            outline.add(step);
            let tasks = step.get("sub_tasks").and_then(Value::as_array);
            tasks.into_iter().flatten().for_each(|task| outline.add(task));
        }
        outline
    }

    fn add(&mut self, step: &Value) {
        let Some(fields) = step.as_object() else { return };
        let known: BTreeSet<&str> = STEP_FIELDS.into_iter().filter(|name| !NOT_A_PLAN.contains(name)).collect();
        let is_plan = |(name, _): &(&String, &Value)| known.contains(name.as_str()) && *name != "sub_tasks";
        let plan = fields.iter().filter(is_plan).map(|(name, value)| (name.clone(), value.clone())).collect();
        let status = match fields.get("status") {
            None | Some(Value::Null) => Some(StateStatus::Pending),
            Some(status) => status.as_str().and_then(StateStatus::parse),
        };
        let result = fields.get("result").and_then(Value::as_object).cloned().unwrap_or_default();
        let id = match fields.get("id") {
            Some(Value::String(id)) => id.clone(),
            other => other.map(Value::to_string).unwrap_or_default(),
        };
        self.order.push(id.clone());
        self.steps.insert(id, StepOutline { status, plan, result });
    }
}

fn decision((id, request): (&str, &str), step: &StepOutline) -> FileDecision {
    let text = |name: &str| step.result.get(name).and_then(Value::as_str).map(str::to_owned);
    let is_rejected = step.result.get("decision").is_some_and(|decision| decision == "reject");
    FileDecision {
        step: id.to_owned(),
        request: request.to_owned(),
        is_approved: step.status == Some(StateStatus::Completed) && !is_rejected,
        by: text("by").or_else(|| text("approved_by")),
        comment: text("comment"),
        values: step.result.get("values").cloned().unwrap_or_default(),
    }
}

fn status_name(status: Option<StateStatus>) -> &'static str {
    status.map_or("?", StateStatus::name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file() -> Value {
        json!({ "workflow_id": "w", "status": "waiting_approval", "current_step": "ok", "variables": { "n": 1 }, "mine": 1, "steps": [
            { "id": "a", "status": "completed", "command": ["x"] },
            { "id": "ok", "type": "approval", "status": "waiting_approval" },
            { "id": "p", "type": "parallel", "sub_tasks": [{ "id": "p1", "command": ["y"] }] },
        ] })
    }

    fn waiting() -> WaitingSteps {
        WaitingSteps::from([("ok".to_owned(), "r7".to_owned())])
    }

    fn edited(pointer: &str, value: Value) -> Result<ForeignChange, String> {
        let mut found = file();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        match found.pointer_mut(parent).unwrap() {
            Value::Object(fields) => _ = fields.insert(name.to_owned(), value),
            Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
            _ => unreachable!(),
        }
        compare(&file(), &found, &waiting()).map_err(|message| message.to_string())
    }

    #[test]
    fn edits_are_told_apart() {
        let nothing = ForeignChange::default();
        let replanned = ForeignChange { is_replanned: true, ..ForeignChange::default() };
        let table = [
            ("/mine", json!(2), Ok(nothing.clone())),
            ("/steps/0/name", json!("first"), Ok(nothing)),
            ("/variables/n", json!(2), Ok(replanned.clone())),
            ("/steps/2/sub_tasks/0/command", json!(["z"]), Ok(replanned.clone())),
            ("/steps/2/status", json!("skipped"), Ok(replanned)),
            ("/workflow_id", json!("v"), Err("its `workflow_id` is now `v`")),
            ("/steps/0/status", json!("pending"), Err("the step `a` is `completed`, but the file now says `pending`")),
            (
                "/steps/1/status",
                json!("running"),
                Err("the step `ok` is `waiting_approval`, but the file now says `running`"),
            ),
            ("/steps/0/id", json!("b"), Err("the step `a` is missing now, but it is `completed`")),
            (
                "/steps/2",
                json!({ "id": "q", "status": "running" }),
                Err("the step `q` is new and has not run, but its status is `running`"),
            ),
            ("/current_step", json!("a"), Err("`current_step` is now `a`")),
            ("/status", json!("paused"), Err("`status` is now `paused`")),
        ];
        for (pointer, value, expected) in table {
            assert_eq!(edited(pointer, value), expected.map_err(str::to_owned), "{pointer}");
        }
    }

    #[test]
    fn an_edited_status_decides() {
        let approved = json!({ "id": "ok", "type": "approval", "status": "completed", "result": { "by": "Li", "comment": "go", "values": { "port": 80 } } });
        let decisions = edited("/steps/1", approved).unwrap().decisions;
        let expected = FileDecision {
            step: "ok".into(),
            request: "r7".into(),
            is_approved: true,
            by: Some("Li".into()),
            comment: Some("go".into()),
            values: json!({ "port": 80 }),
        };
        assert_eq!(decisions, [expected]);
        let failed = json!({ "id": "ok", "type": "approval", "status": "failed" });
        assert!(!edited("/steps/1", failed).unwrap().decisions[0].is_approved);
        assert!(compare(&file(), &file(), &WaitingSteps::new()).unwrap() == ForeignChange::default());
        // Also in a file that contradicts what has run, unless it belongs to another workflow.
        let mut contradicting = file();
        contradicting["steps"][0]["status"] = json!("pending");
        contradicting["steps"][1]["status"] = json!("completed");
        assert!(compare(&file(), &contradicting, &waiting()).is_err());
        assert_eq!(super::decisions(&file(), &contradicting, &waiting()).len(), 1);
        contradicting["workflow_id"] = json!("v");
        assert!(super::decisions(&file(), &contradicting, &waiting()).is_empty());
    }
}
