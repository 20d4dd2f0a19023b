//! Tests of scripts, diagnostics, schemas and fixes, in process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout, unreachable_pub)]

mod configuration;
mod diagnostics;
mod mutations;
mod older_engine;
mod round_trip;
mod schema_truth;
mod scripts;
mod test_reports;
mod validate_and_run;

#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/diagnostic_page.rs"]
mod diagnostic_page;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/mutations/mutate.rs"]
mod mutate;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/mutations/path.rs"]
mod path;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/mutations/seeds.rs"]
mod seeds;

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Sets the working directory to the root of the repository.
fn at_root() {
    std::env::set_current_dir(ROOT).unwrap();
}
