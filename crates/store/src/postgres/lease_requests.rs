//! What processes ask the owner of a lease, as rows of the database.

use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::types::Type;

use crate::contract::{LockReply, LockRequest};
use crate::error::StoreError;
use crate::lock_signals::LockSignals;
use crate::postgres::client::Database;
use crate::postgres::error::Concern;
use crate::postgres::lease::MIN_LEFT;
use crate::postgres::read;
use crate::postgres::text::TextParameter;

/// The channel of notifications. The payload is the number of the process that is meant.
pub(crate) const CHANNEL: &str = "bcc_script_wanted";

/// How long a process waits for the reply to a request, and the pauses between two looks.
const REPLY_TIME: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// A lease that another process asks for.
pub(crate) struct WantedLease {
    pub(crate) session: String,
    pub(crate) key: Vec<u8>,
    pub(crate) token: i64,
    requests: Vec<LockRequest>,
}

impl WantedLease {
    /// Those of this process.
    pub(crate) async fn of(database: &Database, process: i64) -> Result<Vec<Self>, StoreError> {
        let sql =
            "SELECT session, session_sha256, token, is_wanted, is_interrupted, is_wanted_if_idle FROM bcc_script.lease
            WHERE process = $1 AND (is_wanted OR is_wanted_if_idle)";
        let rows = database.rows(sql, &[(&process, Type::INT8)], Concern::default()).await?;
        let mut wanted = vec![];
        for row in rows {
            let (Ok(session), Ok(key), Ok(token)) = (read::text(&row, 0), row.try_get(1), row.try_get(2)) else {
                continue;
            };
            let kinds = [(3, LockRequest::Release), (4, LockRequest::Interrupt), (5, LockRequest::ReleaseIfIdle)];
            let requests = kinds.into_iter().filter(|(column, _)| row.try_get(*column).is_ok_and(|is_asked| is_asked));
            wanted.push(Self { session, key, token, requests: requests.map(|(_, request)| request).collect() });
        }
        Ok(wanted)
    }

    /// Tells the holder of the lease, and says whether a turn runs if somebody wants to know.
    pub(crate) async fn tell(&self, signals: &LockSignals, database: &Database) -> Result<(), StoreError> {
        let mut is_busy = false;
        for request in &self.requests {
            is_busy |= signals.receive(*request) == LockReply::Busy;
        }
        if is_busy {
            let sql = "UPDATE bcc_script.lease SET busy_at = clock_timestamp(), is_wanted_if_idle = false
                WHERE session_sha256 = $1 AND token = $2";
            let parameters = &[(&self.key as _, Type::BYTEA), (&self.token as _, Type::INT8)];
            database.rows(sql, parameters, Concern::default()).await?;
        }
        Ok(())
    }
}

/// Asks the process that has the lease of a session.
pub(crate) async fn ask(database: &Database, key: &[u8], request: LockRequest) -> Result<LockReply, StoreError> {
    // One that has just been killed is not asked either, for a moment. Then it is waited for until its leases expire.
    let keeps = "SELECT FROM bcc_script.lease AS l JOIN bcc_script.process AS p ON p.id = l.process
        WHERE l.session_sha256 = $1 AND p.runs_one AND p.expires_at > clock_timestamp() + make_interval(secs => $2)";
    let parameters = &[(&key as _, Type::BYTEA), (&MIN_LEFT.as_secs_f64() as _, Type::FLOAT8)];
    if database.row(keeps, parameters, Concern::default()).await?.is_some() {
        return Ok(LockReply::Impossible);
    }
    let change = match request {
        LockRequest::Release => "is_wanted = true",
        LockRequest::Interrupt => "is_wanted = true, is_interrupted = true",
        LockRequest::ReleaseIfIdle => "is_wanted_if_idle = true",
    };
    let sql = format!(
        "WITH asked AS (
            UPDATE bcc_script.lease SET {change} WHERE session_sha256 = $1 RETURNING process, token, clock_timestamp() AS at
        ) SELECT pg_notify($2, process::text), token, at::text FROM asked"
    );
    let parameters = &[(&key as _, Type::BYTEA), (&CHANNEL as _, Type::TEXT)];
    let row = database.rows(&sql, parameters, Concern::default()).await?.into_iter().next();
    let Some(row) = row.filter(|_| request == LockRequest::ReleaseIfIdle) else { return Ok(LockReply::Asked) };
    let (Ok(token), Ok(at)) = (row.try_get::<_, i64>(1), read::text(&row, 2)) else { return Ok(LockReply::Asked) };
    // Only the clock of the database counts.
    let sql = "SELECT coalesce(busy_at >= $3::text::timestamptz, false) FROM bcc_script.lease WHERE session_sha256 = $1 AND token = $2";
    let at = TextParameter(&at);
    let parameters = &[(&key as _, Type::BYTEA), (&token as _, Type::INT8), (&at as _, Type::TEXT)];
    let (end, mut pause) = (Instant::now() + REPLY_TIME, FIRST_PAUSE);
    while Instant::now() < end {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
        match database.row(sql, parameters, Concern::default()).await? {
            Some(row) if row.try_get(0).is_ok_and(|is_busy| is_busy) => return Ok(LockReply::Busy),
            Some(_) => {}
            // It was released.
            None => break,
        }
    }
    Ok(LockReply::Asked)
}
