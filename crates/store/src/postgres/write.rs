//! Writes sessions and commits: what `functions_1.sql` takes.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::Serialize;
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::contract::Store;
use crate::error::StoreError;
use crate::postgres::client::{Database, Parameter, StatementFailure, TransactionWrites, in_time};
use crate::postgres::error::{Concern, no_json};
use crate::postgres::schema::if_known;
use crate::postgres::store::session_key;
use crate::postgres::text::{TextParameter, escaped_json};
use crate::rows::{
    CellRow, Commit, CounterRow, DocumentRow, FrameRow, MessageRow, NewSessionRow, RequestRow, SharedTexts,
    VariableKey, VariableRow,
};
use crate::tail::Tail;

/// The rows of a commit, without those that are passed as lists of their columns. A row that is written twice is written as it is last.
#[derive(Serialize)]
struct CommitRows<'c> {
    revision: u64,
    status: &'c str,
    updated_at: &'c str,
    location: &'c str,
    head: &'c str,
    answers: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    frames_put: Vec<&'c FrameRow>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    frames_removed: &'c [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    variables_put: Vec<&'c VariableRow>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    variables_removed: &'c [VariableKey],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    user_variables_put: Vec<&'c VariableRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counters_put: Vec<&'c CounterRow>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    counters_removed: &'c [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    messages_kept: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    messages: &'c [MessageRow],
    #[serde(skip_serializing_if = "Option::is_none")]
    cells_kept: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    cells_put: &'c [CellRow],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    answer_ids: &'c [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests_put: Vec<&'c RequestRow>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    requests_removed: &'c [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    requests_answered: &'c [String],
    /// Of commits that are written together, which are not answered at `updated_at`.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    answered: &'c [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_at: Option<&'c str>,
}

/// The last row of each key, sorted by key.
fn last_of_each<'r, R, K: Ord>(rows: &'r [R], key: impl Fn(&'r R) -> K) -> Vec<&'r R> {
    rows.iter().map(|row| (key(row), row)).collect::<BTreeMap<_, _>>().into_values().collect()
}

fn variable_key(row: &VariableRow) -> (&str, &str, &str) {
    (&row.scope, &row.path, &row.name)
}

/// The kept numbers of messages and cells are limits: beyond what the database can hold, everything is kept.
fn kept(number: Option<u64>) -> Option<u64> {
    number.map(|number| number.min(i64::MAX.unsigned_abs()))
}

impl<'c> CommitRows<'c> {
    fn new(commit: &'c Commit) -> Self {
        Self {
            // No session has a revision that the database cannot hold.
            revision: commit.revision.min(i64::MAX.unsigned_abs()),
            status: &commit.status,
            updated_at: &commit.updated_at,
            location: &commit.location,
            head: &commit.head,
            answers: commit.answers,
            frames_put: last_of_each(&commit.frames_put, |row| &row.key),
            frames_removed: &commit.frames_removed,
            variables_put: last_of_each(&commit.variables_put, variable_key),
            variables_removed: &commit.variables_removed,
            user_variables_put: last_of_each(&commit.user_variables_put, variable_key),
            counters_put: last_of_each(&commit.counters_put, |row| &row.name),
            counters_removed: &commit.counters_removed,
            messages_kept: kept(commit.messages_kept),
            messages: &commit.messages,
            cells_kept: kept(commit.cells_kept),
            cells_put: &commit.cells_put,
            answer_ids: &commit.answer_ids,
            requests_put: last_of_each(&commit.requests_put, |row| &row.id),
            requests_removed: &commit.requests_removed,
            requests_answered: &commit.requests_answered,
            answered: &[],
            answered_at: None,
        }
    }
}

/// The part of a new session that is written once.
#[derive(Serialize)]
struct SessionColumns<'s> {
    id: &'s str,
    user: &'s str,
    script: &'s str,
    script_name: Option<&'s str>,
    script_sha256: &'s str,
    started_at: &'s str,
    settings: &'s str,
    manifest: &'s str,
}

/// The columns of the events and texts of a commit.
pub(crate) struct CommitColumns<'c> {
    pub(crate) rows: String,
    pub(crate) at: Vec<TextParameter<'c>>,
    pub(crate) kind: Vec<TextParameter<'c>>,
    pub(crate) body: Vec<TextParameter<'c>>,
    pub(crate) sha256: Vec<TextParameter<'c>>,
    pub(crate) text: Vec<TextParameter<'c>>,
}

impl<'c> CommitColumns<'c> {
    pub(crate) fn new(store: &str, commit: &'c Commit, answered_at: Option<&'c str>) -> Result<Self, StoreError> {
        let mut rows = CommitRows::new(commit);
        if answered_at.is_some() {
            rows = CommitRows { answered: std::mem::take(&mut rows.requests_answered), answered_at, ..rows };
        }
        Ok(Self {
            rows: json(store, &rows)?,
            at: commit.journal.iter().map(|row| TextParameter(&row.at)).collect(),
            kind: commit.journal.iter().map(|row| TextParameter(&row.kind)).collect(),
            body: commit.journal.iter().map(|row| TextParameter(&row.body)).collect(),
            sha256: commit.texts.iter().map(|row| TextParameter(&row.sha256)).collect(),
            text: commit.texts.iter().map(|row| TextParameter(&row.text)).collect(),
        })
    }
}

/// JSON as the database takes it.
pub(crate) fn json(store: &str, value: &impl Serialize) -> Result<String, StoreError> {
    let json = serde_json::to_string(value).and_then(escaped_json);
    json.map_err(|_| no_json(store))
}

/// A number that identifies a commit or a lease: by chance, no other one has it.
pub(crate) fn random_number() -> i64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    (high ^ low.rotate_left(32)).cast_signed()
}

