//! Tests of `bcc-script serve` as a child process, over HTTP (docs/server.md).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout, unreachable_pub)]

mod access;
mod authoring;
mod bad_input;
mod begin_again;
mod behavior;
mod behavior_client;
mod behavior_streams;
mod chat;
mod chat_again;
mod chat_places;
mod chat_simultaneous;
mod code_cells;
mod conversations;
mod data_sets;
mod databases;
mod databases_tls;
mod decisions;
mod forks;
mod given_states;
mod hand_over;
mod interruptions;
mod kernels;
mod kills;
mod links;
mod locks;
mod openapi;
mod pages;
mod resting;
mod same_words;
mod served;
mod stopped_turns;
mod streams;
mod studio;
mod talk_troubles;
#[cfg(feature = "otel")]
mod traces;
mod turn_replies;
mod undone_copies;
mod visitor;
mod web;

#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/browser.rs"]
mod browser;
#[cfg(feature = "otel")]
#[path = "../support/collector.rs"]
mod collector;
#[path = "../support/complete_reply.rs"]
mod complete_reply;
#[path = "../support/database.rs"]
mod database;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/process.rs"]
mod process;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/server.rs"]
mod server;

#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/test_kernel.rs"]
mod test_kernel;

/// The workspace.
pub const ROOT: &str = env!("CARGO_MANIFEST_DIR");
