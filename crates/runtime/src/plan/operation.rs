//! The operations on the tasks of a plan, as people and models write them.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::near::did_you_mean;
use serde_json::{Map, Value};

use crate::plan::error::OperationError;
use crate::plan::parameters::Parameters;
use crate::plan::task::{PlanId, TaskId};

/// The number of levels that `request_subgraph` gives unless `max_depth` says otherwise.
const DEFAULT_DEPTH: u64 = 2;

/// The maximum value of `max_depth`.
const MAX_DEPTH: u64 = 10;

/// The maximum value of `position`; what is beyond the last sibling is the end.
const MAX_POSITION: u64 = 1_000_000_000;

/// The task that an operation means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskReference {
    Id(TaskId),
    Name(String),
}

/// Where a task is put relative to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnchorPosition {
    FirstChild,
    LastChild,
    Before,
    After,
}

impl AnchorPosition {
    pub const ALL: [Self; 4] = [Self::FirstChild, Self::LastChild, Self::Before, Self::After];

    pub const fn name(self) -> &'static str {
        match self {
            Self::FirstChild => "first_child",
            Self::LastChild => "last_child",
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// The place of a task as it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskPlacement {
    pub anchor: Option<TaskId>,
    pub anchor_position: Option<AnchorPosition>,
    /// The position from 0, which takes precedence over the anchor.
    pub position: Option<u64>,
}

/// The parent as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ParentReference {
    /// Nothing was written.
    #[default]
    Absent,
    Root,
    Task(TaskReference),
}

/// The task that `create_task` adds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewTask {
    pub name: String,
    pub parent: ParentReference,
    pub task_type: Option<String>,
    pub instruction: String,
    pub metadata: Map<String, Value>,
    pub dependencies: Vec<TaskId>,
    pub place: TaskPlacement,
}

/// What `update_task` changes; what is none stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskChange {
    pub name: Option<String>,
    pub instruction: Option<String>,
    /// Keys to set; those that are null are removed.
    pub metadata: Option<Map<String, Value>>,
    pub dependencies: Option<Vec<TaskId>>,
}

/// An operation, without the plan.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskOperationKind {
    Create(NewTask),
    Update {
        task: TaskReference,
        change: TaskChange,
    },
    UpdateInstruction {
        task: TaskReference,
        instruction: String,
    },
    Move {
        task: TaskReference,
        parent: ParentReference,
        place: TaskPlacement,
    },
    Delete {
        task: TaskReference,
    },
    Show,
    /// Of a task, or of the whole plan.
    QueryStatus {
        task: Option<TaskReference>,
    },
    Rerun {
        task: TaskReference,
        with_dependents: bool,
    },
    RequestSubgraph {
        task: TaskId,
        max_depth: usize,
    },
}

/// An operation on the tasks of one plan.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskOperation {
    /// The plan, if it was written; otherwise it is that of the task, or the bound one.
    pub plan: Option<PlanId>,
    pub kind: TaskOperationKind,
}

const PLACE: [&str; 5] = ["anchor_task_id", "anchor_position", "insert_before", "insert_after", "position"];

/// The names of the operations of [`TaskOperation::parse`].
pub const TASK_OPERATIONS: [&str; 9] = [
    "create_task",
    "update_task",
    "update_task_instruction",
    "move_task",
    "delete_task",
    "show_tasks",
    "query_status",
    "rerun_task",
    "request_subgraph",
];

/// The parameters of an operation; none if it is not in [`TASK_OPERATIONS`].
pub fn parameters_of(name: &str) -> Option<Vec<&'static str>> {
    let task = ["plan_id", "task_id", "task_name"];
    Some(match name {
        "create_task" => {
            let mut names =
                vec!["task_name", "plan_id", "parent_id", "task_type", "instruction", "metadata", "dependencies"];
            names.extend(PLACE);
            names
        }
        "update_task" => [&task[..], &["name", "instruction", "metadata", "dependencies"]].concat(),
        "update_task_instruction" => [&task[..], &["instruction"]].concat(),
        "move_task" => [&task[..], &["new_parent_id", "new_parent_name"], &PLACE].concat(),
        "delete_task" => task.to_vec(),
        "show_tasks" => vec!["plan_id"],
        "query_status" => task.to_vec(),
        "rerun_task" => [&task[..], &["with_dependents"]].concat(),
        "request_subgraph" => vec!["plan_id", "logical_id", "task_id", "max_depth"],
        _ => return None,
    })
}

