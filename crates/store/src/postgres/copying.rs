//! Reads and writes copies of sessions and plans.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::Serialize;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use crate::contract::Store;
use crate::copying::{HiddenRows, KeptEdit, PlanCopy, ReplacedState, SessionCopy, StoreCopying};
use crate::error::StoreError;
use crate::link_rows::{LinkRow, LinkTalkRow};
use crate::plan_contract::PlanStore;
use crate::postgres::client::{Parameter, StatementFailure, TransactionWrites, in_time};
use crate::postgres::error::Concern;
use crate::postgres::read::{count, limit, text};
use crate::postgres::schema::is_known;
use crate::postgres::store::{OF_SESSION, PostgresStore, replaced_head, session_key};
use crate::postgres::text::TextParameter;
use crate::postgres::write::{self, CopiedTexts, json};
use crate::replaced::{ReplacedHead, ReplacedRow, RowKey};
use crate::rows::{DocumentRow, VariableRow};

/// A replaced head, as the database takes it.
#[derive(Serialize)]
pub(crate) struct HeadOf<'c> {
    revision: u64,
    #[serde(flatten)]
    head: &'c ReplacedHead,
}

/// A replaced row, as the database takes it.
#[derive(Serialize)]
pub(crate) struct RowOf<'c> {
    revision: u64,
    key: &'c RowKey,
    row: &'c Option<ReplacedRow>,
}

/// A link and the columns of its conversations.
struct CopiedLink<'c> {
    link: &'c LinkRow,
    secrets: Vec<TextParameter<'c>>,
    sessions: Vec<TextParameter<'c>>,
    began_at: Vec<TextParameter<'c>>,
    consents: Vec<Option<TextParameter<'c>>>,
    are_started: Vec<bool>,
    withdrawn_at: Vec<Option<TextParameter<'c>>>,
}

impl<'c> CopiedLink<'c> {
    fn new(link: &'c LinkRow, talks: &'c [LinkTalkRow]) -> Self {
        Self {
            link,
            secrets: talks.iter().map(|talk| TextParameter(&talk.secret_sha256)).collect(),
            sessions: talks.iter().map(|talk| TextParameter(&talk.session)).collect(),
            began_at: talks.iter().map(|talk| TextParameter(&talk.began_at)).collect(),
            consents: talks.iter().map(|talk| talk.consent.as_deref().map(TextParameter)).collect(),
            are_started: talks.iter().map(|talk| talk.is_started).collect(),
            withdrawn_at: talks.iter().map(|talk| talk.withdrawn_at.as_deref().map(TextParameter)).collect(),
        }
    }
}

#[async_trait]
impl TransactionWrites for CopiedLink<'_> {
    async fn send(&self, client: &Client) -> Result<(), StatementFailure> {
        let (id, token) = (TextParameter(&self.link.id), TextParameter(&self.link.token_sha256));
        let (created_at, body) = (TextParameter(&self.link.created_at), TextParameter(&self.link.body));
        let expires_at = self.link.expires_at.as_deref().map(TextParameter);
        let revoked_at = self.link.revoked_at.as_deref().map(TextParameter);
        let sql = format!(
            "INSERT INTO bcc_script.link (id, token_sha256, created_at, expires_at, revoked_at, body)
            SELECT $1, $2, $3, $4, $5, $6 WHERE {} ON CONFLICT DO NOTHING",
            is_known()
        );
        let parameters: &[Parameter<'_>] = &[
            (&id, Type::TEXT),
            (&token, Type::TEXT),
            (&created_at, Type::TEXT),
            (&expires_at, Type::TEXT),
            (&revoked_at, Type::TEXT),
            (&body, Type::TEXT),
        ];
        in_time(client.query_typed(&sql, parameters)).await?;
        // Until the end of the transaction, no conversation begins by it.
        let sql = "UPDATE bcc_script.link SET revoked_at = coalesce(revoked_at, $3) WHERE id = $1 AND token_sha256 = $2
            RETURNING id";
        let parameters: &[Parameter<'_>] = &[(&id, Type::TEXT), (&token, Type::TEXT), (&revoked_at, Type::TEXT)];
        if in_time(client.query_typed(sql, parameters)).await?.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO bcc_script.talk AS t
                (link, secret_sha256, session, began_at, consent, is_started, withdrawn_at)
            SELECT $1, * FROM unnest($2, $3, $4, $5, $6, $7)
            ON CONFLICT (link, secret_sha256) DO UPDATE SET is_started = t.is_started OR excluded.is_started,
                withdrawn_at = coalesce(t.withdrawn_at, excluded.withdrawn_at)
            WHERE t.session = excluded.session";
        let parameters: &[Parameter<'_>] = &[
            (&id, Type::TEXT),
            (&self.secrets, Type::TEXT_ARRAY),
            (&self.sessions, Type::TEXT_ARRAY),
            (&self.began_at, Type::TEXT_ARRAY),
            (&self.consents, Type::TEXT_ARRAY),
            (&self.are_started, Type::BOOL_ARRAY),
            (&self.withdrawn_at, Type::TEXT_ARRAY),
        ];
        in_time(client.query_typed(sql, parameters)).await?;
        Ok(())
    }
}

