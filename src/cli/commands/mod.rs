//! The terminal commands, one file each.

pub mod back;
pub mod commands;
pub mod outcome;
pub mod place;
pub mod plan;
pub mod prompt;
pub mod trace;
pub mod variables;
pub mod why;
