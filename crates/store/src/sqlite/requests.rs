//! Writes and reads the requests that sessions wait for.

use rusqlite::{Connection, Row, Transaction, params};

use crate::rows::{Commit, OpenRequest, RequestRow};
use crate::sqlite::error::Failure;
use crate::sqlite::read::all;

/// Every column of a request, in the order of [`request_row`].
pub(crate) const REQUEST: &str =
    "SELECT id, kind, prompt, schema, decisions, approvers, due_at, opened_at, answered_at FROM request";

/// Open requests with the id of their session, in the order of [`open_request`].
const OPEN: &str = "SELECT r.id, kind, prompt, schema, decisions, approvers, due_at, opened_at, answered_at, s.id
    FROM request AS r JOIN session AS s ON s.key = r.session WHERE answered_at IS NULL";

pub(crate) fn request_row(row: &Row<'_>) -> rusqlite::Result<RequestRow> {
    Ok(RequestRow {
        id: row.get(0)?,
        kind: row.get(1)?,
        prompt: row.get(2)?,
        schema: row.get(3)?,
        decisions: row.get(4)?,
        approvers: row.get(5)?,
        due_at: row.get(6)?,
        opened_at: row.get(7)?,
        answered_at: row.get(8)?,
    })
}

fn open_request(row: &Row<'_>) -> rusqlite::Result<OpenRequest> {
    Ok(OpenRequest { session: row.get(9)?, request: request_row(row)? })
}

/// Writes the requests of a commit; those that it answers were answered at `answered_at`.
pub(crate) fn write(
    transaction: &Transaction<'_>,
    session: i64,
    commit: &Commit,
    answered_at: &str,
) -> Result<(), Failure> {
    for id in &commit.requests_removed {
        transaction
            .prepare_cached("DELETE FROM request WHERE session = ? AND id = ?")?
            .execute(params![session, id])?;
    }
    for id in &commit.requests_answered {
        transaction
            .prepare_cached("UPDATE request SET answered_at = ? WHERE session = ? AND id = ? AND answered_at IS NULL")?
            .execute(params![answered_at, session, id])?;
    }
    for row in &commit.requests_put {
        transaction
            .prepare_cached(
                "INSERT INTO request
                 (session, id, kind, prompt, schema, decisions, approvers, due_at, opened_at, answered_at)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
                 kind = excluded.kind, prompt = excluded.prompt, schema = excluded.schema,
                 decisions = excluded.decisions, approvers = excluded.approvers, due_at = excluded.due_at,
                 opened_at = excluded.opened_at, answered_at = excluded.answered_at",
            )?
            .execute(params![
                session,
                row.id,
                row.kind,
                row.prompt,
                row.schema,
                row.decisions,
                row.approvers,
                row.due_at,
                row.opened_at,
                row.answered_at
            ])?;
    }
    Ok(())
}

pub(crate) fn of_session(connection: &Connection, session: i64) -> rusqlite::Result<Vec<RequestRow>> {
    all(connection, &format!("{REQUEST} WHERE session = ? ORDER BY id"), [session], request_row)
}

pub(crate) fn open(connection: &Connection, due_before: Option<&str>) -> rusqlite::Result<Vec<OpenRequest>> {
    match due_before {
        None => all(connection, &format!("{OPEN} ORDER BY s.id, r.id"), [], open_request),
        Some(before) => all(connection, &due_query(), [before], open_request),
    }
}

/// The open requests that are due before a time.
pub(crate) fn due_query() -> String {
    format!(
        "{OPEN} AND due_at IS NOT NULL AND rtrim(due_at, 'Z') < rtrim(?, 'Z')
         ORDER BY rtrim(due_at, 'Z'), s.id, r.id"
    )
}
