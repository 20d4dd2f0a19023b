//! Conversation tests (docs/tests.md): found, run and told.

pub mod clock;
pub mod coverage;
pub mod difference;
pub mod find;
pub mod judge;
pub mod junit;
pub mod kernel;
pub mod log;
pub mod masked;
pub mod models;
pub mod persona;
#[cfg(test)]
pub(crate) mod played;
pub mod ran;
pub mod request;
pub mod run;
pub mod scripts;
pub mod snapshots;
pub mod stops;
pub mod talk;
