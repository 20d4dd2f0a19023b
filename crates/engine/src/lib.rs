//! Projects with their configuration, trust and models, and sessions over a store.
//!
//! [`project`], [`config`] and [`trust`] read the configuration of a folder and decide which settings apply; [`discovery`]
//! finds documents; [`loaded`] checks a script; [`engine`] starts and resumes sessions, pinned by [`pin`] to the texts that
//! they started with; [`handle`] runs a session as a task; [`export`] and [`notebook_file`] export sessions, and [`data_set`] many of
//! them for a study.
//!
//! Guarantees: the clock, the environment and identifiers enter here and in no lower crate; nothing of a project runs or is
//! sent anywhere before the project is trusted; this crate prints nothing.

pub mod again;
pub mod api_key;
pub mod behavior_servers;
pub mod calls;
pub mod clock;
pub mod command_output;
mod commands;
pub mod config;
pub mod data_set;
pub mod discovery;
mod earlier_replies;
pub mod engine;
pub mod environment;
pub mod error;
pub mod export;
pub mod exported_notebook;
pub mod exported_state;
pub mod files;
pub mod find_session;
pub mod fork;
pub mod handle;
pub mod history;
pub mod host_services;
pub mod jupyter_servers;
pub mod large_output;
pub mod last_exchanges;
pub mod left_kernel;
pub mod loaded;
pub mod markdown;
pub mod mcp_servers;
pub mod model_selection;
pub mod models;
pub mod notebook_file;
pub mod pin;
pub mod plan_masker;
pub mod portable;
pub mod program_environment;
pub mod project;
mod project_files;
pub mod project_services;
pub(crate) mod recently_used;
pub mod recheck;
pub mod recording;
pub mod replay;
pub mod report;
mod resume_existing;
pub mod retry;
pub mod script_names;
pub mod session_ids;
mod session_origin;
mod session_program;
pub mod session_variables;
pub mod settings;
pub mod shell;
pub mod state_document;
pub mod state_file;
pub mod store_access;
pub mod store_place;
pub(crate) mod stored_programs;
pub mod taken_back;
pub mod tool_source;
pub mod trust;
pub mod usage;
pub mod variables;
