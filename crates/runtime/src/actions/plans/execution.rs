//! Runs the tasks of a plan in the order of their dependencies, in waves: those of a wave are branches of the action, so that they run
//! at the same time, wait for decisions, and survive the process like all branches.

use std::collections::{BTreeMap, BTreeSet};

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::actions::plans::bound::bind;
use crate::actions::plans::edits::{
    NumberParameter, OperationOutcome, PlanParameters, RejectedOperation, announce, rejection, release_abandoned,
};
use crate::plan::error::OperationError;
use crate::plan::execution::{TaskProgress, branch_of};
use crate::plan::operation::{TaskOperation, TaskOperationKind};
use crate::plan::task::{PlanId, TaskId, TaskStatus};
use crate::plan::tree::PlanTree;
use crate::program::flow::{ActionError, BranchBlock, BranchLimits, Flow};
use crate::program::turn::Turn;
use crate::run::branch_state::BranchEnd;

/// The maximum number of tasks of one wave: each has frames of its own.
const MAX_WAVE: usize = 64;

/// How many tasks run at the same time.
const DEFAULT_AT_ONCE: usize = 4;

/// The maximum number of tasks that a result names.
const MAX_NAMED: usize = 50;

/// The execution of a plan, or of one of its tasks, between turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PlanRun {
    plan: PlanId,
    /// The only tasks that run; none for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    only: Option<BTreeSet<TaskId>>,
    /// The number of waves so far.
    waves: u64,
    /// How many tasks were started, before the wave that runs.
    ran: usize,
    /// The tasks of the wave that runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    wave: Vec<TaskId>,
    /// The tasks whose branches ended and left them pending, so that they are not started again.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    stalled: BTreeSet<TaskId>,
    #[serde(skip_serializing_if = "is_default")]
    at_once: usize,
    /// Whether `ran` lacks the tasks of the wave that runs: they are counted when it has ended.
    counts_claims: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_default(at_once: &usize) -> bool {
    *at_once == 0
}

/// How an execution goes on.
pub(crate) enum PlanRunStep {
    Flow(Flow),
    Ended(OperationOutcome),
}

/// What happens next.
#[derive(Debug, Default, PartialEq)]
struct Wave {
    /// The tasks to run, each with those of the wave that must have ended before.
    tasks: Vec<(TaskId, Vec<TaskId>)>,
    /// The tasks that cannot run any more, with the reason.
    blocked: Vec<(TaskId, String)>,
}

impl PlanRun {
    /// Reads `execute_plan` and `rerun_task`; the latter resets the task at once.
    ///
    /// # Errors
    /// The store cannot be used. What is wrong with the operation is the inner result.
    pub(crate) async fn start(
        turn: &Turn<'_>,
        bound: Option<PlanId>,
        name: &str,
        parameters: &Map<String, Value>,
        key: &str,
    ) -> Result<Result<Self, RejectedOperation>, ActionError> {
        let started = match name {
            "rerun_task" => Self::of_task(turn, bound, parameters, key).await,
            _ => Self::of_plan(turn, bound, parameters, key).await,
        };
        Ok(started)
    }

    async fn of_plan(
        turn: &Turn<'_>,
        bound: Option<PlanId>,
        parameters: &Map<String, Value>,
        key: &str,
    ) -> Result<Self, RejectedOperation> {
        let known = PlanParameters::new("execute_plan", parameters, &["plan_id", "max_parallel"])?;
        let at_once = known.number(&NumberParameter::AT_ONCE)?.and_then(|number| usize::try_from(number).ok());
        let plan = known.plan(bound)?;
        release_abandoned(turn, plan).await.map_err(|error| rejection(&error))?;
        let at = turn.services.clock.at(turn.last_seq + 1);
        let key = format!("{key}#start");
        let edit = turn.plans.edit(plan, &key, &at, |tree, _| {
            // Another session that executes it as well keeps it.
            if tree.head().status != TaskStatus::Running {
                tree.set_plan_running(turn.session_id);
            }
            Ok(Value::Null)
        });
        edit.await.map_err(|error| rejection(&error))?;
        announce(turn, plan, "execute_plan", None, Some(TaskStatus::Running));
        Ok(Self { plan, at_once: at_once.unwrap_or_default(), ..Self::default() })
    }

    async fn of_task(
        turn: &Turn<'_>,
        bound: Option<PlanId>,
        parameters: &Map<String, Value>,
        key: &str,
    ) -> Result<Self, RejectedOperation> {
        let operation = TaskOperation::parse("rerun_task", parameters);
        let operation = operation.map_err(|error| rejection(&error.into()))?;
        let at = turn.services.clock.at(turn.last_seq + 1);
        let plan = turn.plans.plan_of(&operation, bound).await.map_err(|error| rejection(&error))?;
        release_abandoned(turn, plan).await.map_err(|error| rejection(&error))?;
        let key = format!("{key}#reset");
        // All ids, which `apply` would cut off.
        let edit = turn.plans.edit(plan, &key, &at, |tree, _| {
            let TaskOperationKind::Rerun { task, with_dependents } = &operation.kind else { return Ok(Value::Null) };
            let id = tree.find(task)?;
            tree.reset(id, *with_dependents)?;
            // Those that were pending before are not reset, but run as well.
            let dependents = if *with_dependents { tree.all_dependents(id) } else { vec![] };
            Ok(json!({ "task_id": id, "reset": dependents }))
        });
        let result = edit.await.map_err(|error| rejection(&error))?;
        let task = result.get("task_id").and_then(Value::as_u64);
        announce(turn, plan, "rerun_task", task, Some(TaskStatus::Pending));
        let reset = result.get("reset").and_then(Value::as_array).into_iter().flatten();
        let only = reset.filter_map(Value::as_u64).chain(task).collect();
        Ok(Self { plan, only: Some(only), ..Self::default() })
    }

