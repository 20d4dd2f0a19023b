//! The plans of one user in the store: read, created, edited and deleted.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_store::contract::Store;
use bcc_store::error::StoreError;
use bcc_store::memory::MemoryStore;
use bcc_store::plan_rows::PlanEditOutcome;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::plan::apply::apply;
use crate::plan::editing_session::{EditingSession, PlanEditor};
use crate::plan::error::OperationError;
use crate::plan::limits::{MAX_HEAD_BYTES, check_bytes};
use crate::plan::operation::TaskOperation;
use crate::plan::rows::{PlanBody, body_of};
use crate::plan::task::{PlanHead, PlanId, TaskId, TaskStatus};
use crate::plan::tree::{PlanTree, TaskIds};

/// How often an edit is tried again because somebody else has edited the plan in between.
const MAX_TRIES: usize = 5;

/// How often more ids are reserved for one edit.
const MAX_RESERVATIONS: usize = 16;

/// The number of ids of tasks that are reserved at a time, at first.
const MIN_RESERVED: u64 = 16;

/// The maximum number of plans that are kept in memory.
const MAX_CACHED: usize = 8;

/// The maximum length of a title that is made from the goal, in characters.
const MAX_TITLE_CHARS: usize = 80;

/// Why a plan could not be read or edited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
pub enum PlanAccessError {
    /// There is none, or it belongs to another user.
    #[error("there is no plan {plan}")]
    NoPlan { plan: PlanId },
    #[error("there is no task {task}")]
    NoTask { task: TaskId },
    #[error("it is not clear which plan is meant; give its `plan_id`")]
    NoPlanBound,
    #[error("plan {plan} is being changed by others all the time; try again later")]
    Contended { plan: PlanId },
    #[error("plan {plan} cannot be read: {why}")]
    Unreadable { plan: PlanId, why: Message },
    #[error(transparent)]
    Operation(OperationError),
    #[error(transparent)]
    Store(StoreError),
}

impl PlanAccessError {
    /// The stable identifier of the kind of error.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoPlan { .. } => "unknown-plan",
            Self::NoTask { .. } => "unknown-task",
            Self::NoPlanBound => "no-plan-bound",
            Self::Contended { .. } => "plan-contended",
            Self::Unreadable { .. } => "plan-unreadable",
            Self::Operation(error) => error.code(),
            Self::Store(_) => "store",
        }
    }

    /// Whether it concerns what was asked for, so that it can be told to whoever asked. Otherwise the store has failed.
    pub const fn is_rejection(&self) -> bool {
        !matches!(self, Self::Store(_))
    }
}

impl From<OperationError> for PlanAccessError {
    fn from(error: OperationError) -> Self {
        Self::Operation(error)
    }
}

impl From<StoreError> for PlanAccessError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoPlan { plan, .. } => Self::NoPlan { plan },
            other => Self::Store(other),
        }
    }
}

/// A plan in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanListing {
    pub id: PlanId,
    pub revision: u64,
    pub head: PlanHead,
    pub tasks_by_status: BTreeMap<TaskStatus, usize>,
}

impl PlanListing {
    fn of(tree: &PlanTree) -> Self {
        let (head, tasks_by_status) = (tree.head().clone(), tree.counts().all().collect());
        Self { id: tree.id(), revision: tree.revision(), head, tasks_by_status }
    }

    /// The number of its tasks.
    pub fn tasks(&self) -> usize {
        self.tasks_by_status.values().sum()
    }
}

/// The plans of one user. Clones share what is in memory.
#[derive(Clone)]
pub struct PlanAccess {
    shared: Arc<SharedPlans>,
    session: EditingSession,
}

struct SharedPlans {
    store: Arc<dyn Store>,
    user: String,
    cache: Mutex<PlanCache>,
}

/// The plans in memory, as of some revision, and the ids that are reserved.
#[derive(Default)]
struct PlanCache {
    /// The most recently used one last.
    trees: VecDeque<PlanTree>,
    ids: ReservedIds,
}

