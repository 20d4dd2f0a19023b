//! Copies a store: sessions as they are, with their earlier states, the variables of users, plans, and links.

use async_trait::async_trait;

use crate::contract::Store;
use crate::error::StoreError;
use crate::link_rows::{LinkRow, LinkTalkRow};
use crate::plan_rows::StoredPlan;
use crate::replaced::{ReplacedHead, ReplacedRow, RowKey};
use crate::rows::{Commit, DocumentRow, NewSessionRow, SessionFilter, SessionRow, VariableRow};
use crate::session_pages::SessionPages;

/// The holder name of a session while it is copied.
const COPY_HOLDER: &str = "a copy of the store";

/// Who runs a session that changed while it was read without a lock.
const OTHER_HOLDER: &str = "another process";

/// The number of rows that are read at a time.
const PAGE: usize = 1_000;

/// Everything that a store has of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionCopy {
    pub(crate) row: SessionRow,
    /// All rows, as one commit that writes them.
    pub(crate) rows: Commit,
    pub(crate) hidden: HiddenRows,
}

/// The rows of a session that no other method of a store lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HiddenRows {
    pub(crate) documents: Vec<DocumentRow>,
    /// The ids of the accepted answers.
    pub(crate) answers: Vec<String>,
    /// The hashes of its texts, which are copied one at a time: all of them may not fit into memory.
    pub(crate) texts: Vec<String>,
    /// What its commits replaced, oldest first.
    pub(crate) replaced: Vec<ReplacedState>,
}

/// What one commit replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplacedState {
    /// The revision of the replaced head.
    pub(crate) revision: u64,
    pub(crate) head: ReplacedHead,
    /// Sorted by key; none for a row that did not exist.
    pub(crate) rows: Vec<(RowKey, Option<ReplacedRow>)>,
}

/// Everything that a store has of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanCopy {
    pub(crate) stored: StoredPlan,
    pub(crate) edits: Vec<KeptEdit>,
}

/// An edit of a plan that is kept, so that it is not made twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptEdit {
    /// The revision that the plan got by it.
    pub(crate) number: u64,
    pub(crate) key: String,
    pub(crate) result: String,
}

/// A store that can be copied. What [`Store`] says of durability and errors holds here as well.
#[async_trait]
pub trait StoreCopying: Store {
    /// The rows of a session that nothing else lists.
    async fn hidden_rows(&self, id: &str) -> Result<HiddenRows, StoreError>;

    /// Creates a session as it was copied, with its texts in `from`, all or nothing.
    /// Errors: [`StoreError::Exists`], and those of `from`.
    async fn put_session(&self, copy: SessionCopy, from: &dyn Store) -> Result<(), StoreError>;

    /// The users that have variables or plans, sorted.
    async fn users(&self) -> Result<Vec<String>, StoreError>;

    /// Writes variables of a user, except where there are newer ones.
    async fn put_user_variables(&self, user: &str, rows: &[VariableRow]) -> Result<(), StoreError>;

    /// A plan with the edits of it that are kept.
    async fn plan_copy(&self, plan: u64) -> Result<Option<PlanCopy>, StoreError>;

    /// Creates a plan as it was copied, all or nothing. False without an effect if the store has a plan with its id, or another plan that
    /// has one of its tasks or one of its edits.
    async fn put_plan(&self, copy: &PlanCopy) -> Result<bool, StoreError>;

    /// Creates a link as it was copied, revoked or not, with conversations that began by it, all or nothing; a link that is there gets those
    /// that it lacks, and is revoked if the copy is. False if some of it was left out: the store has another link with its id or its token,
    /// or another conversation with the secret of one of these.
    async fn put_link(&self, link: &LinkRow, talks: &[LinkTalkRow]) -> Result<bool, StoreError>;
}

/// What became of the sessions and plans of a store that was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// The ids of the sessions that were copied.
    pub copied: Vec<String>,
    /// The number of sessions that had been copied before and have not changed since then.
    pub unchanged: usize,
    /// Sessions that the new store has in another state; they were left as they are there.
    pub different: Vec<String>,
    /// Sessions that a process runs, and who that is.
    pub held: Vec<(String, String)>,
    pub plans: usize,
    /// Plans that the new store has in another state, or of which it has tasks or edits in other plans.
    pub different_plans: Vec<u64>,
    /// The ids of links that were not copied, or not with all of their conversations: the new store has others in their place.
    pub different_links: Vec<String>,
}

impl CopyReport {
    /// Whether the new store has everything that the other one has.
    pub fn is_complete(&self) -> bool {
        self.different.is_empty()
            && self.held.is_empty()
            && self.different_plans.is_empty()
            && self.different_links.is_empty()
    }
}