impl TaskOperation {
    /// Reads an operation.
    /// Errors: those of parameters, and [`OperationError::UnknownOperation`].
    pub fn parse(name: &str, values: &Map<String, Value>) -> Result<Self, OperationError> {
        let Some(known) = parameters_of(name) else {
            let help = did_you_mean(name, TASK_OPERATIONS)
                .unwrap_or_else(|| msg!("there are {}", Message::names(TASK_OPERATIONS)));
            return Err(OperationError::UnknownOperation { name: name.to_owned(), help });
        };
        let parameters = Parameters::new(name, values, &known)?;
        let kind = match name {
            "create_task" => TaskOperationKind::Create(new_task(&parameters)?),
            "update_task" => {
                TaskOperationKind::Update { task: required_task(&parameters)?, change: change(&parameters)? }
            }
            "update_task_instruction" => TaskOperationKind::UpdateInstruction {
                task: required_task(&parameters)?,
                instruction: parameters.required_text("instruction")?.to_owned(),
            },
            "move_task" => {
                let (parent, place) = (new_parent(&parameters)?, placement(&parameters)?);
                if parent == ParentReference::Absent && place == TaskPlacement::default() {
                    return Err(parameters.missing_one_of(&["new_parent_id", "new_parent_name"]));
                }
                TaskOperationKind::Move { task: required_task(&parameters)?, parent, place }
            }
            "delete_task" => TaskOperationKind::Delete { task: required_task(&parameters)? },
            "query_status" => TaskOperationKind::QueryStatus { task: task(&parameters)? },
            "rerun_task" => TaskOperationKind::Rerun {
                task: required_task(&parameters)?,
                with_dependents: parameters.boolean("with_dependents")?.unwrap_or_default(),
            },
            "request_subgraph" => {
                let (logical, task) = (parameters.id("logical_id")?, parameters.id("task_id")?);
                if logical.is_some() && task.is_some() && logical != task {
                    return Err(parameters.contradictory("logical_id", "task_id"));
                }
                let task = logical.or(task).ok_or_else(|| parameters.missing_one_of(&["logical_id", "task_id"]))?;
                let max_depth = parameters.number("max_depth", 0, MAX_DEPTH)?.unwrap_or(DEFAULT_DEPTH);
                let max_depth = usize::try_from(max_depth).unwrap_or_default();
                TaskOperationKind::RequestSubgraph { task, max_depth }
            }
            _ => TaskOperationKind::Show,
        };
        Ok(Self { plan: parameters.id("plan_id")?, kind })
    }

    /// A task that tells the plan if none was written: the one that is meant, the parent, or the anchor.
    pub fn locating_task(&self) -> Option<TaskId> {
        let id = |reference: &TaskReference| match reference {
            TaskReference::Id(id) => Some(*id),
            TaskReference::Name(_) => None,
        };
        let of_parent = |parent: &ParentReference| match parent {
            ParentReference::Task(reference) => id(reference),
            ParentReference::Absent | ParentReference::Root => None,
        };
        match &self.kind {
            TaskOperationKind::Create(new) => of_parent(&new.parent).or(new.place.anchor),
            TaskOperationKind::Move { task, parent, place } => id(task).or_else(|| of_parent(parent)).or(place.anchor),
            TaskOperationKind::Update { task, .. }
            | TaskOperationKind::UpdateInstruction { task, .. }
            | TaskOperationKind::Delete { task }
            | TaskOperationKind::Rerun { task, .. } => id(task),
            TaskOperationKind::QueryStatus { task } => task.as_ref().and_then(id),
            TaskOperationKind::RequestSubgraph { task, .. } => Some(*task),
            TaskOperationKind::Show => None,
        }
    }

    /// Whether it changes nothing.
    pub const fn is_read_only(&self) -> bool {
        matches!(
            self.kind,
            TaskOperationKind::Show | TaskOperationKind::QueryStatus { .. } | TaskOperationKind::RequestSubgraph { .. }
        )
    }
}