/// Ids that are reserved for this process.
#[derive(Clone, Debug, Default)]
struct ReservedIds {
    ranges: VecDeque<Range<TaskId>>,
    /// How many were reserved the last time.
    reserved: u64,
}

impl TaskIds for ReservedIds {
    fn next_id(&mut self) -> Option<TaskId> {
        loop {
            if let Some(id) = self.ranges.front_mut()?.next() {
                return Some(id);
            }
            self.ranges.pop_front();
        }
    }
}

impl PlanCache {
    /// Takes a plan out of memory.
    fn take(&mut self, plan: PlanId) -> Option<PlanTree> {
        let index = self.trees.iter().position(|tree| tree.id() == plan)?;
        self.trees.remove(index)
    }

    fn put(&mut self, tree: PlanTree) {
        self.trees.retain(|other| other.id() != tree.id());
        if self.trees.len() >= MAX_CACHED {
            self.trees.pop_front();
        }
        self.trees.push_back(tree);
    }
}

fn read_result(plan: PlanId, result: &str) -> Result<Value, PlanAccessError> {
    serde_json::from_str(result).map_err(|error| PlanAccessError::Unreadable { plan, why: error.to_message() })
}

impl PlanAccess {
    pub fn new(store: Arc<dyn Store>, user: &str) -> Self {
        let shared = SharedPlans { store, user: user.to_owned(), cache: Mutex::new(PlanCache::default()) };
        Self { shared: Arc::new(shared), session: EditingSession::default() }
    }

    /// The plans for a session of their user that was started with these settings.
    #[must_use]
    pub(crate) fn for_session(self, id: &str, settings: &str) -> Self {
        Self { session: EditingSession::new(PlanEditor::of(id, settings)), ..self }
    }

    /// The key of an edit of the session that was decided at this event.
    pub(crate) fn key(&self, seq: u64, edit: &str) -> String {
        self.session.key(seq, edit)
    }

    /// The session knows sensitive values, which may be in what it writes from now on.
    pub(crate) fn note_sensitive(&self) {
        self.session.note_sensitive();
    }

