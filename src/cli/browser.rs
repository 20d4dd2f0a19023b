//! Opens an address in the browser of the person.

use std::process::{Command, Stdio};

use bcc_engine::environment::Environment;

/// Starts the program that opens addresses: that of BROWSER, or that of the system. Returns whether it started; whether there is a browser,
/// only the person sees.
pub fn open(address: &str, environment: &Environment) -> bool {
    let own = environment.get("BROWSER").filter(|program| !program.is_empty());
    let (program, arguments): (&str, &[&str]) = match own {
        Some(program) => (program, &[]),
        None if cfg!(target_os = "macos") => ("open", &[]),
        // `start` takes the first text in quotes for a title.
        None if cfg!(windows) => ("cmd", &["/C", "start", ""]),
        None => ("xdg-open", &[]),
    };
    let mut command = Command::new(program);
    // A browser of the terminal would take the lines and the screen of this program.
    command.args(arguments).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
