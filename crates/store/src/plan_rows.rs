//! The rows of plans. JSON is passed as text and not parsed here; times come from the caller, as in [`crate::rows`].

/// How many of the newest edits of a plan are kept, so that one that is made again is recognised by its key. Of the deletions of
/// plans, as many are kept in the whole store.
pub const MAX_PLAN_EDITS: u64 = 1_000;

/// A plan without its tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanRow {
    /// Its number, unique in the store.
    pub id: u64,
    /// The user to whom it belongs.
    pub user: String,
    /// The number of its edits, with its creation; the next edit must expect this number.
    pub revision: u64,
    pub status: String,
    pub title: String,
    pub created_at: String,
    pub updated_at: String,
    /// What it is for, as JSON.
    pub body: String,
}

/// A task of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanTaskRow {
    /// Its number, unique in the store.
    pub id: u64,
    /// The task that contains it; none for a root.
    pub parent: Option<u64>,
    /// Siblings are ordered by their ranks, then by their ids.
    pub rank: i64,
    /// The rest of the task, as JSON.
    pub body: String,
}

/// A plan with all of its tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredPlan {
    pub plan: PlanRow,
    pub tasks: Vec<PlanTaskRow>,
}

/// One edit of a plan: what it changes, and how it is recognised when it is made again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanEditRow {
    pub plan: u64,
    /// The revision that it expects; the plan gets the next one.
    pub revision: u64,
    /// Identifies the edit in the store.
    pub key: String,
    /// What the edit gave, as JSON, kept for the key.
    pub result: String,
    pub status: String,
    pub title: String,
    pub updated_at: String,
    pub body: String,
    /// The tasks that are new or changed.
    pub put: Vec<PlanTaskRow>,
    /// The ids of the tasks that are removed.
    pub removed: Vec<u64>,
}

/// What happened to an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanEditOutcome {
    Applied,
    /// It was made before, with this result; nothing has changed now.
    Repeated {
        result: String,
    },
}
