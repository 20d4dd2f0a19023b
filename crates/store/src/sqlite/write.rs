//! Creates sessions and writes commits: prepared statements per row, which read only the rows that they replace.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rusqlite::types::{ToSqlOutput, Value};
use rusqlite::{ErrorCode, OptionalExtension, Row, ToSql, Transaction, params};

use crate::error::StoreError;
use crate::replaced::ReplacedHead;
use crate::rows::{Commit, DocumentRow, EarlierState, JournalRow, NewSessionRow, VariableRow};
use crate::series::merged;
use crate::sqlite::blobs::Blobs;
use crate::sqlite::error::Failure;
use crate::sqlite::packed::{PackedText, pack, put_dictionary};
use crate::sqlite::read::{LAST_CELL, number_of};
use crate::sqlite::schema::{BLOCK_BITS, SEQ_BITS};
use crate::sqlite::{pages, replaced, requests};
use crate::tail::{Tail, check_cell_numbers};

/// A count as a signed integer for SQLite, which has no unsigned numbers. A number that does not fit is an error.
pub(crate) struct Count(pub(crate) u64);

impl ToSql for Count {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let number = i64::try_from(self.0).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        Ok(ToSqlOutput::Owned(Value::Integer(number)))
    }
}

/// The key of row `number` of a session in `journal`, `message` or `cell`. A number beyond the last possible row gives the
/// key of that row, so that `number` may also be the end of a range.
pub(crate) fn key(session: i64, number: u64) -> rusqlite::Result<i64> {
    let last = (1_i64 << SEQ_BITS) - 1;
    let number = i64::try_from(number).unwrap_or(last).min(last);
    let session = session.checked_mul(1 << SEQ_BITS).ok_or_else(|| {
        rusqlite::Error::ToSqlConversionFailure("there are too many sessions for the range of keys".into())
    })?;
    Ok(session | number)
}

pub(crate) fn create(
    transaction: &Transaction<'_>,
    store: &str,
    session: &NewSessionRow,
    documents: &[DocumentRow],
    first: &Commit,
) -> Result<(), Failure> {
    let key = transaction
        .prepare_cached(
            "INSERT INTO session (id, user, script, script_name, script_sha256, started_at, settings, manifest)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING key",
        )?
        .query_row(
            params![
                session.id,
                session.user,
                session.script,
                session.script_name,
                session.script_sha256,
                session.started_at,
                session.settings,
                session.manifest
            ],
            |row| row.get::<_, i64>(0),
        )
        .optional()?;
    let Some(key) = key else {
        return Err(StoreError::Exists { store: store.to_owned(), id: session.id.clone() }.into());
    };
    let mut insert =
        transaction.prepare_cached("INSERT INTO document (sha256, text) VALUES (?, ?) ON CONFLICT DO NOTHING")?;
    let mut link = transaction.prepare_cached(
        "INSERT INTO session_document (session, document) SELECT ?, key FROM document WHERE sha256 = ?
         ON CONFLICT DO NOTHING",
    )?;
    for document in documents {
        insert.execute(params![document.sha256, document.text])?;
        link.execute(params![key, document.sha256])?;
    }
    if let Some(texts) = &session.texts {
        let mut source = transaction.prepare_cached("SELECT key FROM session WHERE id = ?")?;
        let from: Option<i64> = source.query_row([&texts.session], |row| row.get(0)).optional()?;
        let Some(from) = from else {
            return Err(StoreError::NotFound { store: store.to_owned(), id: texts.session.clone() }.into());
        };
        Blobs { connection: transaction }.share(key, from, &texts.hashes)?;
    }
    let next = Tail::default().after(store, &session.id, first)?;
    let sql =
        "INSERT INTO head (revision, last_seq, last_message, answers, status, updated_at, location, head, session)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    head(transaction, sql, key, next, first)?;
    pages::touch(transaction, key, None, &first.updated_at)?;
    variables(transaction, key, &session.user, first)?;
    rows(transaction, key, first)?;
    cells(transaction, store, key, &session.id, first)?;
    answers(transaction, store, key, &session.id, first)?;
    requests::write(transaction, key, first, &first.updated_at)
}

/// A session as a commit finds it.
struct FoundSession {
    key: i64,
    user: String,
    tail: Tail,
    head: ReplacedHead,
    updated_at: String,
}

