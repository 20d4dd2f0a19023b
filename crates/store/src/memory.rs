//! The archive in memory: for tests, and for runs that keep nothing.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::contract::{SessionLock, Store};
use crate::error::StoreError;
use crate::rows::{
    CellRow, Commit, CounterRow, DocumentRow, FrameRow, JournalRow, MessageRow, NewSessionRow, SessionRow, VariableRow,
};
use crate::tail::{Tail, cells_fit};

/// What stands for the path of the store in errors.
const STORE: &str = "memory";

/// Scope, path and name of a variable.
type VariableKey = (String, String, String);

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
}

#[derive(Debug, Default)]
struct State {
    sessions: BTreeMap<String, StoredSession>,
    users: HashMap<String, BTreeMap<VariableKey, VariableRow>>,
    documents: HashMap<String, String>,
}

/// The sessions that are held, and by whom.
type Holders = Arc<Mutex<HashMap<String, String>>>;

/// An archive that ends with its process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    holders: Holders,
}

struct MemoryLock {
    id: String,
    holders: Holders,
}

impl SessionLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        guard(&self.holders).remove(&self.id);
    }
}

/// Every change is made whole under the guard, so that a panic elsewhere leaves nothing half done behind it.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key_of(row: &VariableRow) -> VariableKey {
    (row.scope.clone(), row.path.clone(), row.name.clone())
}

/// The index of the first thing after number `after`, in a list that counts from 1.
fn start(after: u64) -> usize {
    usize::try_from(after).unwrap_or(usize::MAX)
}

impl StoredSession {
    /// Applies a commit that [`StoredSession::check`] has let pass.
    fn apply(&mut self, commit: &Commit, tail: Tail) {
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
        self.frames.extend(commit.frames_put.iter().map(|row| (row.key.clone(), row.clone())));
        self.variables.extend(commit.variables_put.iter().map(|row| (key_of(row), row.clone())));
        self.counters.extend(commit.counters_put.iter().map(|row| (row.name.clone(), row.clone())));
        for row in &commit.journal {
            self.kinds.entry(row.kind.clone()).or_default().push(self.journal.len());
            self.journal.push(row.clone());
        }
        self.messages.extend_from_slice(&commit.messages);
        for row in &commit.cells_put {
            self.cell_numbers.insert(row.id.clone(), row.number);
            self.cells.insert(row.number, row.clone());
        }
        self.answers.extend(commit.answer_ids.iter().cloned());
    }

    fn check(&self, id: &str, commit: &Commit) -> Result<Tail, StoreError> {
        let tail = Tail {
            revision: self.row.revision,
            last_seq: self.row.last_seq,
            last_message: u64::try_from(self.messages.len()).unwrap_or(u64::MAX),
        };
        let next = tail.after(STORE, id, commit)?;
        cells_fit(STORE, id, u64::try_from(self.cells.len()).unwrap_or(u64::MAX), commit)?;
        let mut brought: HashMap<&str, u64> = HashMap::new();
        for CellRow { number, id: cell_id, .. } in &commit.cells_put {
            let of_id = self.cell_numbers.get(cell_id).or_else(|| brought.get(cell_id.as_str()));
            let of_number = self.cells.get(number).map(|row| &row.id);
            if of_id.is_some_and(|there| there != number) || of_number.is_some_and(|there| there != cell_id) {
                return Err(StoreError::CellMixedUp { store: STORE.to_owned(), id: id.to_owned(), number: *number });
            }
            brought.insert(cell_id, *number);
        }
        let mut fresh = BTreeSet::new();
        for answer in &commit.answer_ids {
            if self.answers.contains(answer) || !fresh.insert(answer) {
                return Err(StoreError::AnswerTaken { store: STORE.to_owned(), id: id.to_owned() });
            }
        }
        Ok(next)
    }
}

impl State {
    fn put_user_variables(&mut self, user: &str, rows: &[VariableRow]) {
        if !rows.is_empty() {
            let variables = self.users.entry(user.to_owned()).or_default();
            variables.extend(rows.iter().map(|row| (key_of(row), row.clone())));
        }
    }

