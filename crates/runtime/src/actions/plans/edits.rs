//! Operations on plans, each made once under a key, and announced by an event.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::near::near_miss;
use serde_json::{Map, Value, json};

use crate::actions::plans::bound::{bind, unbind};
use crate::actions::structured::instruction::whole_number;
use crate::plan::access::PlanAccessError;
use crate::plan::error::OperationError;
use crate::plan::execution::TaskProgress;
use crate::plan::operation::TaskOperation;
use crate::plan::task::{PlanId, PlanTask, TaskId, TaskRunner, TaskStatus};
use crate::program::event::Event;
use crate::program::flow::ActionError;
use crate::program::turn::Turn;

/// Why an operation gave no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RejectedOperation {
    pub why: Message,
    /// Whether another attempt may succeed: nothing is wrong with the operation itself.
    pub may_retry: bool,
}

impl RejectedOperation {
    pub(crate) fn new(why: impl Into<Message>) -> Self {
        Self { why: why.into(), may_retry: false }
    }

    /// A failure that another attempt may not have.
    pub(crate) fn failure(why: impl Into<Message>) -> Self {
        Self { why: why.into(), may_retry: true }
    }
}

/// The result of an operation, for the one who asked for it.
pub(crate) type OperationOutcome = Result<Value, RejectedOperation>;

/// The error of an action whose plan cannot be read or written.
pub(crate) fn plan_failed(error: &PlanAccessError) -> ActionError {
    ActionError::Failed { code: "plan-failed", message: error.to_message(), help: None }
}

/// The refusal for an error that concerns the operation; a failure of the store is one that may be tried again.
pub(crate) fn rejection(error: &PlanAccessError) -> RejectedOperation {
    match error.is_rejection() {
        true => RejectedOperation::new(error.to_message()),
        false => RejectedOperation::failure(error.to_message()),
    }
}

/// The largest id of a plan or a task that a store can hold.
pub(crate) const MAX_ID: u64 = u64::MAX / 2;

/// A parameter that is a whole number, with its bounds, of the operations that are not ones on tasks.
pub(crate) struct NumberParameter {
    pub name: &'static str,
    pub least: u64,
    pub most: u64,
}

impl NumberParameter {
    pub(crate) const PLAN: Self = Self { name: "plan_id", least: 1, most: MAX_ID };
    pub(crate) const TASK: Self = Self { name: "task_id", least: 1, most: MAX_ID };
    pub(crate) const AT_ONCE: Self = Self { name: "max_parallel", least: 1, most: 16 };
    pub(crate) const DEPTH: Self = Self { name: "expand_depth", least: 1, most: 6 };
    pub(crate) const BUDGET: Self = Self { name: "node_budget", least: 1, most: 1_000 };
    pub(crate) const ALL: [Self; 5] = [Self::PLAN, Self::TASK, Self::AT_ONCE, Self::DEPTH, Self::BUDGET];
}

/// The parameters of an operation that is not one on tasks, with errors that name them.
pub(crate) struct PlanParameters<'a> {
    operation: &'a str,
    values: &'a Map<String, Value>,
}

impl<'a> PlanParameters<'a> {
    /// Refuses parameters that are not in `known`.
    pub(crate) fn new(
        operation: &'a str,
        values: &'a Map<String, Value>,
        known: &[&str],
    ) -> Result<Self, RejectedOperation> {
        let Some(unknown) = values.keys().find(|key| !known.contains(&key.as_str())) else {
            return Ok(Self { operation, values });
        };
        Err(RejectedOperation::new(match near_miss(unknown, known.iter().copied()) {
            Some(near) => msg!("`{operation}` has no parameter `{unknown}`; did you mean `{near}`?"),
            None => msg!("`{operation}` has no parameter `{unknown}`"),
        }))
    }

    fn value(&self, name: &str) -> Option<&'a Value> {
        self.values.get(name).filter(|value| !value.is_null())
    }

    /// A text, or none.
    pub(crate) fn text(&self, name: &'static str) -> Result<Option<String>, RejectedOperation> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.trim().to_owned())),
            Some(Value::String(_)) => Ok(None),
            Some(_) => {
                Err(RejectedOperation::new(msg!("the parameter `{name}` of `{}` must be a text", self.operation)))
            }
        }
    }

    pub(crate) fn required_text(&self, name: &'static str) -> Result<String, RejectedOperation> {
        self.text(name)?.ok_or_else(|| {
            RejectedOperation::new(msg!("`{operation}` needs the parameter `{name}`", operation = self.operation))
        })
    }

    /// Any value, as it was written.
    pub(crate) fn any(&self, name: &str) -> Option<Value> {
        self.value(name).cloned()
    }

    /// A whole number within the bounds of the parameter.
    pub(crate) fn number(&self, parameter: &NumberParameter) -> Result<Option<u64>, RejectedOperation> {
        let &NumberParameter { name, least, most } = parameter;
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = whole_number(value).and_then(|number| u64::try_from(number).ok());
        let within = number.filter(|number| (least..=most).contains(number));
        within.map(Some).ok_or_else(|| {
            let operation = self.operation;
            RejectedOperation::new(msg!(
                "the parameter `{name}` of `{operation}` must be a whole number from {least} to {most}"
            ))
        })
    }

    /// The plan that is meant: the one written, else `bound`.
    pub(crate) fn plan(&self, bound: Option<PlanId>) -> Result<PlanId, RejectedOperation> {
        self.number(&NumberParameter::PLAN)?.or(bound).ok_or_else(|| no_plan(self.operation))
    }
}

