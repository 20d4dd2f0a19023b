//! The plans of a SQLite store.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::copying::PlanCopy;
use crate::error::StoreError;
use crate::plan_contract::PlanStore;
use crate::plan_rows::{MAX_PLAN_EDITS, PlanEditOutcome, PlanEditRow, PlanRow, PlanTaskRow, StoredPlan};
use crate::sqlite::error::Failure;
use crate::sqlite::read::all;
use crate::sqlite::readers::ReadSize;
use crate::sqlite::store::SqliteStore;
use crate::sqlite::write::{Count, count};

const PLAN: &str = "SELECT id, user, revision, status, title, created_at, updated_at, body FROM plan";

/// The `plan` of deletions in `plan_edit`; no plan has this id.
const DELETIONS: u64 = 0;

fn plan_row(row: &Row<'_>) -> rusqlite::Result<PlanRow> {
    Ok(PlanRow {
        id: count(row, 0)?,
        user: row.get(1)?,
        revision: count(row, 2)?,
        status: row.get(3)?,
        title: row.get(4)?,
        created_at: row.get(5)?,
        updated_at: row.get(6)?,
        body: row.get(7)?,
    })
}

fn task_row(row: &Row<'_>) -> rusqlite::Result<PlanTaskRow> {
    let parent = row.get::<_, Option<i64>>(1)?.map(|_| count(row, 1)).transpose()?;
    Ok(PlanTaskRow { id: count(row, 0)?, parent, rank: row.get(2)?, body: row.get(3)? })
}

/// An id that somebody named, for a search. SQLite cannot hold each of them; what it cannot hold is not in it.
pub(crate) fn sought(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(-1)
}

fn plan(connection: &Connection, plan: u64) -> rusqlite::Result<Option<PlanRow>> {
    connection.prepare_cached(&format!("{PLAN} WHERE id = ?"))?.query_row([sought(plan)], plan_row).optional()
}

fn tasks(connection: &Connection, plan: u64) -> rusqlite::Result<Vec<PlanTaskRow>> {
    let sql = "SELECT id, parent, rank, body FROM plan_task WHERE plan = ? ORDER BY rank, id";
    all(connection, sql, [sought(plan)], task_row)
}

fn owner(connection: &Connection, task: u64) -> rusqlite::Result<Option<u64>> {
    let sql = "SELECT plan FROM plan_task WHERE id = ?";
    connection.prepare_cached(sql)?.query_row([sought(task)], |row| count(row, 0)).optional()
}

fn result_of(connection: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT result FROM plan_edit WHERE key = ?";
    connection.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()
}

/// The value of a counter.
fn last(connection: &Connection, name: &str) -> rusqlite::Result<u64> {
    let sql = "SELECT last FROM plan_counter WHERE name = ?";
    Ok(connection.prepare_cached(sql)?.query_row([name], |row| count(row, 0)).optional()?.unwrap_or(0))
}

/// Advances a counter by `by`, and returns its value before.
fn advance(transaction: &Transaction<'_>, store: &str, name: &str, by: u64) -> Result<u64, Failure> {
    let last = last(transaction, name)?;
    let too_large = || StoreError::TooLarge { store: store.to_owned() };
    let next = last.checked_add(by).filter(|next| i64::try_from(*next).is_ok()).ok_or_else(too_large)?;
    raise(transaction, name, next)?;
    Ok(last)
}

/// Ensures that a counter is at least `last`.
pub(crate) fn raise(transaction: &Transaction<'_>, name: &str, last: u64) -> Result<(), Failure> {
    let sql = "INSERT INTO plan_counter (name, last) VALUES (?, ?)
               ON CONFLICT (name) DO UPDATE SET last = max(last, excluded.last)";
    transaction.prepare_cached(sql)?.execute(params![name, Count(last)])?;
    Ok(())
}

/// Keeps the result of an edit, and drops the oldest one of the plan if there are too many.
fn keep_edit(transaction: &Transaction<'_>, plan: u64, key: &str, number: u64, result: &str) -> Result<(), Failure> {
    let sql = "INSERT INTO plan_edit (plan, number, key, result) VALUES (?, ?, ?, ?)";
    transaction.prepare_cached(sql)?.execute(params![Count(plan), Count(number), key, result])?;
    let outdated = Count(number.saturating_sub(MAX_PLAN_EDITS));
    let sql = "DELETE FROM plan_edit WHERE plan = ? AND number <= ?";
    transaction.prepare_cached(sql)?.execute(params![Count(plan), outdated])?;
    Ok(())
}

