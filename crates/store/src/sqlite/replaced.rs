//! Keeps the rows that a commit replaces, and reads them again.

use std::collections::BTreeMap;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::copying::ReplacedState;
use crate::replaced::{ReplacedHead, ReplacedRow, RowKey, written_keys};
use crate::rows::{Commit, CounterRow, EarlierState, FrameRow};
use crate::series::MergedCommits;
use crate::sqlite::blobs::Blobs;
use crate::sqlite::error::Failure;
use crate::sqlite::packed_state::{has_packed_rows, pack, unpack};
use crate::sqlite::read::{all, cell_row, message_row, variable_row};
use crate::sqlite::requests::REQUEST;
use crate::sqlite::requests::request_row;
use crate::sqlite::write::{Count, count, key};

/// The start of the key of a head. The keys of rows are JSON objects.
const HEAD: &str = "head ";

/// The key of a head, by which [`revision_with`] finds it.
fn head_key(status: &str, answers: u64) -> String {
    format!("{HEAD}{answers} {status}")
}

/// The maximum length of an entry of the table, in bytes. A longer one would take a page of its own.
const MAX_ENTRY_BYTES: usize = 880;

/// The maximum length, in bytes, of a head with rows that are packed together, if the result is no longer than [`MAX_ENTRY_BYTES`].
const MAX_WITH_HEAD: usize = 2_400;

/// What a commit replaced, as it is stored under the key of the head: the head, and as many rows as have room. The others, and all of them in
/// stores of older layouts, have entries of their own.
#[derive(Deserialize)]
struct FoundState {
    #[serde(flatten)]
    head: ReplacedHead,
    #[serde(default)]
    rows: Vec<(RowKey, Option<ReplacedRow>)>,
}

/// Keeps the head and the rows at `revision` that `commit` is about to replace.
pub(crate) fn keep(
    transaction: &Transaction<'_>,
    session: i64,
    revision: u64,
    head: &ReplacedHead,
    commit: &Commit,
) -> Result<(), Failure> {
    let rows = found_rows(transaction, session, commit)?;
    insert(transaction, session, revision, head, &rows)?;
    Ok(())
}

/// [`keep`] for commits that are written together.
pub(crate) fn keep_all(
    transaction: &Transaction<'_>,
    session: i64,
    revision: u64,
    head: &ReplacedHead,
    merged: &MergedCommits,
) -> Result<(), Failure> {
    let mut rows: Vec<Vec<(RowKey, Option<ReplacedRow>)>> = vec![vec![]; merged.heads.len() + 1];
    for (key, row) in found_rows(transaction, session, &merged.commit)? {
        let number = merged.first_written.get(&key).copied().unwrap_or(0);
        rows.get_mut(number).into_iter().for_each(|rows| rows.push((key.clone(), row.clone())));
    }
    for (number, key, row) in &merged.replaced {
        rows.get_mut(*number).into_iter().for_each(|rows| rows.push((key.clone(), row.clone())));
    }
    for (number, (head, rows)) in std::iter::once(head).chain(&merged.heads).zip(&rows).enumerate() {
        insert(transaction, session, revision.saturating_add(number as u64), head, rows)?;
    }
    Ok(())
}

fn insert(
    connection: &Connection,
    session: i64,
    revision: u64,
    head: &ReplacedHead,
    rows: &[(RowKey, Option<ReplacedRow>)],
) -> rusqlite::Result<()> {
    let head_json = json(head)?;
    let rows: Vec<_> = rows.iter().map(|row| Ok((row, json(row)?))).collect::<rusqlite::Result<_>>()?;
    let mut state = with_head(&head_json, &rows, MAX_WITH_HEAD);
    let mut packed = pack(&state.text);
    if packed.as_ref().map_or(state.text.len(), Vec::len) > MAX_ENTRY_BYTES && state.text.len() > MAX_ENTRY_BYTES {
        state = with_head(&head_json, &rows, MAX_ENTRY_BYTES);
        packed = pack(&state.text);
    }
    let mut insert = connection
        .prepare_cached("INSERT INTO replaced (session, revision, key, row, packed) VALUES (?, ?, ?, ?, ?)")?;
    let revision = Count(revision);
    for (key, row) in state.others {
        let row = row.as_ref().map(json).transpose()?;
        let packed = row.as_deref().and_then(pack);
        insert.execute(params![session, revision, json(key)?, row.filter(|_| packed.is_none()), packed])?;
    }
    let text = Some(state.text).filter(|_| packed.is_none());
    insert.execute(params![session, revision, head_key(&head.status, head.answers), text, packed])?;
    Ok(())
}

/// A head with rows, and the rows that have no room with it.
struct StateText<'a> {
    text: String,
    others: Vec<&'a (RowKey, Option<ReplacedRow>)>,
}

