//! Tests of parsing a model's text.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout, unreachable_pub)]

mod malformed;
mod replies;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