    fn remove(&mut self, id: &str) -> bool {
        let Some(gone) = self.sessions.remove(id) else { return false };
        for sha256 in gone.documents {
            if !self.sessions.values().any(|kept| kept.documents.contains(&sha256)) {
                self.documents.remove(&sha256);
            }
        }
        true
    }
}

impl MemoryStore {
    fn hold(&self, id: &str, holder: &str) -> Result<MemoryLock, StoreError> {
        let mut holders = guard(&self.holders);
        if let Some(holder) = holders.get(id) {
            let holder = holder.clone();
            return Err(StoreError::Held { store: STORE.to_owned(), id: id.to_owned(), holder });
        }
        holders.insert(id.to_owned(), holder.to_owned());
        Ok(MemoryLock { id: id.to_owned(), holders: Arc::clone(&self.holders) })
    }

    /// What `look` finds in a session; the default for one that is not there.
    fn look<T: Default>(&self, id: &str, look: impl FnOnce(&StoredSession) -> T) -> T {
        guard(&self.state).sessions.get(id).map(look).unwrap_or_default()
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
        let mut state = guard(&self.state);
        let mut kept = StoredSession {
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
            ..StoredSession::default()
        };
        match state.sessions.entry(session.id.clone()) {
            Entry::Occupied(_) => {
                return Err(StoreError::Exists { store: STORE.to_owned(), id: session.id.clone() });
            }
            Entry::Vacant(place) => {
                let tail = kept.check(&session.id, first)?;
                kept.apply(first, tail);
                place.insert(kept);
            }
        }
        state.put_user_variables(&session.user, &first.user_variables_put);
        for document in documents {
            state.documents.entry(document.sha256.clone()).or_insert_with(|| document.text.clone());
        }
        Ok(())
    }

    async fn commit(&self, id: &str, commit: &Commit) -> Result<(), StoreError> {
        let mut state = guard(&self.state);
        let Some(kept) = state.sessions.get_mut(id) else {
            return Err(StoreError::NotFound { store: STORE.to_owned(), id: id.to_owned() });
        };
        let tail = kept.check(id, commit)?;
        kept.apply(commit, tail);
        let user = kept.row.user.clone();
        state.put_user_variables(&user, &commit.user_variables_put);
        Ok(())
    }

    async fn session(&self, id: &str) -> Result<Option<SessionRow>, StoreError> {
        Ok(self.look(id, |kept| Some(kept.row.clone())))
    }

