//! Reads rows. Each query uses a key or an index.

use rusqlite::{Connection, OptionalExtension, Params, Row};

use crate::rows::{CellRow, MessageRow, SessionRow, VariableRow};
use crate::sqlite::schema::SEQ_BITS;
use crate::sqlite::write::count;

/// The events of one kind, oldest first: the blocks that contain any, then the rows of each block. `CROSS JOIN` forces
/// SQLite to use this order, in which the rows need no sorting.
pub(crate) const JOURNAL_OF: &str = "
SELECT j.key, j.at, j.kind, j.body, j.packed, j.dictionary FROM journal_kind AS k CROSS JOIN journal AS j
    ON j.key BETWEEN ?1 + (k.block << ?2) AND ?1 + (k.block << ?2) + (1 << ?2) - 1
WHERE k.session = ?3 AND k.kind = ?4 AND k.block >= ?5 AND j.key > ?6 AND j.kind = ?4
ORDER BY k.block, j.key LIMIT ?7";

/// The last event of one kind; the same query in reverse order.
pub(crate) const LAST_OF: &str = "
SELECT j.key, j.at, j.kind, j.body, j.packed, j.dictionary FROM journal_kind AS k CROSS JOIN journal AS j
    ON j.key BETWEEN ?1 + (k.block << ?2) AND ?1 + (k.block << ?2) + (1 << ?2) - 1
WHERE k.session = ?3 AND k.kind = ?4 AND j.kind = ?4
ORDER BY k.block DESC, j.key DESC LIMIT 1";

/// The cell of a session with a given id.
pub(crate) const CELL: &str = "SELECT key, id, body FROM cell WHERE session = ? AND id = ?";

/// The cells between two keys, in order.
pub(crate) const CELLS: &str = "SELECT key, id, body FROM cell WHERE key > ? AND key <= ? ORDER BY key LIMIT ?";

/// The last cells between two keys, the last one first.
pub(crate) const CELLS_TAIL: &str =
    "SELECT key, id, body FROM cell WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT ?";

/// The key of the last cell between two keys.
pub(crate) const LAST_CELL: &str = "SELECT key FROM cell WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT 1";

/// Every column of a session, in the order of [`session_row`].
pub(crate) const SESSION: &str = "
SELECT id, user, status, script, script_name, script_sha256, started_at, updated_at, revision, last_seq, answers,
    location, settings, manifest, head
FROM session JOIN head ON session = key";

pub(crate) fn session_row(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
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

pub(crate) fn message_row(row: &Row<'_>) -> rusqlite::Result<MessageRow> {
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

pub(crate) fn cell_row(row: &Row<'_>) -> rusqlite::Result<CellRow> {
    Ok(CellRow { number: number(row)?, id: row.get(1)?, body: row.get(2)? })
}

pub(crate) fn variable_row(row: &Row<'_>) -> rusqlite::Result<VariableRow> {
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

/// All rows that `sql` returns.
pub(crate) fn all<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(parameters, read)?.collect()
}

/// The internal key of a session.
pub(crate) fn key_of(connection: &Connection, id: &str) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached("SELECT key FROM session WHERE id = ?")?.query_row([id], |row| row.get(0)).optional()
}

/// A limit as a number for SQLite.
pub(crate) fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
