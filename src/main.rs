//! The `bcc-script` program: arguments in, exit code out. Everything else is the library's.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A check makes and drops a million small nodes of a large file; see docs/performance.md.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(bcc_script::cli::cli::main(std::env::args_os()))
}
