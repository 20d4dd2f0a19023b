//! Script + kinds → Program or diagnostics. All that is wrong is found before anything runs.

pub mod allow;
pub mod allow_comments;
pub mod callables;
pub mod check;
pub mod checker;
pub mod components;
pub mod declarations;
pub mod diagnostics;
pub mod facts;
pub mod graph;
pub mod known;
pub mod levels;
pub mod library;
pub mod name_table;
pub mod paths;
pub mod placeholders;
pub mod prompts;
pub mod reasons;
pub mod rules;
pub mod tables;
pub mod templates;
pub mod test;
pub mod unknown_names;
pub mod walk;
pub mod ways;