/// A head with the rows that have room with it, as JSON of about `limit` bytes.
fn with_head<'a>(head: &str, rows: &[(&'a (RowKey, Option<ReplacedRow>), String)], limit: usize) -> StateText<'a> {
    // The brace of the end follows the rows.
    let mut state = StateText { text: head.strip_suffix('}').unwrap_or(head).to_owned(), others: vec![] };
    let mut separator = ",\"rows\":[";
    for (row, entry) in rows {
        if state.text.len() + separator.len() + entry.len() <= limit {
            state.text.push_str(separator);
            state.text.push_str(entry);
            separator = ",";
        } else {
            state.others.push(row);
        }
    }
    state.text.push_str(if separator == "," { "]}" } else { "}" });
    state
}

/// The columns with the row of an entry; `other_columns` precede them.
fn select_rows(connection: &Connection, other_columns: &str) -> rusqlite::Result<String> {
    let packed = if has_packed_rows(connection)? { "packed" } else { "NULL" };
    Ok(format!("SELECT {other_columns}, row, {packed} FROM replaced"))
}

/// The row of an entry as JSON; none if there was no such row. Its columns are `row` and `packed`, from this number.
fn stored_json(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    match row.get_ref(column + 1)?.as_blob_or_null()? {
        Some(packed) => unpack(packed).map(Some),
        None => row.get(column),
    }
}

/// The rows that a commit writes or removes, as they are stored.
fn found_rows(
    transaction: &Transaction<'_>,
    session: i64,
    commit: &Commit,
) -> Result<Vec<(RowKey, Option<ReplacedRow>)>, Failure> {
    let mut keys = written_keys(commit);
    if let Some(kept) = commit.messages_kept {
        let sql = "SELECT key, role, text, at, action_id, round, message_id FROM message WHERE key > ? AND key <= ?";
        let removed = all(transaction, sql, params![key(session, kept)?, key(session, u64::MAX)?], message_row)?;
        keys.extend(removed.iter().map(|row| RowKey::Message(row.number)));
    }
    if let Some(kept) = commit.cells_kept {
        let sql = "SELECT key, id, body FROM cell WHERE key > ? AND key <= ?";
        let removed = all(transaction, sql, params![key(session, kept)?, key(session, u64::MAX)?], cell_row)?;
        keys.extend(removed.iter().map(|row| RowKey::Cell(row.number)));
    }
    let row = |key: RowKey| {
        let row = match &key {
            // Messages that are only appended are new.
            RowKey::Message(_) if commit.messages_kept.is_none() => None,
            key => read(transaction, session, key, commit)?,
        };
        Ok((key, row))
    };
    keys.into_iter().map(row).collect()
}

/// The stored row with this key. A cell has its text as it is stored, without the parts in other rows.
fn read(
    connection: &Connection,
    session: i64,
    row_key: &RowKey,
    commit: &Commit,
) -> rusqlite::Result<Option<ReplacedRow>> {
    match row_key {
        RowKey::Frame(frame) => connection
            .prepare_cached("SELECT state FROM frame WHERE session = ? AND key = ?")?
            .query_row(params![session, frame], |row| {
                Ok(ReplacedRow::Frame(FrameRow { key: frame.clone(), state: row.get(0)? }))
            })
            .optional(),
        RowKey::Variable(variable) => connection
            .prepare_cached(
                "SELECT scope, path, name, value, source, round, at, sensitive FROM variable
                 WHERE session = ? AND scope = ? AND path = ? AND name = ?",
            )?
            .query_row(params![session, variable.scope, variable.path, variable.name], |row| {
                variable_row(row).map(ReplacedRow::Variable)
            })
            .optional(),
        RowKey::Counter(name) => connection
            .prepare_cached("SELECT count FROM counter WHERE session = ? AND name = ?")?
            .query_row(params![session, name], |row| {
                Ok(ReplacedRow::Counter(CounterRow { name: name.clone(), count: count(row, 0)? }))
            })
            .optional(),
        RowKey::Message(number) => connection
            .prepare_cached("SELECT key, role, text, at, action_id, round, message_id FROM message WHERE key = ?")?
            .query_row([key(session, *number)?], |row| message_row(row).map(ReplacedRow::Message))
            .optional(),
        RowKey::Cell(number) => connection
            .prepare_cached("SELECT key, id, body FROM cell WHERE key = ?")?
            .query_row([key(session, *number)?], |row| Ok(ReplacedRow::cell(cell_row(row)?, commit)))
            .optional(),
        RowKey::Request(id) => connection
            .prepare_cached(&format!("{REQUEST} WHERE session = ? AND id = ?"))?
            .query_row(params![session, id], |row| request_row(row).map(ReplacedRow::Request))
            .optional(),
    }
}

/// The newest earlier revision of a session with this status and this number of answers.
pub(crate) fn revision_with(
    connection: &Connection,
    session: i64,
    status: &str,
    answers: u64,
) -> rusqlite::Result<Option<u64>> {
    connection
        .prepare_cached("SELECT revision FROM replaced WHERE session = ? AND key = ? ORDER BY revision DESC LIMIT 1")?
        .query_row(params![session, head_key(status, answers)], |row| count(row, 0))
        .optional()
}

