//! Persistent storage of sessions, plans and links: stores identifiers, rows and JSON text without interpreting them.
//!
//! [`contract`], [`plan_contract`] and [`link_contract`] are the traits of stores, [`rows`], [`plan_rows`] and [`link_rows`] their data types. [`memory`], [`sqlite`] and
//! `postgres` (a feature) implement them, and one set of conformance tests checks that all behave the same.
//!
//! This crate guarantees that a commit is stored completely or not at all, even after a crash, that the journal is only
//! appended to, that a commit keeps what it replaces (`replaced.rs`), and that only one process at a time runs a session.

pub mod content_hash;
pub mod contract;
pub mod copying;
pub mod error;
pub mod link_contract;
pub mod link_rows;
mod lock_signals;
pub mod memory;
pub(crate) mod memory_links;
pub(crate) mod memory_plans;
mod memory_texts;
pub mod plan_contract;
pub mod plan_rows;
#[cfg(feature = "postgres")]
pub mod postgres;
pub(crate) mod replaced;
pub mod rows;
pub(crate) mod series;
pub mod session_pages;
pub mod sqlite;
pub(crate) mod tail;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod conformance_cells;
#[cfg(test)]
mod conformance_links;
#[cfg(test)]
mod conformance_locks;
#[cfg(test)]
mod conformance_pages;
#[cfg(test)]
mod conformance_plans;
#[cfg(test)]
mod conformance_requests;
#[cfg(test)]
mod conformance_restoring;
#[cfg(test)]
mod copying_tests;
