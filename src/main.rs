//! The `bcc-script` program: arguments in, exit code out. Everything else is the library's.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(bcc_script::cli::cli::main(std::env::args_os()))
}
