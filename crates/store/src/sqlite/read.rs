//! Reads rows back. Each query runs along a key or an index.

use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use crate::rows::{CellRow, CounterRow, FrameRow, JournalRow, MessageRow, SessionRow, VariableRow};
use crate::sqlite::schema::{BLOCK_BITS, SEQ_BITS};
use crate::sqlite::write::{Count, count, key};

/// The events of one kind, oldest first: the blocks that hold any, then the rows of each block. `CROSS JOIN` keeps
/// SQLite to this order, in which the rows need no sorting.
pub(crate) const JOURNAL_OF: &str = "
SELECT j.key, j.at, j.kind, j.body FROM journal_kind AS k CROSS JOIN journal AS j
    ON j.key BETWEEN ?1 + (k.block << ?2) AND ?1 + (k.block << ?2) + (1 << ?2) - 1
WHERE k.session = ?3 AND k.kind = ?4 AND k.block >= ?5 AND j.key > ?6 AND j.kind = ?4
ORDER BY k.block, j.key LIMIT ?7";

/// The last event of one kind, in the same way backwards.
pub(crate) const LAST_OF: &str = "
SELECT j.key, j.at, j.kind, j.body FROM journal_kind AS k CROSS JOIN journal AS j
    ON j.key BETWEEN ?1 + (k.block << ?2) AND ?1 + (k.block << ?2) + (1 << ?2) - 1
WHERE k.session = ?3 AND k.kind = ?4 AND j.kind = ?4
ORDER BY k.block DESC, j.key DESC LIMIT 1";

/// The cell of a session with an id.
pub(crate) const CELL: &str = "SELECT key, id, body FROM cell WHERE session = ? AND id = ?";

/// The cells between two keys, in order.
pub(crate) const CELLS: &str = "SELECT key, id, body FROM cell WHERE key > ? AND key <= ? ORDER BY key LIMIT ?";

/// The last cells between two keys, the last one first.
pub(crate) const CELLS_TAIL: &str =
    "SELECT key, id, body FROM cell WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT ?";

/// The key of the last cell between two keys.
pub(crate) const LAST_CELL: &str = "SELECT key FROM cell WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT 1";

/// Every column of a session, in the order of [`session_row`].
const SESSION: &str = "
SELECT id, user, status, script, script_name, script_sha256, started_at, updated_at, revision, last_seq, answers,
    location, settings, manifest, head
FROM session JOIN head ON session = key";

fn session_row(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        id: row.get(0)?,
        user: row.get(1)?,
        status: row.get(2)?,
        script: row.get(3)?,
        script_name: row.get(4)?,
        script_sha256: row.get(5)?,
        started_at: row.get(6)?,
        updated_at: row.get(7)?,
        revision: count(row, 8)?,
        last_seq: count(row, 9)?,
        answers: count(row, 10)?,
        location: row.get(11)?,
        settings: row.get(12)?,
        manifest: row.get(13)?,
        head: row.get(14)?,
    })
}

/// The number of a row in its session, from its key.
pub(crate) fn number_of(key: u64) -> u64 {
    key & ((1 << SEQ_BITS) - 1)
}

fn number(row: &Row<'_>) -> rusqlite::Result<u64> {
    Ok(number_of(count(row, 0)?))
}

fn journal_row(row: &Row<'_>) -> rusqlite::Result<JournalRow> {
    Ok(JournalRow { seq: number(row)?, at: row.get(1)?, kind: row.get(2)?, body: row.get(3)? })
}

fn message_row(row: &Row<'_>) -> rusqlite::Result<MessageRow> {
    Ok(MessageRow {
        number: number(row)?,
        role: row.get(1)?,
        text: row.get(2)?,
        at: row.get(3)?,
        action_id: row.get(4)?,
        round: row.get(5)?,
        message_id: row.get(6)?,
    })
}

fn cell_row(row: &Row<'_>) -> rusqlite::Result<CellRow> {
    Ok(CellRow { number: number(row)?, id: row.get(1)?, body: row.get(2)? })
}

fn variable_row(row: &Row<'_>) -> rusqlite::Result<VariableRow> {
    Ok(VariableRow {
        scope: row.get(0)?,
        path: row.get(1)?,
        name: row.get(2)?,
        value: row.get(3)?,
        source: row.get(4)?,
        round: row.get(5)?,
        at: row.get(6)?,
        sensitive: row.get(7)?,
    })
}

/// Every row that `sql` gives.
fn all<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(parameters, read)?.collect()
}

/// The internal key of a session.
fn key_of(connection: &Connection, id: &str) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached("SELECT key FROM session WHERE id = ?")?.query_row([id], |row| row.get(0)).optional()
}

/// A limit as SQLite takes it.
fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(crate) fn session(connection: &Connection, id: &str) -> rusqlite::Result<Option<SessionRow>> {
    connection.prepare_cached(&format!("{SESSION} WHERE id = ?"))?.query_row([id], session_row).optional()
}

pub(crate) fn sessions(connection: &Connection) -> rusqlite::Result<Vec<SessionRow>> {
    // Without its `Z`, a time orders rightly as text: `…:00` comes before `…:00.5`.
    let sql = format!("{SESSION} ORDER BY rtrim(updated_at, 'Z') DESC, id");
    all(connection, &sql, [], session_row)
}

