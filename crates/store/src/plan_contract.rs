//! The part of the contract of stores that concerns plans (docs/plans.md).

use async_trait::async_trait;

use crate::error::StoreError;
use crate::plan_rows::{PlanEditOutcome, PlanEditRow, PlanRow, PlanTaskRow, StoredPlan};

/// A store of plans. What [`crate::contract::Store`] says of durability and errors holds here as well.
#[async_trait]
pub trait PlanStore: Send + Sync {
    /// The plans of a user, sorted by id.
    async fn plans(&self, user: &str) -> Result<Vec<PlanRow>, StoreError>;

    async fn plan(&self, plan: u64) -> Result<Option<PlanRow>, StoreError>;

    /// A plan with its tasks, sorted by rank and id, all as of one revision.
    async fn plan_tasks(&self, plan: u64) -> Result<Option<StoredPlan>, StoreError>;

    /// The plan of a task.
    async fn plan_of_task(&self, task: u64) -> Result<Option<u64>, StoreError>;

    /// Reserves ids that no plan and no task of the store has, had or gets in another way. Returns the first id of the plans, and the
    /// first id of the tasks. Ids that are reserved and not used are not reserved again.
    async fn reserve_plan_ids(&self, plans: u64, tasks: u64) -> Result<(u64, u64), StoreError>;

    /// Creates a plan, at revision 1, with its tasks. Their ids need not be reserved. An edit with this key that was made before is not
    /// repeated, as in [`PlanStore::edit_plan`].
    /// Errors: [`StoreError::PlanExists`], [`StoreError::PlanTaskExists`].
    async fn create_plan(
        &self,
        plan: &PlanRow,
        tasks: &[PlanTaskRow],
        key: &str,
        result: &str,
    ) -> Result<PlanEditOutcome, StoreError>;

    /// Writes one edit of a plan, all or nothing. Its cost depends on the rows of the edit. If an edit with the same key was made, and
    /// is kept ([`crate::plan_rows::MAX_PLAN_EDITS`]), nothing changes.
    /// Errors: [`StoreError::NoPlan`]; [`StoreError::PlanChanged`] when the revision is not the expected one;
    /// [`StoreError::PlanTaskExists`] when another plan has a task with an id of this edit.
    async fn edit_plan(&self, edit: &PlanEditRow) -> Result<PlanEditOutcome, StoreError>;

    /// Deletes a plan with its tasks and its edits, and keeps this result for the key. Returns `None` if there is no such plan.
    async fn delete_plan(&self, plan: u64, key: &str, result: &str) -> Result<Option<PlanEditOutcome>, StoreError>;

    /// The result of the edit, creation or deletion of a plan with this key, if it is kept.
    async fn plan_edit(&self, key: &str) -> Result<Option<String>, StoreError>;
}
