//! The `bcc-script` program: arguments in, exit code out. Everything else is in the library.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Checking a large file allocates and frees a million small nodes; see docs/performance.md.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(bcc_script::cli::cli::main(std::env::args_os()))
}