    /// No plans, and those that are made are lost: for turns outside of a session.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(MemoryStore::default()), "")
    }

    pub fn user(&self) -> &str {
        &self.shared.user
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    /// The plans of the user, by id.
    pub async fn list(&self) -> Result<Vec<PlanListing>, PlanAccessError> {
        let rows = self.store().plans(self.user()).await?;
        let mut listed = Vec::with_capacity(rows.len());
        for row in rows {
            let PlanBody { head, tasks_by_status } = body_of(&row).map_err(|error| unreadable(row.id, error))?;
            let listing = PlanListing { id: row.id, revision: row.revision, head, tasks_by_status };
            let running = listing.tasks_by_status.get(&TaskStatus::Running).is_some_and(|count| *count > 0);
            listed.push(match running || listing.head.status == TaskStatus::Running {
                // What is running only by its status is not shown as running.
                true => match self.with_released_tree(listing.id, PlanListing::of).await {
                    Ok(listing) => listing,
                    // It was deleted in between.
                    Err(PlanAccessError::NoPlan { .. }) => continue,
                    Err(error) => return Err(error),
                },
                false => listing,
            });
        }
        Ok(listed)
    }

    /// What `read` gives for a plan as it is now.
    pub async fn with_tree<R>(
        &self,
        plan: PlanId,
        read: impl FnOnce(&PlanTree) -> R + Send,
    ) -> Result<R, PlanAccessError> {
        let mut cache = self.shared.cache.lock().await;
        let tree = self.load(&mut cache, plan).await?;
        let result = read(&tree);
        cache.put(tree);
        Ok(result)
    }

    /// The plan of a task.
    pub async fn plan_of_task(&self, task: TaskId) -> Result<PlanId, PlanAccessError> {
        let no_task = || PlanAccessError::NoTask { task };
        let plan = self.store().plan_of_task(task).await?.ok_or_else(no_task)?;
        let row = self.store().plan(plan).await?.ok_or_else(no_task)?;
        if row.user == self.user() { Ok(plan) } else { Err(no_task()) }
    }

    /// The plan that an operation means: the one that it names, that of the task that it names, or the bound one.
    pub async fn plan_of(&self, operation: &TaskOperation, bound: Option<PlanId>) -> Result<PlanId, PlanAccessError> {
        match (operation.plan, operation.locating_task()) {
            (Some(plan), _) => Ok(plan),
            (None, Some(task)) => self.plan_of_task(task).await,
            (None, None) => bound.ok_or(PlanAccessError::NoPlanBound),
        }
    }

    /// Applies an operation to the plan that it means. `key` and `at` as of [`PlanAccess::edit`].
    pub async fn run(
        &self,
        operation: &TaskOperation,
        bound: Option<PlanId>,
        key: &str,
        at: &str,
    ) -> Result<Value, PlanAccessError> {
        // What was deleted can no longer tell its plan.
        if let Some(result) = self.store().plan_edit(key).await? {
            return read_result(bound.unwrap_or_default(), &result);
        }
        let plan = self.plan_of(operation, bound).await?;
        self.edit(plan, key, at, |tree, ids| apply(tree, operation, ids)).await
    }

    /// Whether an edit was made under this key. The store keeps the newest ones only.
    pub(crate) async fn is_made(&self, key: &str) -> Result<bool, PlanAccessError> {
        Ok(self.store().plan_edit(key).await?.is_some())
    }

    /// Edits a plan. `key` identifies the edit in the store: if it was made before, its result is returned and nothing changes. `at` is
    /// the time. `edit` may be called several times, each time with the plan as it is then, and must not use this access, which
    /// waits for it; if it fails, the plan is unchanged. An
    /// edit that changes nothing is not stored.
    ///
    /// If somebody else edits the plan at the same time, `edit` is applied to the plan with their changes, so that both hold, or it is
    /// rejected because of them.
    pub async fn edit(
        &self,
        plan: PlanId,
        key: &str,
        at: &str,
        mut edit: impl FnMut(&mut PlanTree, &mut dyn TaskIds) -> Result<Value, OperationError> + Send,
    ) -> Result<Value, PlanAccessError> {
        let mut cache = self.shared.cache.lock().await;
        for _ in 0..MAX_TRIES {
            if let Some(result) = self.store().plan_edit(key).await? {
                return read_result(plan, &result);
            }
            let mut tree = self.load(&mut cache, plan).await?;
            at.clone_into(&mut tree.now);
            let result = match self.apply(&mut cache, &mut tree, &mut edit).await {
                Ok(result) if tree.is_changed() => result,
                other => {
                    tree.roll_back();
                    cache.put(tree);
                    return other;
                }
            };
            tree.change_head(|head| {
                at.clone_into(&mut head.updated_at);
                self.session.sign(head);
            });
            let row = tree.edit_row(key, &result)?;
            match self.store().edit_plan(&row).await {
                Ok(PlanEditOutcome::Applied) => {
                    tree.accept(row.revision.saturating_add(1));
                    cache.put(tree);
                    return Ok(result);
                }
                Ok(PlanEditOutcome::Repeated { result }) => return read_result(plan, &result),
                Err(StoreError::PlanChanged { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(PlanAccessError::Contended { plan })
    }

    /// Creates a plan with the tasks that `build` adds. Returns its id, and what `build` gave. The title is made from the goal if it is
    /// empty. `key` as of [`PlanAccess::edit`]; the times are those of `head`.
    pub async fn create(
        &self,
        key: &str,
        mut head: PlanHead,
        mut build: impl FnMut(&mut PlanTree, &mut dyn TaskIds) -> Result<Value, OperationError> + Send,
    ) -> Result<(PlanId, Value), PlanAccessError> {
        let mut cache = self.shared.cache.lock().await;
        if let Some(result) = self.store().plan_edit(key).await? {
            return read_created(&result);
        }
        if head.title.trim().is_empty() {
            head.title = head.goal.lines().next().unwrap_or_default().chars().take(MAX_TITLE_CHARS).collect();
        }
        check_bytes("goal", &head, MAX_HEAD_BYTES)?;
        self.session.sign(&mut head);
        let (plan, _) = self.store().reserve_plan_ids(1, 0).await?;
        let mut tree = PlanTree::new(plan, self.user(), head);
        let result = self.apply(&mut cache, &mut tree, &mut build).await?;
        let stored = json!({ "plan_id": plan, "result": result }).to_string();
        match self.store().create_plan(&tree.row()?, &tree.task_rows()?, key, &stored).await? {
            PlanEditOutcome::Applied => {
                tree.accept(1);
                cache.put(tree);
                Ok((plan, result))
            }
            PlanEditOutcome::Repeated { result } => read_created(&result),
        }
    }

    /// Deletes a plan with its tasks, and returns a summary. `key` as of [`PlanAccess::edit`].
    pub async fn delete(&self, plan: PlanId, key: &str) -> Result<Value, PlanAccessError> {
        let mut cache = self.shared.cache.lock().await;
        if let Some(result) = self.store().plan_edit(key).await? {
            return read_result(plan, &result);
        }
        let row = self.store().plan(plan).await?.filter(|row| row.user == self.user());
        let row = row.ok_or(PlanAccessError::NoPlan { plan })?;
        let tasks: Option<usize> = body_of(&row).ok().map(|body| body.tasks_by_status.values().sum());
        let result = json!({ "plan_id": plan, "title": row.title, "removed_tasks": tasks });
        cache.trees.retain(|tree| tree.id() != plan);
        match self.store().delete_plan(plan, key, &result.to_string()).await? {
            Some(PlanEditOutcome::Applied) => Ok(result),
            Some(PlanEditOutcome::Repeated { result }) => read_result(plan, &result),
            None => Err(PlanAccessError::NoPlan { plan }),
        }
    }

    /// Applies an edit to a plan in memory, with as many ids as it needs.
    async fn apply(
        &self,
        cache: &mut PlanCache,
        tree: &mut PlanTree,
        edit: &mut (impl FnMut(&mut PlanTree, &mut dyn TaskIds) -> Result<Value, OperationError> + Send),
    ) -> Result<Value, PlanAccessError> {
        for _ in 0..MAX_RESERVATIONS {
            // The ids of an edit that fails are used by the next one.
            let mut ids = cache.ids.clone();
            match edit(tree, &mut ids) {
                Ok(result) => {
                    cache.ids = ids;
                    return Ok(result);
                }
                Err(OperationError::NoIds) => {
                    tree.roll_back();
                    let count = cache.ids.reserved.saturating_mul(2).max(MIN_RESERVED);
                    let (_, first) = self.store().reserve_plan_ids(0, count).await?;
                    cache.ids.ranges.push_back(first..first.saturating_add(count));
                    cache.ids.reserved = count;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(OperationError::NoIds.into())
    }

    /// A plan as it is now, taken out of memory: whoever changes it puts it back when the change is stored.
    async fn load(&self, cache: &mut PlanCache, plan: PlanId) -> Result<PlanTree, PlanAccessError> {
        let no_plan = PlanAccessError::NoPlan { plan };
        let Some(row) = self.store().plan(plan).await?.filter(|row| row.user == self.user()) else {
            return Err(no_plan);
        };
        // A plan that was deleted and imported again may have the same revision.
        if let Some(tree) = cache.take(plan).filter(|tree| tree.row().is_ok_and(|cached| cached == row)) {
            return Ok(tree);
        }
        let stored = self.store().plan_tasks(plan).await?.ok_or(no_plan)?;
        PlanTree::from_rows(stored).map_err(|error| unreadable(plan, error))
    }
}

/// The result of a creation.
fn read_created(result: &str) -> Result<(PlanId, Value), PlanAccessError> {
    let mut value = read_result(0, result)?;
    let plan = value.get("plan_id").and_then(Value::as_u64);
    let plan = plan.ok_or(PlanAccessError::NoPlan { plan: 0 })?;
    Ok((plan, value.get_mut("result").map(Value::take).unwrap_or_default()))
}

fn unreadable(plan: PlanId, error: OperationError) -> PlanAccessError {
    match error {
        OperationError::Unreadable { why } => PlanAccessError::Unreadable { plan, why },
        other => PlanAccessError::Operation(other),
    }
}