fn put(transaction: &Transaction<'_>, store: &str, plan: u64, rows: &[PlanTaskRow]) -> Result<(), Failure> {
    // A row of another plan is left unchanged, and no row is returned.
    let sql = "INSERT INTO plan_task (id, plan, parent, rank, body) VALUES (?, ?, ?, ?, ?)
               ON CONFLICT (id) DO UPDATE SET parent = excluded.parent, rank = excluded.rank, body = excluded.body
               WHERE plan = excluded.plan";
    let mut statement = transaction.prepare_cached(sql)?;
    for PlanTaskRow { id, parent, rank, body } in rows {
        let parent = parent.map(Count);
        if statement.execute(params![Count(*id), Count(plan), parent, rank, body])? == 0 {
            let owner = owner(transaction, *id)?.unwrap_or(plan);
            return Err(StoreError::PlanTaskExists { store: store.to_owned(), task: *id, plan: owner }.into());
        }
    }
    match rows.iter().map(|row| row.id).max() {
        Some(last) => raise(transaction, "task", last),
        None => Ok(()),
    }
}

/// Creates a plan as it was copied. False if its id, or that of one of its tasks or edits, is taken.
pub(crate) fn put_plan(transaction: &Transaction<'_>, store: &str, copy: &PlanCopy) -> Result<bool, Failure> {
    let (row, tasks) = (&copy.stored.plan, &copy.stored.tasks);
    let mut is_taken = plan(transaction, row.id)?.is_some();
    for task in tasks {
        is_taken |= owner(transaction, task.id)?.is_some();
    }
    for edit in &copy.edits {
        is_taken |= result_of(transaction, &edit.key)?.is_some();
    }
    if is_taken {
        return Ok(false);
    }
    insert(transaction, store, row, row.revision)?;
    put(transaction, store, row.id, tasks)?;
    for edit in &copy.edits {
        keep_edit(transaction, row.id, &edit.key, edit.number, &edit.result)?;
    }
    Ok(true)
}

/// Inserts the row of a plan.
fn insert(transaction: &Transaction<'_>, store: &str, row: &PlanRow, revision: u64) -> Result<(), Failure> {
    let sql = "INSERT INTO plan (id, user, revision, status, title, created_at, updated_at, body)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING";
    let parameters = params![
        Count(row.id),
        row.user,
        Count(revision),
        row.status,
        row.title,
        row.created_at,
        row.updated_at,
        row.body
    ];
    if transaction.prepare_cached(sql)?.execute(parameters)? == 0 {
        return Err(StoreError::PlanExists { store: store.to_owned(), plan: row.id }.into());
    }
    raise(transaction, "plan", row.id)
}

fn create(
    transaction: &Transaction<'_>,
    store: &str,
    row: &PlanRow,
    tasks: &[PlanTaskRow],
    (key, result): (&str, &str),
) -> Result<PlanEditOutcome, Failure> {
    if let Some(result) = result_of(transaction, key)? {
        return Ok(PlanEditOutcome::Repeated { result });
    }
    insert(transaction, store, row, 1)?;
    put(transaction, store, row.id, tasks)?;
    keep_edit(transaction, row.id, key, 1, result)?;
    Ok(PlanEditOutcome::Applied)
}

fn edit(transaction: &Transaction<'_>, store: &str, edit: &PlanEditRow) -> Result<PlanEditOutcome, Failure> {
    if let Some(result) = result_of(transaction, &edit.key)? {
        return Ok(PlanEditOutcome::Repeated { result });
    }
    let sql = "SELECT revision FROM plan WHERE id = ?";
    let revision = transaction.prepare_cached(sql)?.query_row([sought(edit.plan)], |row| count(row, 0)).optional()?;
    let Some(found) = revision else {
        return Err(StoreError::NoPlan { store: store.to_owned(), plan: edit.plan }.into());
    };
    if found != edit.revision {
        let (store, plan, expected) = (store.to_owned(), edit.plan, edit.revision);
        return Err(StoreError::PlanChanged { store, plan, expected, found }.into());
    }
    let next = found.saturating_add(1);
    let sql = "UPDATE plan SET revision = ?, status = ?, title = ?, updated_at = ?, body = ? WHERE id = ?";
    let parameters = params![Count(next), edit.status, edit.title, edit.updated_at, edit.body, Count(edit.plan)];
    transaction.prepare_cached(sql)?.execute(parameters)?;
    let mut remove = transaction.prepare_cached("DELETE FROM plan_task WHERE id = ? AND plan = ?")?;
    for task in &edit.removed {
        remove.execute(params![Count(*task), Count(edit.plan)])?;
    }
    put(transaction, store, edit.plan, &edit.put)?;
    keep_edit(transaction, edit.plan, &edit.key, next, &edit.result)?;
    Ok(PlanEditOutcome::Applied)
}

