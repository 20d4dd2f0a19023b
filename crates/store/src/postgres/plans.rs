//! The plans of a PostgreSQL store.

use async_trait::async_trait;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::StoreError;
use crate::plan_contract::PlanStore;
use crate::plan_rows::{MAX_PLAN_EDITS, PlanEditOutcome, PlanEditRow, PlanRow, PlanTaskRow, StoredPlan};
use crate::postgres::error::Concern;
use crate::postgres::read::{RowResult, count, limit, optional_text, text};
use crate::postgres::schema::if_known;
use crate::postgres::store::PostgresStore;
use crate::postgres::text::TextParameter;

const PLAN: &str = "SELECT id, user_name, revision, status, title, created_at, updated_at, body FROM bcc_script.plan";

fn plan_row(row: &Row) -> RowResult<PlanRow> {
    Ok(PlanRow {
        id: count(row, 0)?,
        user: text(row, 1)?,
        revision: count(row, 2)?,
        status: text(row, 3)?,
        title: text(row, 4)?,
        created_at: text(row, 5)?,
        updated_at: text(row, 6)?,
        body: text(row, 7)?,
    })
}

fn task_row(row: &Row) -> RowResult<PlanTaskRow> {
    let parent = row.try_get::<_, Option<i64>>(1)?.map(i64::unsigned_abs);
    Ok(PlanTaskRow { id: count(row, 0)?, parent, rank: row.try_get(2)?, body: text(row, 3)? })
}

/// An id that somebody named, for a search. What the database cannot hold is not in it.
fn sought(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(-1)
}

/// The tasks of an edit, by column.
pub(crate) struct TaskColumns<'t> {
    pub(crate) id: Vec<i64>,
    pub(crate) parent: Vec<Option<i64>>,
    pub(crate) rank: Vec<i64>,
    pub(crate) body: Vec<TextParameter<'t>>,
}

impl PostgresStore {
    /// A number to store.
    pub(crate) fn number(&self, number: u64) -> Result<i64, StoreError> {
        i64::try_from(number).map_err(|_| StoreError::TooLarge { store: self.database.name.clone() })
    }

    /// The columns of tasks. One that is put twice is written as it is last.
    pub(crate) fn columns<'t>(&self, tasks: &'t [PlanTaskRow]) -> Result<TaskColumns<'t>, StoreError> {
        let mut columns = TaskColumns { id: vec![], parent: vec![], rank: vec![], body: vec![] };
        let last: std::collections::BTreeMap<u64, &PlanTaskRow> = tasks.iter().map(|task| (task.id, task)).collect();
        for task in last.into_values() {
            columns.id.push(self.number(task.id)?);
            columns.parent.push(task.parent.map(|parent| self.number(parent)).transpose()?);
            columns.rank.push(task.rank);
            columns.body.push(TextParameter(&task.body));
        }
        Ok(columns)
    }

    /// The outcome of an edit, from the result of an earlier one with its key.
    async fn edited(
        &self,
        sql: &str,
        parameters: &[crate::postgres::client::Parameter<'_>],
        concern: Concern<'_>,
    ) -> Result<PlanEditOutcome, StoreError> {
        let earlier = self.one(sql, parameters, concern, |row| optional_text(row, 0)).await?;
        Ok(earlier.flatten().map_or(PlanEditOutcome::Applied, |result| PlanEditOutcome::Repeated { result }))
    }
}

#[async_trait]
impl PlanStore for PostgresStore {
    async fn plans(&self, user: &str) -> Result<Vec<PlanRow>, StoreError> {
        let sql = format!("{PLAN} WHERE user_name = $1 ORDER BY id");
        self.all(&sql, &[(&TextParameter(user), Type::TEXT)], plan_row).await
    }

    async fn plan(&self, plan: u64) -> Result<Option<PlanRow>, StoreError> {
        let sql = format!("{PLAN} WHERE id = $1");
        self.one(&sql, &[(&sought(plan), Type::INT8)], Concern::default(), plan_row).await
    }

    async fn plan_tasks(&self, plan: u64) -> Result<Option<StoredPlan>, StoreError> {
        // One statement, so that both are of one revision.
        let sql =
            "SELECT t.id, t.parent, t.rank, t.body, p.id, p.user_name, p.revision, p.status, p.title, p.created_at,
                p.updated_at, p.body
            FROM bcc_script.plan AS p LEFT JOIN bcc_script.plan_task AS t ON t.plan = p.id
            WHERE p.id = $1 ORDER BY t.rank, t.id";
        let rows = self.database.rows(sql, &[(&sought(plan), Type::INT8)], Concern::default()).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let read = || -> RowResult<StoredPlan> {
            let plan = PlanRow {
                id: count(first, 4)?,
                user: text(first, 5)?,
                revision: count(first, 6)?,
                status: text(first, 7)?,
                title: text(first, 8)?,
                created_at: text(first, 9)?,
                updated_at: text(first, 10)?,
                body: text(first, 11)?,
            };
            let has_task = |row: &&Row| row.try_get::<_, Option<i64>>(0).is_ok_and(|id| id.is_some());
            let tasks = rows.iter().filter(has_task).map(task_row).collect::<RowResult<_>>()?;
            Ok(StoredPlan { plan, tasks })
        };
        read().map(Some).map_err(|error| self.unreadable(&error))
    }