/// At most `limit` earlier revisions of a session whose journal has at most `last_seq` rows, newest first.
pub(crate) fn revisions(
    connection: &Connection,
    session: i64,
    limit: usize,
    last_seq: u64,
) -> rusqlite::Result<Vec<u64>> {
    let sql = format!(
        "{} WHERE session = ?1 AND key >= ?2 AND key < ?2 || char(1114111) ORDER BY revision DESC",
        select_rows(connection, "revision")?
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = statement.query(params![session, HEAD])?;
    let mut revisions = Vec::new();
    while let Some(row) = found.next()? {
        // The entry may be damaged.
        let Ok(Some(Ok(head))) = stored_json(row, 1).map(|json| json.as_deref().map(parsed::<ReplacedHead>)) else {
            continue;
        };
        if head.last_seq <= last_seq {
            revisions.push(count(row, 0)?);
            if revisions.len() >= limit {
                break;
            }
        }
    }
    Ok(revisions)
}

pub(crate) fn earlier_state(
    connection: &Connection,
    session: i64,
    revision: u64,
) -> rusqlite::Result<Option<EarlierState>> {
    let select = select_rows(connection, "revision, key")?;
    let sql = format!("{select} WHERE session = ? AND revision >= ? ORDER BY revision, key");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = statement.query(params![session, Count(revision)])?;
    let (mut head, mut rows) = (None, Vec::new());
    while let Some(row) = found.next()? {
        let (key, json): (String, _) = (row.get(1)?, stored_json(row, 2)?);
        if key.starts_with(HEAD) {
            let state = json.as_deref().map(parsed::<FoundState>).transpose()?;
            let Some(FoundState { head: found, rows: replaced }) = state else { continue };
            rows.extend(replaced);
            if count(row, 0)? == revision {
                head = Some(found);
            }
            continue;
        }
        rows.push((parsed(&key)?, json.as_deref().map(parsed::<ReplacedRow>).transpose()?));
    }
    let Some(head) = head else { return Ok(None) };
    let mut state = head.with_rows(revision, rows.into_iter());
    let blobs = Blobs { connection };
    for cell in &mut state.changes.cells_put {
        blobs.complete(&mut cell.body)?;
    }
    Ok(Some(state))
}

/// What all commits of a session replaced, with the texts of cells completed.
pub(crate) fn history(connection: &Connection, session: i64) -> rusqlite::Result<Vec<ReplacedState>> {
    let select = select_rows(connection, "revision, key")?;
    let mut statement = connection.prepare_cached(&format!("{select} WHERE session = ? ORDER BY revision, key"))?;
    let mut found = statement.query([session])?;
    let blobs = Blobs { connection };
    let mut heads: BTreeMap<u64, ReplacedHead> = BTreeMap::new();
    let mut rows: BTreeMap<u64, Vec<(RowKey, Option<ReplacedRow>)>> = BTreeMap::new();
    while let Some(row) = found.next()? {
        let (revision, key, json) = (count(row, 0)?, row.get::<_, String>(1)?, stored_json(row, 2)?);
        let mut found = match json {
            Some(json) if key.starts_with(HEAD) => {
                let FoundState { head, rows } = parsed(&json)?;
                heads.insert(revision, head);
                rows
            }
            None if key.starts_with(HEAD) => continue,
            json => vec![(parsed(&key)?, json.as_deref().map(parsed::<ReplacedRow>).transpose()?)],
        };
        for (_, row) in &mut found {
            if let Some(ReplacedRow::Cell(cell) | ReplacedRow::RemovedCell(cell)) = row {
                blobs.complete(&mut cell.body)?;
            }
        }
        rows.entry(revision).or_default().extend(found);
    }
    let states = heads.into_iter().map(|(revision, head)| {
        let mut rows = rows.remove(&revision).unwrap_or_default();
        rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        ReplacedState { revision, head, rows }
    });
    Ok(states.collect())
}

/// Stores what the commits of a session replaced.
pub(crate) fn insert_history(
    transaction: &Transaction<'_>,
    session: i64,
    states: &[ReplacedState],
) -> rusqlite::Result<()> {
    let blobs = Blobs { connection: transaction };
    for ReplacedState { revision, head, rows } in states {
        let mut rows = rows.clone();
        for (_, row) in &mut rows {
            if let Some(ReplacedRow::Cell(cell) | ReplacedRow::RemovedCell(cell)) = row {
                cell.body = blobs.store(session, &cell.body)?.into_owned();
            }
        }
        insert(transaction, session, *revision, head, &rows)?;
    }
    Ok(())
}

fn json(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn parsed<T: DeserializeOwned>(json: &str) -> rusqlite::Result<T> {
    serde_json::from_str(json).map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, error.into()))
}
