//! Sessions at rest: ids, rows and JSON text in a store, and nothing of what they mean.

pub mod contract;
pub mod error;
pub mod memory;
pub mod rows;
pub mod sqlite;
pub(crate) mod tail;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod conformance_cells;
