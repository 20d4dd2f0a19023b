//! Tests of the client of servers of tools: with a server of ours that does everything wrong, and with servers that others wrote.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout, unreachable_pub)]

mod bad_servers;
mod bad_texts;
mod misbehaving_server;
mod questions;
mod real_servers;
mod repeated_keys;
mod servers_under_test;
mod stopping;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