fn found_session(transaction: &Transaction<'_>, store: &str, id: &str) -> Result<FoundSession, Failure> {
    let found = transaction
        .prepare_cached(
            "SELECT key, user, revision, last_seq, last_message, status, location, head, answers, updated_at
             FROM session JOIN head ON session = key WHERE id = ?",
        )?
        .query_row([id], |row| {
            let tail = Tail { revision: count(row, 2)?, last_seq: count(row, 3)?, last_message: count(row, 4)? };
            let head = ReplacedHead {
                status: row.get(5)?,
                location: row.get(6)?,
                head: row.get(7)?,
                answers: count(row, 8)?,
                last_seq: tail.last_seq,
            };
            Ok(FoundSession { key: row.get(0)?, user: row.get(1)?, tail, head, updated_at: row.get(9)? })
        })
        .optional()?;
    found.ok_or_else(|| StoreError::NotFound { store: store.to_owned(), id: id.to_owned() }.into())
}

pub(crate) fn commit(transaction: &Transaction<'_>, store: &str, id: &str, commit: &Commit) -> Result<(), Failure> {
    let found = found_session(transaction, store, id)?;
    let next = found.tail.after(store, id, commit)?;
    replaced::keep(transaction, found.key, found.tail.revision, &found.head, commit)?;
    changes(transaction, (store, id), &found, next, (commit, &commit.updated_at))
}

/// Writes commits that follow each other: each row once, as the last of them leaves it.
pub(crate) fn commit_all(
    transaction: &Transaction<'_>,
    store: &str,
    id: &str,
    commits: &[Commit],
) -> Result<(), Failure> {
    if let [one] = commits {
        return commit(transaction, store, id, one);
    }
    let found = found_session(transaction, store, id)?;
    let Some(merged) = merged(commits, found.tail.last_seq) else {
        return commits.iter().try_for_each(|one| commit(transaction, store, id, one));
    };
    let next = commits.iter().try_fold(found.tail, |tail, commit| tail.after(store, id, commit))?;
    replaced::keep_all(transaction, found.key, found.tail.revision, &found.head, &merged)?;
    changes(transaction, (store, id), &found, next, (&merged.commit, &merged.answered_at))
}

/// Writes the rows of a commit, and the numbers after it.
fn changes(
    transaction: &Transaction<'_>,
    (store, id): (&str, &str),
    found: &FoundSession,
    next: Tail,
    (commit, answered_at): (&Commit, &str),
) -> Result<(), Failure> {
    let key = found.key;
    let sql = "UPDATE head SET revision = ?, last_seq = ?, last_message = ?, answers = ?, status = ?, updated_at = ?,
               location = ?, head = ? WHERE session = ?";
    head(transaction, sql, key, next, commit)?;
    pages::touch(transaction, key, Some(&found.updated_at), &commit.updated_at)?;
    variables(transaction, key, &found.user, commit)?;
    rows(transaction, key, commit)?;
    cells(transaction, store, key, id, commit)?;
    answers(transaction, store, key, id, commit)?;
    requests::write(transaction, key, commit, answered_at)
}

/// Returns a session to an earlier state without a commit: what came later is gone, also of the journal.
pub(crate) fn restore(
    transaction: &Transaction<'_>,
    store: &str,
    (session, id, user): (i64, &str, &str),
    state: &EarlierState,
) -> Result<(), Failure> {
    let sql = "DELETE FROM replaced WHERE session = ? AND revision >= ?";
    transaction.prepare_cached(sql)?.execute(params![session, Count(state.revision)])?;
    let later = params![key(session, state.last_seq)?, key(session, u64::MAX)?];
    transaction.prepare_cached("DELETE FROM journal WHERE key > ? AND key <= ?")?.execute(later)?;
    let sql = "DELETE FROM dictionary WHERE session = ? AND seq > ?";
    transaction.prepare_cached(sql)?.execute(params![session, Count(state.last_seq)])?;
    let changes = &state.changes;
    variables(transaction, session, user, changes)?;
    rows(transaction, session, changes)?;
    cells(transaction, store, session, id, changes)?;
    requests::write(transaction, session, changes, &changes.updated_at)?;
    let sql = "SELECT key FROM message WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT 1";
    let last_message = transaction
        .prepare_cached(sql)?
        .query_row(params![key(session, 0)?, key(session, u64::MAX)?], |row| count(row, 0))
        .optional()?
        .map_or(0, number_of);
    let updated_at = transaction
        .prepare_cached("SELECT at FROM journal WHERE key = ?")?
        .query_row([key(session, state.last_seq)?], |row| row.get::<_, String>(0))
        .optional()?;
    let updated_at = match updated_at {
        Some(at) => at,
        None => transaction.query_row("SELECT started_at FROM session WHERE key = ?", [session], |row| row.get(0))?,
    };
    let tail = Tail { revision: state.revision, last_seq: state.last_seq, last_message };
    let restored = Commit {
        answers: state.answers,
        status: state.status.clone(),
        updated_at,
        location: state.location.clone(),
        head: state.head.clone(),
        ..Commit::default()
    };
    // The row may be one that was lost.
    let sql = "INSERT OR REPLACE INTO head
               (revision, last_seq, last_message, answers, status, updated_at, location, head, session)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    head(transaction, sql, session, tail, &restored)?;
    // It is not stored when an answer was accepted. A client sends again only the answer that it is not sure of, and that one
    // is among those that were lost.
    transaction.prepare_cached("DELETE FROM answer WHERE session = ?")?.execute([session])?;
    Ok(())
}

