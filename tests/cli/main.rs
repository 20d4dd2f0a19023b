//! Tests of the program as a child process, with pipes or a terminal.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout, unreachable_pub)]

mod act_rounds;
mod begin_again;
mod behavior_server;
mod behaviors;
mod chinese_output;
mod commands;
mod crash;
mod custom_kinds;
mod damaged_stores;
mod data_sets;
mod demonstration;
mod deployments;
mod digits;
mod doctor;
mod earlier_release;
mod early_signals;
mod embedding;
mod explain;
mod failures;
mod files;
mod first_ten_minutes;
mod fixes;
mod given_files;
mod graph;
mod help;
#[cfg(feature = "jupyter")]
mod kernel;
mod many_processes;
mod masked_values;
mod missing_services;
mod model_commands;
mod models;
mod monitors;
mod notebook_export;
mod notebook_pictures;
#[cfg(feature = "jupyter")]
mod notebook_run;
mod operation_table;
mod outputs;
mod parallel;
mod plan_sessions;
mod plan_tasks;
mod plans;
mod planted_store_files;
mod programs;
mod progress;
mod project_files;
mod protocol_states;
mod recorded_take_backs;
mod recording;
mod render;
mod repeated_text;
mod requests;
mod retries;
mod scaffold;
mod session_list;
mod session_reports;
mod shown;
mod state_file_project;
mod store_copy;
mod stores;
mod structured_actions;
mod templates;
mod terminal;
mod test_command;
mod test_runner;
mod tool_calls;
mod tool_server;
mod tools;
mod trust;
mod trusted_data;
mod undone_retries;
mod validate;
mod validate_folders;
mod watch;
mod workflow_cleanup;
mod workflow_edits;
mod workflow_progress;
mod workflows;

#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/behaving.rs"]
mod behaving;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/behavior_process.rs"]
mod behavior_process;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/browser.rs"]
mod browser;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/client.rs"]
mod client;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/crashing_store.rs"]
mod crashing_store;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/database.rs"]
mod database;
#[path = "../support/fixture_talks.rs"]
mod fixture_talks;
#[cfg(feature = "jupyter")]
#[path = "../support/live_kernels.rs"]
mod live_kernels;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/pages.rs"]
mod pages;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/process.rs"]
mod process;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/pseudo_terminal.rs"]
mod pseudo_terminal;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/server.rs"]
mod server;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/session_output.rs"]
mod session_output;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/test_kernel.rs"]
mod test_kernel;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/test_session.rs"]
mod test_session;
mod validate_paths;

/// The root of the repository.
const ROOT: &str = env!("CARGO_MANIFEST_DIR");
