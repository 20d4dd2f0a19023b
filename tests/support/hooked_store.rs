//! A store in memory that calls a hook around each write of a session.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use bcc_store::contract::{SessionLock, Store};
use bcc_store::error::StoreError;
use bcc_store::link_contract::LinkStore;
use bcc_store::link_rows::{LinkRow, LinkTalkRow, TalkOutcome};
use bcc_store::memory::MemoryStore;
use bcc_store::plan_contract::PlanStore;
use bcc_store::plan_rows::{PlanEditOutcome, PlanEditRow, PlanRow, PlanTaskRow, StoredPlan};
use bcc_store::rows::{
    CellRow, Commit, CounterRow, DocumentRow, EarlierState, FrameRow, JournalRow, MessageRow, NewSessionRow,
    OpenRequest, RequestRow, SessionCursor, SessionFilter, SessionRow, VariableRow,
};

/// A new session and its documents.
pub(crate) type SessionCreation<'a> = (&'a NewSessionRow, &'a [DocumentRow]);

/// The write operation, which runs when it is awaited.
pub(crate) type Write<'a> = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send + 'a>>;

#[async_trait]
pub(crate) trait Hook: Send + Sync {
    /// Called instead of each write; with `new_session` for the first write of a session.
    async fn around(
        &self,
        new_session: Option<SessionCreation<'_>>,
        commit: &Commit,
        write: Write<'_>,
    ) -> Result<(), StoreError>;

    /// Called before commits that are written together. Returns whether [`Hook::around`] is called once for all of them, and not for each.
    fn together(&self, _commits: &[Commit]) -> bool {
        false
    }
}

#[derive(Default)]
pub(crate) struct HookedStore<H> {
    inner: MemoryStore,
    pub(crate) hook: H,
}

impl<H> HookedStore<H> {
    pub(crate) fn with(hook: H) -> Self {
        Self { inner: MemoryStore::default(), hook }
    }
}

#[async_trait]
impl<H: Hook> LinkStore for HookedStore<H> {
    async fn create_link(&self, link: &LinkRow) -> Result<bool, StoreError> {
        self.inner.create_link(link).await
    }

    async fn links(&self) -> Result<Vec<LinkRow>, StoreError> {
        self.inner.links().await
    }

    async fn link_of_token(&self, sha256: &str) -> Result<Option<LinkRow>, StoreError> {
        self.inner.link_of_token(sha256).await
    }

    async fn revoke_link(&self, link: &str, at: &str) -> Result<bool, StoreError> {
        self.inner.revoke_link(link, at).await
    }

    async fn start_talk(&self, talk: &LinkTalkRow, limit: Option<u64>) -> Result<TalkOutcome, StoreError> {
        self.inner.start_talk(talk, limit).await
    }

    async fn talk(&self, link: &str, secret_sha256: &str) -> Result<Option<LinkTalkRow>, StoreError> {
        self.inner.talk(link, secret_sha256).await
    }

    async fn talks(&self, link: &str) -> Result<Vec<LinkTalkRow>, StoreError> {
        self.inner.talks(link).await
    }

    async fn update_talk(&self, talk: &LinkTalkRow) -> Result<(), StoreError> {
        self.inner.update_talk(talk).await
    }

    async fn forget_user(&self, user: &str) -> Result<(), StoreError> {
        self.inner.forget_user(user).await
    }
}

#[async_trait]
impl<H: Hook> PlanStore for HookedStore<H> {
    async fn plans(&self, user: &str) -> Result<Vec<PlanRow>, StoreError> {
        self.inner.plans(user).await
    }

    async fn plan(&self, plan: u64) -> Result<Option<PlanRow>, StoreError> {
        self.inner.plan(plan).await
    }

    async fn plan_tasks(&self, plan: u64) -> Result<Option<StoredPlan>, StoreError> {
        self.inner.plan_tasks(plan).await
    }

    async fn plan_of_task(&self, task: u64) -> Result<Option<u64>, StoreError> {
        self.inner.plan_of_task(task).await
    }

    async fn reserve_plan_ids(&self, plans: u64, tasks: u64) -> Result<(u64, u64), StoreError> {
        self.inner.reserve_plan_ids(plans, tasks).await
    }

    async fn create_plan(
        &self,
        plan: &PlanRow,
        tasks: &[PlanTaskRow],
        key: &str,
        result: &str,
    ) -> Result<PlanEditOutcome, StoreError> {
        self.inner.create_plan(plan, tasks, key, result).await
    }

    async fn edit_plan(&self, edit: &PlanEditRow) -> Result<PlanEditOutcome, StoreError> {
        self.inner.edit_plan(edit).await
    }

    async fn delete_plan(&self, plan: u64, key: &str, result: &str) -> Result<Option<PlanEditOutcome>, StoreError> {
        self.inner.delete_plan(plan, key, result).await
    }

