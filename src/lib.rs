//! `bcc-script`: an interpreter for declarative YAML scripts of model-driven conversations and workflows.
//!
//! The rooms stand here in the order in which a script passes through them:
//!
//! ```text
//! text ──parse──▶ Script ──check──▶ Program ──run──▶ Session ──keep──▶ head + journal
//! ```

pub mod source;
pub mod value;
pub mod words;

pub mod archive;
pub mod schema;

pub mod effects;
pub mod model;
pub mod notebook;
pub mod prompt;
pub mod reply;
pub mod script;

pub mod program;

pub mod actions;
pub mod check;
pub mod run;

pub mod engine;

pub mod cli;
