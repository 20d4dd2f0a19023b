//! The in-memory store: for tests, and for runs that store nothing.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::contract::{SessionLock, Store};
use crate::error::StoreError;
use crate::memory_links::MemoryLinks;
use crate::memory_plans::MemoryPlans;
use crate::memory_texts::shared_texts;
use crate::replaced::{ReplacedHead, ReplacedRow, RowKey, written_keys};
use crate::rows::{
    CellRow, Commit, CounterRow, DocumentRow, EarlierState, FrameRow, JournalRow, MessageRow, NewSessionRow,
    OpenRequest, RequestRow, SessionCursor, SessionFilter, SessionRow, VariableKey, VariableRow,
};
use crate::tail::{Tail, check_cell_numbers};

/// The path of the store in error messages.
pub(crate) const STORE: &str = "memory";

/// What one commit replaced: the head, and the rows; none for a row that did not exist.
#[derive(Debug)]
struct Replaced {
    /// The revision of the replaced head.
    revision: u64,
    head: ReplacedHead,
    rows: Vec<(RowKey, Option<ReplacedRow>)>,
}

#[derive(Debug, Default)]
struct StoredSession {
    row: SessionRow,
    documents: BTreeSet<String>,
    frames: BTreeMap<String, FrameRow>,
    variables: BTreeMap<VariableKey, VariableRow>,
    counters: BTreeMap<String, CounterRow>,
    journal: Vec<JournalRow>,
    kinds: HashMap<String, Vec<usize>>,
    messages: Vec<MessageRow>,
    cells: BTreeMap<u64, CellRow>,
    cell_numbers: HashMap<String, u64>,
    answers: BTreeSet<String>,
    requests: BTreeMap<String, RequestRow>,
    /// By hash.
    texts: HashMap<String, String>,
    /// What the commits replaced, oldest first.
    replaced: Vec<Replaced>,
}

#[derive(Debug, Default)]
pub(crate) struct MemoryState {
    sessions: BTreeMap<String, StoredSession>,
    pub(crate) users: HashMap<String, BTreeMap<VariableKey, VariableRow>>,
    documents: HashMap<String, String>,
    pub(crate) plans: MemoryPlans,
    pub(crate) links: MemoryLinks,
}

/// The locked sessions, each with its holder.
type Holders = Arc<Mutex<HashMap<String, String>>>;

/// A store whose content is lost when its process ends.
#[derive(Debug, Default)]
pub struct MemoryStore {
    pub(crate) state: Mutex<MemoryState>,
    holders: Holders,
}

struct MemoryLock {
    id: String,
    holders: Holders,
}

impl SessionLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        lock_mutex(&self.holders).remove(&self.id);
    }
}

/// Ignores poisoning: every change is applied completely under the guard, so a panic leaves no partial change.
pub(crate) fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The index of the first element after number `after`, in a list numbered from 1.
fn start(after: u64) -> usize {
    usize::try_from(after).unwrap_or(usize::MAX)
}

impl StoredSession {
    /// Applies a commit that [`StoredSession::check`] has accepted.
    fn apply(&mut self, commit: &Commit, tail: Tail) {
        if self.row.revision > 0 {
            self.keep_replaced(commit);
        }
        self.row.revision = tail.revision;
        self.row.last_seq = tail.last_seq;
        self.row.status.clone_from(&commit.status);
        self.row.updated_at.clone_from(&commit.updated_at);
        self.row.location.clone_from(&commit.location);
        self.row.head.clone_from(&commit.head);
        self.row.answers = commit.answers;
        for key in &commit.frames_removed {
            self.frames.remove(key);
        }
        for key in &commit.variables_removed {
            self.variables.remove(key);
        }
        for name in &commit.counters_removed {
            self.counters.remove(name);
        }
        if let Some(kept) = commit.messages_kept {
            self.messages.truncate(start(kept));
        }
        if let Some(kept) = commit.cells_kept {
            self.cells.retain(|number, _| *number <= kept);
            self.cell_numbers.retain(|_, number| *number <= kept);
        }
        self.frames.extend(commit.frames_put.iter().map(|row| (row.key.clone(), row.clone())));
        self.variables.extend(commit.variables_put.iter().map(|row| (row.key(), row.clone())));
        self.counters.extend(commit.counters_put.iter().map(|row| (row.name.clone(), row.clone())));
        for row in &commit.journal {
            self.kinds.entry(row.kind.clone()).or_default().push(self.journal.len());
            self.journal.push(row.clone());
        }
        self.messages.extend_from_slice(&commit.messages);
        self.texts.extend(commit.texts.iter().map(|row| (row.sha256.clone(), row.text.clone())));
        for row in &commit.cells_put {
            self.cell_numbers.insert(row.id.clone(), row.number);
            self.cells.insert(row.number, row.clone());
        }
        self.answers.extend(commit.answer_ids.iter().cloned());
        for id in &commit.requests_removed {
            self.requests.remove(id);
        }
        for id in &commit.requests_answered {
            if let Some(request) = self.requests.get_mut(id) {
                request.answered_at.get_or_insert_with(|| commit.updated_at.clone());
            }
        }
        self.requests.extend(commit.requests_put.iter().map(|row| (row.id.clone(), row.clone())));
    }

