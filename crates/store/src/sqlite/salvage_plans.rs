//! Copies plans from a damaged database to a new one.

use std::collections::BTreeSet;

use rusqlite::Transaction;
use rusqlite::types::Value;

use crate::sqlite::error::Failure;
use crate::sqlite::plans::raise;
use crate::sqlite::salvage::{Source, has_table};
use crate::sqlite::write::count;

/// Copies each plan from the newest source that has it, with those of its tasks that can be read there: a task of an earlier source may
/// have been deleted since. Returns whether everything could be read.
pub(crate) fn copy(sources: &[Source], target: &Transaction<'_>) -> Result<bool, Failure> {
    if !has_table(target, "plan") {
        return Ok(true);
    }
    let mut copied = BTreeSet::new();
    let mut is_complete = true;
    for (number, source) in sources.iter().enumerate() {
        let (plans, are_all) = plans_of(source)?;
        let mut is_whole = are_all;
        for plan in plans.into_iter().filter(|plan| copied.insert(*plan)) {
            is_whole &= source.copy(target, "plan", "id = ?1", "id", &[plan])?;
            is_whole &= source.copy(target, "plan_task", "plan = ?1", "rank, id", &[plan])?
                || source.copy(target, "plan_task", "plan = ?1", "rank DESC, id DESC", &[plan])?
                || source.copy(target, "plan_task", "+plan = ?1", "id", &[plan])?;
        }
        is_whole &= source.copy(target, "plan_edit", "true", "plan, number", &[])?;
        is_whole &= source.copy(target, "plan_counter", "true", "name", &[])?;
        if number == 0 {
            is_complete = is_whole;
        }
        if is_whole {
            break;
        }
    }
    for (name, table) in [("plan", "plan"), ("task", "plan_task")] {
        let last = target.query_row(&format!("SELECT coalesce(max(id), 0) FROM {table}"), [], |row| count(row, 0))?;
        if last > 0 {
            raise(target, name, last)?;
        }
    }
    Ok(is_complete)
}

/// The ids of the plans that can be read, and whether those are all.
fn plans_of(source: &Source) -> Result<(BTreeSet<i64>, bool), Failure> {
    let mut plans = BTreeSet::new();
    let mut are_all = false;
    for sql in ["SELECT id FROM plan NOT INDEXED ORDER BY id", "SELECT id FROM plan NOT INDEXED ORDER BY id DESC"] {
        are_all |= source.each(sql, &[], |row| {
            if let [Value::Integer(id)] = row {
                plans.insert(*id);
            }
            Ok(())
        })?;
        if are_all {
            break;
        }
    }
    Ok((plans, are_all))
}