/// The number before the first row, if rows of this numbering are written.
pub(crate) fn before(first: Option<u64>) -> Option<i64> {
    first.map(|first| i64::try_from(first).map_or(i64::MAX, |first| first.saturating_sub(1)))
}

/// Checks that the events and messages of a commit are numbered without gaps, from wherever they begin. The database compares their
/// beginnings with the rows that it has.
pub(crate) fn check_numbering(store: &str, id: &str, commit: &Commit) -> Result<(), StoreError> {
    let before = |first: Option<u64>| first.map_or(0, |first| first.saturating_sub(1));
    let first = Tail {
        revision: commit.revision,
        last_seq: before(commit.journal.first().map(|row| row.seq)),
        last_message: before(commit.messages.first().map(|row| row.number)),
    };
    first.after(store, id, commit).map(|_| ())
}

/// The revision of a session that is copied, and what its commits replaced, as JSON.
pub(crate) struct CopiedHistory {
    pub(crate) revision: i64,
    pub(crate) heads: String,
    pub(crate) rows: String,
}

/// Where the texts of a new session are that are not in its first commit. They are written one at a time, or by the database: all of them
/// may not fit into memory.
pub(crate) enum CopiedTexts<'t> {
    /// In another session of the database.
    Shared(&'t SharedTexts),
    /// In the session with the same id of another store.
    Of { store: &'t dyn Store, hashes: &'t [String] },
}

impl CopiedTexts<'_> {
    const fn is_empty(&self) -> bool {
        match self {
            Self::Shared(shared) => shared.hashes.is_empty(),
            Self::Of { hashes, .. } => hashes.is_empty(),
        }
    }
}

/// A session that is created with its texts.
struct SessionWithTexts<'w> {
    name: &'w str,
    id: &'w str,
    key: &'w [u8],
    sql: &'w str,
    parameters: &'w [Parameter<'w>],
    texts: CopiedTexts<'w>,
}

