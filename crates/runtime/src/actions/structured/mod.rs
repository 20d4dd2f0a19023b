//! Structured actions (docs/actions/ai_act.md): a model answers with a message and with operations, which are carried out one by one.
//!
//! [`operations`] is the table of the operations, [`instruction`] reads those of a reply, [`config`] reads the action of the author,
//! [`frame`] is what survives from turn to turn, [`machine`] asks and waits, [`perform`] carries the operations out, and [`results`] is what models and scripts see of them.

pub(crate) mod config;
pub(crate) mod frame;
pub(crate) mod instruction;
pub(crate) mod machine;
pub(crate) mod operations;
pub(crate) mod perform;
pub(crate) mod results;