    async fn plan_edit(&self, key: &str) -> Result<Option<String>, StoreError> {
        self.inner.plan_edit(key).await
    }
}

#[async_trait]
impl<H: Hook> Store for HookedStore<H> {
    async fn create(&self, new: &NewSessionRow, documents: &[DocumentRow], first: &Commit) -> Result<(), StoreError> {
        self.hook.around(Some((new, documents)), first, self.inner.create(new, documents, first)).await
    }

    async fn commit(&self, id: &str, commit: &Commit) -> Result<(), StoreError> {
        self.hook.around(None, commit, self.inner.commit(id, commit)).await
    }

    async fn commit_all(&self, id: &str, commits: &Arc<Vec<Commit>>) -> Result<(), StoreError> {
        let Some(last) = commits.last().filter(|_| self.hook.together(commits)) else {
            for commit in commits.iter() {
                self.commit(id, commit).await?;
            }
            return Ok(());
        };
        self.hook.around(None, last, self.inner.commit_all(id, commits)).await
    }

    async fn session(&self, id: &str) -> Result<Option<SessionRow>, StoreError> {
        self.inner.session(id).await
    }

    async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.inner.sessions().await
    }

    async fn sessions_page(
        &self,
        filter: &SessionFilter,
        after: Option<&SessionCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, StoreError> {
        self.inner.sessions_page(filter, after, limit).await
    }

    async fn frames(&self, id: &str) -> Result<Vec<FrameRow>, StoreError> {
        self.inner.frames(id).await
    }

    async fn variables(&self, id: &str) -> Result<Vec<VariableRow>, StoreError> {
        self.inner.variables(id).await
    }

    async fn user_variables(&self, user: &str) -> Result<Vec<VariableRow>, StoreError> {
        self.inner.user_variables(user).await
    }

    async fn counters(&self, id: &str) -> Result<Vec<CounterRow>, StoreError> {
        self.inner.counters(id).await
    }

    async fn journal(&self, id: &str, after: u64, limit: usize) -> Result<Vec<JournalRow>, StoreError> {
        self.inner.journal(id, after, limit).await
    }

    async fn journal_by_kind(
        &self,
        id: &str,
        kind: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, StoreError> {
        self.inner.journal_by_kind(id, kind, after, limit).await
    }

    async fn last_by_kind(&self, id: &str, kind: &str) -> Result<Option<JournalRow>, StoreError> {
        self.inner.last_by_kind(id, kind).await
    }

    async fn messages_tail(&self, id: &str, count: usize) -> Result<Vec<MessageRow>, StoreError> {
        self.inner.messages_tail(id, count).await
    }

    async fn messages(&self, id: &str, after: u64, limit: usize) -> Result<Vec<MessageRow>, StoreError> {
        self.inner.messages(id, after, limit).await
    }

    async fn cell(&self, id: &str, cell_id: &str) -> Result<Option<CellRow>, StoreError> {
        self.inner.cell(id, cell_id).await
    }

    async fn cells(&self, id: &str, after: u64, limit: usize) -> Result<Vec<CellRow>, StoreError> {
        self.inner.cells(id, after, limit).await
    }

    async fn cells_tail(&self, id: &str, count: usize) -> Result<Vec<CellRow>, StoreError> {
        self.inner.cells_tail(id, count).await
    }

    async fn answer_accepted(&self, id: &str, answer_id: &str) -> Result<bool, StoreError> {
        self.inner.answer_accepted(id, answer_id).await
    }

    async fn revision_with(&self, id: &str, status: &str, answers: u64) -> Result<Option<u64>, StoreError> {
        self.inner.revision_with(id, status, answers).await
    }

    async fn earlier_state(&self, id: &str, revision: u64) -> Result<Option<EarlierState>, StoreError> {
        self.inner.earlier_state(id, revision).await
    }

    async fn requests(&self, id: &str) -> Result<Vec<RequestRow>, StoreError> {
        self.inner.requests(id).await
    }

    async fn open_requests(&self, due_before: Option<&str>) -> Result<Vec<OpenRequest>, StoreError> {
        self.inner.open_requests(due_before).await
    }

    async fn text(&self, id: &str, sha256: &str) -> Result<Option<String>, StoreError> {
        self.inner.text(id, sha256).await
    }

    async fn document(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        self.inner.document(sha256).await
    }

    async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        self.inner.delete(id).await
    }

    async fn prune(&self, updated_before: &str) -> Result<Vec<String>, StoreError> {
        self.inner.prune(updated_before).await
    }

    async fn lock(&self, id: &str, holder: &str) -> Result<Arc<dyn SessionLock>, StoreError> {
        self.inner.lock(id, holder).await
    }
}
