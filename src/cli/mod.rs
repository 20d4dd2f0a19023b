//! The command line: one file a subcommand, and the readers of events for a terminal, a pipe and a program.

pub mod arguments;
pub mod cli;
pub mod commands;
pub mod drive;
pub mod exit;
pub mod explain;
pub mod front;
pub mod input;
pub mod json;
pub mod line_editor;
pub mod lines;
pub mod models;
pub mod piped;
pub mod report;
pub mod run;
pub mod schema;
pub mod sessions;
pub mod signals;
pub mod table;
pub mod terminal;
pub mod test;
pub mod test_json;
pub mod test_report;
pub mod trust;
pub mod validate;
pub mod watch;
