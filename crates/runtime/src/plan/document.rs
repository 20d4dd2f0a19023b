//! A plan as a JSON document, which `plans export` writes and `plans import` reads.

use std::collections::{HashMap, HashSet};

use bcc_lang::message::message::Message;
use bcc_lang::message::{ToMessage, msg};
use bcc_lang::source::near::did_you_mean;
use bcc_lang::value::digits::Digits;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::plan::create::checked_dependencies;
use crate::plan::error::OperationError;
use crate::plan::limits::{
    MAX_HEAD_BYTES, MAX_LEVELS, MAX_RESULT_BYTES, MAX_TASKS, MAX_TYPE_CHARS, check_bytes, check_chars, check_controls,
    check_instruction, check_metadata, checked_name,
};
use crate::plan::numbers::inexact_integer;
use crate::plan::task::{PlanHead, PlanId, PlanTask, TaskId, TaskStatus};
use crate::plan::tree::PlanTree;

/// The version of the form.
pub const DOCUMENT_VERSION: u64 = 1;

/// The highest id that is kept when a document is imported. New ids follow the highest one of the store, and must stay exact in JSON.
const MAX_KEPT_ID: u64 = 1_000_000_000_000;

/// The operation in the errors of texts.
const IMPORT: &str = "plans import";

const PLAN_FIELDS: [&str; 13] = [
    "bcc_plan",
    "plan_id",
    "title",
    "goal",
    "notes",
    "style",
    "sections",
    "status",
    "session_id",
    "workflow_id",
    "created_at",
    "updated_at",
    "tasks",
];

const TASK_FIELDS: [&str; 12] = [
    "id",
    "parent",
    "name",
    "task_type",
    "instruction",
    "metadata",
    "dependencies",
    "status",
    "result",
    "error",
    "created_at",
    "updated_at",
];

/// A plan with its tasks. Siblings are in the order of the list; otherwise the order does not matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanDocument {
    /// [`DOCUMENT_VERSION`].
    pub bcc_plan: u64,
    pub plan_id: PlanId,
    #[serde(flatten)]
    pub head: PlanHead,
    #[serde(default)]
    pub tasks: Vec<PlanTask>,
}

/// Why a document is not a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
pub enum PlanDocumentError {
    #[error("it is not JSON: {why}")]
    NotJson { why: Message },
    #[error("it has no field `bcc_plan`, as the files that `plans export` writes")]
    NotPlan,
    #[error("it has version {found}, but this version of bcc-script reads only version {DOCUMENT_VERSION}")]
    Version { found: u64 },
    #[error("{place} has an unknown field `{field}`; {help}")]
    UnknownField { place: Message, field: String, help: Message },
    #[error("{place} cannot be read: {why}")]
    Invalid { place: Message, why: Message },
    #[error("the number {number} cannot be kept exactly; write it as text, in quotes")]
    InexactNumber { number: String },
    #[error("an id is 0; ids begin with 1")]
    NoId,
    #[error("the id {id} is higher than {MAX_KEPT_ID} and cannot be kept; `--new-ids` gives new ids")]
    HighId { id: u64 },
    #[error("two tasks have the id {task}")]
    DuplicateTask { task: TaskId },
    #[error("task {task} is in task {parent}, which is not in the file")]
    UnknownParent { task: TaskId, parent: TaskId },
    #[error("task {task}: {why}")]
    Task { task: TaskId, why: Box<OperationError> },
    #[error(transparent)]
    Plan(OperationError),
}

fn check_fields(place: Message, object: &Map<String, Value>, known: &[&str]) -> Result<(), PlanDocumentError> {
    let Some(field) = object.keys().find(|field| !known.contains(&field.as_str())) else { return Ok(()) };
    let help =
        did_you_mean(field, known.iter().copied()).unwrap_or_else(|| msg!("it can have {}", Message::names(known)));
    Err(PlanDocumentError::UnknownField { place, field: field.clone(), help })
}

impl PlanDocument {
    pub fn of(tree: &PlanTree) -> Self {
        // Sessions mean nothing elsewhere.
        let task = |task: &PlanTask| PlanTask { run_by: None, ..task.clone() };
        let tasks = tree.all().filter_map(|id| tree.task(id)).map(task).collect();
        let head = PlanHead { runs_in: None, editors: vec![], ..tree.head().clone() };
        Self { bcc_plan: DOCUMENT_VERSION, plan_id: tree.id(), head, tasks }
    }

    /// Reads a document; its tasks are checked by `PlanDocument::tree`.
    pub fn read(json: &[u8]) -> Result<Self, PlanDocumentError> {
        let value: Value =
            serde_json::from_slice(json).map_err(|error| PlanDocumentError::NotJson { why: error.to_message() })?;
        let digits = std::str::from_utf8(json).ok().and_then(Digits::of_json);
        if let Some(number) = digits.as_ref().and_then(inexact_integer) {
            return Err(PlanDocumentError::InexactNumber { number: number.to_owned() });
        }
        let Value::Object(mut object) = value else { return Err(PlanDocumentError::NotPlan) };
        let version = object.get("bcc_plan").ok_or(PlanDocumentError::NotPlan)?;
        if let Some(found) = version.as_u64().filter(|found| *found != DOCUMENT_VERSION) {
            return Err(PlanDocumentError::Version { found });
        }
        check_fields(msg!("the plan"), &object, &PLAN_FIELDS)?;
        // They are read one by one, so that an error says where it is.
        let tasks = match object.get_mut("tasks") {
            Some(Value::Array(tasks)) => std::mem::take(tasks),
            _ => vec![],
        };
        if tasks.len() > MAX_TASKS {
            return Err(PlanDocumentError::Plan(OperationError::TooManyTasks));
        }
        let invalid =
            |place: Message, error: &serde_json::Error| PlanDocumentError::Invalid { place, why: error.to_message() };
        let mut document: Self =
            serde_json::from_value(Value::Object(object)).map_err(|error| invalid(msg!("the plan"), &error))?;
        for (number, task) in (1_u64..).zip(tasks) {
            if let Some(fields) = task.as_object() {
                check_fields(msg!("task number {number}"), fields, &TASK_FIELDS)?;
            }
            let task = serde_json::from_value(task).map_err(|error| invalid(msg!("task number {number}"), &error))?;
            document.tasks.push(task);
        }
        Ok(document)
    }