fn no_plan(operation: &str) -> RejectedOperation {
    RejectedOperation::new(msg!("`{operation}` needs a plan: the session has none yet, and `plan_id` names none"))
}

/// Runs an operation that needs no model and no tool: those on tasks, and `list_plans` and `delete_plan`.
///
/// # Errors
/// The store cannot be used. What is wrong with the operation is its outcome.
pub(crate) async fn run_plan_operation(
    turn: &Turn<'_>,
    bound: Option<PlanId>,
    name: &str,
    parameters: &Map<String, Value>,
    key: &str,
) -> Result<OperationOutcome, ActionError> {
    match name {
        "list_plans" => list_plans(turn, parameters).await,
        "delete_plan" => delete_plan(turn, parameters, key).await,
        _ => task_operation(turn, bound, name, parameters, key).await,
    }
}

async fn task_operation(
    turn: &Turn<'_>,
    bound: Option<PlanId>,
    name: &str,
    parameters: &Map<String, Value>,
    key: &str,
) -> Result<OperationOutcome, ActionError> {
    let operation = match TaskOperation::parse(name, parameters) {
        Ok(operation) => operation,
        Err(error) => return Ok(Err(RejectedOperation::new(error.to_message()))),
    };
    let at = turn.services.clock.at(turn.last_seq + 1);
    if let Ok(plan) = turn.plans.plan_of(&operation, bound).await
        && let Err(error) = release_abandoned(turn, plan).await
        && !error.is_rejection()
    {
        return Ok(Err(rejection(&error)));
    }
    let result = match turn.plans.run(&operation, bound, key, &at).await {
        Ok(result) => result,
        Err(error) => return Ok(Err(rejection(&error))),
    };
    // The result of every operation that changes something names the plan.
    if let Some(plan) = result.get("plan_id").and_then(Value::as_u64).filter(|_| !operation.is_read_only()) {
        announce(turn, plan, name, task_in(&result), None);
        bind(turn, plan).await?;
    }
    Ok(Ok(result))
}

async fn list_plans(turn: &Turn<'_>, parameters: &Map<String, Value>) -> Result<OperationOutcome, ActionError> {
    let filters = PlanParameters::new("list_plans", parameters, &["session_id", "workflow_id"])
        .and_then(|known| Ok((known.text("session_id")?, known.text("workflow_id")?)));
    let (session, workflow) = match filters {
        Ok(filters) => filters,
        Err(refused) => return Ok(Err(refused)),
    };
    let plans = turn.plans.list().await.map_err(|error| plan_failed(&error))?;
    let is_wanted = |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
    let listed = plans
        .iter()
        .filter(|plan| is_wanted(&session, &plan.head.session_id) && is_wanted(&workflow, &plan.head.workflow_id));
    let listed = listed.map(|plan| {
        json!({
            "plan_id": plan.id, "title": plan.head.title, "goal": plan.head.goal, "status": plan.head.status.name(),
            "session_id": plan.head.session_id, "workflow_id": plan.head.workflow_id,
            "created_at": plan.head.created_at, "updated_at": plan.head.updated_at,
        })
    });
    Ok(Ok(json!({ "plans": listed.collect::<Vec<_>>() })))
}

async fn delete_plan(
    turn: &Turn<'_>,
    parameters: &Map<String, Value>,
    key: &str,
) -> Result<OperationOutcome, ActionError> {
    // What is deleted for good is named.
    let plan = PlanParameters::new("delete_plan", parameters, &["plan_id"])
        .and_then(|known| known.number(&NumberParameter::PLAN))
        .and_then(|plan| {
            plan.ok_or_else(|| RejectedOperation::new(msg!("`delete_plan` needs the parameter `plan_id`")))
        });
    let plan = match plan {
        Ok(plan) => plan,
        Err(refused) => return Ok(Err(refused)),
    };
    let result = match turn.plans.delete(plan, key).await {
        Ok(result) => result,
        Err(error) => return Ok(Err(rejection(&error))),
    };
    announce(turn, plan, "delete_plan", None, None);
    unbind(turn, plan)?;
    Ok(Ok(result))
}