    /// Keeps the rows that a commit is about to replace.
    fn keep_replaced(&mut self, commit: &Commit) {
        let mut keys = written_keys(commit);
        if let Some(kept) = commit.messages_kept {
            let removed = self.messages.iter().skip(start(kept));
            keys.extend(removed.map(|row| RowKey::Message(row.number)));
        }
        if let Some(kept) = commit.cells_kept {
            keys.extend(self.cells.range(kept.saturating_add(1)..).map(|(number, _)| RowKey::Cell(*number)));
        }
        let rows = keys.into_iter().map(|key| (key.clone(), self.row(&key, commit))).collect();
        self.replaced.push(Replaced { revision: self.row.revision, head: ReplacedHead::of(&self.row), rows });
    }

    fn row(&self, key: &RowKey, commit: &Commit) -> Option<ReplacedRow> {
        Some(match key {
            RowKey::Frame(key) => ReplacedRow::Frame(self.frames.get(key)?.clone()),
            RowKey::Variable(key) => ReplacedRow::Variable(self.variables.get(key)?.clone()),
            RowKey::Counter(name) => ReplacedRow::Counter(self.counters.get(name)?.clone()),
            RowKey::Message(number) => ReplacedRow::Message(self.messages.get(start(number.checked_sub(1)?))?.clone()),
            RowKey::Cell(number) => ReplacedRow::cell(self.cells.get(number)?.clone(), commit),
            RowKey::Request(id) => ReplacedRow::Request(self.requests.get(id)?.clone()),
        })
    }

    fn earlier_state(&self, revision: u64) -> Option<EarlierState> {
        let first = self.replaced.iter().position(|replaced| replaced.revision == revision)?;
        let since = self.replaced.get(first..)?;
        let rows = since.iter().flat_map(|replaced| replaced.rows.iter().cloned());
        Some(since.first()?.head.clone().with_rows(revision, rows))
    }

    fn check(&self, id: &str, commit: &Commit) -> Result<Tail, StoreError> {
        let tail = Tail {
            revision: self.row.revision,
            last_seq: self.row.last_seq,
            last_message: u64::try_from(self.messages.len()).unwrap_or(u64::MAX),
        };
        let next = tail.after(STORE, id, commit)?;
        check_cell_numbers(STORE, id, u64::try_from(self.cells.len()).unwrap_or(u64::MAX), commit)?;
        let is_kept = |number: &u64| commit.cells_kept.is_none_or(|kept| *number <= kept);
        let mut new_cells: HashMap<&str, u64> = HashMap::new();
        for CellRow { number, id: cell_id, .. } in &commit.cells_put {
            let stored_number = self.cell_numbers.get(cell_id).filter(|number| is_kept(number));
            let number_of_id = stored_number.or_else(|| new_cells.get(cell_id.as_str()));
            let id_of_number = self.cells.get(number).map(|row| &row.id).filter(|_| is_kept(number));
            if number_of_id.is_some_and(|stored| stored != number)
                || id_of_number.is_some_and(|stored| stored != cell_id)
            {
                return Err(StoreError::CellIdMismatch { store: STORE.to_owned(), id: id.to_owned(), number: *number });
            }
            new_cells.insert(cell_id, *number);
        }
        let mut new_answers = BTreeSet::new();
        for answer in &commit.answer_ids {
            if self.answers.contains(answer) || !new_answers.insert(answer) {
                return Err(StoreError::AnswerTaken { store: STORE.to_owned(), id: id.to_owned() });
            }
        }
        Ok(next)
    }
}