/// Copies everything to another store. What is there already is left as it is, so that a copy that was interrupted can be made again.
/// `copied` is called after each session that was copied.
///
/// # Errors
/// Those of the stores. What was copied before stays.
pub async fn copy_store(
    from: &dyn StoreCopying,
    to: &dyn StoreCopying,
    mut copied: impl FnMut(&str),
) -> Result<CopyReport, StoreError> {
    let mut report = CopyReport::default();
    let mut sessions = SessionPages::new(from, SessionFilter::default());
    while let Some(SessionRow { id, .. }) = sessions.next().await? {
        // Nobody changes it while it is read.
        let lock = match from.lock(&id, COPY_HOLDER).await {
            Ok(lock) => Some(lock),
            Err(StoreError::Held { holder, .. }) => {
                report.held.push((id, holder));
                continue;
            }
            // No lock can be written there either: whether somebody changes it shows afterwards.
            Err(StoreError::ReadOnly { .. } | StoreError::Denied { .. }) => None,
            Err(error) => return Err(error),
        };
        // It may have been deleted meanwhile.
        let Some(row) = from.session(&id).await? else { continue };
        if let Some(there) = to.session(&id).await? {
            match there == row {
                true => report.unchanged += 1,
                false => report.different.push(id),
            }
            continue;
        }
        let copy = session_copy(from, row.clone()).await?;
        if lock.is_none() && from.session(&id).await? != Some(row) {
            report.held.push((id, OTHER_HOLDER.to_owned()));
            continue;
        }
        to.put_session(copy, from).await?;
        copied(&id);
        report.copied.push(id);
    }
    for user in from.users().await? {
        to.put_user_variables(&user, &from.user_variables(&user).await?).await?;
        for plan in from.plans(&user).await? {
            let Some(copy) = from.plan_copy(plan.id).await? else { continue };
            let is_there = async || Ok::<_, StoreError>(to.plan(plan.id).await?.as_ref() == Some(&copy.stored.plan));
            // It is there afterwards as well if it was written, and the answer was lost.
            match is_there().await? || to.put_plan(&copy).await? || is_there().await? {
                true => report.plans += 1,
                false => report.different_plans.push(plan.id),
            }
        }
    }
    // A link that was revoked in either store is revoked in the new one.
    for link in from.links().await? {
        if !to.put_link(&link, &from.talks(&link.id).await?).await? {
            report.different_links.push(link.id);
        }
    }
    keep_reserved_ids(from, to).await?;
    Ok(report)
}

/// No id that a plan or a task of the store had is given again.
async fn keep_reserved_ids(from: &dyn Store, to: &dyn Store) -> Result<(), StoreError> {
    let ((plans, tasks), (plans_there, tasks_there)) =
        (from.reserve_plan_ids(0, 0).await?, to.reserve_plan_ids(0, 0).await?);
    to.reserve_plan_ids(plans.saturating_sub(plans_there), tasks.saturating_sub(tasks_there)).await?;
    Ok(())
}

/// Everything of a session, which is locked.
pub(crate) async fn session_copy(store: &dyn StoreCopying, row: SessionRow) -> Result<SessionCopy, StoreError> {
    let id = row.id.as_str();
    let hidden = store.hidden_rows(id).await?;
    let mut rows = Commit {
        status: row.status.clone(),
        updated_at: row.updated_at.clone(),
        location: row.location.clone(),
        head: row.head.clone(),
        answers: row.answers,
        frames_put: store.frames(id).await?,
        variables_put: store.variables(id).await?,
        counters_put: store.counters(id).await?,
        requests_put: store.requests(id).await?,
        answer_ids: hidden.answers.clone(),
        ..Commit::default()
    };
    loop {
        let page = store.journal(id, rows.journal.last().map_or(0, |row| row.seq), PAGE).await?;
        let is_last = page.len() < PAGE;
        rows.journal.extend(page);
        if is_last {
            break;
        }
    }
    loop {
        let page = store.messages(id, rows.messages.last().map_or(0, |row| row.number), PAGE).await?;
        let is_last = page.len() < PAGE;
        rows.messages.extend(page);
        if is_last {
            break;
        }
    }
    loop {
        let page = store.cells(id, rows.cells_put.last().map_or(0, |row| row.number), PAGE).await?;
        let is_last = page.len() < PAGE;
        rows.cells_put.extend(page);
        if is_last {
            break;
        }
    }
    Ok(SessionCopy { row, rows, hidden })
}

impl SessionCopy {
    /// The part of the session that is written once.
    pub(crate) fn new_row(&self) -> NewSessionRow {
        let row = &self.row;
        NewSessionRow {
            id: row.id.clone(),
            user: row.user.clone(),
            script: row.script.clone(),
            script_name: row.script_name.clone(),
            script_sha256: row.script_sha256.clone(),
            started_at: row.started_at.clone(),
            settings: row.settings.clone(),
            manifest: row.manifest.clone(),
            texts: None,
        }
    }
}
