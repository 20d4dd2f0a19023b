//! Writes the rows of a commit with nothing but prepared statements: the minimum work of a store with this schema.

use std::path::Path;

use bcc_store::contract::Store;
use bcc_store::rows::Commit;
use bcc_store::sqlite::open::open;
use rusqlite::{Connection, TransactionBehavior, params};
use tokio::runtime::Runtime;

use crate::support::recorder::Recorded;

/// The bits of a row number below the session key, as in `crates/store/src/sqlite/schema.rs`.
const SEQ_BITS: u32 = 36;

/// The bits of an event number that one entry of `journal_kind` covers, as in `crates/store/src/sqlite/schema.rs`.
const BLOCK_BITS: u32 = 6;

/// A store with one session that is written without any checks.
pub(crate) struct Bare {
    connection: Connection,
    session: i64,
}

impl Bare {
    /// Creates the store and the session at `path`, closes it, and reopens it with the same pragmas.
    pub(crate) fn new(runtime: &Runtime, path: &Path, recorded: &Recorded) -> Self {
        let (new, documents) = recorded.created.first().expect("a session was made");
        let first = recorded.commits.first().expect("with its first rows");
        let store = open(path).expect("a store");
        runtime.block_on(store.create(new, documents, first)).expect("the session is made");
        drop(store);
        let connection = Connection::open(path).expect("the store opens");
        connection.set_prepared_statement_cache_capacity(64);
        connection
            .execute_batch(
                "PRAGMA foreign_keys = ON; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 8388608; PRAGMA secure_delete = FAST;",
            )
            .expect("the pragmas");
        let session = connection.query_row("SELECT key FROM session", [], |row| row.get(0)).expect("the session");
        Self { connection, session }
    }

    /// Writes one commit in one transaction.
    pub(crate) fn commit(&mut self, commit: &Commit) -> rusqlite::Result<()> {
        let session = self.session;
        let key = |number: u64| (session << SEQ_BITS) | i64::try_from(number).unwrap_or_default();
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction
            .prepare_cached(
                "UPDATE head SET revision = revision + 1, last_seq = last_seq + ?, last_message = last_message + ?,
                 answers = ?, status = ?, updated_at = ?, location = ?, head = ? WHERE session = ?",
            )?
            .execute(params![
                i64::try_from(commit.journal.len()).unwrap_or_default(),
                i64::try_from(commit.messages.len()).unwrap_or_default(),
                i64::try_from(commit.answers).unwrap_or_default(),
                commit.status,
                commit.updated_at,
                commit.location,
                commit.head,
                session
            ])?;
        for row in &commit.variables_put {
            transaction.prepare_cached("INSERT OR REPLACE INTO variable VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")?.execute(
                params![
                    session,
                    row.scope,
                    row.path,
                    row.name,
                    row.value,
                    row.source,
                    row.round,
                    row.at,
                    row.sensitive
                ],
            )?;
        }
        for removed in &commit.frames_removed {
            transaction
                .prepare_cached("DELETE FROM frame WHERE session = ? AND key = ?")?
                .execute(params![session, removed])?;
        }
        for row in &commit.frames_put {
            transaction
                .prepare_cached("INSERT OR REPLACE INTO frame VALUES (?, ?, ?)")?
                .execute(params![session, row.key, row.state])?;
        }
        for row in &commit.journal {
            transaction
                .prepare_cached("INSERT INTO journal (key, at, kind, body) VALUES (?, ?, ?, ?)")?
                .execute(params![key(row.seq), row.at, row.kind, row.body])?;
            transaction.prepare_cached("INSERT OR IGNORE INTO journal_kind VALUES (?, ?, ?)")?.execute(params![
                session,
                row.kind,
                i64::try_from(row.seq >> BLOCK_BITS).unwrap_or_default()
            ])?;
        }
        for row in &commit.messages {
            transaction.prepare_cached("INSERT INTO message VALUES (?, ?, ?, ?, ?, ?, ?)")?.execute(params![
                key(row.number),
                row.role,
                row.text,
                row.at,
                row.action_id,
                row.round,
                row.message_id
            ])?;
        }
        for answer in &commit.answer_ids {
            transaction.prepare_cached("INSERT INTO answer VALUES (?, ?)")?.execute(params![session, answer])?;
        }
        transaction.commit()
    }

    pub(crate) fn bytes(&self) -> i64 {
        bytes(&self.connection)
    }
}

/// The length of all texts, whether they are stored as they are or packed: then `body` begins with the length.
pub(crate) fn bytes(connection: &Connection) -> i64 {
    let sql = "SELECT (SELECT sum(iif(packed IS NULL, length(CAST(body AS BLOB)), CAST(body AS INTEGER))) FROM journal)
               + (SELECT sum(length(CAST(text AS BLOB))) FROM message)";
    connection.query_row(sql, [], |row| row.get(0)).expect("the rows can be counted")
}
