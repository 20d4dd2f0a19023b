//! Keeps the rows that a commit replaces, and reads them again.

use std::collections::BTreeMap;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::copying::ReplacedState;
use crate::replaced::{ReplacedHead, ReplacedRow, RowKey, written_keys};
use crate::rows::{Commit, CounterRow, EarlierState, FrameRow};
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

/// Keeps the head and the rows at `revision` that `commit` is about to replace.
pub(crate) fn keep(
    transaction: &Transaction<'_>,
    session: i64,
    revision: u64,
    head: &ReplacedHead,
    commit: &Commit,
) -> Result<(), Failure> {
    let mut insert =
        transaction.prepare_cached("INSERT INTO replaced (session, revision, key, row) VALUES (?, ?, ?, ?)")?;
    let revision = Count(revision);
    insert.execute(params![session, revision, head_key(&head.status, head.answers), json(head)?])?;
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
    for key in keys {
        let row = read(transaction, session, &key, commit)?.map(|row| json(&row)).transpose()?;
        insert.execute(params![session, revision, json(&key)?, row])?;
    }
    Ok(())
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
            if count(row, 0)? == revision {
                head = json.as_deref().map(parsed::<ReplacedHead>).transpose()?;
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
        if key.starts_with(HEAD) {
            if let Some(json) = json {
                heads.insert(revision, parsed(&json)?);
            }
            continue;
        }
        let mut row = json.as_deref().map(parsed::<ReplacedRow>).transpose()?;
        if let Some(ReplacedRow::Cell(cell) | ReplacedRow::RemovedCell(cell)) = &mut row {
            blobs.complete(&mut cell.body)?;
        }
        rows.entry(revision).or_default().push((parsed(&key)?, row));
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
    let mut insert =
        transaction.prepare_cached("INSERT INTO replaced (session, revision, key, row) VALUES (?, ?, ?, ?)")?;
    let blobs = Blobs { connection: transaction };
    for ReplacedState { revision, head, rows } in states {
        let revision = Count(*revision);
        insert.execute(params![session, revision, head_key(&head.status, head.answers), json(head)?])?;
        for (key, row) in rows {
            let mut row = row.clone();
            if let Some(ReplacedRow::Cell(cell) | ReplacedRow::RemovedCell(cell)) = &mut row {
                cell.body = blobs.store(session, &cell.body)?.into_owned();
            }
            insert.execute(params![session, revision, json(key)?, row.map(|row| json(&row)).transpose()?])?;
        }
    }
    Ok(())
}

fn json(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn parsed<T: DeserializeOwned>(json: &str) -> rusqlite::Result<T> {
    serde_json::from_str(json).map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, error.into()))
}
