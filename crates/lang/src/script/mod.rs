//! A script as its author wrote it: every part with its position, nothing resolved yet.

pub mod declare;
pub mod dependencies;
pub mod examples;
pub mod fields;
pub mod findings;
pub mod foreign;
pub mod inline_list;
pub mod interrupted;
pub mod kernel;
pub mod legacy;
pub mod legacy_fields;
pub mod limits;
pub mod lines;
pub mod misplaced;
pub mod missing_root;
pub mod numbers;
pub mod other_names;
pub mod read;
pub mod report;
pub mod route_parser;
pub mod script;
pub mod skill;
pub mod step_options;
pub mod test;
mod text_list;
pub mod time;
pub mod unknown_keys;
