//! Tests of the checker: findings in templates, and the targets of routes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout, unreachable_pub)]

mod graph;
mod growing_lists;
mod templates;

#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/examining.rs"]
mod examining;

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Sets the working directory to the repository root, because the tests use paths relative to it.
fn change_to_root() {
    std::env::set_current_dir(ROOT).unwrap();
}