    /// Starts the next wave, or ends the execution.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) async fn proceed(&mut self, turn: &Turn<'_>, key: &str) -> Result<PlanRunStep, ActionError> {
        let at = turn.services.clock.at(turn.last_seq + 1);
        // What another session has left meanwhile can run here.
        let released = match release_abandoned(turn, self.plan).await {
            Ok(released) => released,
            Err(error) => return Ok(PlanRunStep::Ended(Err(rejection(&error)))),
        };
        let waited = only_waited(turn);
        let next = turn.plans.with_tree(self.plan, |tree| {
            let has_status = |id: &TaskId, status| tree.task(*id).is_some_and(|task| task.status == status);
            let mut stalled = self.stalled.clone();
            let is_stalled = |id: &&TaskId| has_status(id, TaskStatus::Pending) && !waited.contains(&branch_of(**id));
            stalled.extend(self.wave.iter().filter(is_stalled));
            stalled.retain(|id| !released.contains(id));
            let ran = self.wave.iter().filter(|id| has_run_here(turn, tree, **id)).count();
            let wave = self.next_wave(tree, &stalled);
            (stalled, ran, wave)
        });
        let wave = match next.await {
            Ok((stalled, ran, wave)) => {
                self.stalled = stalled;
                // An earlier release counted the wave when it began.
                self.ran += if self.counts_claims { ran } else { 0 };
                self.counts_claims = true;
                wave
            }
            Err(error) => return Ok(PlanRunStep::Ended(Err(rejection(&error)))),
        };
        self.waves += 1;
        if !wave.blocked.is_empty() {
            let key = format!("{key}#blocked{}", self.waves);
            let edit = turn.plans.edit(self.plan, &key, &at, |tree, _| {
                for (id, why) in &wave.blocked {
                    let progress =
                        TaskProgress { status: TaskStatus::Skipped, error: Some(why.clone()), ..Default::default() };
                    match tree.set_progress(*id, &progress) {
                        Ok(()) | Err(OperationError::UnknownTask { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(Value::Null)
            });
            if let Err(error) = edit.await {
                return Ok(PlanRunStep::Ended(Err(rejection(&error))));
            }
            for (id, _) in &wave.blocked {
                announce(turn, self.plan, "set_status", Some(*id), Some(TaskStatus::Skipped));
            }
        }
        if wave.tasks.is_empty() {
            return self.end(turn, key, &at).await.map(PlanRunStep::Ended);
        }
        self.wave = wave.tasks.iter().map(|(id, _)| *id).collect();
        let branch = |(id, after): &(TaskId, Vec<TaskId>)| BranchBlock {
            id: branch_of(*id),
            block: branch_of(*id),
            after: after.iter().map(|id| branch_of(*id)).collect(),
        };
        let at_once = if self.at_once == 0 { DEFAULT_AT_ONCE } else { self.at_once };
        let limits = BranchLimits { fail_fast: false, at_once };
        Ok(PlanRunStep::Flow(Flow::Branch(wave.tasks.iter().map(branch).collect(), limits)))
    }

    /// The tasks that can run next. A task starts after those on which it, or a task that contains it, depends, and after its children.
    fn next_wave(&self, tree: &PlanTree, stalled: &BTreeSet<TaskId>) -> Wave {
        let mut wave = Wave::default();
        // What each task of the wave waits for within it.
        let mut chosen: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
        let mut blocked: BTreeMap<TaskId, String> = BTreeMap::new();
        let is_wanted = |id: &TaskId| {
            let status = tree.task(*id).map(|task| task.status);
            status == Some(TaskStatus::Pending) && self.includes(*id)
        };
        let mut open: Vec<TaskId> = tree.children_first().into_iter().filter(is_wanted).collect();
        loop {
            let before = open.len();
            open.retain(|id| {
                let needed = needed_by(tree, *id);
                if let Some(why) = needed.iter().find_map(|other| why_blocked(tree, &blocked, *other)) {
                    blocked.insert(*id, why);
                    return false;
                }
                let is_met = |other: &TaskId| {
                    tree.task(*other).is_none_or(|task| task.status == TaskStatus::Completed)
                        || chosen.contains_key(other)
                };
                if stalled.contains(id) || chosen.len() >= MAX_WAVE || !needed.iter().all(is_met) {
                    return true;
                }
                let after = needed.into_iter().filter(|other| chosen.contains_key(other)).collect();
                wave.tasks.push((*id, after));
                chosen.insert(*id, vec![]);
                false
            });
            if open.len() == before {
                break;
            }
        }
        wave.blocked = blocked.into_iter().collect();
        wave
    }

    fn includes(&self, id: TaskId) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&id))
    }