#[async_trait]
impl StoreCopying for PostgresStore {
    async fn hidden_rows(&self, id: &str) -> Result<HiddenRows, StoreError> {
        let key = session_key(id);
        let parameters = &[(&key as _, Type::BYTEA)];
        let sql = format!(
            "SELECT d.sha256, d.text FROM bcc_script.session_document AS s
             JOIN bcc_script.document AS d ON d.sha256 = s.document WHERE s.session = {OF_SESSION} ORDER BY d.sha256"
        );
        let read = |row: &Row| Ok(DocumentRow { sha256: text(row, 0)?, text: text(row, 1)? });
        let documents = self.all(&sql, parameters, read).await?;
        let sql = format!("SELECT id FROM bcc_script.answer WHERE session = {OF_SESSION} ORDER BY id");
        let answers = self.all(&sql, parameters, |row| text(row, 0)).await?;
        let sql = format!("SELECT sha256 FROM bcc_script.stored_text WHERE session = {OF_SESSION} ORDER BY sha256");
        let texts = self.all(&sql, parameters, |row| text(row, 0)).await?;
        let sql = format!(
            "SELECT status, answers, last_seq, location, head, revision FROM bcc_script.replaced_head
             WHERE session = {OF_SESSION} ORDER BY revision"
        );
        let heads = self.all(&sql, parameters, |row| Ok((replaced_head(row)?, count(row, 5)?))).await?;
        let sql = format!(
            "SELECT revision, key::text, row::text FROM bcc_script.replaced WHERE session = {OF_SESSION} ORDER BY revision"
        );
        let read = |row: &Row| Ok((count(row, 0)?, row.try_get::<_, String>(1)?, row.try_get::<_, Option<String>>(2)?));
        let mut rows: BTreeMap<u64, Vec<(RowKey, Option<ReplacedRow>)>> = BTreeMap::new();
        for (revision, key, row) in self.all(&sql, parameters, read).await? {
            let row = row.map(|row| self.parsed(&row)).transpose()?;
            rows.entry(revision).or_default().push((self.parsed(&key)?, row));
        }
        let replaced = heads.into_iter().map(|(head, revision)| {
            let mut rows = rows.remove(&revision).unwrap_or_default();
            rows.sort_by(|(a, _), (b, _)| a.cmp(b));
            ReplacedState { revision, head, rows }
        });
        Ok(HiddenRows { documents, answers, texts, replaced: replaced.collect() })
    }

    async fn put_session(&self, copy: SessionCopy, from: &dyn Store) -> Result<(), StoreError> {
        let store = self.database.name.as_str();
        let states = &copy.hidden.replaced;
        let heads: Vec<_> = states.iter().map(|state| HeadOf { revision: state.revision, head: &state.head }).collect();
        let rows = states
            .iter()
            .flat_map(|state| state.rows.iter().map(|(key, row)| RowOf { revision: state.revision, key, row }));
        let rows: Vec<_> = rows.collect();
        let history = write::CopiedHistory {
            revision: limit(copy.row.revision),
            heads: json(store, &heads)?,
            rows: json(store, &rows)?,
        };
        let key = session_key(&copy.row.id);
        let (new, documents) = (copy.new_row(), &copy.hidden.documents);
        let texts = CopiedTexts::Of { store: from, hashes: &copy.hidden.texts };
        write::create(&self.database, &key, &new, documents, &copy.rows, Some(&history), Some(texts)).await
    }

    async fn users(&self) -> Result<Vec<String>, StoreError> {
        let sql =
            "SELECT user_name FROM bcc_script.user_variable UNION SELECT user_name FROM bcc_script.plan ORDER BY 1";
        self.all(sql, &[], |row| text(row, 0)).await
    }