/// Ends what no session runs any more in a plan ([`PlanAccess::release_abandoned`]), and reports it.
///
/// [`PlanAccess::release_abandoned`]: crate::plan::access::PlanAccess::release_abandoned
pub(crate) async fn release_abandoned(turn: &Turn<'_>, plan: PlanId) -> Result<Vec<TaskId>, PlanAccessError> {
    let at = turn.services.clock.at(turn.last_seq + 1);
    let action = turn.place.path.as_str();
    let key = turn.plans.key(turn.last_seq, &format!("{action}/release_{plan}"));
    let released = turn.plans.release_abandoned(plan, &key, &at).await?;
    for (task, status) in &released {
        announce(turn, plan, "set_status", Some(*task), Some(*status));
    }
    Ok(released.into_iter().map(|(task, _)| task).collect())
}

/// Starts a task in this session. The inner error says why it must not be run.
///
/// # Errors
/// The store cannot be used.
pub(crate) async fn claim_task(
    turn: &Turn<'_>,
    (plan, task): (PlanId, TaskId),
    key: &str,
) -> Result<Result<(), Message>, ActionError> {
    let at = turn.services.clock.at(turn.last_seq + 1);
    let edit = turn.plans.edit(plan, key, &at, |tree, _| {
        let action = turn.place.path.to_string();
        tree.claim(task, TaskRunner { session: turn.session_id.to_owned(), action })?;
        Ok(json!(tree.task(task).map(|task| &task.name)))
    });
    match edit.await {
        Ok(name) => {
            let name = name.as_str().map(str::to_owned);
            announce_named(turn, (plan, "set_status"), name, Some(task), Some(TaskStatus::Running));
            Ok(Ok(()))
        }
        Err(error) if error.is_rejection() => Ok(Err(error.to_message())),
        Err(error) => Err(plan_failed(&error)),
    }
}

/// Sets what a task is after a step of its execution. The inner error says why its result cannot be stored; a task that was deleted
/// meanwhile is no error, and one that others run or have run does not become failed.
///
/// # Errors
/// The plan cannot be read or written.
pub(crate) async fn set_task(
    turn: &Turn<'_>,
    (plan, task): (PlanId, TaskId),
    key: &str,
    progress: TaskProgress,
) -> Result<Result<(), Message>, ActionError> {
    let at = turn.services.clock.at(turn.last_seq + 1);
    let status = Some(progress.status);
    let runner = TaskRunner { session: turn.session_id.to_owned(), action: turn.place.path.to_string() };
    let edit = turn.plans.edit(plan, key, &at, |tree, _| {
        // What has run a task stays known: who executes the plan counts what it has started.
        let run_by = tree.task(task).and_then(|task| task.run_by.clone());
        let is_open = |found: &PlanTask| found.status == TaskStatus::Pending || found.run_by.as_ref() == Some(&runner);
        if progress.status == TaskStatus::Failed && tree.task(task).is_some_and(|found| !is_open(found)) {
            // Another session has run it meanwhile, or runs it: its result stays.
            return Ok(Value::Bool(false));
        }
        tree.set_progress(task, &TaskProgress { run_by, ..progress.clone() })?;
        Ok(json!(tree.task(task).map(|task| &task.name)))
    });
    match edit.await {
        Ok(Value::Bool(false)) => {}
        Ok(name) => {
            let name = name.as_str().map(str::to_owned);
            announce_named(turn, (plan, "set_status"), name, Some(task), status);
        }
        Err(PlanAccessError::NoPlan { .. } | PlanAccessError::NoTask { .. }) => {}
        Err(PlanAccessError::Operation(OperationError::UnknownTask { .. })) => {}
        Err(PlanAccessError::Operation(error)) => return Ok(Err(error.to_message())),
        Err(error) => return Err(plan_failed(&error)),
    }
    Ok(Ok(()))
}

/// Reports a change of a plan.
pub(crate) fn announce(
    turn: &Turn<'_>,
    plan_id: PlanId,
    operation: &str,
    task_id: Option<TaskId>,
    status: Option<TaskStatus>,
) {
    announce_named(turn, (plan_id, operation), None, task_id, status);
}

/// [`announce`] with the name of the task, or without a task the title of the plan, which is shown to people.
pub(crate) fn announce_named(
    turn: &Turn<'_>,
    (plan_id, operation): (PlanId, &str),
    name: Option<String>,
    task_id: Option<TaskId>,
    status: Option<TaskStatus>,
) {
    let status = status.map(TaskStatus::name);
    turn.emit(Event::PlanChanged { plan_id, operation: operation.to_owned(), name, task_id, status });
}

/// The task that a result is about.
fn task_in(result: &Value) -> Option<TaskId> {
    result.get("task_id").or_else(|| result.pointer("/task/task_id")).or_else(|| result.pointer("/task/id"))?.as_u64()
}
