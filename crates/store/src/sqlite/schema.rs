//! The tables of a store and the migrations that create them, oldest first. A released migration never changes.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::StoreError;
use crate::sqlite::error::Failure;

/// The application id in the SQLite header that marks a file as a store of this program: `bccs` in ASCII.
pub(crate) const APPLICATION_ID: i32 = 0x6263_6373;

/// Each migration changes the layout (`PRAGMA user_version`) with its index to the next one.
pub(crate) const MIGRATIONS: &[&str] =
    &[LAYOUT_1, LAYOUT_2, LAYOUT_3, LAYOUT_4, LAYOUT_5, LAYOUT_6, LAYOUT_7, LAYOUT_8];

/// The number of low bits of a `journal` or `message` key that number the rows of a session; the other bits are the session.
pub(crate) const SEQ_BITS: u32 = 36;

/// The number of events that one entry of `journal_kind` covers, as a power of two.
pub(crate) const BLOCK_BITS: u32 = 6;

/// The number of characters of a time that name its ten minutes: `2026-11-21T20:0`.
pub(crate) const RECENT_CHARACTERS: usize = 15;

/// * The data that a commit rewrites (`head`) is separate from the data written once (`session`): the manifest may be long.
/// * `journal` and `message` have one key composed of session and number ([`SEQ_BITS`]), so that the rows of a session are
///   adjacent and an appended row touches no second tree. Their rows are deleted by range, so they have no foreign key.
/// * An index of `journal` by kind would touch one more page for each kind in a commit, a fifth of the total cost.
///   Instead, `journal_kind` records which blocks of 64 events contain a kind: it is rarely written, and it is enough to
///   skip the other blocks.
const LAYOUT_1: &str = "
CREATE TABLE session (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    user TEXT NOT NULL,
    script TEXT NOT NULL,
    script_name TEXT,
    script_sha256 TEXT NOT NULL,
    started_at TEXT NOT NULL,
    settings TEXT NOT NULL,
    manifest TEXT NOT NULL
) STRICT;
CREATE TABLE head (
    session INTEGER PRIMARY KEY REFERENCES session (key) ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    last_message INTEGER NOT NULL,
    answers INTEGER NOT NULL,
    status TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    location TEXT NOT NULL,
    head TEXT NOT NULL
) STRICT;
CREATE TABLE frame (
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    key TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE variable (
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    scope TEXT NOT NULL,
    path TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    source TEXT NOT NULL,
    round INTEGER,
    at TEXT NOT NULL,
    sensitive INTEGER NOT NULL,
    PRIMARY KEY (session, scope, path, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE user_variable (
    user TEXT NOT NULL,
    scope TEXT NOT NULL,
    path TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    source TEXT NOT NULL,
    round INTEGER,
    at TEXT NOT NULL,
    sensitive INTEGER NOT NULL,
    PRIMARY KEY (user, scope, path, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE counter (
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    name TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE answer (
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    id TEXT NOT NULL,
    PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE journal (
    key INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE TABLE journal_kind (
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    block INTEGER NOT NULL,
    PRIMARY KEY (session, kind, block)
) STRICT, WITHOUT ROWID;
CREATE TABLE message (
    key INTEGER PRIMARY KEY,
    role TEXT NOT NULL,
    text TEXT NOT NULL,
    at TEXT NOT NULL,
    action_id TEXT NOT NULL,
    round INTEGER NOT NULL,
    message_id TEXT NOT NULL
) STRICT;
CREATE TABLE document (
    key INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL
) STRICT;
CREATE TABLE session_document (
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    document INTEGER NOT NULL REFERENCES document (key),
    PRIMARY KEY (session, document)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_document_by_document ON session_document (document);
";

/// Notebooks. A cell has a key like that of a message, so that the cells of a session are adjacent and in order; a cell
/// can also be found by its id. The cells of a session are deleted by range.
const LAYOUT_2: &str = "
CREATE TABLE cell (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (session, id)
) STRICT;
";

/// What commits replace, requests, and large texts.
///
/// * `replaced` has one row for every row that a commit wrote or removed, as it was at `revision`, before the commit; none
///   (`row` is null) if it did not exist. The head is among them ([`crate::sqlite::replaced`]).
/// * `blob` has the large texts of journal and cells ([`crate::sqlite::blobs`]), each once, with the sessions that use it.
/// * A session of an earlier layout that waits gets the request that it waits for. Its head and its events were written by
///   this program; one that is not JSON all the same gets none.
const LAYOUT_3: &str = "
CREATE TABLE replaced (
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    key TEXT NOT NULL,
    row TEXT,
    PRIMARY KEY (session, revision, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE request (
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    prompt TEXT NOT NULL,
    schema TEXT,
    decisions TEXT,
    approvers TEXT,
    due_at TEXT,
    opened_at TEXT NOT NULL,
    answered_at TEXT,
    PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX request_open ON request (session, id) WHERE answered_at IS NULL;
CREATE INDEX request_due ON request (rtrim(due_at, 'Z')) WHERE answered_at IS NULL AND due_at IS NOT NULL;
CREATE TABLE blob (
    key INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL
) STRICT;
CREATE TABLE session_blob (
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    blob INTEGER NOT NULL REFERENCES blob (key),
    PRIMARY KEY (session, blob)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_blob_by_blob ON session_blob (blob);
INSERT INTO request (session, id, kind, prompt, opened_at)
SELECT waiting.session, waiting.id, waiting.kind, coalesce(event.prompt, ''), coalesce(event.at, waiting.updated_at)
FROM (
    SELECT session, updated_at, json_extract(head, '$.waiting') AS id,
        CASE WHEN json_extract(head, '$.asks_effect') THEN 'interrupted_effect' ELSE 'input' END AS kind,
        (SELECT max(j.key) FROM journal_kind AS k CROSS JOIN journal AS j
            ON j.key BETWEEN (k.session << 36) + (k.block << 6) AND (k.session << 36) + (k.block << 6) + 63
            WHERE k.session = head.session AND k.kind = 'waiting' AND j.kind = 'waiting') AS event
    FROM head
    WHERE status = 'waiting_input'
        AND CASE WHEN json_valid(head) THEN json_type(head, '$.waiting') = 'text' ELSE 0 END
) AS waiting
LEFT JOIN (
    SELECT key, at, CASE WHEN json_valid(body) THEN json_extract(body, '$.prompt') END AS prompt FROM journal
) AS event ON event.key = waiting.event;
";

/// Plans.
///
/// * The tasks of a plan have one row each, found by their id in the whole store; `plan_task_by_plan` has them in the order in which
///   a plan is read. An index of the parents is not needed: a plan is read whole.
/// * `plan_edit` has the newest edits of each plan, numbered by revision, and of deletions (`plan` is 0), numbered by a counter.
/// * `plan_counter` has the highest ids that were given or reserved.
const LAYOUT_4: &str = "
CREATE TABLE plan (
    id INTEGER PRIMARY KEY,
    user TEXT NOT NULL,
    revision INTEGER NOT NULL,
    status TEXT NOT NULL,
    title TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX plan_by_user ON plan (user);
CREATE TABLE plan_task (
    id INTEGER PRIMARY KEY,
    plan INTEGER NOT NULL REFERENCES plan (id),
    parent INTEGER,
    rank INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX plan_task_by_plan ON plan_task (plan, rank);
CREATE TABLE plan_edit (
    plan INTEGER NOT NULL,
    number INTEGER NOT NULL,
    key TEXT NOT NULL UNIQUE,
    result TEXT NOT NULL,
    PRIMARY KEY (plan, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE plan_counter (
    name TEXT PRIMARY KEY,
    last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// Sessions by page, and packed texts of the journal ([`crate::sqlite::packed`]).
///
/// `session_recent` has the sessions by the ten minutes of their last change ([`RECENT_CHARACTERS`]): an index of the exact time would
/// be written by every commit. A session is removed from it with its head ([`crate::sqlite::remove`]).
const LAYOUT_5: &str = "
CREATE INDEX session_by_user ON session (user);
CREATE TABLE session_recent (
    period TEXT NOT NULL,
    session INTEGER NOT NULL,
    PRIMARY KEY (period, session)
) STRICT, WITHOUT ROWID;
INSERT INTO session_recent (period, session) SELECT substr(updated_at, 1, 15), session FROM head;
ALTER TABLE journal ADD COLUMN packed BLOB;
ALTER TABLE journal ADD COLUMN dictionary INTEGER;
CREATE TABLE dictionary (
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    slot INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (session, kind, slot)
) STRICT, WITHOUT ROWID;
";

/// The row of a head in `replaced` has the other rows of its revision as well. The layout has a number of its own so that earlier versions of
/// this program, which would not see them, do not open the store.
const LAYOUT_6: &str = "-- No table changes.";

/// Links, and the conversations that began by them. A conversation has no foreign key to its link: of a damaged store, either may be saved
/// without the other.
const LAYOUT_7: &str = "
CREATE TABLE link (
    id TEXT PRIMARY KEY,
    token_sha256 TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    revoked_at TEXT,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE talk (
    link TEXT NOT NULL,
    secret_sha256 TEXT NOT NULL,
    session TEXT NOT NULL,
    began_at TEXT NOT NULL,
    consent TEXT,
    is_started INTEGER NOT NULL,
    withdrawn_at TEXT,
    PRIMARY KEY (link, secret_sha256)
) STRICT, WITHOUT ROWID;
";

/// Packed rows of `replaced` ([`crate::sqlite::packed_state`]).
const LAYOUT_8: &str = "ALTER TABLE replaced ADD COLUMN packed BLOB;";

/// The layout of the store; 0 for an empty file.
pub(crate) fn layout(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Refuses to go on in a store whose layout a newer release has changed since this process opened it. Called in each write transaction, and
/// before each read: the layout is a number of the header page.
///
/// Errors: [`StoreError::Newer`].
pub(crate) fn refuse_newer(connection: &Connection, store: &str) -> Result<(), Failure> {
    let found: u32 = connection.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))?;
    let known = newest_layout(MIGRATIONS);
    match found > known {
        true => Err(StoreError::Newer { store: store.to_owned(), found, known }.into()),
        false => Ok(()),
    }
}

/// The layout after all `migrations`.
pub(crate) fn newest_layout(migrations: &[&str]) -> u32 {
    u32::try_from(migrations.len()).unwrap_or(u32::MAX)
}

/// Migrates the store to the newest layout in one transaction. Several processes may do this concurrently: the layout is
/// read again while the write lock is held.
/// Errors: [`StoreError::Newer`] without a write; [`StoreError::ForeignDatabase`] if another program has written to the
/// file in the meantime.
pub(crate) fn migrate(connection: &mut Connection, store: &str, migrations: &[&str]) -> Result<(), Failure> {
    let known = newest_layout(migrations);
    let mut found = layout(connection)?;
    if found == known {
        return Ok(());
    }
    if found < known {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for _ in migrations {
            apply_next(&transaction, store, migrations)?;
        }
        transaction.commit()?;
        found = layout(connection)?;
    }
    if found > known {
        return Err(StoreError::Newer { store: store.to_owned(), found, known }.into());
    }
    // Write the changes to the main file immediately: another process checks its header before it opens the store.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// Applies the next migration, if any.
fn apply_next(transaction: &Transaction<'_>, store: &str, migrations: &[&str]) -> Result<(), Failure> {
    let found = layout(transaction)?;
    let Some(sql) = usize::try_from(found).ok().and_then(|found| migrations.get(found)) else { return Ok(()) };
    if found == 0 {
        let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if tables > 0 {
            return Err(StoreError::ForeignDatabase { store: store.to_owned() }.into());
        }
    }
    transaction.execute_batch(sql)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", found.saturating_add(1))?;
    Ok(())
}