    /// Gives new ids to the plan and its tasks, which are those from `first_task` on.
    pub(crate) fn renumber(&mut self, plan: PlanId, first_task: TaskId) {
        let new: HashMap<TaskId, TaskId> = self.tasks.iter().map(|task| task.id).zip(first_task..).collect();
        let renumbered = |id: TaskId| new.get(&id).copied().unwrap_or(id);
        self.plan_id = plan;
        for task in &mut self.tasks {
            task.id = renumbered(task.id);
            task.parent = task.parent.map(renumbered);
            task.dependencies.iter_mut().for_each(|id| *id = renumbered(*id));
        }
    }

    /// Errors: [`PlanDocumentError::HighId`].
    pub(crate) fn check_kept_ids(&self) -> Result<(), PlanDocumentError> {
        let mut ids = std::iter::once(self.plan_id).chain(self.tasks.iter().map(|task| task.id));
        match ids.find(|id| *id > MAX_KEPT_ID) {
            Some(id) => Err(PlanDocumentError::HighId { id }),
            None => Ok(()),
        }
    }

    /// The plan for a user. What ran is pending: nothing runs it here. Times that are missing are `at`.
    pub(crate) fn tree(self, user: &str, at: &str) -> Result<PlanTree, PlanDocumentError> {
        let Self { plan_id, mut head, tasks, .. } = self;
        check_bytes("goal", &head, MAX_HEAD_BYTES).map_err(PlanDocumentError::Plan)?;
        head.title = checked_name(IMPORT, "title", &head.title).map_err(PlanDocumentError::Plan)?;
        stop_running(&mut head.status);
        fill_times(&mut head.created_at, &mut head.updated_at, at);
        if tasks.len() > MAX_TASKS {
            return Err(PlanDocumentError::Plan(OperationError::TooManyTasks));
        }
        let mut known = HashSet::new();
        if std::iter::once(plan_id).chain(tasks.iter().map(|task| task.id)).any(|id| id == 0) {
            return Err(PlanDocumentError::NoId);
        }
        if let Some(task) = tasks.iter().map(|task| task.id).find(|id| !known.insert(*id)) {
            return Err(PlanDocumentError::DuplicateTask { task });
        }
        let mut tree = PlanTree::new(plan_id, user, head);
        let ids: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
        for mut task in tasks {
            if let Some(parent) = task.parent.filter(|parent| !known.contains(parent)) {
                return Err(PlanDocumentError::UnknownParent { task: task.id, parent });
            }
            check_task(&mut task).map_err(|why| PlanDocumentError::Task { task: task.id, why: Box::new(why) })?;
            stop_running(&mut task.status);
            fill_times(&mut task.created_at, &mut task.updated_at, at);
            tree.insert(task, usize::MAX);
        }
        tree.check_reached().map_err(PlanDocumentError::Plan)?;
        for id in ids {
            let failed = |why| PlanDocumentError::Task { task: id, why: Box::new(why) };
            if tree.level(id) > MAX_LEVELS {
                return Err(PlanDocumentError::Plan(OperationError::TooManyLevels));
            }
            let dependencies = tree.task(id).map(|task| task.dependencies.clone()).unwrap_or_default();
            if !dependencies.is_empty() {
                let checked = checked_dependencies(&tree, id, &dependencies).map_err(failed)?;
                if let Some(task) = tree.task(id).filter(|task| task.dependencies != checked).cloned() {
                    tree.replace(PlanTask { dependencies: checked, ..task });
                }
            }
        }
        tree.check_all_dependencies().map_err(PlanDocumentError::Plan)?;
        Ok(tree)
    }
}

fn stop_running(status: &mut TaskStatus) {
    if *status == TaskStatus::Running {
        *status = TaskStatus::Pending;
    }
}

fn fill_times(created_at: &mut String, updated_at: &mut String, at: &str) {
    for time in [created_at, updated_at] {
        if time.is_empty() {
            at.clone_into(time);
        }
    }
}

fn check_task(task: &mut PlanTask) -> Result<(), OperationError> {
    task.name = checked_name(IMPORT, "name", &task.name)?;
    check_instruction(&task.instruction)?;
    check_metadata(&task.metadata)?;
    check_controls(IMPORT, &task.metadata)?;
    check_bytes("result", &task.result, MAX_RESULT_BYTES)?;
    check_chars("task_type", task.task_type.as_deref().unwrap_or_default(), MAX_TYPE_CHARS)
}
