//! A real Jupyter kernel: what code puts out, what it may do to itself and to us, and what is left of it afterwards. Where there
//! is no kernel, these tests say so and pass (CONTRIBUTING.md, "A kernel for the tests").
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, missing_docs)]
#![allow(clippy::print_stderr, clippy::print_stdout, unreachable_pub)] // said where there is no kernel; said to the test that kills it
#![cfg(feature = "jupyter")]

#[path = "support/process.rs"]
mod process;
#[path = "support/kernel.rs"]
mod support;

#[path = "kernel/bench.rs"]
mod bench;
#[path = "kernel/death.rs"]
mod death;
#[path = "kernel/late.rs"]
mod late;
#[path = "kernel/outputs.rs"]
mod outputs;
#[path = "kernel/session.rs"]
mod session;
#[path = "kernel/time.rs"]
mod time;
#[path = "kernel/variables.rs"]
mod variables;
