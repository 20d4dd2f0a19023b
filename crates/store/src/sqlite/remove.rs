//! Deletes sessions, and the documents and large texts that no session needs anymore.

use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::sqlite::error::Failure;
use crate::sqlite::write::key;

/// The ids of the sessions last updated before this time, oldest first.
pub(crate) fn updated_before(connection: &Connection, time: &str) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare_cached(
            "SELECT id FROM session JOIN head ON session = key WHERE rtrim(updated_at, 'Z') < rtrim(?, 'Z')
             ORDER BY rtrim(updated_at, 'Z'), id",
        )?
        .query_map([time], |row| row.get(0))?
        .collect()
}

/// Deletes one session; with `updated_before`, only if it was last updated before this time. Returns whether it was deleted.
pub(crate) fn session(transaction: &Transaction<'_>, id: &str, updated_before: Option<&str>) -> Result<bool, Failure> {
    let session: Option<i64> = transaction
        .prepare_cached(
            "SELECT key FROM session JOIN head ON session = key
             WHERE id = ?1 AND (?2 IS NULL OR rtrim(updated_at, 'Z') < rtrim(?2, 'Z'))",
        )?
        .query_row((id, updated_before), |row| row.get(0))
        .optional()?;
    let Some(session) = session else { return Ok(false) };
    let documents: Vec<i64> = transaction
        .prepare_cached("SELECT document FROM session_document WHERE session = ?")?
        .query_map([session], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let blobs: Vec<i64> = transaction
        .prepare_cached("SELECT blob FROM session_blob WHERE session = ?")?
        .query_map([session], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let range = (key(session, 0)?, key(session, u64::MAX)?);
    transaction.prepare_cached("DELETE FROM journal WHERE key BETWEEN ? AND ?")?.execute(range)?;
    transaction.prepare_cached("DELETE FROM message WHERE key BETWEEN ? AND ?")?.execute(range)?;
    transaction.prepare_cached("DELETE FROM cell WHERE key BETWEEN ? AND ?")?.execute(range)?;
    transaction
        .prepare_cached(
            "DELETE FROM session_recent WHERE session = ?1
             AND period = (SELECT substr(updated_at, 1, 15) FROM head WHERE session = ?1)",
        )?
        .execute([session])?;
    // The foreign keys delete all other rows of the session.
    transaction.prepare_cached("DELETE FROM session WHERE key = ?")?.execute([session])?;
    for document in documents {
        transaction
            .prepare_cached(
                "DELETE FROM document WHERE key = ?1
                 AND NOT EXISTS (SELECT 1 FROM session_document WHERE document = ?1)",
            )?
            .execute([document])?;
    }
    for blob in blobs {
        transaction
            .prepare_cached(
                "DELETE FROM blob WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM session_blob WHERE blob = ?1)",
            )?
            .execute([blob])?;
    }
    Ok(true)
}
