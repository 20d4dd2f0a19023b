//! Copies sessions from a damaged database to a new one, each as it was at its newest revision that can be read whole.

use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, params};

use crate::content_hash::hash;
use crate::sqlite::blobs::Blobs;
use crate::sqlite::error::Failure;
use crate::sqlite::packed::{stored_event, unpacked};
use crate::sqlite::read::{LAST_CELL, number_of};
use crate::sqlite::replaced;
use crate::sqlite::write::{self, count, key};

/// The maximum number of earlier revisions that are tried for one session.
const MAX_REVISIONS: usize = 256;

/// How much of a session can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// Its newest revision.
    Whole,
    /// An earlier revision.
    Earlier,
    /// Its events and messages up to the damage; it cannot be continued.
    Readable,
    Nothing,
}

/// How a session is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    AsItIs,
    Earlier,
    Readable,
}

/// A part of a session, in tables whose rows are found by `condition`. `?1` is its key, `?2` and `?3` are its first and last
/// row in tables with combined keys.
struct Part {
    table: &'static str,
    condition: &'static str,
    order: &'static str,
    /// Whether the session can only be continued with all of its rows.
    is_state: bool,
}

const fn state(table: &'static str, order: &'static str) -> Part {
    Part { table, condition: "session = ?1 AND ?2 < ?3", order, is_state: true }
}

const PARTS: [Part; 8] = [
    state("frame", "key"),
    state("variable", "scope, path, name"),
    state("counter", "name"),
    state("request", "id"),
    Part { table: "cell", condition: "?1 > 0 AND key > ?2 AND key <= ?3", order: "key", is_state: true },
    Part { table: "journal", condition: "?1 > 0 AND key > ?2 AND key <= ?3", order: "key", is_state: false },
    Part { table: "message", condition: "?1 > 0 AND key > ?2 AND key <= ?3", order: "key", is_state: false },
    Part { table: "answer", condition: "session = ?1 AND ?2 < ?3", order: "id", is_state: false },
];

/// A database that may be damaged.
pub(crate) struct Source {
    pub(crate) connection: Connection,
    /// Whether it has the newest commit of the log.
    pub(crate) is_newest: bool,
}

/// A session of a source, as far as its row can be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    pub(crate) key: i64,
    pub(crate) id: String,
}

impl Source {
    /// The sessions whose id can be read: from the table, and from the index by id.
    pub(crate) fn sessions(&self) -> Vec<Found> {
        let found = |sql: &str| {
            let mut rows = Vec::new();
            let _ = self.each(sql, &[], |row| {
                if let [Value::Integer(key), Value::Text(id)] = row {
                    rows.push(Found { key: *key, id: id.clone() });
                }
                Ok(())
            });
            rows
        };
        let mut all = found("SELECT key, id FROM session NOT INDEXED ORDER BY key");
        all.extend(found("SELECT key, id FROM session NOT INDEXED ORDER BY key DESC"));
        all.extend(found("SELECT key, id FROM session INDEXED BY sqlite_autoindex_session_1 ORDER BY id"));
        all.sort();
        all.dedup();
        all
    }

    /// The revision and the answers of the newest state of a session, if they can be read.
    pub(crate) fn newest(&self, session: i64) -> Option<(u64, u64)> {
        let sql = "SELECT revision, answers FROM head WHERE session = ?";
        self.connection.query_row(sql, [session], |row| Ok((count(row, 0)?, count(row, 1)?))).ok()
    }

    /// Whether all rows of a table can be read, which are passed on.
    pub(crate) fn each(
        &self,
        sql: &str,
        parameters: &[i64],
        mut row: impl FnMut(&[Value]) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let Ok(mut statement) = self.connection.prepare_cached(sql) else { return Ok(false) };
        let columns = statement.column_count();
        let Ok(mut rows) = statement.query(rusqlite::params_from_iter(parameters)) else { return Ok(false) };
        loop {
            let next = match rows.next() {
                Ok(Some(next)) => next,
                Ok(None) => return Ok(true),
                Err(_) => return Ok(false),
            };
            let Ok(values) = (0..columns).map(|column| next.get(column)).collect::<rusqlite::Result<Vec<Value>>>()
            else {
                return Ok(false);
            };
            row(&values)?;
        }
    }

