//! Tests of this repository: its layers, its pages, its schemas, its scripts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout, unreachable_pub)]

mod acceptance;
mod docs;
mod kinds;
mod languages;
mod layers;
mod names;
mod own_scripts;
mod people;
mod pseudo_language;
mod schemas;

#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/checking.rs"]
mod checking;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/offline_conversation.rs"]
mod offline_conversation;
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
#[path = "../support/rust_literals.rs"]
mod rust_literals;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/rust_source.rs"]
mod rust_source;

/// The root of the repository.
const ROOT: &str = env!("CARGO_MANIFEST_DIR");