    async fn plan_of_task(&self, task: u64) -> Result<Option<u64>, StoreError> {
        let sql = "SELECT plan FROM bcc_script.plan_task WHERE id = $1";
        self.one(sql, &[(&sought(task), Type::INT8)], Concern::default(), |row| count(row, 0)).await
    }

    async fn reserve_plan_ids(&self, plans: u64, tasks: u64) -> Result<(u64, u64), StoreError> {
        let (plans, tasks) = (self.number(plans)?, self.number(tasks)?);
        let sql = &if_known("SELECT bcc_script.advance('plan', $1), bcc_script.advance('task', $2)");
        let read = |row: &Row| Ok((count(row, 0)?.saturating_add(1), count(row, 1)?.saturating_add(1)));
        let parameters = &[(&plans as _, Type::INT8), (&tasks as _, Type::INT8)];
        let reserved = self.one(sql, parameters, Concern::default(), read).await?;
        reserved.ok_or_else(|| StoreError::TooLarge { store: self.database.name.clone() })
    }

    async fn create_plan(
        &self,
        plan: &PlanRow,
        tasks: &[PlanTaskRow],
        key: &str,
        result: &str,
    ) -> Result<PlanEditOutcome, StoreError> {
        let columns = self.columns(tasks)?;
        let sql =
            &if_known("SELECT bcc_script.create_plan($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)");
        self.edited(
            sql,
            &[
                (&self.number(plan.id)?, Type::INT8),
                (&TextParameter(&plan.user), Type::TEXT),
                (&TextParameter(&plan.status), Type::TEXT),
                (&TextParameter(&plan.title), Type::TEXT),
                (&TextParameter(&plan.created_at), Type::TEXT),
                (&TextParameter(&plan.updated_at), Type::TEXT),
                (&TextParameter(&plan.body), Type::TEXT),
                (&columns.id, Type::INT8_ARRAY),
                (&columns.parent, Type::INT8_ARRAY),
                (&columns.rank, Type::INT8_ARRAY),
                (&columns.body, Type::TEXT_ARRAY),
                (&TextParameter(key), Type::TEXT),
                (&TextParameter(result), Type::TEXT),
                (&limit(MAX_PLAN_EDITS), Type::INT8),
            ],
            Concern { plan: plan.id, ..Concern::default() },
        )
        .await
    }

    async fn edit_plan(&self, edit: &PlanEditRow) -> Result<PlanEditOutcome, StoreError> {
        let columns = self.columns(&edit.put)?;
        let removed = edit.removed.iter().map(|task| sought(*task)).collect::<Vec<_>>();
        let sql = &if_known("SELECT bcc_script.edit_plan($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)");
        self.edited(
            sql,
            &[
                (&sought(edit.plan), Type::INT8),
                (&sought(edit.revision), Type::INT8),
                (&TextParameter(&edit.status), Type::TEXT),
                (&TextParameter(&edit.title), Type::TEXT),
                (&TextParameter(&edit.updated_at), Type::TEXT),
                (&TextParameter(&edit.body), Type::TEXT),
                (&removed, Type::INT8_ARRAY),
                (&columns.id, Type::INT8_ARRAY),
                (&columns.parent, Type::INT8_ARRAY),
                (&columns.rank, Type::INT8_ARRAY),
                (&columns.body, Type::TEXT_ARRAY),
                (&TextParameter(&edit.key), Type::TEXT),
                (&TextParameter(&edit.result), Type::TEXT),
                (&limit(MAX_PLAN_EDITS), Type::INT8),
            ],
            Concern { plan: edit.plan, revision: edit.revision, ..Concern::default() },
        )
        .await
    }

    async fn delete_plan(&self, plan: u64, key: &str, result: &str) -> Result<Option<PlanEditOutcome>, StoreError> {
        let sql = &if_known("SELECT is_plan, earlier FROM bcc_script.delete_plan($1, $2, $3, $4)");
        let parameters = &[
            (&sought(plan) as _, Type::INT8),
            (&TextParameter(key) as _, Type::TEXT),
            (&TextParameter(result) as _, Type::TEXT),
            (&limit(MAX_PLAN_EDITS) as _, Type::INT8),
        ];
        let read = |row: &Row| Ok((row.try_get::<_, bool>(0)?, optional_text(row, 1)?));
        let deleted = self.one(sql, parameters, Concern::default(), read).await?;
        Ok(match deleted {
            Some((true, None)) => Some(PlanEditOutcome::Applied),
            Some((true, Some(result))) => Some(PlanEditOutcome::Repeated { result }),
            Some((false, _)) | None => None,
        })
    }

    async fn plan_edit(&self, key: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT result FROM bcc_script.plan_edit WHERE key = $1";
        self.one(sql, &[(&TextParameter(key), Type::TEXT)], Concern::default(), |row| text(row, 0)).await
    }
}
