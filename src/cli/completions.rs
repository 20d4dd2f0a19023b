//! `completions`: print what a shell needs to complete commands and options.

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
    /// Shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// `whole`: the command line of the program.
pub fn completions(options: &CompletionsArgs, whole: Command) -> Result<Exit, EngineError> {
    let mut script = Vec::new();
    generate(options.shell, &mut with_names(whole), "bcc-script", &mut script);
    if options.shell == Shell::Bash {
        // clap_complete 4.6 spells a hyphen of the program's name in two ways, and then finds no command of it.
        script = String::from_utf8_lossy(&script).replace("bcc__subcmd__script", "bcc__script").into_bytes();
    }
    write_out(&script)?;
    Ok(Exit::Done)
}

/// The whole command line, with the names that a shell may offer where any text is taken: a name that is mistyped gets a
/// message of its own from each command, so they are no choices to the parser.
fn with_names(whole: Command) -> Command {
    let schemas: Vec<&'static str> = schemas::list().into_iter().map(|(name, _)| name).collect();
    let findings: Vec<&'static str> = DIAGNOSTICS.iter().map(|page| page.slug).collect();
    let offered = |name: &'static str, values: Vec<&'static str>| {
        move |command: Command| {
            command.mut_arg(name, |argument| argument.value_parser(PossibleValuesParser::new(values)))
        }
    };
    let whole =
        whole.mut_subcommand("schema", offered("name", schemas)).mut_subcommand("explain", offered("name", findings));
    without_files(whole)
}

/// The same where no file is offered for what is not one, such as an id.
fn without_files(command: Command) -> Command {
    let command = command.mut_args(|argument| match argument.get_value_hint() {
        ValueHint::Unknown if argument.get_action().takes_values() => argument.value_hint(ValueHint::Other),
        _ => argument,
    });
    command.mut_subcommands(without_files)
}
