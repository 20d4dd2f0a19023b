//! Conversation tests (docs/tests.md): finds, runs and reports them.

pub mod clock;
pub mod commands;
pub mod conversation;
pub mod coverage;
pub mod decide;
pub mod diff;
pub mod files;
pub mod find;
pub mod json;
pub mod judge;
pub mod junit;
pub mod kernel;
pub mod log;
pub mod models;
pub mod persona;
#[cfg(test)]
pub(crate) mod played;
pub mod redaction;
pub mod request;
pub mod result;
pub mod run;
pub mod scripts;
pub mod snapshots;
pub mod stop_reasons;
pub mod tools;
