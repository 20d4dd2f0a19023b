//! The plans of the in-memory store.

use std::collections::{BTreeMap, HashMap, VecDeque};

use async_trait::async_trait;

use crate::error::StoreError;
use crate::memory::{MemoryStore, STORE, lock_mutex};
use crate::plan_contract::PlanStore;
use crate::plan_rows::{MAX_PLAN_EDITS, PlanEditOutcome, PlanEditRow, PlanRow, PlanTaskRow, StoredPlan};

#[derive(Debug, Default)]
struct MemoryPlan {
    row: PlanRow,
    tasks: BTreeMap<u64, PlanTaskRow>,
    /// The keys of its edits, oldest first.
    edits: VecDeque<String>,
}

/// All plans of a store.
#[derive(Debug, Default)]
pub(crate) struct MemoryPlans {
    plans: BTreeMap<u64, MemoryPlan>,
    /// The plan of each task.
    owners: HashMap<u64, u64>,
    /// The results of edits by their keys.
    results: HashMap<String, String>,
    /// The keys of deletions, oldest first.
    deletions: VecDeque<String>,
    /// The highest ids that were reserved or used.
    last_plan: u64,
    last_task: u64,
}

fn no_plan(plan: u64) -> StoreError {
    StoreError::NoPlan { store: STORE.to_owned(), plan }
}

/// Adds a key and returns the one that is no longer kept.
fn push_bounded(keys: &mut VecDeque<String>, key: &str) -> Option<String> {
    keys.push_back(key.to_owned());
    let is_full = u64::try_from(keys.len()).is_ok_and(|kept| kept > MAX_PLAN_EDITS);
    if is_full { keys.pop_front() } else { None }
}

impl MemoryPlans {
    fn of_user(&self, user: &str) -> Vec<PlanRow> {
        self.plans.values().filter(|plan| plan.row.user == user).map(|plan| plan.row.clone()).collect()
    }

    fn plan(&self, plan: u64) -> Option<PlanRow> {
        self.plans.get(&plan).map(|plan| plan.row.clone())
    }

    fn tasks(&self, plan: u64) -> Option<StoredPlan> {
        let plan = self.plans.get(&plan)?;
        let mut tasks: Vec<PlanTaskRow> = plan.tasks.values().cloned().collect();
        // The sort is stable: tasks with the same rank stay sorted by id.
        tasks.sort_by_key(|task| task.rank);
        Some(StoredPlan { plan: plan.row.clone(), tasks })
    }

    fn owner(&self, task: u64) -> Option<u64> {
        self.owners.get(&task).copied()
    }

    fn reserve(&mut self, plans: u64, tasks: u64) -> Result<(u64, u64), StoreError> {
        let too_large = || StoreError::TooLarge { store: STORE.to_owned() };
        let (first_plan, first_task) = (self.last_plan.saturating_add(1), self.last_task.saturating_add(1));
        let last_plan = self.last_plan.checked_add(plans).ok_or_else(too_large)?;
        let last_task = self.last_task.checked_add(tasks).ok_or_else(too_large)?;
        (self.last_plan, self.last_task) = (last_plan, last_task);
        Ok((first_plan, first_task))
    }

    fn create(
        &mut self,
        plan: &PlanRow,
        tasks: &[PlanTaskRow],
        key: &str,
        result: &str,
    ) -> Result<PlanEditOutcome, StoreError> {
        if let Some(result) = self.result(key) {
            return Ok(PlanEditOutcome::Repeated { result });
        }
        if self.plans.contains_key(&plan.id) {
            return Err(StoreError::PlanExists { store: STORE.to_owned(), plan: plan.id });
        }
        self.check_owners(plan.id, tasks)?;
        let mut stored = MemoryPlan { row: PlanRow { revision: 1, ..plan.clone() }, ..MemoryPlan::default() };
        stored.edits.push_back(key.to_owned());
        self.plans.insert(plan.id, stored);
        self.results.insert(key.to_owned(), result.to_owned());
        self.last_plan = self.last_plan.max(plan.id);
        self.put(plan.id, tasks);
        Ok(PlanEditOutcome::Applied)
    }