fn delete(
    transaction: &Transaction<'_>,
    store: &str,
    plan: u64,
    (key, result): (&str, &str),
) -> Result<Option<PlanEditOutcome>, Failure> {
    if let Some(result) = result_of(transaction, key)? {
        return Ok(Some(PlanEditOutcome::Repeated { result }));
    }
    transaction.prepare_cached("DELETE FROM plan_task WHERE plan = ?")?.execute([sought(plan)])?;
    if transaction.prepare_cached("DELETE FROM plan WHERE id = ?")?.execute([sought(plan)])? == 0 {
        return Ok(None);
    }
    transaction.prepare_cached("DELETE FROM plan_edit WHERE plan = ?")?.execute([Count(plan)])?;
    let number = advance(transaction, store, "deletion", 1)?.saturating_add(1);
    keep_edit(transaction, DELETIONS, key, number, result)?;
    Ok(Some(PlanEditOutcome::Applied))
}

#[async_trait]
impl PlanStore for SqliteStore {
    async fn plans(&self, user: &str) -> Result<Vec<PlanRow>, StoreError> {
        let user = user.to_owned();
        self.read(ReadSize::Many, move |connection| {
            all(connection, &format!("{PLAN} WHERE user = ? ORDER BY id"), [user], plan_row)
        })
        .await
    }

    async fn plan(&self, id: u64) -> Result<Option<PlanRow>, StoreError> {
        self.read(ReadSize::Few, move |connection| plan(connection, id)).await
    }

    async fn plan_tasks(&self, id: u64) -> Result<Option<StoredPlan>, StoreError> {
        self.read(ReadSize::Many, move |connection| {
            // Another process cannot change the plan in between.
            let transaction = connection.unchecked_transaction()?;
            let Some(plan) = plan(&transaction, id)? else { return Ok(None) };
            Ok(Some(StoredPlan { plan, tasks: tasks(&transaction, id)? }))
        })
        .await
    }

    async fn plan_of_task(&self, task: u64) -> Result<Option<u64>, StoreError> {
        self.read(ReadSize::Few, move |connection| owner(connection, task)).await
    }

    async fn reserve_plan_ids(&self, plans: u64, tasks: u64) -> Result<(u64, u64), StoreError> {
        if (plans, tasks) == (0, 0) {
            // Who only asks may have a store that cannot be written.
            let next = |connection: &Connection, name| last(connection, name).map(|last| last.saturating_add(1));
            return self
                .read(ReadSize::Few, move |connection| Ok((next(connection, "plan")?, next(connection, "task")?)))
                .await;
        }
        self.run(move |file| {
            file.write(|transaction| {
                let last_plan = advance(transaction, &file.store, "plan", plans)?;
                let last_task = advance(transaction, &file.store, "task", tasks)?;
                Ok((last_plan.saturating_add(1), last_task.saturating_add(1)))
            })
        })
        .await
    }

    async fn create_plan(
        &self,
        plan: &PlanRow,
        tasks: &[PlanTaskRow],
        key: &str,
        result: &str,
    ) -> Result<PlanEditOutcome, StoreError> {
        let (plan, tasks, key, result) = (plan.clone(), tasks.to_vec(), key.to_owned(), result.to_owned());
        self.run(move |file| file.write(|transaction| create(transaction, &file.store, &plan, &tasks, (&key, &result))))
            .await
    }

    async fn edit_plan(&self, change: &PlanEditRow) -> Result<PlanEditOutcome, StoreError> {
        let change = change.clone();
        self.run(move |file| file.write(|transaction| edit(transaction, &file.store, &change))).await
    }

    async fn delete_plan(&self, plan: u64, key: &str, result: &str) -> Result<Option<PlanEditOutcome>, StoreError> {
        let (key, result) = (key.to_owned(), result.to_owned());
        self.run(move |file| {
            file.with_secure_delete(|| {
                file.write(|transaction| delete(transaction, &file.store, plan, (&key, &result)))
            })
        })
        .await
    }

    async fn plan_edit(&self, key: &str) -> Result<Option<String>, StoreError> {
        let key = key.to_owned();
        self.read(ReadSize::Few, move |connection| result_of(connection, &key)).await
    }
}
