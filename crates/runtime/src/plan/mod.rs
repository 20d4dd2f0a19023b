//! Plans: trees of tasks that belong to a user and outlive sessions (docs/plans.md).
//!
//! [`task`] has the data, [`tree`] a plan in memory with its indexes, [`operation`] the operations as they are written, [`apply`]
//! applies them, [`error`] says why one is rejected. [`access`] reads and edits the plans of a user in the store; [`document`], [`export`] and [`import`]
//! have the forms outside of it.

pub(crate) mod abandoned;
pub mod access;
pub mod apply;
pub(crate) mod changes;
pub(crate) mod create;
pub mod document;
pub mod editing_session;
pub mod error;
pub mod execution;
pub mod export;
pub mod import;
pub mod limits;
pub(crate) mod lookup;
pub mod masking;
pub(crate) mod numbers;
pub mod operation;
pub mod outline;
pub mod parameters;
pub(crate) mod placement;
pub(crate) mod relocate;
pub mod requirements;
pub(crate) mod rows;
pub mod show;
pub(crate) mod siblings;
pub mod task;
pub mod tree;
pub(crate) mod update;

#[cfg(test)]
mod concurrency_tests;
#[cfg(test)]
mod operation_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod rejection_tests;
