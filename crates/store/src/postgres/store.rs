//! [`PostgresStore`]: implements [`Store`] on a PostgreSQL database.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::contract::{LockReply, LockRequest, SessionLock, Store};
use crate::error::StoreError;
use crate::postgres::client::{Database, Parameter};
use crate::postgres::error::{Concern, no_answer, store_error};
use crate::postgres::lease::Leases;
use crate::postgres::read::{
    PageQuery, REQUEST, RowResult, SESSION, VARIABLE, cell_row, count, counter_row, frame_row, journal_row, limit,
    message_row, open_request, request_row, session_row, text, variable_row,
};
use crate::postgres::schema::{if_known, is_known};
use crate::postgres::text::{TextParameter, unescaped_json};
use crate::postgres::write::CopiedTexts;
use crate::postgres::{together, write};
use crate::replaced::{ReplacedHead, ReplacedRow, RowKey};
use crate::rows::{
    CellRow, Commit, CounterRow, DocumentRow, EarlierState, FrameRow, JournalRow, MessageRow, NewSessionRow,
    OpenRequest, RequestRow, SessionCursor, SessionFilter, SessionRow, VariableRow,
};

/// How long a due request is left to the process that has claimed it, in seconds.
const CLAIM_SECONDS: f64 = 30.0;

/// How long the database may take to answer that it works.
const CHECK_TIME: Duration = Duration::from_secs(2);

/// The holder name of the lease while a session is deleted.
const DELETION_HOLDER: &str = "a deletion";

/// The session with this key, in statements.
pub(crate) const OF_SESSION: &str = "(SELECT key FROM bcc_script.session WHERE id_sha256 = $1)";

/// A store in a PostgreSQL database. It connects when it is first used; then it needs a runtime of tokio.
pub struct PostgresStore {
    pub(crate) database: Arc<Database>,
    leases: Leases,
}

/// The key of a session.
pub(crate) fn session_key(id: &str) -> Vec<u8> {
    Sha256::digest(id).to_vec()
}

/// The columns `status, answers, last_seq, location, head` of a replaced head.
pub(crate) fn replaced_head(row: &Row) -> RowResult<ReplacedHead> {
    Ok(ReplacedHead {
        status: text(row, 0)?,
        answers: count(row, 1)?,
        last_seq: count(row, 2)?,
        location: text(row, 3)?,
        head: text(row, 4)?,
    })
}

/// The number of a row after which others are wanted.
fn after(number: u64) -> i64 {
    limit(number)
}