/// The task that `task_id` or `task_name` names; if both are given, the id counts.
fn task(parameters: &Parameters<'_>) -> Result<Option<TaskReference>, OperationError> {
    if let Some(id) = parameters.id("task_id")? {
        return Ok(Some(TaskReference::Id(id)));
    }
    Ok(parameters.text("task_name")?.map(|name| TaskReference::Name(name.to_owned())))
}

fn required_task(parameters: &Parameters<'_>) -> Result<TaskReference, OperationError> {
    task(parameters)?.ok_or_else(|| parameters.missing_one_of(&["task_id", "task_name"]))
}

fn new_task(parameters: &Parameters<'_>) -> Result<NewTask, OperationError> {
    Ok(NewTask {
        name: parameters.required_text("task_name")?.to_owned(),
        parent: match parameters.nullable_id("parent_id")? {
            None => ParentReference::Absent,
            Some(None) => ParentReference::Root,
            Some(Some(id)) => ParentReference::Task(TaskReference::Id(id)),
        },
        task_type: parameters.text("task_type")?.map(str::to_owned),
        instruction: parameters.text("instruction")?.unwrap_or_default().to_owned(),
        metadata: parameters.object("metadata")?.cloned().unwrap_or_default(),
        dependencies: parameters.ids("dependencies")?.unwrap_or_default(),
        place: placement(parameters)?,
    })
}

fn change(parameters: &Parameters<'_>) -> Result<TaskChange, OperationError> {
    let name = match parameters.value("name") {
        Some(_) => Some(parameters.required_text("name")?.to_owned()),
        None => None,
    };
    let change = TaskChange {
        name,
        instruction: parameters.text("instruction")?.map(str::to_owned),
        metadata: parameters.object("metadata")?.cloned(),
        dependencies: parameters.ids("dependencies")?,
    };
    if change == TaskChange::default() {
        return Err(parameters.missing_one_of(&["name", "instruction", "metadata", "dependencies"]));
    }
    Ok(change)
}

fn new_parent(parameters: &Parameters<'_>) -> Result<ParentReference, OperationError> {
    let name = parameters.text("new_parent_name")?;
    Ok(match (parameters.nullable_id("new_parent_id")?, name) {
        (Some(Some(id)), None) => ParentReference::Task(TaskReference::Id(id)),
        (Some(Some(_)), Some(_)) => return Err(parameters.contradictory("new_parent_id", "new_parent_name")),
        // A model that fills in all parameters writes null for the one that it does not use.
        (_, Some(name)) => ParentReference::Task(TaskReference::Name(name.to_owned())),
        (Some(None), None) => ParentReference::Root,
        (None, None) => ParentReference::Absent,
    })
}

/// The place. `insert_before` and `insert_after`, the earlier names, are the id of the anchor, or true next to `anchor_task_id`.
fn placement(parameters: &Parameters<'_>) -> Result<TaskPlacement, OperationError> {
    let mut anchor = parameters.id("anchor_task_id")?;
    let mut anchor_position = match parameters.text("anchor_position")? {
        None => None,
        Some(name) => {
            Some(AnchorPosition::ALL.into_iter().find(|position| position.name() == name).ok_or_else(|| {
                let names = AnchorPosition::ALL.map(AnchorPosition::name);
                parameters
                    .wrong("anchor_position", Message::any_of(names.map(|name| Message::text(format!("`{name}`")))))
            })?)
        }
    };
    let mut given = anchor_position.map(|_| "anchor_position");
    for (name, position) in [("insert_before", AnchorPosition::Before), ("insert_after", AnchorPosition::After)] {
        let Some(value) = parameters.value(name).filter(|value| **value != Value::Bool(false)) else { continue };
        if let Some(other) = given {
            return Err(parameters.contradictory(other, name));
        }
        if *value != Value::Bool(true) {
            let id = parameters.id(name)?;
            if anchor.is_some() && anchor != id {
                return Err(parameters.contradictory("anchor_task_id", name));
            }
            anchor = id;
        }
        (given, anchor_position) = (Some(name), Some(position));
    }
    Ok(TaskPlacement { anchor, anchor_position, position: parameters.number("position", 0, MAX_POSITION)? })
}