    async fn put_user_variables(&self, user: &str, rows: &[VariableRow]) -> Result<(), StoreError> {
        let rows = json(&self.database.name, &rows)?;
        let sql = &format!(
            "INSERT INTO bcc_script.user_variable AS v
            SELECT $1, scope, path, name, value, source, round, at, sensitive FROM jsonb_to_recordset($2::text::jsonb)
                AS x(scope text, path text, name text, value text, source text, round bigint, at text, sensitive boolean)
            WHERE {}
            ON CONFLICT (user_name, scope, path, name) DO UPDATE SET value = excluded.value, source = excluded.source,
                round = excluded.round, at = excluded.at, sensitive = excluded.sensitive
            WHERE rtrim(v.at, 'Z') < rtrim(excluded.at, 'Z')",
            is_known()
        );
        let parameters = &[(&TextParameter(user) as _, Type::TEXT), (&rows as _, Type::TEXT)];
        self.database.rows(sql, parameters, Concern::default()).await?;
        Ok(())
    }

    async fn plan_copy(&self, plan: u64) -> Result<Option<PlanCopy>, StoreError> {
        let Some(stored) = self.plan_tasks(plan).await? else { return Ok(None) };
        let sql = "SELECT number, key, result FROM bcc_script.plan_edit WHERE plan = $1 ORDER BY number";
        let read = |row: &Row| Ok(KeptEdit { number: count(row, 0)?, key: text(row, 1)?, result: text(row, 2)? });
        let edits = self.all(sql, &[(&limit(plan), Type::INT8)], read).await?;
        Ok(Some(PlanCopy { stored, edits }))
    }

    async fn put_plan(&self, copy: &PlanCopy) -> Result<bool, StoreError> {
        let plan = &copy.stored.plan;
        let columns = self.columns(&copy.stored.tasks)?;
        let numbers: Vec<i64> = copy.edits.iter().map(|edit| limit(edit.number)).collect();
        let keys: Vec<_> = copy.edits.iter().map(|edit| TextParameter(&edit.key)).collect();
        let results: Vec<_> = copy.edits.iter().map(|edit| TextParameter(&edit.result)).collect();
        let sql = &format!(
            "SELECT bcc_script.put_plan($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
            WHERE {} AND NOT EXISTS (SELECT FROM bcc_script.plan_edit WHERE key = ANY ($14))",
            is_known()
        );
        let parameters = &[
            (&self.number(plan.id)? as _, Type::INT8),
            (&TextParameter(&plan.user) as _, Type::TEXT),
            (&self.number(plan.revision)? as _, Type::INT8),
            (&TextParameter(&plan.status) as _, Type::TEXT),
            (&TextParameter(&plan.title) as _, Type::TEXT),
            (&TextParameter(&plan.created_at) as _, Type::TEXT),
            (&TextParameter(&plan.updated_at) as _, Type::TEXT),
            (&TextParameter(&plan.body) as _, Type::TEXT),
            (&columns.id as _, Type::INT8_ARRAY),
            (&columns.parent as _, Type::INT8_ARRAY),
            (&columns.rank as _, Type::INT8_ARRAY),
            (&columns.body as _, Type::TEXT_ARRAY),
            (&numbers as _, Type::INT8_ARRAY),
            (&keys as _, Type::TEXT_ARRAY),
            (&results as _, Type::TEXT_ARRAY),
        ];
        match self.database.row(sql, parameters, Concern { plan: plan.id, ..Concern::default() }).await {
            Ok(row) => Ok(row.is_some()),
            Err(StoreError::PlanExists { .. } | StoreError::PlanTaskExists { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn put_link(&self, link: &LinkRow, talks: &[LinkTalkRow]) -> Result<bool, StoreError> {
        let copy = CopiedLink::new(link, talks);
        self.database.in_transaction(Concern::default(), &copy).await?;
        let sql = "SELECT EXISTS (SELECT FROM bcc_script.link WHERE id = $1 AND token_sha256 = $2)
            AND NOT EXISTS (
                SELECT FROM unnest($3, $4) AS x(secret, session) WHERE NOT EXISTS (
                    SELECT FROM bcc_script.talk AS t
                    WHERE t.link = $1 AND t.secret_sha256 = x.secret AND t.session = x.session
                )
            )";
        let parameters = &[
            (&TextParameter(&link.id) as _, Type::TEXT),
            (&TextParameter(&link.token_sha256) as _, Type::TEXT),
            (&copy.secrets as _, Type::TEXT_ARRAY),
            (&copy.sessions as _, Type::TEXT_ARRAY),
        ];
        Ok(self.one(sql, parameters, Concern::default(), |row| row.try_get(0)).await?.unwrap_or(false))
    }
}