impl PostgresStore {
    /// The store at a URL, such as `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] if it is not such a URL.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        let database = Arc::new(Database::new(url)?);
        Ok(Self { leases: Leases::new(Arc::clone(&database), true), database })
    }

    /// The same store for a process with many sessions, which gives up the ones that other processes ask for.
    pub fn with_many_sessions(self) -> Self {
        Self { leases: Leases::new(Arc::clone(&self.database), false), ..self }
    }

    /// How the store is called in messages: without a password.
    pub fn name(&self) -> &str {
        &self.database.name
    }

    /// The version of the server and the layout of the store, which is created if there is none.
    ///
    /// # Errors
    /// Those of every call.
    pub async fn version(&self) -> Result<(String, u32), StoreError> {
        let sql = "SELECT current_setting('server_version')";
        let version = self.one(sql, &[], Concern::default(), |row| text(row, 0)).await?;
        Ok((version.unwrap_or_default(), crate::postgres::schema::newest()))
    }

    /// The layout that the database has, 0 if there is no store yet, and the newest one that this version knows. Changes nothing.
    ///
    /// # Errors
    /// Those of every call.
    pub async fn layouts(&self) -> Result<(u32, u32), StoreError> {
        self.database.layouts().await
    }

    pub(crate) fn unreadable(&self, error: &tokio_postgres::Error) -> StoreError {
        store_error(&self.database.name, error, Concern::default())
    }

    pub(crate) async fn one<T>(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
        concern: Concern<'_>,
        read: impl Fn(&Row) -> RowResult<T>,
    ) -> Result<Option<T>, StoreError> {
        let row = self.database.row(sql, parameters, concern).await?;
        row.map(|row| read(&row)).transpose().map_err(|error| self.unreadable(&error))
    }

    pub(crate) async fn all<T>(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
        read: impl Fn(&Row) -> RowResult<T>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.database.rows(sql, parameters, Concern::default()).await?;
        rows.iter().map(read).collect::<RowResult<_>>().map_err(|error| self.unreadable(&error))
    }

    async fn lease(&self, id: &str, holder: &str) -> Result<Arc<dyn SessionLock>, StoreError> {
        self.leases.take(&session_key(id), id, holder).await
    }

    async fn remove(&self, id: &str, before: Option<&str>) -> Result<bool, StoreError> {
        let sql = &if_known("SELECT bcc_script.delete_session($1, $2)");
        let parameters = &[(&session_key(id) as _, Type::BYTEA), (&before.map(TextParameter) as _, Type::TEXT)];
        let concern = Concern { session: id, ..Concern::default() };
        Ok(self.one(sql, parameters, concern, |row| row.try_get(0)).await?.unwrap_or(false))
    }

    /// JSON that this program has stored.
    pub(crate) fn parsed<T: serde::de::DeserializeOwned>(&self, json: &str) -> Result<T, StoreError> {
        let value = unescaped_json(json).and_then(serde_json::from_value);
        value.map_err(|_| StoreError::Corrupt {
            store: self.database.name.clone(),
            reason: bcc_lang::message::message::Message::word("a row contains invalid data"),
        })
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn create(
        &self,
        session: &NewSessionRow,
        documents: &[DocumentRow],
        first: &Commit,
    ) -> Result<(), StoreError> {
        let texts = session.texts.as_ref().map(CopiedTexts::Shared);
        write::create(&self.database, &session_key(&session.id), session, documents, first, None, texts).await
    }

    async fn commit(&self, id: &str, commit: &Commit) -> Result<(), StoreError> {
        write::commit(&self.database, &session_key(id), id, self.leases.token(id), commit).await
    }

    async fn commit_all(&self, id: &str, commits: &Arc<Vec<Commit>>) -> Result<(), StoreError> {
        if together::commit(&self.database, &session_key(id), id, self.leases.token(id), commits).await? {
            return Ok(());
        }
        // What depends on the rows that the database has goes there one after the other.
        for commit in commits.iter() {
            self.commit(id, commit).await?;
        }
        Ok(())
    }

    async fn session(&self, id: &str) -> Result<Option<SessionRow>, StoreError> {
        let sql = format!("{SESSION} WHERE s.id_sha256 = $1");
        self.one(&sql, &[(&session_key(id), Type::BYTEA)], Concern::default(), session_row).await
    }

    async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.sessions_page(&SessionFilter::default(), None, usize::MAX).await
    }

    async fn sessions_page(
        &self,
        filter: &SessionFilter,
        after: Option<&SessionCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, StoreError> {
        let query = PageQuery::new(filter, after, limit);
        self.all(&query.sql, &query.parameters(), session_row).await
    }

    async fn frames(&self, id: &str) -> Result<Vec<FrameRow>, StoreError> {
        let sql = format!("SELECT key, state FROM bcc_script.frame WHERE session = {OF_SESSION} ORDER BY key");
        self.all(&sql, &[(&session_key(id), Type::BYTEA)], frame_row).await
    }

    async fn variables(&self, id: &str) -> Result<Vec<VariableRow>, StoreError> {
        let sql = format!(
            "SELECT {VARIABLE} FROM bcc_script.variable AS v WHERE session = {OF_SESSION} ORDER BY scope, path, name"
        );
        self.all(&sql, &[(&session_key(id), Type::BYTEA)], variable_row).await
    }

    async fn user_variables(&self, user: &str) -> Result<Vec<VariableRow>, StoreError> {
        let sql = format!(
            "SELECT {VARIABLE} FROM bcc_script.user_variable AS v WHERE user_name = $1 ORDER BY scope, path, name"
        );
        self.all(&sql, &[(&TextParameter(user), Type::TEXT)], variable_row).await
    }

    async fn counters(&self, id: &str) -> Result<Vec<CounterRow>, StoreError> {
        let sql = format!("SELECT name, count FROM bcc_script.counter WHERE session = {OF_SESSION} ORDER BY name");
        self.all(&sql, &[(&session_key(id), Type::BYTEA)], counter_row).await
    }

    async fn journal(&self, id: &str, last: u64, at_most: usize) -> Result<Vec<JournalRow>, StoreError> {
        let sql = format!(
            "SELECT seq, at, kind, body FROM bcc_script.journal
             WHERE session = {OF_SESSION} AND seq > $2 ORDER BY seq LIMIT $3"
        );
        let parameters = &[
            (&session_key(id) as _, Type::BYTEA),
            (&after(last) as _, Type::INT8),
            (&limit(at_most) as _, Type::INT8),
        ];
        self.all(&sql, parameters, journal_row).await
    }

    async fn journal_by_kind(
        &self,
        id: &str,
        kind: &str,
        last: u64,
        at_most: usize,
    ) -> Result<Vec<JournalRow>, StoreError> {
        let sql = format!(
            "SELECT seq, at, kind, body FROM bcc_script.journal
             WHERE session = {OF_SESSION} AND kind = $2 AND seq > $3 ORDER BY seq LIMIT $4"
        );
        let parameters = &[
            (&session_key(id) as _, Type::BYTEA),
            (&TextParameter(kind) as _, Type::TEXT),
            (&after(last) as _, Type::INT8),
            (&limit(at_most) as _, Type::INT8),
        ];
        self.all(&sql, parameters, journal_row).await
    }

    async fn last_by_kind(&self, id: &str, kind: &str) -> Result<Option<JournalRow>, StoreError> {
        let sql = format!(
            "SELECT seq, at, kind, body FROM bcc_script.journal
             WHERE session = {OF_SESSION} AND kind = $2 ORDER BY seq DESC LIMIT 1"
        );
        let parameters = &[(&session_key(id) as _, Type::BYTEA), (&TextParameter(kind) as _, Type::TEXT)];
        self.one(&sql, parameters, Concern::default(), journal_row).await
    }

    async fn messages_tail(&self, id: &str, count: usize) -> Result<Vec<MessageRow>, StoreError> {
        let sql = format!(
            "SELECT number, role, text, at, action_id, round, message_id FROM bcc_script.message
             WHERE session = {OF_SESSION} ORDER BY number DESC LIMIT $2"
        );
        let parameters = &[(&session_key(id) as _, Type::BYTEA), (&limit(count) as _, Type::INT8)];
        let mut rows = self.all(&sql, parameters, message_row).await?;
        rows.reverse();
        Ok(rows)
    }

    async fn messages(&self, id: &str, last: u64, at_most: usize) -> Result<Vec<MessageRow>, StoreError> {
        let sql = format!(
            "SELECT number, role, text, at, action_id, round, message_id FROM bcc_script.message
             WHERE session = {OF_SESSION} AND number > $2 ORDER BY number LIMIT $3"
        );
        let parameters = &[
            (&session_key(id) as _, Type::BYTEA),
            (&after(last) as _, Type::INT8),
            (&limit(at_most) as _, Type::INT8),
        ];
        self.all(&sql, parameters, message_row).await
    }

    async fn cell(&self, id: &str, cell_id: &str) -> Result<Option<CellRow>, StoreError> {
        let sql =
            format!("SELECT number, id, body FROM bcc_script.cell WHERE session = {OF_SESSION} AND md5(id) = md5($2)");
        let parameters = &[(&session_key(id) as _, Type::BYTEA), (&TextParameter(cell_id) as _, Type::TEXT)];
        self.one(&sql, parameters, Concern::default(), cell_row).await
    }

    async fn cells(&self, id: &str, last: u64, at_most: usize) -> Result<Vec<CellRow>, StoreError> {
        let sql = format!(
            "SELECT number, id, body FROM bcc_script.cell
             WHERE session = {OF_SESSION} AND number > $2 ORDER BY number LIMIT $3"
        );
        let parameters = &[
            (&session_key(id) as _, Type::BYTEA),
            (&after(last) as _, Type::INT8),
            (&limit(at_most) as _, Type::INT8),
        ];
        self.all(&sql, parameters, cell_row).await
    }

    async fn cells_tail(&self, id: &str, count: usize) -> Result<Vec<CellRow>, StoreError> {
        let sql = format!(
            "SELECT number, id, body FROM bcc_script.cell WHERE session = {OF_SESSION} ORDER BY number DESC LIMIT $2"
        );
        let parameters = &[(&session_key(id) as _, Type::BYTEA), (&limit(count) as _, Type::INT8)];
        let mut rows = self.all(&sql, parameters, cell_row).await?;
        rows.reverse();
        Ok(rows)
    }

    async fn answer_accepted(&self, id: &str, answer_id: &str) -> Result<bool, StoreError> {
        let sql = format!("SELECT true FROM bcc_script.answer WHERE session = {OF_SESSION} AND id = $2");
        let parameters = &[(&session_key(id) as _, Type::BYTEA), (&TextParameter(answer_id) as _, Type::TEXT)];
        Ok(self.one(&sql, parameters, Concern::default(), |row| row.try_get(0)).await?.unwrap_or(false))
    }

    async fn revision_with(&self, id: &str, status: &str, answers: u64) -> Result<Option<u64>, StoreError> {
        let sql = format!(
            "SELECT revision FROM bcc_script.replaced_head
             WHERE session = {OF_SESSION} AND status = $2 AND answers = $3 ORDER BY revision DESC LIMIT 1"
        );
        let parameters = &[
            (&session_key(id) as _, Type::BYTEA),
            (&TextParameter(status) as _, Type::TEXT),
            (&limit(answers) as _, Type::INT8),
        ];
        self.one(&sql, parameters, Concern::default(), |row| count(row, 0)).await
    }

    async fn earlier_state(&self, id: &str, revision: u64) -> Result<Option<EarlierState>, StoreError> {
        let (key, number) = (session_key(id), limit(revision));
        let parameters: &[Parameter<'_>] = &[(&key, Type::BYTEA), (&number, Type::INT8)];
        let sql = format!(
            "SELECT status, answers, last_seq, location, head FROM bcc_script.replaced_head
             WHERE session = {OF_SESSION} AND revision = $2"
        );
        let head = self.one(&sql, parameters, Concern::default(), replaced_head).await?;
        let Some(head) = head else { return Ok(None) };
        let sql = format!(
            "SELECT key::text, row::text FROM bcc_script.replaced
             WHERE session = {OF_SESSION} AND revision >= $2 ORDER BY revision"
        );
        let read = |row: &Row| Ok((row.try_get::<_, String>(0)?, row.try_get::<_, Option<String>>(1)?));
        let mut replaced: Vec<(RowKey, Option<ReplacedRow>)> = vec![];
        for (key, row) in self.all(&sql, parameters, read).await? {
            replaced.push((self.parsed(&key)?, row.map(|row| self.parsed(&row)).transpose()?));
        }
        Ok(Some(head.with_rows(revision, replaced.into_iter())))
    }

    async fn requests(&self, id: &str) -> Result<Vec<RequestRow>, StoreError> {
        let sql = format!("SELECT {REQUEST} FROM bcc_script.request AS r WHERE session = {OF_SESSION} ORDER BY r.id");
        self.all(&sql, &[(&session_key(id), Type::BYTEA)], request_row).await
    }

    async fn open_requests(&self, due_before: Option<&str>) -> Result<Vec<OpenRequest>, StoreError> {
        let open = format!(
            "SELECT {REQUEST}, s.id FROM bcc_script.request AS r JOIN bcc_script.session AS s ON s.key = r.session
             WHERE r.answered_at IS NULL"
        );
        match due_before {
            None => self.all(&format!("{open} ORDER BY s.id, r.id"), &[], open_request).await,
            Some(before) => {
                let sql = format!(
                    "{open} AND r.due_at IS NOT NULL AND rtrim(r.due_at, 'Z') < rtrim($1, 'Z')
                     ORDER BY rtrim(r.due_at, 'Z'), s.id, r.id"
                );
                self.all(&sql, &[(&TextParameter(before), Type::TEXT)], open_request).await
            }
        }
    }

    async fn claim_due(&self, before: &str, at_most: usize) -> Result<Vec<String>, StoreError> {
        // What another process is just claiming is left to it, and what it has claimed as well.
        let sql = &format!(
            "UPDATE bcc_script.request AS r SET claimed_until = clock_timestamp() + make_interval(secs => $3)
            FROM (
                SELECT r.session, r.id FROM bcc_script.request AS r
                WHERE r.answered_at IS NULL AND r.due_at IS NOT NULL AND rtrim(r.due_at, 'Z') < rtrim($1, 'Z')
                    AND (r.claimed_until IS NULL OR r.claimed_until < clock_timestamp())
                ORDER BY rtrim(r.due_at, 'Z') LIMIT $2 FOR UPDATE SKIP LOCKED
            ) AS due JOIN bcc_script.session AS s ON s.key = due.session
            WHERE r.session = due.session AND r.id = due.id AND {} RETURNING s.id",
            is_known()
        );
        let parameters = &[
            (&TextParameter(before) as _, Type::TEXT),
            (&limit(at_most) as _, Type::INT8),
            (&CLAIM_SECONDS as _, Type::FLOAT8),
        ];
        let mut ids = self.all(sql, parameters, |row| text(row, 0)).await?;
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    async fn text(&self, id: &str, sha256: &str) -> Result<Option<String>, StoreError> {
        let sql = format!("SELECT text FROM bcc_script.stored_text WHERE session = {OF_SESSION} AND sha256 = $2");
        let parameters = &[(&session_key(id) as _, Type::BYTEA), (&TextParameter(sha256) as _, Type::TEXT)];
        self.one(&sql, parameters, Concern::default(), |row| text(row, 0)).await
    }

    async fn has_text(&self, id: &str, sha256: &str) -> Result<bool, StoreError> {
        let sql = format!("SELECT true FROM bcc_script.stored_text WHERE session = {OF_SESSION} AND sha256 = $2");
        let parameters = &[(&session_key(id) as _, Type::BYTEA), (&TextParameter(sha256) as _, Type::TEXT)];
        let found = self.one(&sql, parameters, Concern::default(), |row| row.try_get::<_, bool>(0)).await?;
        Ok(found.unwrap_or(false))
    }

    async fn document(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT text FROM bcc_script.document WHERE sha256 = $1";
        self.one(sql, &[(&TextParameter(sha256), Type::TEXT)], Concern::default(), |row| text(row, 0)).await
    }

    async fn documents(&self, hashes: &[String]) -> Result<BTreeMap<String, String>, StoreError> {
        let hashes: Vec<TextParameter<'_>> = hashes.iter().map(|sha256| TextParameter(sha256)).collect();
        let sql = "SELECT sha256, text FROM bcc_script.document WHERE sha256 = ANY ($1)";
        let rows = self.all(sql, &[(&hashes, Type::TEXT_ARRAY)], |row| Ok((text(row, 0)?, text(row, 1)?))).await?;
        Ok(rows.into_iter().collect())
    }

    async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let _lease = self.lease(id, DELETION_HOLDER).await?;
        self.remove(id, None).await
    }

    async fn prune(&self, updated_before: &str) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT s.id FROM bcc_script.session AS s JOIN bcc_script.head AS h ON h.session = s.key
            WHERE rtrim(h.updated_at, 'Z') < rtrim($1, 'Z') ORDER BY rtrim(h.updated_at, 'Z'), s.id";
        let outdated = self.all(sql, &[(&TextParameter(updated_before), Type::TEXT)], |row| text(row, 0)).await?;
        let mut deleted = Vec::new();
        for id in outdated {
            let _lease = match self.lease(&id, DELETION_HOLDER).await {
                Err(StoreError::Held { .. }) => continue,
                other => other?,
            };
            if self.remove(&id, Some(updated_before)).await? {
                deleted.push(id);
            }
        }
        Ok(deleted)
    }

    async fn lock(&self, id: &str, holder: &str) -> Result<Arc<dyn SessionLock>, StoreError> {
        self.lease(id, holder).await
    }

    async fn check_files(&self) -> Result<(), StoreError> {
        let sql = if_known("SELECT 1");
        let asked = self.database.rows(&sql, &[], Concern::default());
        match tokio::time::timeout(CHECK_TIME, asked).await {
            Ok(rows) => rows.map(drop),
            Err(_) => Err(no_answer(self.name())),
        }
    }

    async fn ask_for(&self, id: &str, request: LockRequest) -> Result<LockReply, StoreError> {
        self.leases.ask_for(&session_key(id), request).await
    }
}