impl MemoryState {
    fn put_user_variables(&mut self, user: &str, rows: &[VariableRow]) {
        if !rows.is_empty() {
            let variables = self.users.entry(user.to_owned()).or_default();
            variables.extend(rows.iter().map(|row| (row.key(), row.clone())));
        }
    }

    fn remove(&mut self, id: &str) -> bool {
        let Some(removed) = self.sessions.remove(id) else { return false };
        for sha256 in removed.documents {
            if !self.sessions.values().any(|session| session.documents.contains(&sha256)) {
                self.documents.remove(&sha256);
            }
        }
        true
    }
}

impl MemoryStore {
    fn acquire_lock(&self, id: &str, holder: &str) -> Result<MemoryLock, StoreError> {
        let mut holders = lock_mutex(&self.holders);
        if let Some(holder) = holders.get(id) {
            let holder = holder.clone();
            return Err(StoreError::Held { store: STORE.to_owned(), id: id.to_owned(), holder });
        }
        holders.insert(id.to_owned(), holder.to_owned());
        Ok(MemoryLock { id: id.to_owned(), holders: Arc::clone(&self.holders) })
    }

    /// The result of `query` on a session; the default value if the session does not exist.
    fn query<T: Default>(&self, id: &str, query: impl FnOnce(&StoredSession) -> T) -> T {
        lock_mutex(&self.state).sessions.get(id).map(query).unwrap_or_default()
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn create(
        &self,
        session: &NewSessionRow,
        documents: &[DocumentRow],
        first: &Commit,
    ) -> Result<(), StoreError> {
        let mut state = lock_mutex(&self.state);
        let mut stored = StoredSession {
            row: SessionRow {
                id: session.id.clone(),
                user: session.user.clone(),
                script: session.script.clone(),
                script_name: session.script_name.clone(),
                script_sha256: session.script_sha256.clone(),
                started_at: session.started_at.clone(),
                settings: session.settings.clone(),
                manifest: session.manifest.clone(),
                ..SessionRow::default()
            },
            documents: documents.iter().map(|document| document.sha256.clone()).collect(),
            texts: shared_texts(session, |id| state.sessions.get(id).map(|session| &session.texts))?,
            ..StoredSession::default()
        };
        match state.sessions.entry(session.id.clone()) {
            Entry::Occupied(_) => return Err(StoreError::Exists { store: STORE.to_owned(), id: session.id.clone() }),
            Entry::Vacant(entry) => {
                let tail = stored.check(&session.id, first)?;
                stored.apply(first, tail);
                entry.insert(stored);
            }
        }
        state.put_user_variables(&session.user, &first.user_variables_put);
        for document in documents {
            state.documents.entry(document.sha256.clone()).or_insert_with(|| document.text.clone());
        }
        Ok(())
    }

    async fn commit(&self, id: &str, commit: &Commit) -> Result<(), StoreError> {
        let mut state = lock_mutex(&self.state);
        let Some(session) = state.sessions.get_mut(id) else {
            return Err(StoreError::NotFound { store: STORE.to_owned(), id: id.to_owned() });
        };
        let tail = session.check(id, commit)?;
        session.apply(commit, tail);
        let user = session.row.user.clone();
        state.put_user_variables(&user, &commit.user_variables_put);
        Ok(())
    }

    async fn session(&self, id: &str) -> Result<Option<SessionRow>, StoreError> {
        Ok(self.query(id, |session| Some(session.row.clone())))
    }

    async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        let mut rows: Vec<_> = lock_mutex(&self.state).sessions.values().map(|session| session.row.clone()).collect();
        // The sort is stable: sessions with the same time stay sorted by id.
        rows.sort_by(|a, b| instant(&b.updated_at).cmp(instant(&a.updated_at)));
        Ok(rows)
    }

