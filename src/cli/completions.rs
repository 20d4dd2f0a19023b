//! `completions`: print what a shell needs to complete commands and options.

use std::io::Write;

use clap::builder::PossibleValuesParser;
use clap::{Args, Command, CommandFactory};
use clap_complete::{Shell, generate};

use crate::check::diagnostics::DIAGNOSTICS;
use crate::cli::arguments::Arguments;
use crate::cli::exit::Exit;
use crate::engine::error::EngineError;
use crate::engine::schemas;

/// `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// Runs the subcommand.
///
/// # Errors
/// When standard output cannot be written to.
pub fn completions(options: &Completions) -> Result<Exit, EngineError> {
    let mut script = Vec::new();
    generate(options.shell, &mut command(), "bcc-script", &mut script);
    let mut output = std::io::stdout().lock();
    match output.write_all(&script).and_then(|()| output.flush()) {
        // Nobody reads on, as under `| head`: that is their business.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(EngineError::failed(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(Exit::Done),
    }
}

/// The whole command line, with the names that a shell may offer where any text is taken: a name that is mistyped gets a
/// message of its own from each command, so they are no choices to the parser.
fn command() -> Command {
    let schemas: Vec<&'static str> = schemas::list().into_iter().map(|(name, _)| name).collect();
    let findings: Vec<&'static str> = DIAGNOSTICS.iter().map(|page| page.slug).collect();
    let offered = |name: &'static str, values: Vec<&'static str>| {
        move |command: Command| {
            command.mut_arg(name, |argument| argument.value_parser(PossibleValuesParser::new(values)))
        }
    };
    Arguments::command()
        .mut_subcommand("schema", offered("name", schemas))
        .mut_subcommand("explain", offered("name", findings))
}
