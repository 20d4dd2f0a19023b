//! Keeps the rows that a commit replaces, and reads them again.

use std::collections::BTreeMap;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::copying::ReplacedState;
use crate::replaced::{ReplacedHead, ReplacedRow, RowKey, written_keys};
use crate::rows::{Commit, CounterRow, EarlierState, FrameRow};
use crate::series::MergedCommits;
use crate::sqlite::blobs::Blobs;
use crate::sqlite::error::Failure;
use crate::sqlite::read::{all, cell_row, message_row, sql_limit, variable_row};
use crate::sqlite::requests::REQUEST;
use crate::sqlite::requests::request_row;
use crate::sqlite::write::{Count, count, key};

/// The start of the key of a head. The keys of rows are JSON objects.
const HEAD: &str = "head ";

/// The key of a head, by which [`revision_with`] finds it.
fn head_key(status: &str, answers: u64) -> String {
    format!("{HEAD}{answers} {status}")
}

/// The maximum length, in bytes, of the rows that are stored with their head. A longer entry of the table would take a page of its own.
const MAX_WITH_HEAD: usize = 880;

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
    let mut insert =
        connection.prepare_cached("INSERT INTO replaced (session, revision, key, row) VALUES (?, ?, ?, ?)")?;
    let revision = Count(revision);
    let mut state = json(head)?;
    // The brace of the end follows the rows.
    state.pop();
    let mut separator = ",\"rows\":[";
    for row in rows {
        let entry = json(row)?;
        if state.len() + separator.len() + entry.len() <= MAX_WITH_HEAD {
            state.push_str(separator);
            state.push_str(&entry);
            separator = ",";
        } else {
            let (key, row) = row;
            insert.execute(params![session, revision, json(key)?, row.as_ref().map(json).transpose()?])?;
        }
    }
    state.push_str(if separator == "," { "]}" } else { "}" });
    insert.execute(params![session, revision, head_key(&head.status, head.answers), state])?;
    Ok(())
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
    let sql = "SELECT revision FROM replaced
               WHERE session = ?1 AND key >= ?2 AND key < ?2 || char(1114111) AND json_valid(row)
               AND json_extract(row, '$.last_seq') <= ?3 ORDER BY revision DESC LIMIT ?4";
    connection
        .prepare_cached(sql)?
        .query_map(params![session, HEAD, Count(last_seq), sql_limit(limit)], |row| count(row, 0))?
        .collect()
}

pub(crate) fn earlier_state(
    connection: &Connection,
    session: i64,
    revision: u64,
) -> rusqlite::Result<Option<EarlierState>> {
    let mut statement = connection.prepare_cached(
        "SELECT revision, key, row FROM replaced WHERE session = ? AND revision >= ? ORDER BY revision, key",
    )?;
    let mut found = statement.query(params![session, Count(revision)])?;
    let (mut head, mut rows) = (None, Vec::new());
    while let Some(row) = found.next()? {
        let (key, json): (String, Option<String>) = (row.get(1)?, row.get(2)?);
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
    let mut statement = connection
        .prepare_cached("SELECT revision, key, row FROM replaced WHERE session = ? ORDER BY revision, key")?;
    let mut found = statement.query([session])?;
    let blobs = Blobs { connection };
    let mut heads: BTreeMap<u64, ReplacedHead> = BTreeMap::new();
    let mut rows: BTreeMap<u64, Vec<(RowKey, Option<ReplacedRow>)>> = BTreeMap::new();
    while let Some(row) = found.next()? {
        let (revision, key, json) = (count(row, 0)?, row.get::<_, String>(1)?, row.get::<_, Option<String>>(2)?);
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
