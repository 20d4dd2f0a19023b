//! Checks a document against the kinds of actions; the result is a `Program` or diagnostics.
//!
//! [`check`] is the entry point. A walk collects the content of a document ([`walk`], [`collected`]), [`semantic_model`]
//! answers queries about it, [`rules`] has one file for each rule of `validate`, [`typing`] finds type errors in expressions,
//! and [`templates`] checks prompts. [`diagnostics`] lists every diagnostic with its page. [`context`] describes the project
//! in which a document is checked.
//!
//! This crate guarantees that checking does not stop at the first mistake, that only a document without errors becomes a
//! program, and that a rule reports only what is certain. It runs nothing.

pub mod allow;
pub mod allow_comments;
pub mod author_texts;
pub mod callables;
pub mod calls;
pub mod check;
pub mod checker;
pub mod cleanup;
pub mod collected;
pub mod components;
pub mod context;
pub mod declarations;
pub mod diagnostics;
pub mod document_paths;
pub mod documents;
pub mod edges;
pub mod escape_analysis;
pub mod expressions;
pub mod full_width_values;
pub mod graph;
mod growing_lists;
pub mod jump_targets;
pub mod known;
pub mod levels;
pub mod library;
pub mod listing;
mod mistakes;
pub mod name_table;
pub mod other_kinds;
pub mod paths;
pub mod placeholders;
pub mod prompts;
pub mod reachable_skills;
pub mod reasons;
pub mod repairs;
pub mod rules;
pub mod secrets;
pub mod semantic_model;
pub(crate) mod skill_questions;
mod skill_topics;
pub mod tables;
pub mod templates;
pub mod test;
pub mod tool_rules;
pub mod typing;
pub mod unknown_names;
pub(crate) mod value_types;
pub mod walk;
