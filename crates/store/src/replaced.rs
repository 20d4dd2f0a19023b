//! The rows that commits replaced, and the changes that restore them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::rows::{
    CellRow, Commit, CounterRow, EarlierState, FrameRow, MessageRow, RequestRow, SessionRow, VariableKey, VariableRow,
};

/// The key of a row among those that a commit can replace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RowKey {
    Frame(String),
    Variable(VariableKey),
    Counter(String),
    Message(u64),
    Cell(u64),
    Request(String),
}

/// A row before a commit replaced or removed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReplacedRow {
    Frame(FrameRow),
    Variable(VariableRow),
    Counter(CounterRow),
    Message(MessageRow),
    Cell(CellRow),
    /// A cell that was removed, and not only changed; another one can have its number in the same commit.
    RemovedCell(CellRow),
    Request(RequestRow),
}

impl ReplacedRow {
    pub(crate) fn key(&self) -> RowKey {
        match self {
            Self::Frame(row) => RowKey::Frame(row.key.clone()),
            Self::Variable(row) => RowKey::Variable(row.key()),
            Self::Counter(row) => RowKey::Counter(row.name.clone()),
            Self::Message(row) => RowKey::Message(row.number),
            Self::Cell(row) | Self::RemovedCell(row) => RowKey::Cell(row.number),
            Self::Request(row) => RowKey::Request(row.id.clone()),
        }
    }

    /// Of a cell that `commit` replaces.
    pub(crate) fn cell(row: CellRow, commit: &Commit) -> Self {
        match commit.cells_kept {
            Some(kept) if row.number > kept => Self::RemovedCell(row),
            _ => Self::Cell(row),
        }
    }
}

/// The part of a session that every commit rewrites, before a commit did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReplacedHead {
    pub(crate) status: String,
    pub(crate) location: String,
    pub(crate) head: String,
    pub(crate) answers: u64,
    pub(crate) last_seq: u64,
}

impl ReplacedHead {
    pub(crate) fn of(row: &SessionRow) -> Self {
        Self {
            status: row.status.clone(),
            location: row.location.clone(),
            head: row.head.clone(),
            answers: row.answers,
            last_seq: row.last_seq,
        }
    }

    /// The state with this head. `replaced` are the rows that commits replaced since then, oldest first; none for a row
    /// that did not exist.
    pub(crate) fn with_rows(
        self,
        revision: u64,
        replaced: impl Iterator<Item = (RowKey, Option<ReplacedRow>)>,
    ) -> EarlierState {
        let mut rows = BTreeMap::new();
        let mut changes = Commit::default();
        for (key, row) in replaced {
            // At this number a row was appended or removed (messages never change): all rows of that state from there on
            // had been removed by then, and are among `replaced`.
            let kept = match (&key, &row) {
                (RowKey::Message(number), _) => Some((&mut changes.messages_kept, *number)),
                (RowKey::Cell(number), None | Some(ReplacedRow::RemovedCell(_))) => {
                    Some((&mut changes.cells_kept, *number))
                }
                _ => None,
            };
            if let Some((kept, number)) = kept {
                let last = number.saturating_sub(1);
                *kept = Some(kept.map_or(last, |kept| kept.min(last)));
            }
            // The first commit since then replaced the row of that state.
            rows.entry(key).or_insert(row);
        }
        for (key, row) in rows {
            put_back(key, row, &mut changes);
        }
        let Self { status, location, head, answers, last_seq } = self;
        EarlierState { revision, status, location, head, answers, last_seq, changes }
    }
}

impl VariableRow {
    pub(crate) fn key(&self) -> VariableKey {
        VariableKey { scope: self.scope.clone(), path: self.path.clone(), name: self.name.clone() }
    }
}

/// The keys of all rows that a commit writes or removes, except of the messages and cells that it removes, whose number
/// only the store knows.
pub(crate) fn written_keys(commit: &Commit) -> BTreeSet<RowKey> {
    let mut keys = BTreeSet::new();
    keys.extend(commit.frames_removed.iter().cloned().map(RowKey::Frame));
    keys.extend(commit.frames_put.iter().map(|row| RowKey::Frame(row.key.clone())));
    keys.extend(commit.variables_removed.iter().cloned().map(RowKey::Variable));
    keys.extend(commit.variables_put.iter().map(|row| RowKey::Variable(row.key())));
    keys.extend(commit.counters_removed.iter().cloned().map(RowKey::Counter));
    keys.extend(commit.counters_put.iter().map(|row| RowKey::Counter(row.name.clone())));
    keys.extend(commit.messages.iter().map(|row| RowKey::Message(row.number)));
    keys.extend(commit.cells_put.iter().map(|row| RowKey::Cell(row.number)));
    keys.extend(commit.requests_removed.iter().cloned().map(RowKey::Request));
    keys.extend(commit.requests_answered.iter().cloned().map(RowKey::Request));
    keys.extend(commit.requests_put.iter().map(|row| RowKey::Request(row.id.clone())));
    keys
}

fn put_back(key: RowKey, row: Option<ReplacedRow>, changes: &mut Commit) {
    match row {
        Some(ReplacedRow::Frame(row)) => changes.frames_put.push(row),
        Some(ReplacedRow::Variable(row)) => changes.variables_put.push(row),
        Some(ReplacedRow::Counter(row)) => changes.counters_put.push(row),
        Some(ReplacedRow::Message(row)) => changes.messages.push(row),
        Some(ReplacedRow::Cell(row) | ReplacedRow::RemovedCell(row)) => changes.cells_put.push(row),
        Some(ReplacedRow::Request(row)) => changes.requests_put.push(row),
        None => match key {
            RowKey::Frame(key) => changes.frames_removed.push(key),
            RowKey::Variable(key) => changes.variables_removed.push(key),
            RowKey::Counter(name) => changes.counters_removed.push(name),
            RowKey::Request(id) => changes.requests_removed.push(id),
            RowKey::Message(_) | RowKey::Cell(_) => {}
        },
    }
}