    fn edit(&mut self, edit: &PlanEditRow) -> Result<PlanEditOutcome, StoreError> {
        if let Some(result) = self.result(&edit.key) {
            return Ok(PlanEditOutcome::Repeated { result });
        }
        let found = self.plans.get(&edit.plan).ok_or_else(|| no_plan(edit.plan))?.row.revision;
        if found != edit.revision {
            let (store, plan, expected) = (STORE.to_owned(), edit.plan, edit.revision);
            return Err(StoreError::PlanChanged { store, plan, expected, found });
        }
        self.check_owners(edit.plan, &edit.put)?;
        for task in &edit.removed {
            if self.owners.get(task) == Some(&edit.plan) {
                self.owners.remove(task);
            }
        }
        if let Some(stored) = self.plans.get_mut(&edit.plan) {
            stored.row.revision = found.saturating_add(1);
            stored.row.status.clone_from(&edit.status);
            stored.row.title.clone_from(&edit.title);
            stored.row.updated_at.clone_from(&edit.updated_at);
            stored.row.body.clone_from(&edit.body);
            for task in &edit.removed {
                stored.tasks.remove(task);
            }
            if let Some(oldest) = push_bounded(&mut stored.edits, &edit.key) {
                self.results.remove(&oldest);
            }
        }
        self.results.insert(edit.key.clone(), edit.result.clone());
        self.put(edit.plan, &edit.put);
        Ok(PlanEditOutcome::Applied)
    }

    fn delete(&mut self, plan: u64, key: &str, result: &str) -> Option<PlanEditOutcome> {
        if let Some(result) = self.result(key) {
            return Some(PlanEditOutcome::Repeated { result });
        }
        let deleted = self.plans.remove(&plan)?;
        for task in deleted.tasks.keys() {
            self.owners.remove(task);
        }
        for edit in &deleted.edits {
            self.results.remove(edit);
        }
        if let Some(oldest) = push_bounded(&mut self.deletions, key) {
            self.results.remove(&oldest);
        }
        self.results.insert(key.to_owned(), result.to_owned());
        Some(PlanEditOutcome::Applied)
    }

    fn result(&self, key: &str) -> Option<String> {
        self.results.get(key).cloned()
    }

    fn check_owners(&self, plan: u64, tasks: &[PlanTaskRow]) -> Result<(), StoreError> {
        let is_of_other = |task: &&PlanTaskRow| self.owners.get(&task.id).is_some_and(|owner| *owner != plan);
        let Some(task) = tasks.iter().find(is_of_other) else { return Ok(()) };
        let owner = self.owners.get(&task.id).copied().unwrap_or(plan);
        Err(StoreError::PlanTaskExists { store: STORE.to_owned(), task: task.id, plan: owner })
    }

    fn put(&mut self, plan: u64, tasks: &[PlanTaskRow]) {
        let Some(stored) = self.plans.get_mut(&plan) else { return };
        for task in tasks {
            self.last_task = self.last_task.max(task.id);
            self.owners.insert(task.id, plan);
            stored.tasks.insert(task.id, task.clone());
        }
    }
}

#[async_trait]
impl PlanStore for MemoryStore {
    async fn plans(&self, user: &str) -> Result<Vec<PlanRow>, StoreError> {
        Ok(lock_mutex(&self.state).plans.of_user(user))
    }

    async fn plan(&self, plan: u64) -> Result<Option<PlanRow>, StoreError> {
        Ok(lock_mutex(&self.state).plans.plan(plan))
    }

    async fn plan_tasks(&self, plan: u64) -> Result<Option<StoredPlan>, StoreError> {
        Ok(lock_mutex(&self.state).plans.tasks(plan))
    }

    async fn plan_of_task(&self, task: u64) -> Result<Option<u64>, StoreError> {
        Ok(lock_mutex(&self.state).plans.owner(task))
    }

    async fn reserve_plan_ids(&self, plans: u64, tasks: u64) -> Result<(u64, u64), StoreError> {
        lock_mutex(&self.state).plans.reserve(plans, tasks)
    }

    async fn create_plan(
        &self,
        plan: &PlanRow,
        tasks: &[PlanTaskRow],
        key: &str,
        result: &str,
    ) -> Result<PlanEditOutcome, StoreError> {
        lock_mutex(&self.state).plans.create(plan, tasks, key, result)
    }

    async fn edit_plan(&self, edit: &PlanEditRow) -> Result<PlanEditOutcome, StoreError> {
        lock_mutex(&self.state).plans.edit(edit)
    }

    async fn delete_plan(&self, plan: u64, key: &str, result: &str) -> Result<Option<PlanEditOutcome>, StoreError> {
        Ok(lock_mutex(&self.state).plans.delete(plan, key, result))
    }

    async fn plan_edit(&self, key: &str) -> Result<Option<String>, StoreError> {
        Ok(lock_mutex(&self.state).plans.result(key))
    }
}
