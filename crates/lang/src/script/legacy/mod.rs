//! Converts legacy formats of whole documents to the current one. Bytes outside the edits do not change.

pub mod actions;
pub mod engine;
pub mod engine_action;
pub mod engine_config;
pub mod ids;
pub mod names;
pub mod nesting;
pub mod output;
pub mod parts;
pub mod proof;
pub mod rewrite;
pub mod technique;
pub mod wrap;