    /// Nothing more can run: sets the status of the plan, and reports the tasks.
    async fn end(&self, turn: &Turn<'_>, key: &str, at: &str) -> Result<OperationOutcome, ActionError> {
        let key = format!("{key}#end");
        let is_whole = self.only.is_none();
        let edit = turn.plans.edit(self.plan, &key, at, |tree, _| {
            let counts = tree.counts();
            let is_open = counts.of(TaskStatus::Pending) + counts.of(TaskStatus::Running) > 0;
            let runs_in = tree.head().runs_in.clone().filter(|_| tree.head().status == TaskStatus::Running);
            // Another session may go on with it.
            let other = runs_in.filter(|session| is_open && session != turn.session_id);
            if let Some(session) = other.or_else(|| tree.other_runner(turn.session_id)) {
                tree.set_plan_running(&session);
                return Ok(self.result(tree, TaskStatus::Running));
            }
            let status = match () {
                () if counts.of(TaskStatus::Failed) + counts.of(TaskStatus::Skipped) > 0 => TaskStatus::Failed,
                () if is_open => TaskStatus::Pending,
                () => TaskStatus::Completed,
            };
            let status = if is_whole || !is_open { status } else { tree.head().status };
            tree.set_plan_status(status);
            Ok(self.result(tree, status))
        });
        let result = match edit.await {
            Ok(result) => result,
            Err(error) => return Ok(Err(rejection(&error))),
        };
        let status = result.get("status").and_then(Value::as_str).and_then(TaskStatus::parse);
        announce(turn, self.plan, "execute_plan", None, status);
        bind(turn, self.plan).await?;
        Ok(Ok(result))
    }

    fn result(&self, tree: &PlanTree, status: TaskStatus) -> Value {
        let counts: Map<String, Value> =
            tree.counts().all().map(|(status, count)| (status.name().to_owned(), json!(count))).collect();
        let entry = |id: &TaskId| {
            let task = tree.task(*id)?;
            let (name, status) = (&task.name, task.status.name());
            let entry = match &task.error {
                Some(error) => json!({ "task_id": id, "name": name, "status": status, "error": error }),
                None => json!({ "task_id": id, "name": name, "status": status }),
            };
            Some(entry)
        };
        let problems = tree.all().filter(|id| tree.task(*id).is_some_and(|task| task.error.is_some()));
        let named: BTreeSet<TaskId> = self.only.iter().flatten().copied().chain(problems).collect();
        let tasks: Vec<Value> = named.iter().take(MAX_NAMED).filter_map(entry).collect();
        json!({ "plan_id": tree.id(), "status": status.name(), "counts": counts, "ran": self.ran, "tasks": tasks })
    }
}

/// The branches of the wave that ended without a start: they waited for another one, which did not complete.
fn only_waited(turn: &Turn<'_>) -> BTreeSet<String> {
    let branches = turn.entered.and_then(|outcome| outcome.metadata.get("branches")).and_then(Value::as_object);
    let end = |branch: &Value| branch.get("end").and_then(Value::as_str).and_then(BranchEnd::parse);
    let skipped = branches.into_iter().flatten().filter(|(_, branch)| end(branch) == Some(BranchEnd::Skipped));
    skipped.map(|(id, _)| id.clone()).collect()
}

/// Whether a branch of this action has started the task.
fn has_run_here(turn: &Turn<'_>, tree: &PlanTree, id: TaskId) -> bool {
    let runner = tree.task(id).and_then(|task| task.run_by.as_ref());
    runner.is_some_and(|by| {
        let branch = by.action.strip_prefix(turn.place.path.as_str());
        by.session == turn.session_id && branch.is_some_and(|branch| branch.starts_with('/'))
    })
}

/// What must have ended before a task runs.
fn needed_by(tree: &PlanTree, id: TaskId) -> Vec<TaskId> {
    let containing = std::iter::once(id).chain(tree.ancestors(id));
    let dependencies = containing.filter_map(|id| tree.task(id)).flat_map(|task| task.dependencies.iter().copied());
    dependencies.chain(tree.children(Some(id))).collect()
}

/// Why nothing that needs this task can run; none if it may still complete.
fn why_blocked(tree: &PlanTree, blocked: &BTreeMap<TaskId, String>, id: TaskId) -> Option<String> {
    let status = tree.task(id).map(|task| task.status);
    let message: Message = match status {
        Some(TaskStatus::Failed) => msg!("task {id}, which it needs, failed"),
        Some(TaskStatus::Skipped) => msg!("task {id}, which it needs, was skipped"),
        _ if blocked.contains_key(&id) => msg!("task {id}, which it needs, was skipped"),
        _ => return None,
    };
    Some(message.to_string())
}
