//! From a document and the kinds of actions to a `Program`, or to diagnostics.
//!
//! [`check`] is the whole of it: the walk collects what a document says ([`walk`], [`seen`]), [`facts`] answers questions about
//! it, [`rules`] has one file for each rule of `validate`, [`typing`] finds what an expression can never be, and [`templates`]
//! looks at prompts. [`diagnostics`] lists every diagnostic with its page. [`against`] is what a document is checked against.
//!
//! This crate promises that checking does not stop at the first mistake, that only a document without errors becomes a
//! program, and that a rule speaks only where it is sure. It runs nothing.

pub mod against;
pub mod allow;
pub mod allow_comments;
pub mod author_texts;
pub mod callables;
pub mod calls;
pub mod check;
pub mod checker;
pub mod components;
pub mod declarations;
pub mod diagnostics;
pub mod documents;
pub mod expressions;
pub mod facts;
pub mod graph;
pub mod known;
pub mod leads;
pub mod leaving;
pub mod levels;
pub mod library;
pub mod listing;
pub mod name_table;
pub mod other_kinds;
pub mod paths;
pub mod paths_of_documents;
pub mod placeholders;
pub mod prompts;
pub mod reach;
pub mod reasons;
pub mod repairs;
pub mod rules;
pub mod secrets;
pub mod seen;
pub mod tables;
pub mod templates;
pub mod test;
pub mod typing;
pub mod unknown_names;
pub mod walk;
pub mod ways;
