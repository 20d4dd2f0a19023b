//! Puts it together: a project, its configuration and trust, its models, and sessions over a store.
//!
//! [`project`], [`config`] and [`trust`] read what a folder says and what of it counts; [`discovery`] finds its documents;
//! [`loaded`] checks a script; [`engine`] begins sessions and takes them up, pinned by [`pin`] to the texts that they began
//! with; [`handle`] runs one as a task, commands in, events out; [`export`] and [`notebook_file`] write down what became of it.
//!
//! This crate promises that the clock, the environment and identifiers enter here and nowhere below, and that nothing of a
//! project runs or is sent anywhere before it is trusted. It prints nothing.

pub mod behavior_servers;
pub mod calls;
pub mod clock;
pub mod config;
pub mod discovery;
pub mod engine;
pub mod environment;
pub mod error;
pub mod export;
pub mod exported_notebook;
pub mod files;
pub mod handle;
pub mod history;
pub mod host_services;
pub mod loaded;
pub mod markdown;
pub mod model_selection;
pub mod models;
pub mod notebook_file;
pub mod pin;
pub mod portable;
pub mod project;
pub mod recheck;
pub mod recording;
pub mod replay;
pub mod settings;
pub mod shell;
pub mod trust;
pub mod usage;
pub mod variables;
