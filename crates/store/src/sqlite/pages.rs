//! The list of sessions, page by page: by the time of the last change, which is kept to ten minutes
//! ([`crate::sqlite::schema::RECENT_CHARACTERS`]).

use rusqlite::{Connection, Transaction, params};

use crate::rows::{SessionCursor, SessionFilter, SessionRow};
use crate::sqlite::error::Failure;
use crate::sqlite::read::{all, session_row, sql_limit};
use crate::sqlite::schema::RECENT_CHARACTERS;

const COLUMNS: &str =
    "s.id, s.user, status, s.script, script_name, script_sha256, started_at, updated_at, revision, last_seq,
    answers, location, settings, manifest, head";

/// All sessions, those of the newest period first; each period is sorted when its first session is needed. `CROSS JOIN` forces SQLite
/// to use this order, here and below.
const RECENT: &str =
    "session_recent AS r CROSS JOIN head AS h ON h.session = r.session CROSS JOIN session AS s ON s.key = r.session
    WHERE r.period <= ?1 AND r.period >= ?2";

/// Those of one user, which are few.
const OF_USER: &str = "session AS s INDEXED BY session_by_user CROSS JOIN head AS h ON h.session = s.key
    WHERE ?1 >= '' AND ?2 >= '' AND s.user = ?6";

/// Those whose id begins with a text.
const NAMED: &str = "session AS s CROSS JOIN head AS h ON h.session = s.key WHERE ?1 >= '' AND ?2 >= '' AND s.id >= ?10
    AND s.id < ?10 || char(1114111)";

const CONDITIONS: &str = "rtrim(updated_at, 'Z') >= ?3
    AND (?4 IS NULL OR s.script = ?4) AND (?5 IS NULL OR status = ?5) AND (?6 IS NULL OR s.user = ?6)
    AND (?7 IS NULL OR rtrim(updated_at, 'Z') < ?7 OR (rtrim(updated_at, 'Z') = ?7 AND s.id > ?8))
    AND (?10 IS NULL OR substr(s.id, 1, length(?10)) = ?10)";

/// The period of a time.
pub(crate) fn period(time: &str) -> &str {
    time.char_indices().nth(RECENT_CHARACTERS).map_or(time, |(end, _)| time.get(..end).unwrap_or(time))
}

pub(crate) fn page(
    connection: &Connection,
    filter: &SessionFilter,
    after: Option<&SessionCursor>,
    limit: usize,
) -> rusqlite::Result<Vec<SessionRow>> {
    let since = filter.since.as_deref().unwrap_or_default();
    // Without a cursor, every period is before this one.
    let newest = after.map_or("\u{10ffff}", |cursor| period(&cursor.updated_at));
    let (from, order) = match (&filter.id, &filter.user) {
        (Some(_), _) => (NAMED, ""),
        (None, Some(_)) => (OF_USER, ""),
        (None, None) => (RECENT, "r.period DESC, "),
    };
    // Only keys are sorted: a period may have many sessions, and their rows are wide.
    let sql = format!(
        "SELECT {COLUMNS} FROM
            (SELECT s.key AS found FROM {from} AND {CONDITIONS} ORDER BY {order}rtrim(updated_at, 'Z') DESC, s.id LIMIT ?9)
            CROSS JOIN session AS s ON s.key = found CROSS JOIN head AS h ON h.session = found
         ORDER BY rtrim(updated_at, 'Z') DESC, s.id"
    );
    let parameters = params![
        newest,
        period(since),
        since.trim_end_matches('Z'),
        filter.script,
        filter.status,
        filter.user,
        after.map(|cursor| cursor.updated_at.trim_end_matches('Z')),
        after.map(|cursor| cursor.id.as_str()),
        sql_limit(limit),
        filter.id,
    ];
    all(connection, &sql, parameters, session_row)
}

/// Notes that a session has changed: `before` is the time of its change before, if there was one.
pub(crate) fn touch(
    transaction: &Transaction<'_>,
    session: i64,
    before: Option<&str>,
    updated_at: &str,
) -> Result<(), Failure> {
    let now = period(updated_at);
    if let Some(before) = before.map(period) {
        if before == now {
            return Ok(());
        }
        transaction
            .prepare_cached("DELETE FROM session_recent WHERE period = ? AND session = ?")?
            .execute(params![before, session])?;
    }
    transaction
        .prepare_cached("INSERT INTO session_recent (period, session) VALUES (?, ?) ON CONFLICT DO NOTHING")?
        .execute(params![now, session])?;
    Ok(())
}
