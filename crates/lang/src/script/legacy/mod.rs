//! Converts legacy formats of whole documents to the current one. Bytes outside the edits do not change.

pub mod actions;
pub mod ids;
pub mod names;
pub mod nesting;
pub mod older_action;
pub mod older_config;
pub mod older_engine;
pub mod output;
pub mod parts;
pub mod proof;
pub mod rewrite;
pub mod technique;
pub mod wrap;