    async fn sessions_page(
        &self,
        filter: &SessionFilter,
        after: Option<&SessionCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, StoreError> {
        let mut rows = self.sessions().await?;
        let is = |wanted: &Option<String>, found: &String| wanted.as_ref().is_none_or(|wanted| wanted == found);
        rows.retain(|row| {
            let is_after = after.is_none_or(|cursor| {
                let order = instant(&row.updated_at).cmp(instant(&cursor.updated_at)).reverse();
                order.then_with(|| row.id.cmp(&cursor.id)).is_gt()
            });
            let is_since = filter.since.as_ref().is_none_or(|since| instant(&row.updated_at) >= instant(since));
            let is_wanted = is(&filter.script, &row.script) && is(&filter.status, &row.status);
            let is_named = filter.id.as_ref().is_none_or(|start| row.id.starts_with(start));
            is_after && is_since && is_wanted && is_named && is(&filter.user, &row.user)
        });
        rows.truncate(limit);
        Ok(rows)
    }

    async fn frames(&self, id: &str) -> Result<Vec<FrameRow>, StoreError> {
        Ok(self.query(id, |session| session.frames.values().cloned().collect()))
    }

    async fn variables(&self, id: &str) -> Result<Vec<VariableRow>, StoreError> {
        Ok(self.query(id, |session| session.variables.values().cloned().collect()))
    }

    async fn user_variables(&self, user: &str) -> Result<Vec<VariableRow>, StoreError> {
        let state = lock_mutex(&self.state);
        Ok(state.users.get(user).map(|variables| variables.values().cloned().collect()).unwrap_or_default())
    }

    async fn counters(&self, id: &str) -> Result<Vec<CounterRow>, StoreError> {
        Ok(self.query(id, |session| session.counters.values().cloned().collect()))
    }

    async fn journal(&self, id: &str, after: u64, limit: usize) -> Result<Vec<JournalRow>, StoreError> {
        Ok(self.query(id, |session| session.journal.iter().skip(start(after)).take(limit).cloned().collect()))
    }

    async fn journal_by_kind(
        &self,
        id: &str,
        kind: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, StoreError> {
        Ok(self.query(id, |session| {
            let indices = session.kinds.get(kind).map(Vec::as_slice).unwrap_or_default();
            let from = indices.partition_point(|index| *index < start(after));
            indices.iter().skip(from).take(limit).filter_map(|index| session.journal.get(*index).cloned()).collect()
        }))
    }

    async fn last_by_kind(&self, id: &str, kind: &str) -> Result<Option<JournalRow>, StoreError> {
        Ok(self.query(id, |session| {
            session.kinds.get(kind)?.last().and_then(|index| session.journal.get(*index).cloned())
        }))
    }

    async fn messages_tail(&self, id: &str, count: usize) -> Result<Vec<MessageRow>, StoreError> {
        Ok(self.query(id, |session| {
            session.messages.iter().skip(session.messages.len().saturating_sub(count)).cloned().collect()
        }))
    }

    async fn messages(&self, id: &str, after: u64, limit: usize) -> Result<Vec<MessageRow>, StoreError> {
        Ok(self.query(id, |session| session.messages.iter().skip(start(after)).take(limit).cloned().collect()))
    }

    async fn cell(&self, id: &str, cell_id: &str) -> Result<Option<CellRow>, StoreError> {
        Ok(self.query(id, |session| {
            let number = session.cell_numbers.get(cell_id)?;
            session.cells.get(number).cloned()
        }))
    }

    async fn cells(&self, id: &str, after: u64, limit: usize) -> Result<Vec<CellRow>, StoreError> {
        let after = after.saturating_add(1);
        Ok(self.query(id, |session| session.cells.range(after..).take(limit).map(|(_, row)| row.clone()).collect()))
    }

    async fn cells_tail(&self, id: &str, count: usize) -> Result<Vec<CellRow>, StoreError> {
        Ok(self.query(id, |session| {
            let mut rows: Vec<CellRow> = session.cells.values().rev().take(count).cloned().collect();
            rows.reverse();
            rows
        }))
    }

    async fn answer_accepted(&self, id: &str, answer_id: &str) -> Result<bool, StoreError> {
        Ok(self.query(id, |session| session.answers.contains(answer_id)))
    }

    async fn revision_with(&self, id: &str, status: &str, answers: u64) -> Result<Option<u64>, StoreError> {
        Ok(self.query(id, |session| {
            let has = |replaced: &&Replaced| replaced.head.status == status && replaced.head.answers == answers;
            session.replaced.iter().rev().find(has).map(|replaced| replaced.revision)
        }))
    }

    async fn earlier_state(&self, id: &str, revision: u64) -> Result<Option<EarlierState>, StoreError> {
        Ok(self.query(id, |session| session.earlier_state(revision)))
    }

    async fn requests(&self, id: &str) -> Result<Vec<RequestRow>, StoreError> {
        Ok(self.query(id, |session| session.requests.values().cloned().collect()))
    }

    async fn open_requests(&self, due_before: Option<&str>) -> Result<Vec<OpenRequest>, StoreError> {
        let state = lock_mutex(&self.state);
        let requests = state.sessions.iter().flat_map(|(session, stored)| {
            stored.requests.values().map(|row| OpenRequest { session: session.clone(), request: row.clone() })
        });
        let is_due = |due_at: &Option<String>| match (due_at, due_before) {
            (_, None) => true,
            (Some(due_at), Some(before)) => instant(due_at) < instant(before),
            (None, Some(_)) => false,
        };
        let mut open: Vec<OpenRequest> =
            requests.filter(|open| open.request.answered_at.is_none() && is_due(&open.request.due_at)).collect();
        if due_before.is_some() {
            // The sort is stable: requests that are due at the same time stay sorted by session and id.
            let due = |open: &OpenRequest| open.request.due_at.as_deref().map(|at| instant(at).to_owned());
            open.sort_by_key(due);
        }
        Ok(open)
    }

    async fn text(&self, id: &str, sha256: &str) -> Result<Option<String>, StoreError> {
        Ok(self.query(id, |session| session.texts.get(sha256).cloned()))
    }

    async fn document(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        Ok(lock_mutex(&self.state).documents.get(sha256).cloned())
    }

    async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let _lock = self.acquire_lock(id, "a deletion")?;
        Ok(lock_mutex(&self.state).remove(id))
    }

    async fn prune(&self, updated_before: &str) -> Result<Vec<String>, StoreError> {
        let mut outdated = self.sessions().await?;
        outdated.retain(|row| instant(&row.updated_at) < instant(updated_before));
        outdated.sort_by(|a, b| instant(&a.updated_at).cmp(instant(&b.updated_at)).then_with(|| a.id.cmp(&b.id)));
        let mut removed = Vec::new();
        for row in outdated {
            // The session may have changed between the listing and the lock: check again.
            let Ok(_lock) = self.acquire_lock(&row.id, "a deletion") else { continue };
            let mut state = lock_mutex(&self.state);
            let current = state.sessions.get(&row.id);
            if current.is_some_and(|session| instant(&session.row.updated_at) < instant(updated_before)) {
                state.remove(&row.id);
                removed.push(row.id);
            }
        }
        Ok(removed)
    }

    async fn lock(&self, id: &str, holder: &str) -> Result<Arc<dyn SessionLock>, StoreError> {
        Ok(Arc::new(self.acquire_lock(id, holder)?))
    }
}

/// A time as text that sorts correctly: without its `Z`, `…:00` comes before `…:00.5`.
fn instant(at: &str) -> &str {
    at.trim_end_matches('Z')
}

#[cfg(test)]
mod tests {
    use crate::conformance::conformance;
    use crate::conformance_cells::cells_conformance;
    use crate::conformance_links::links_conformance;
    use crate::conformance_plans::plans_conformance;
    use crate::conformance_requests::requests_conformance;
    use crate::conformance_restoring::restoring_conformance;
    use crate::memory::MemoryStore;

    conformance!(((), MemoryStore::default()));
    cells_conformance!(((), MemoryStore::default()));
    links_conformance!(((), MemoryStore::default()));
    plans_conformance!(((), MemoryStore::default()));
    requests_conformance!(((), MemoryStore::default()));
    restoring_conformance!(((), MemoryStore::default()));
}