pub(crate) fn frames(connection: &Connection, id: &str) -> rusqlite::Result<Vec<FrameRow>> {
    let sql =
        "SELECT f.key, state FROM frame AS f JOIN session AS s ON f.session = s.key WHERE s.id = ? ORDER BY f.key";
    all(connection, sql, [id], |row| Ok(FrameRow { key: row.get(0)?, state: row.get(1)? }))
}

pub(crate) fn variables(connection: &Connection, id: &str) -> rusqlite::Result<Vec<VariableRow>> {
    let sql = "SELECT scope, path, name, value, source, round, at, sensitive
               FROM variable JOIN session AS s ON session = s.key WHERE s.id = ? ORDER BY scope, path, name";
    all(connection, sql, [id], variable_row)
}

pub(crate) fn user_variables(connection: &Connection, user: &str) -> rusqlite::Result<Vec<VariableRow>> {
    let sql = "SELECT scope, path, name, value, source, round, at, sensitive
               FROM user_variable WHERE user = ? ORDER BY scope, path, name";
    all(connection, sql, [user], variable_row)
}

pub(crate) fn counters(connection: &Connection, id: &str) -> rusqlite::Result<Vec<CounterRow>> {
    let sql = "SELECT name, count FROM counter JOIN session AS s ON session = s.key WHERE s.id = ? ORDER BY name";
    all(connection, sql, [id], |row| Ok(CounterRow { name: row.get(0)?, count: count(row, 1)? }))
}

pub(crate) fn journal(connection: &Connection, id: &str, after: u64, most: usize) -> rusqlite::Result<Vec<JournalRow>> {
    let Some(session) = key_of(connection, id)? else { return Ok(Vec::new()) };
    let sql = "SELECT key, at, kind, body FROM journal WHERE key > ? AND key <= ? ORDER BY key LIMIT ?";
    all(connection, sql, params![key(session, after)?, key(session, u64::MAX)?, limit(most)], journal_row)
}

pub(crate) fn journal_of(
    connection: &Connection,
    id: &str,
    kind: &str,
    after: u64,
    most: usize,
) -> rusqlite::Result<Vec<JournalRow>> {
    let Some(session) = key_of(connection, id)? else { return Ok(Vec::new()) };
    let first_block = Count(after >> BLOCK_BITS);
    let parameters =
        params![key(session, 0)?, BLOCK_BITS, session, kind, first_block, key(session, after)?, limit(most)];
    all(connection, JOURNAL_OF, parameters, journal_row)
}

pub(crate) fn last_of(connection: &Connection, id: &str, kind: &str) -> rusqlite::Result<Option<JournalRow>> {
    let Some(session) = key_of(connection, id)? else { return Ok(None) };
    let parameters = params![key(session, 0)?, BLOCK_BITS, session, kind];
    connection.prepare_cached(LAST_OF)?.query_row(parameters, journal_row).optional()
}

pub(crate) fn messages_tail(connection: &Connection, id: &str, most: usize) -> rusqlite::Result<Vec<MessageRow>> {
    let Some(session) = key_of(connection, id)? else { return Ok(Vec::new()) };
    let sql = "SELECT key, role, text, at, action_id, round, message_id FROM message
               WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT ?";
    let mut rows = all(connection, sql, params![key(session, 0)?, key(session, u64::MAX)?, limit(most)], message_row)?;
    rows.reverse();
    Ok(rows)
}

pub(crate) fn messages(
    connection: &Connection,
    id: &str,
    after: u64,
    most: usize,
) -> rusqlite::Result<Vec<MessageRow>> {
    let Some(session) = key_of(connection, id)? else { return Ok(Vec::new()) };
    let sql = "SELECT key, role, text, at, action_id, round, message_id FROM message
               WHERE key > ? AND key <= ? ORDER BY key LIMIT ?";
    all(connection, sql, params![key(session, after)?, key(session, u64::MAX)?, limit(most)], message_row)
}

pub(crate) fn cell(connection: &Connection, id: &str, cell_id: &str) -> rusqlite::Result<Option<CellRow>> {
    let Some(session) = key_of(connection, id)? else { return Ok(None) };
    connection.prepare_cached(CELL)?.query_row(params![session, cell_id], cell_row).optional()
}

pub(crate) fn cells(connection: &Connection, id: &str, after: u64, most: usize) -> rusqlite::Result<Vec<CellRow>> {
    let Some(session) = key_of(connection, id)? else { return Ok(Vec::new()) };
    all(connection, CELLS, params![key(session, after)?, key(session, u64::MAX)?, limit(most)], cell_row)
}

pub(crate) fn cells_tail(connection: &Connection, id: &str, most: usize) -> rusqlite::Result<Vec<CellRow>> {
    let Some(session) = key_of(connection, id)? else { return Ok(Vec::new()) };
    let mut rows =
        all(connection, CELLS_TAIL, params![key(session, 0)?, key(session, u64::MAX)?, limit(most)], cell_row)?;
    rows.reverse();
    Ok(rows)
}

pub(crate) fn answer_taken(connection: &Connection, id: &str, answer_id: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM answer AS a JOIN session AS s ON a.session = s.key WHERE s.id = ? AND a.id = ?")?
        .exists([id, answer_id])
}

pub(crate) fn document(connection: &Connection, sha256: &str) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT text FROM document WHERE sha256 = ?")?
        .query_row([sha256], |row| row.get(0))
        .optional()
}