/// The unsigned number in this column of a row.
pub(crate) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, number))
}

/// Writes the one small row that every commit rewrites; `sql` inserts or updates it.
fn head(transaction: &Transaction<'_>, sql: &str, session: i64, tail: Tail, commit: &Commit) -> Result<(), Failure> {
    transaction.prepare_cached(sql)?.execute(params![
        Count(tail.revision),
        Count(tail.last_seq),
        Count(tail.last_message),
        Count(commit.answers),
        commit.status,
        commit.updated_at,
        commit.location,
        commit.head,
        session
    ])?;
    Ok(())
}

fn variables(transaction: &Transaction<'_>, session: i64, user: &str, commit: &Commit) -> Result<(), Failure> {
    for removed in &commit.variables_removed {
        transaction
            .prepare_cached("DELETE FROM variable WHERE session = ? AND scope = ? AND path = ? AND name = ?")?
            .execute(params![session, removed.scope, removed.path, removed.name])?;
    }
    let sql = "INSERT INTO variable (session, scope, path, name, value, source, round, at, sensitive)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
               value = excluded.value, source = excluded.source, round = excluded.round, at = excluded.at,
               sensitive = excluded.sensitive";
    put_variables(transaction, sql, &session, &commit.variables_put)?;
    let sql = "INSERT INTO user_variable (user, scope, path, name, value, source, round, at, sensitive)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
               value = excluded.value, source = excluded.source, round = excluded.round, at = excluded.at,
               sensitive = excluded.sensitive";
    put_variables(transaction, sql, &user, &commit.user_variables_put)
}

/// Writes variables of a user, except where there are newer ones.
pub(crate) fn put_newer_variables(
    transaction: &Transaction<'_>,
    user: &str,
    rows: &[VariableRow],
) -> Result<(), Failure> {
    let sql = "INSERT INTO user_variable (user, scope, path, name, value, source, round, at, sensitive)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
               value = excluded.value, source = excluded.source, round = excluded.round, at = excluded.at,
               sensitive = excluded.sensitive WHERE rtrim(at, 'Z') < rtrim(excluded.at, 'Z')";
    put_variables(transaction, sql, &user, rows)
}

fn put_variables(
    transaction: &Transaction<'_>,
    sql: &str,
    owner: &dyn ToSql,
    rows: &[VariableRow],
) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut put = transaction.prepare_cached(sql)?;
    for row in rows {
        put.execute(params![
            owner,
            row.scope,
            row.path,
            row.name,
            row.value,
            row.source,
            row.round,
            row.at,
            row.sensitive
        ])?;
    }
    Ok(())
}

/// Changes the frames and counters, appends to the journal, and changes the end of the transcript.
fn rows(transaction: &Transaction<'_>, session: i64, commit: &Commit) -> Result<(), Failure> {
    for removed in &commit.frames_removed {
        transaction
            .prepare_cached("DELETE FROM frame WHERE session = ? AND key = ?")?
            .execute(params![session, removed])?;
    }
    for row in &commit.frames_put {
        transaction
            .prepare_cached(
                "INSERT INTO frame (session, key, state) VALUES (?, ?, ?)
                 ON CONFLICT DO UPDATE SET state = excluded.state",
            )?
            .execute(params![session, row.key, row.state])?;
    }
    for removed in &commit.counters_removed {
        transaction
            .prepare_cached("DELETE FROM counter WHERE session = ? AND name = ?")?
            .execute(params![session, removed])?;
    }
    for row in &commit.counters_put {
        transaction
            .prepare_cached(
                "INSERT INTO counter (session, name, count) VALUES (?, ?, ?)
                 ON CONFLICT DO UPDATE SET count = excluded.count",
            )?
            .execute(params![session, row.name, Count(row.count)])?;
    }
    let mut blocks = BTreeSet::new();
    let blobs = Blobs { connection: transaction };
    for text in &commit.texts {
        blobs.put_text(session, text)?;
    }
    for row in &commit.journal {
        event(&blobs, session, row)?;
        blocks.insert((row.kind.as_str(), row.seq >> BLOCK_BITS));
    }
    for (kind, block) in blocks {
        // The row usually exists already, and then no page is written.
        transaction
            .prepare_cached("INSERT INTO journal_kind (session, kind, block) VALUES (?, ?, ?) ON CONFLICT DO NOTHING")?
            .execute(params![session, kind, Count(block)])?;
    }
    if let Some(kept) = commit.messages_kept {
        transaction
            .prepare_cached("DELETE FROM message WHERE key > ? AND key <= ?")?
            .execute(params![key(session, kept)?, key(session, u64::MAX)?])?;
    }
    for row in &commit.messages {
        transaction
            .prepare_cached(
                "INSERT INTO message (key, role, text, at, action_id, round, message_id) VALUES (?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                key(session, row.number)?,
                row.role,
                row.text,
                row.at,
                row.action_id,
                row.round,
                row.message_id
            ])?;
    }
    Ok(())
}

