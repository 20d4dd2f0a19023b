//! `man`: prints or writes the manual pages.

use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use clap::{Args, Command};

use crate::cli::exit::Exit;
use crate::cli::output_form::{OutputForm, check_output};
use crate::cli::print::{print_translated, save, write_out};
use bcc_engine::error::EngineError;

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Directory for the pages, one for each command; existing pages are overwritten [default: print the main page]
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Replace existing files whatever they contain, not only pages of this program
    #[arg(long)]
    pub force: bool,
}

/// `command`: the command line of the program.
pub fn man(options: &ManArgs, command: Command) -> Result<Exit, EngineError> {
    // Otherwise `help` would be a command with pages for all others below it. Pages are always in English, because other people may
    // read them later.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let Some(directory) = &options.directory else {
        let (_, page) = page(command)?;
        write_out(&page)?;
        return Ok(Exit::Done);
    };
    if directory.exists() && !directory.is_dir() {
        return Err(EngineError::usage(msg!(
            "{path} is a file, but the pages need a directory",
            path = directory.display()
        )));
    }
    let written = write_pages(&command, directory, options.force)?;
    print_translated(&msg!("{written} pages written to {path}", path = directory.display()))?;
    Ok(Exit::Done)
}

/// Writes the pages of `command` and its subcommands. Returns their number.
fn write_pages(command: &Command, directory: &Path, force: bool) -> Result<usize, EngineError> {
    let (name, page) = page(command.clone())?;
    let path = directory.join(name);
    check_output(&path, OutputForm::ManualPage, force)?;
    save(&path, &page)?;
    let subcommands = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    subcommands.map(|subcommand| write_pages(subcommand, directory, force)).try_fold(1, |sum, count| Ok(sum + count?))
}

/// The file name and the page of one command.
fn page(command: Command) -> Result<(String, Vec<u8>), EngineError> {
    let man = clap_mangen::Man::new(command).source(concat!("bcc-script ", env!("CARGO_PKG_VERSION")));
    let mut page = Vec::new();
    man.render(&mut page).map_err(|error| EngineError::failed(msg!("a page cannot be generated: {error}")))?;
    Ok((man.get_filename(), page))
}
