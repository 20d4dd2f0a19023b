//! Tasks that a session was running when it ended, was deleted, or left them otherwise: nothing ends them any more.

use std::collections::BTreeMap;

use bcc_lang::message::msg;
use bcc_store::contract::Store;
use serde_json::json;

use crate::plan::access::{PlanAccess, PlanAccessError};
use crate::plan::execution::{TaskProgress, branch_of};
use crate::plan::task::{PlanId, PlanTask, TaskId, TaskStatus};
use crate::plan::tree::PlanTree;
use crate::run::frames::BLOCK;
use crate::run::head::SessionStatus;

/// Whether the key of a frame is in this block of an action.
fn contains_block(key: &str, block: &str) -> bool {
    key.split('/').any(|part| part.strip_prefix(BLOCK) == Some(block))
}

/// What is running in a plan only by its status.
#[derive(Debug, Default)]
pub(crate) struct Abandoned {
    /// The tasks, as they were found.
    tasks: Vec<PlanTask>,
    /// Whether this also concerns the plan as a whole.
    plan: bool,
}

/// What is left of a session that runs something.
struct RunningSession {
    frames: Vec<String>,
}

impl RunningSession {
    /// The session, if it exists and has not ended.
    async fn find(store: &dyn Store, id: &str) -> Result<Option<Self>, PlanAccessError> {
        let row = store.session(id).await?;
        let is_open = row.is_some_and(|row| SessionStatus::parse(&row.status).is_none_or(|status| !status.is_final()));
        if !is_open {
            return Ok(None);
        }
        let frames = store.frames(id).await?.into_iter().map(|frame| frame.key).collect();
        Ok(Some(Self { frames }))
    }

    fn runs(&self, task: TaskId) -> bool {
        self.frames.iter().any(|key| contains_block(key, &branch_of(task)))
    }
}

impl PlanAccess {
    /// Ends what no session runs any more: a task that calls a tool fails, because it is not known how far the call got, and any other
    /// task is pending again. Returns what they are now. `key` and `at` as of [`PlanAccess::edit`].
    pub(crate) async fn release_abandoned(
        &self,
        plan: PlanId,
        key: &str,
        at: &str,
    ) -> Result<Vec<(TaskId, TaskStatus)>, PlanAccessError> {
        let abandoned = self.abandoned(plan).await?;
        if !abandoned.plan && abandoned.tasks.is_empty() {
            return Ok(vec![]);
        }
        let mut released = Vec::new();
        let edit = self.edit(plan, key, at, |tree, _| {
            released = tree.release(&abandoned);
            Ok(json!(released.len()))
        });
        edit.await?;
        Ok(released)
    }

    /// [`PlanAccess::with_tree`], where nothing is running that no session runs any more. Nothing is stored.
    pub async fn with_released_tree<R>(
        &self,
        plan: PlanId,
        read: impl FnOnce(&PlanTree) -> R + Send,
    ) -> Result<R, PlanAccessError> {
        let abandoned = self.abandoned(plan).await?;
        self.with_tree(plan, |tree| {
            if !abandoned.plan && abandoned.tasks.is_empty() {
                return read(tree);
            }
            let mut tree = tree.clone();
            tree.release(&abandoned);
            read(&tree)
        })
        .await
    }

    async fn abandoned(&self, plan: PlanId) -> Result<Abandoned, PlanAccessError> {
        let running = self.with_tree(plan, |tree| {
            let head = tree.head();
            let head = (head.status == TaskStatus::Running).then(|| head.runs_in.clone());
            let running = match tree.counts().of(TaskStatus::Running) {
                0 => vec![],
                _ => tree.all().filter_map(|id| tree.task(id)).filter(|task| task.is_running()).cloned().collect(),
            };
            (head, running)
        });
        let (head, tasks): (_, Vec<PlanTask>) = running.await?;
        let mut sessions: BTreeMap<String, Option<RunningSession>> = BTreeMap::new();
        for id in head.iter().flatten().chain(tasks.iter().filter_map(|task| Some(&task.run_by.as_ref()?.session))) {
            if !sessions.contains_key(id) {
                sessions.insert(id.clone(), RunningSession::find(self.store(), id).await?);
            }
        }
        let session = |id: Option<&str>| sessions.get(id?)?.as_ref();
        let plan = head.is_some_and(|head| session(head.as_deref()).is_none());
        let runner = |task: &PlanTask| session(task.run_by.as_ref().map(|by| by.session.as_str()));
        let is_left = |task: &PlanTask| !runner(task).is_some_and(|session| session.runs(task.id));
        Ok(Abandoned { tasks: tasks.into_iter().filter(is_left).collect(), plan })
    }
}

impl PlanTree {
    /// Ends tasks that were found abandoned, if nobody has started or ended them since.
    fn release(&mut self, abandoned: &Abandoned) -> Vec<(TaskId, TaskStatus)> {
        let mut released = Vec::new();
        for found in &abandoned.tasks {
            if self.task(found.id) != Some(found) {
                continue;
            }
            let progress = match found.metadata.contains_key("tool") {
                true => {
                    let session = found.run_by.as_ref().map_or("?", |by| by.session.as_str());
                    let why = msg!("session {session} ended during this task; it is not known how far its tool got");
                    TaskProgress { error: Some(why.to_string()), ..TaskProgress::of(TaskStatus::Failed) }
                }
                false => TaskProgress::of(TaskStatus::Pending),
            };
            let status = progress.status;
            // The task exists, and it has no result.
            if self.set_progress(found.id, &progress).is_ok() {
                released.push((found.id, status));
            }
        }
        if abandoned.plan && self.head().status == TaskStatus::Running {
            match self.other_runner(self.head().runs_in.as_deref().unwrap_or_default()) {
                Some(session) => self.set_plan_running(&session),
                None => self.set_plan_status(TaskStatus::Pending),
            }
        }
        released
    }
}