#[async_trait]
impl TransactionWrites for SessionWithTexts<'_> {
    async fn send(&self, client: &Client) -> Result<(), StatementFailure> {
        in_time(client.query_typed(self.sql, self.parameters)).await?;
        match &self.texts {
            CopiedTexts::Shared(shared) => {
                let from = session_key(&shared.session);
                // Until the end of the transaction, nobody removes it.
                let sql = "SELECT key FROM bcc_script.session WHERE id_sha256 = $1 FOR KEY SHARE";
                if in_time(client.query_typed(sql, &[(&from, Type::BYTEA)])).await?.is_empty() {
                    let (store, id) = (self.name.to_owned(), shared.session.clone());
                    return Err(StatementFailure::Store(StoreError::NotFound { store, id }));
                }
                let sql = "INSERT INTO bcc_script.stored_text
                    SELECT new.key, t.sha256, t.text FROM bcc_script.session AS new, bcc_script.session AS source
                    JOIN bcc_script.stored_text AS t ON t.session = source.key
                    WHERE new.id_sha256 = $1 AND source.id_sha256 = $2 AND t.sha256 = ANY ($3)
                    ON CONFLICT DO NOTHING";
                let hashes: Vec<_> = shared.hashes.iter().map(|hash| TextParameter(hash)).collect();
                let parameters: &[Parameter<'_>] =
                    &[(&self.key, Type::BYTEA), (&from, Type::BYTEA), (&hashes, Type::TEXT_ARRAY)];
                in_time(client.query_typed(sql, parameters)).await?;
            }
            CopiedTexts::Of { store, hashes } => {
                let sql = "INSERT INTO bcc_script.stored_text
                    SELECT key, $2, $3 FROM bcc_script.session WHERE id_sha256 = $1 ON CONFLICT DO NOTHING";
                for hash in *hashes {
                    let Some(text) = store.text(self.id, hash).await.map_err(StatementFailure::Store)? else {
                        continue;
                    };
                    let (hash, text) = (TextParameter(hash), TextParameter(&text));
                    let parameters: &[Parameter<'_>] =
                        &[(&self.key, Type::BYTEA), (&hash, Type::TEXT), (&text, Type::TEXT)];
                    in_time(client.query_typed(sql, parameters)).await?;
                }
            }
        }
        Ok(())
    }
}

pub(crate) async fn create(
    database: &Database,
    key: &[u8],
    session: &NewSessionRow,
    documents: &[DocumentRow],
    first: &Commit,
    history: Option<&CopiedHistory>,
    texts: Option<CopiedTexts<'_>>,
) -> Result<(), StoreError> {
    let store = database.name.as_str();
    Tail::default().after(store, &session.id, first)?;
    let columns = CommitColumns::new(store, first, None)?;
    let session_columns = SessionColumns {
        id: &session.id,
        user: &session.user,
        script: &session.script,
        script_name: session.script_name.as_deref(),
        script_sha256: &session.script_sha256,
        started_at: &session.started_at,
        settings: &session.settings,
        manifest: &session.manifest,
    };
    let session_columns = json(store, &session_columns)?;
    let (commit, documents): (i64, Vec<_>) = (
        random_number(),
        documents.iter().map(|document| (TextParameter(&document.sha256), TextParameter(&document.text))).collect(),
    );
    let (names, contents): (Vec<TextParameter<'_>>, Vec<TextParameter<'_>>) = documents.into_iter().unzip();
    let sql = &if_known(
        "SELECT bcc_script.create_session($1, $2, $3::text::jsonb, $4, $5, $6::text::jsonb, $7, $8, $9, $10, $11,
        $12, $13::text::jsonb, $14::text::jsonb)",
    );
    let (revision, heads, replaced) =
        history.map_or((1, "[]", "[]"), |history| (history.revision, &history.heads, &history.rows));
    let parameters: &[Parameter<'_>] = &[
        (&key, Type::BYTEA),
        (&commit, Type::INT8),
        (&session_columns, Type::TEXT),
        (&names, Type::TEXT_ARRAY),
        (&contents, Type::TEXT_ARRAY),
        (&columns.rows, Type::TEXT),
        (&columns.at, Type::TEXT_ARRAY),
        (&columns.kind, Type::TEXT_ARRAY),
        (&columns.body, Type::TEXT_ARRAY),
        (&columns.sha256, Type::TEXT_ARRAY),
        (&columns.text, Type::TEXT_ARRAY),
        (&revision, Type::INT8),
        (&heads, Type::TEXT),
        (&replaced, Type::TEXT),
    ];
    let concern = Concern { session: &session.id, ..Concern::default() };
    // One statement is enough without them.
    match texts.filter(|texts| !texts.is_empty()) {
        Some(texts) => {
            let written = SessionWithTexts { name: store, id: &session.id, key, sql, parameters, texts };
            database.in_transaction(concern, &written).await
        }
        None => database.rows(sql, parameters, concern).await.map(drop),
    }
}

pub(crate) async fn commit(
    database: &Database,
    key: &[u8],
    id: &str,
    token: Option<i64>,
    commit: &Commit,
) -> Result<(), StoreError> {
    let store = database.name.as_str();
    check_numbering(store, id, commit)?;
    let columns = CommitColumns::new(store, commit, None)?;
    let number = random_number();
    let last_seq = before(commit.journal.first().map(|row| row.seq));
    let last_message = before(commit.messages.first().map(|row| row.number));
    let sql = &if_known("SELECT bcc_script.commit_session($1, $2, $3, $4, $5, $6::text::jsonb, $7, $8, $9, $10, $11)");
    database
        .rows(
            sql,
            &[
                (&key, Type::BYTEA),
                (&token, Type::INT8),
                (&number, Type::INT8),
                (&last_seq, Type::INT8),
                (&last_message, Type::INT8),
                (&columns.rows, Type::TEXT),
                (&columns.at, Type::TEXT_ARRAY),
                (&columns.kind, Type::TEXT_ARRAY),
                (&columns.body, Type::TEXT_ARRAY),
                (&columns.sha256, Type::TEXT_ARRAY),
                (&columns.text, Type::TEXT_ARRAY),
            ],
            Concern { session: id, revision: commit.revision, ..Concern::default() },
        )
        .await?;
    Ok(())
}
