//! Older forms of whole documents, and the edits that write them as today's: every other byte stays what it is.

pub mod actions;
pub mod ids;
pub mod names;
pub mod nesting;
pub mod output;
pub mod parts;
pub mod proof;
pub mod rewrite;
pub mod technique;
pub mod wrap;
