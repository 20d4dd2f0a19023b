//! The reader of scripts: whatever the bytes, the same findings twice, all of them inside of the file.

#![no_main]
#![allow(dead_code, clippy::unwrap_used, clippy::panic, reason = "what the tests with mutations use, too")]

#[path = "../../tests/support/mutations/path.rs"]
mod path;
#[path = "../../tests/support/mutations/seeds.rs"]
mod seeds;

/// Only the list of seeds needs the root of the repository, and the fuzzer has its own.
fn at_root() {}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(problem) = path::take(seeds::Form::Script, bytes, true) {
        panic!("{problem}");
    }
});