/// Appends an event to the journal.
fn event(blobs: &Blobs<'_>, session: i64, row: &JournalRow) -> Result<(), Failure> {
    let connection = blobs.connection;
    let body = blobs.store(session, &row.body)?;
    // A text with parts in other rows is short.
    let stored = match body {
        Cow::Borrowed(text) => pack(connection, session, &row.kind, text)?,
        Cow::Owned(_) => PackedText::Plain,
    };
    let key = key(session, row.seq)?;
    if let PackedText::Packed(packed) = stored {
        connection
            .prepare_cached("INSERT INTO journal (key, at, kind, body, packed, dictionary) VALUES (?, ?, ?, ?, ?, ?)")?
            .execute(params![key, row.at, row.kind, packed.body, packed.bytes, Count(packed.dictionary)])?;
        return Ok(());
    }
    connection
        .prepare_cached("INSERT INTO journal (key, at, kind, body) VALUES (?, ?, ?, ?)")?
        .execute(params![key, row.at, row.kind, body])?;
    if let PackedText::Dictionary { slot } = stored {
        put_dictionary(connection, session, (&row.kind, slot), row.seq)?;
    }
    Ok(())
}

/// Removes, appends and changes cells. Runs no query for a commit without cells.
fn cells(transaction: &Transaction<'_>, store: &str, session: i64, id: &str, commit: &Commit) -> Result<(), Failure> {
    if let Some(kept) = commit.cells_kept {
        transaction
            .prepare_cached("DELETE FROM cell WHERE key > ? AND key <= ?")?
            .execute(params![key(session, kept)?, key(session, u64::MAX)?])?;
    }
    if commit.cells_put.is_empty() {
        return Ok(());
    }
    let last = transaction
        .prepare_cached(LAST_CELL)?
        .query_row(params![key(session, 0)?, key(session, u64::MAX)?], |row| count(row, 0))
        .optional()?;
    check_cell_numbers(store, id, last.map_or(0, number_of), commit)?;
    let blobs = Blobs { connection: transaction };
    for row in &commit.cells_put {
        let body = blobs.store(session, &row.body)?;
        let written = transaction
            .prepare_cached(
                "INSERT INTO cell (key, session, id, body) VALUES (?, ?, ?, ?)
                 ON CONFLICT (key) DO UPDATE SET body = excluded.body WHERE id = excluded.id",
            )?
            .execute(params![key(session, row.number)?, session, row.id, body]);
        match written {
            Ok(1) => {}
            // The cell with this number has another id, or another cell has this id.
            Ok(_) => return Err(cell_id_mismatch(store, id, row.number)),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                return Err(cell_id_mismatch(store, id, row.number));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn cell_id_mismatch(store: &str, id: &str, number: u64) -> Failure {
    StoreError::CellIdMismatch { store: store.to_owned(), id: id.to_owned(), number }.into()
}

fn answers(transaction: &Transaction<'_>, store: &str, session: i64, id: &str, commit: &Commit) -> Result<(), Failure> {
    for answer in &commit.answer_ids {
        let added = transaction
            .prepare_cached("INSERT INTO answer (session, id) VALUES (?, ?) ON CONFLICT DO NOTHING")?
            .execute(params![session, answer])?;
        if added == 0 {
            return Err(StoreError::AnswerTaken { store: store.to_owned(), id: id.to_owned() }.into());
        }
    }
    Ok(())
}
