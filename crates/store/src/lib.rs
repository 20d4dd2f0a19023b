//! Sessions at rest: identifiers, rows and JSON text in a store, and nothing of what they mean.
//!
//! [`contract`] is the trait of stores and [`rows`] what goes through it; [`memory`] and [`sqlite`] implement it, and one set of
//! conformance tests holds both to the same behaviour.
//!
//! This crate promises that a commit is there whole or not at all, also after a crash, that rows which are there are only
//! added to, and that one process at a time drives a session.

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
