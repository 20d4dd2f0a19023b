//! `completions`: prints a completion script for a shell.

use clap::builder::PossibleValuesParser;
use clap::{Args, Command, ValueHint};
use clap_complete::{Shell, generate};

use crate::cli::exit::Exit;
use crate::cli::print::write_out;
use bcc_authoring::schemas;
use bcc_check::diagnostics::DIAGNOSTICS;
use bcc_engine::error::EngineError;

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell to print the script for
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// `command`: the command line of the program.
pub fn completions(options: &CompletionsArgs, command: Command) -> Result<Exit, EngineError> {
    let mut script = Vec::new();
    generate(options.shell, &mut with_names(command), "bcc-script", &mut script);
    if options.shell == Shell::Bash {
        // clap_complete 4.6 encodes the hyphen in the program's name in two ways, and then does not find its subcommands.
        script = String::from_utf8_lossy(&script).replace("bcc__subcmd__script", "bcc__script").into_bytes();
    }
    write_out(&script)?;
    Ok(Exit::Done)
}

/// The command line with completions for names of schemas and diagnostics. They are not possible values of the parser, because each
/// command reports an unknown name with its own message.
fn with_names(command: Command) -> Command {
    let schemas: Vec<&'static str> = schemas::list().into_iter().map(|(name, _)| name).collect();
    let findings: Vec<&'static str> = DIAGNOSTICS.iter().map(|page| page.slug).collect();
    let offered = |name: &'static str, values: Vec<&'static str>| {
        move |command: Command| {
            command.mut_arg(name, |argument| argument.value_parser(PossibleValuesParser::new(values)))
        }
    };
    let command =
        command.mut_subcommand("schema", offered("name", schemas)).mut_subcommand("explain", offered("name", findings));
    without_files(command)
}

/// The command line without file completion for values that are not files, such as ids.
fn without_files(command: Command) -> Command {
    let command = command.mut_args(|argument| match argument.get_value_hint() {
        ValueHint::Unknown if argument.get_action().takes_values() => argument.value_hint(ValueHint::Other),
        _ => argument,
    });
    command.mut_subcommands(without_files)
}