    /// Copies rows to the table of the same name. Returns whether all of them could be read.
    pub(crate) fn copy(
        &self,
        target: &Transaction<'_>,
        table: &str,
        condition: &str,
        order: &str,
        parameters: &[i64],
    ) -> Result<bool, Failure> {
        let columns = columns(target, table)?;
        let marks = vec!["?"; columns.len()].join(", ");
        let names = columns.join(", ");
        let insert = format!("INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING");
        let select = format!("SELECT {names} FROM {table} WHERE {condition} ORDER BY {order}");
        let mut are_accepted = true;
        let insert_row = |row: &[Value]| {
            match target.prepare_cached(&insert)?.execute(rusqlite::params_from_iter(row)) {
                Ok(_) => {}
                // A damaged row has values that its table does not accept, or belongs to a row that could not be read.
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => are_accepted = false,
                Err(error) => return Err(error.into()),
            }
            Ok(())
        };
        let are_read = self.each(&select, parameters, insert_row)?;
        Ok(are_read && are_accepted)
    }

    /// Copies a session within `target`. Returns the revision that was copied; `None` if this attempt cannot copy it.
    pub(crate) fn copy_session(
        &self,
        target: &Transaction<'_>,
        store: &str,
        found: &Found,
        attempt: Attempt,
    ) -> Result<Option<u64>, Failure> {
        let session = found.key;
        self.copy(target, "session", "key = ?1", "key", &[session])?;
        let sql = "SELECT id, user, started_at FROM session WHERE key = ?";
        let row = target.query_row(sql, [session], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?;
        let Some((id, user, started_at)): Option<(String, String, String)> = row else { return Ok(None) };
        let range = [session, key(session, 0)?, key(session, u64::MAX)?];
        self.copy(target, "head", "session = ?1", "session", &[session])?;
        // A session cannot be continued without all of its documents.
        let (mut is_complete, mut has_all_messages) = (self.copy_documents(target, session)?, true);
        for part in PARTS.iter().filter(|part| has_table(target, part.table)) {
            let is_whole = self.copy(target, part.table, part.condition, part.order, &range)?;
            is_complete &= is_whole || !part.is_state;
            has_all_messages &= is_whole || part.table != "message";
        }
        // Of what commits replaced, an unbroken range up to the newest revision is needed.
        if has_table(target, "replaced")
            && !self.copy(target, "replaced", "session = ?1", "revision DESC, key DESC", &[session])?
        {
            let oldest = "DELETE FROM replaced WHERE session = ?1 AND revision = (SELECT min(revision) FROM replaced WHERE session = ?1)";
            target.execute(oldest, [session])?;
        }
        let journal = unbroken(target, "journal", session)?;
        let messages = unbroken(target, "message", session)?;
        match attempt {
            Attempt::AsItIs => {}
            Attempt::Earlier if is_complete => {
                let messages = Messages { unbroken: messages, are_all: has_all_messages };
                return earlier(target, store, (session, &id, &user), journal, messages);
            }
            Attempt::Earlier => return Ok(None),
            Attempt::Readable => {
                return if journal == 0 && messages == 0 {
                    Ok(None)
                } else {
                    keep_readable(target, session, journal, messages, &started_at).map(Some)
                };
            }
        }
        write_indexes(target, session)?;
        Ok(if is_complete { whole(target, session)? } else { None })
    }

    /// Copies the documents and the large texts of a session. One that is not as its hash says is left out. Returns whether
    /// all documents were copied.
    fn copy_documents(&self, target: &Transaction<'_>, session: i64) -> Result<bool, Failure> {
        let mut are_complete = true;
        for (link, reference, table) in [("session_document", "document", "document"), ("session_blob", "blob", "blob")]
        {
            if !has_table(target, table) {
                continue;
            }
            let condition = format!("key IN (SELECT {reference} FROM {link} WHERE session = ?1)");
            let select = format!("SELECT key, sha256, text FROM {table} WHERE {condition} ORDER BY key");
            let insert = format!("INSERT INTO {table} (key, sha256, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING");
            self.each(&select, &[session], |row| {
                if let [Value::Integer(_), Value::Text(sha256), Value::Text(text)] = row
                    && *sha256 == hash(text)
                {
                    target.prepare_cached(&insert)?.execute(rusqlite::params_from_iter(row))?;
                }
                Ok(())
            })?;
            // The texts are checked with the rows that contain them.
            are_complete &= self.copy(target, link, "session = ?1", reference, &[session])? || table == "blob";
        }
        Ok(are_complete)
    }

    /// Copies the variables of users. Returns whether all of them could be read.
    pub(crate) fn copy_user_variables(&self, target: &Transaction<'_>) -> Result<bool, Failure> {
        let order = "user, scope, path, name";
        if self.copy(target, "user_variable", "true", order, &[])? {
            return Ok(true);
        }
        self.copy(target, "user_variable", "true", "user DESC, scope DESC, path DESC, name DESC", &[])?;
        Ok(false)
    }
}

/// The messages of a copied session.
#[derive(Clone, Copy)]
struct Messages {
    /// The number of messages before the first gap.
    unbroken: u64,
    /// Whether all messages of the source could be read.
    are_all: bool,
}

impl Messages {
    /// Whether the messages of an earlier state are there, which has the first `kept` of them, or all that there are.
    fn suffice(self, kept: Option<u64>, last: Option<u64>) -> bool {
        match kept {
            Some(kept) => self.unbroken >= kept,
            None => self.are_all && last.is_none_or(|last| last == self.unbroken),
        }
    }
}

/// Returns a copied session to its newest earlier revision that is whole.
fn earlier(
    target: &Transaction<'_>,
    store: &str,
    (session, id, user): (i64, &str, &str),
    journal: u64,
    messages: Messages,
) -> Result<Option<u64>, Failure> {
    if !has_table(target, "replaced") {
        return Ok(None);
    }
    let last_message = target
        .query_row("SELECT last_message FROM head WHERE session = ?", [session], |row| count(row, 0))
        .optional()?;
    for revision in replaced::revisions(target, session, MAX_REVISIONS, journal)? {
        let Ok(Some(state)) = replaced::earlier_state(target, session, revision) else { continue };
        if !messages.suffice(state.changes.messages_kept, last_message) {
            continue;
        }
        target.execute_batch("SAVEPOINT earlier")?;
        if write::restore(target, store, (session, id, user), &state).is_ok() {
            write_indexes(target, session)?;
            if whole(target, session)?.is_some() {
                target.execute_batch("RELEASE earlier")?;
                return Ok(Some(revision));
            }
        }
        target.execute_batch("ROLLBACK TO earlier; RELEASE earlier")?;
    }
    Ok(None)
}

pub(crate) fn has_table(target: &Connection, table: &str) -> bool {
    target.table_exists(None, table).unwrap_or_default()
}

/// Whether the layout has packed texts.
fn is_packed(target: &Connection) -> bool {
    has_table(target, "dictionary")
}

fn columns(target: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    target.prepare_cached("SELECT name FROM pragma_table_info(?)")?.query_map([table], |row| row.get(0))?.collect()
}

/// The number of rows of a session from the first one on without a gap. The others are deleted.
fn unbroken(target: &Transaction<'_>, table: &str, session: i64) -> Result<u64, Failure> {
    let (first, last) = (key(session, 0)?, key(session, u64::MAX)?);
    let mut statement =
        target.prepare_cached(&format!("SELECT key FROM {table} WHERE key > ? AND key <= ? ORDER BY key"))?;
    let mut rows = statement.query([first, last])?;
    let mut end = first;
    while let Some(row) = rows.next()? {
        let next: i64 = row.get(0)?;
        if next != end + 1 {
            break;
        }
        end = next;
    }
    drop(rows);
    target.prepare_cached(&format!("DELETE FROM {table} WHERE key > ? AND key <= ?"))?.execute([end, last])?;
    Ok(u64::try_from(end - first).unwrap_or_default())
}

/// Writes again which blocks of the journal contain which kinds of events, and when the session was changed.
fn write_indexes(target: &Transaction<'_>, session: i64) -> Result<(), Failure> {
    if has_table(target, "session_recent") {
        target.execute("DELETE FROM session_recent WHERE session = ?", [session])?;
        target.execute(
            "INSERT INTO session_recent (period, session) SELECT substr(updated_at, 1, 15), session FROM head WHERE session = ?",
            [session],
        )?;
    }
    target.execute("DELETE FROM journal_kind WHERE session = ?", [session])?;
    let (first, last) = (key(session, 0)?, key(session, u64::MAX)?);
    target.execute(
        "INSERT INTO journal_kind (session, kind, block)
         SELECT DISTINCT ?1, kind, (key - ?2) >> ?4 FROM journal WHERE key > ?2 AND key <= ?3",
        params![session, first, last, crate::sqlite::schema::BLOCK_BITS],
    )?;
    Ok(())
}

/// The revision of a copied session if nothing of it is missing.
fn whole(target: &Transaction<'_>, session: i64) -> Result<Option<u64>, Failure> {
    let (first, last) = (key(session, 0)?, key(session, u64::MAX)?);
    let sql = "SELECT revision, last_seq, last_message FROM head WHERE session = ?";
    let head =
        target.query_row(sql, [session], |row| Ok((count(row, 0)?, count(row, 1)?, count(row, 2)?))).optional()?;
    let Some((revision, last_seq, last_message)) = head else { return Ok(None) };
    let rows = |table: &str| -> rusqlite::Result<u64> {
        let sql = format!("SELECT count(*) FROM {table} WHERE key > ? AND key <= ?");
        target.query_row(&sql, [first, last], |row| count(row, 0))
    };
    // `unbroken` has ensured that there is no gap before the last one.
    if rows("journal")? != last_seq || rows("message")? != last_message {
        return Ok(None);
    }
    let problems = [
        "SELECT count(*) FROM session JOIN head ON session = key WHERE key = ?1
            AND NOT (json_valid(settings) AND json_valid(manifest) AND json_valid(location) AND json_valid(head))",
        "SELECT count(*) FROM frame WHERE session = ?1 AND NOT json_valid(state)",
        "SELECT count(*) FROM variable WHERE session = ?1 AND NOT json_valid(value)",
    ];
    if has_table(target, "cell") && rows("cell")? != last_cell(target, session)? {
        return Ok(None);
    }
    for problem in problems {
        if target.query_row(problem, [session], |row| row.get::<_, i64>(0))? > 0 {
            return Ok(None);
        }
    }
    let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let columns = if is_packed(target) { "packed, dictionary" } else { "NULL, NULL" };
    let sql = format!("SELECT key, at, kind, body, {columns} FROM journal WHERE key > ?1 AND key <= ?2");
    let mut statement = target.prepare_cached(&sql)?;
    let mut rows = statement.query([first, last])?;
    while let Some(row) = rows.next()? {
        let events = stored_event(row).and_then(|event| unpacked(target, vec![event]));
        let Ok(events) = events else { return Ok(None) };
        if !events.iter().all(|event| is_json(&event.body)) {
            return Ok(None);
        }
    }
    if has_table(target, "cell") {
        let blobs = Blobs { connection: target };
        let mut statement = target.prepare_cached("SELECT body FROM cell WHERE key > ?1 AND key <= ?2")?;
        let mut rows = statement.query([first, last])?;
        while let Some(row) = rows.next()? {
            let mut body: String = row.get(0)?;
            if blobs.complete(&mut body).is_err() || !is_json(&body) {
                return Ok(None);
            }
        }
    }
    Ok(Some(revision))
}

/// The number of the last cell of a session.
fn last_cell(target: &Transaction<'_>, session: i64) -> Result<u64, Failure> {
    let keys = [key(session, 0)?, key(session, u64::MAX)?];
    let last = target.query_row(LAST_CELL, keys, |row| count(row, 0)).optional()?;
    Ok(last.map_or(0, number_of))
}

/// Leaves only the events and the messages of a copied session, which cannot be continued.
fn keep_readable(
    target: &Transaction<'_>,
    session: i64,
    journal: u64,
    messages: u64,
    started_at: &str,
) -> Result<u64, Failure> {
    for part in PARTS.iter().filter(|part| part.is_state && has_table(target, part.table)) {
        target.execute(&format!("DELETE FROM {} WHERE session = ?", part.table), [session])?;
    }
    if has_table(target, "replaced") {
        target.execute("DELETE FROM replaced WHERE session = ?", [session])?;
    }
    let (first, last) = (key(session, 0)?, key(session, u64::MAX)?);
    let answers: i64 = target.query_row(
        "SELECT count(*) FROM message WHERE key > ? AND key <= ? AND role = 'user'",
        [first, last],
        |row| row.get(0),
    )?;
    let at: Option<String> =
        target.query_row("SELECT max(at) FROM journal WHERE key > ? AND key <= ?", [first, last], |row| row.get(0))?;
    target.execute(
        "INSERT INTO head (session, revision, last_seq, last_message, answers, status, updated_at, location, head)
         VALUES (?1, 1, ?2, ?3, ?4, 'failed', ?5, '{}', '{}')
         ON CONFLICT DO UPDATE SET last_seq = ?2, last_message = ?3, answers = ?4, status = 'failed', updated_at = ?5,
         location = CASE WHEN json_valid(location) THEN location ELSE '{}' END,
         head = CASE WHEN json_valid(head) THEN head ELSE '{}' END",
        params![session, write::Count(journal), write::Count(messages), answers, at.as_deref().unwrap_or(started_at)],
    )?;
    write_indexes(target, session)?;
    Ok(target.query_row("SELECT revision FROM head WHERE session = ?", [session], |row| count(row, 0))?)
}
