//! Plans: trees of tasks that belong to a user and outlive sessions (docs/plans.md). [`task`] has the data.

pub mod task;
