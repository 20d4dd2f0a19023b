//! What the check finds in templates, and where routes lead.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout, unreachable_pub)]

mod graph;
mod templates;

#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/examining.rs"]
mod examining;

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Files of the repository are named from its root, wherever a runner starts this binary.
fn at_root() {
    std::env::set_current_dir(ROOT).unwrap();
}
