//! Reads and writes copies of sessions and plans.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::contract::Store;
use crate::copying::{HiddenRows, KeptEdit, PlanCopy, ReplacedState, SessionCopy, StoreCopying};
use crate::error::StoreError;
use crate::plan_contract::PlanStore;
use crate::postgres::error::Concern;
use crate::postgres::read::{count, limit, text};
use crate::postgres::schema::{if_known, is_known};
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

    async fn put_plan(&self, copy: &PlanCopy) -> Result<(), StoreError> {
        let plan = &copy.stored.plan;
        let columns = self.columns(&copy.stored.tasks)?;
        let numbers: Vec<i64> = copy.edits.iter().map(|edit| limit(edit.number)).collect();
        let keys: Vec<_> = copy.edits.iter().map(|edit| TextParameter(&edit.key)).collect();
        let results: Vec<_> = copy.edits.iter().map(|edit| TextParameter(&edit.result)).collect();
        let sql =
            &if_known("SELECT bcc_script.put_plan($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)");
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
        self.database.rows(sql, parameters, Concern { plan: plan.id, ..Concern::default() }).await?;
        Ok(())
    }
}