    async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        let mut rows: Vec<_> = guard(&self.state).sessions.values().map(|kept| kept.row.clone()).collect();
        // Stable: equals stay in the order of their ids.
        rows.sort_by(|a, b| instant(&b.updated_at).cmp(instant(&a.updated_at)));
        Ok(rows)
    }

    async fn frames(&self, id: &str) -> Result<Vec<FrameRow>, StoreError> {
        Ok(self.look(id, |kept| kept.frames.values().cloned().collect()))
    }

    async fn variables(&self, id: &str) -> Result<Vec<VariableRow>, StoreError> {
        Ok(self.look(id, |kept| kept.variables.values().cloned().collect()))
    }

    async fn user_variables(&self, user: &str) -> Result<Vec<VariableRow>, StoreError> {
        let state = guard(&self.state);
        Ok(state.users.get(user).map(|variables| variables.values().cloned().collect()).unwrap_or_default())
    }

    async fn counters(&self, id: &str) -> Result<Vec<CounterRow>, StoreError> {
        Ok(self.look(id, |kept| kept.counters.values().cloned().collect()))
    }

    async fn journal(&self, id: &str, after: u64, limit: usize) -> Result<Vec<JournalRow>, StoreError> {
        Ok(self.look(id, |kept| kept.journal.iter().skip(start(after)).take(limit).cloned().collect()))
    }

    async fn journal_of(&self, id: &str, kind: &str, after: u64, limit: usize) -> Result<Vec<JournalRow>, StoreError> {
        Ok(self.look(id, |kept| {
            let places = kept.kinds.get(kind).map(Vec::as_slice).unwrap_or_default();
            let from = places.partition_point(|place| *place < start(after));
            places.iter().skip(from).take(limit).filter_map(|place| kept.journal.get(*place).cloned()).collect()
        }))
    }

    async fn last_of(&self, id: &str, kind: &str) -> Result<Option<JournalRow>, StoreError> {
        Ok(self.look(id, |kept| kept.kinds.get(kind)?.last().and_then(|place| kept.journal.get(*place).cloned())))
    }

    async fn messages_tail(&self, id: &str, count: usize) -> Result<Vec<MessageRow>, StoreError> {
        Ok(self
            .look(id, |kept| kept.messages.iter().skip(kept.messages.len().saturating_sub(count)).cloned().collect()))
    }

    async fn messages(&self, id: &str, after: u64, limit: usize) -> Result<Vec<MessageRow>, StoreError> {
        Ok(self.look(id, |kept| kept.messages.iter().skip(start(after)).take(limit).cloned().collect()))
    }

    async fn cell(&self, id: &str, cell_id: &str) -> Result<Option<CellRow>, StoreError> {
        Ok(self.look(id, |kept| {
            let number = kept.cell_numbers.get(cell_id)?;
            kept.cells.get(number).cloned()
        }))
    }

    async fn cells(&self, id: &str, after: u64, limit: usize) -> Result<Vec<CellRow>, StoreError> {
        let after = after.saturating_add(1);
        Ok(self.look(id, |kept| kept.cells.range(after..).take(limit).map(|(_, row)| row.clone()).collect()))
    }

    async fn cells_tail(&self, id: &str, count: usize) -> Result<Vec<CellRow>, StoreError> {
        Ok(self.look(id, |kept| {
            let mut rows: Vec<CellRow> = kept.cells.values().rev().take(count).cloned().collect();
            rows.reverse();
            rows
        }))
    }

    async fn answer_taken(&self, id: &str, answer_id: &str) -> Result<bool, StoreError> {
        Ok(self.look(id, |kept| kept.answers.contains(answer_id)))
    }

    async fn document(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        Ok(guard(&self.state).documents.get(sha256).cloned())
    }

    async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let _held = self.hold(id, "a deletion")?;
        Ok(guard(&self.state).remove(id))
    }

    async fn prune(&self, updated_before: &str) -> Result<Vec<String>, StoreError> {
        let mut old = self.sessions().await?;
        old.retain(|row| instant(&row.updated_at) < instant(updated_before));
        old.sort_by(|a, b| instant(&a.updated_at).cmp(instant(&b.updated_at)).then_with(|| a.id.cmp(&b.id)));
        let mut gone = Vec::new();
        for row in old {
            // Between the list and the hold the session may have gone on: look again.
            let Ok(_held) = self.hold(&row.id, "a deletion") else { continue };
            let mut state = guard(&self.state);
            let still = state.sessions.get(&row.id);
            if still.is_some_and(|kept| instant(&kept.row.updated_at) < instant(updated_before)) {
                state.remove(&row.id);
                gone.push(row.id);
            }
        }
        Ok(gone)
    }

    async fn lock(&self, id: &str, holder: &str) -> Result<Box<dyn SessionLock>, StoreError> {
        Ok(Box::new(self.hold(id, holder)?))
    }
}

/// A time as text that orders rightly: without its `Z`, `…:00` comes before `…:00.5`.
fn instant(at: &str) -> &str {
    at.trim_end_matches('Z')
}

#[cfg(test)]
mod tests {
    use crate::conformance::conformance;
    use crate::conformance_cells::cells_conformance;
    use crate::memory::MemoryStore;

    conformance!(((), MemoryStore::default()));
    cells_conformance!(((), MemoryStore::default()));
}
