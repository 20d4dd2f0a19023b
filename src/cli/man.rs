//! `man`: write the manual pages.

use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use clap::{Args, Command};

use crate::cli::exit::Exit;
use crate::cli::print::{keep, tell, write_out};
use bcc_engine::error::EngineError;

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Directory for the pages, one per command; existing pages are overwritten [default: print the main page]
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

/// `whole`: the command line of the program.
pub fn man(options: &ManArgs, whole: Command) -> Result<Exit, EngineError> {
    // Without it, `help` would be a command with the pages of all others below it. Pages are in English: they are read long
    // after the language was chosen, and by others.
    let mut whole = whole.disable_help_subcommand(true);
    whole.build();
    let Some(directory) = &options.directory else {
        let (_, page) = page(whole)?;
        write_out(&page)?;
        return Ok(Exit::Done);
    };
    if directory.exists() && !directory.is_dir() {
        return Err(EngineError::usage(msg!(
            "{path} is a file, but the pages need a directory",
            path = directory.display()
        )));
    }
    let written = all(&whole, directory)?;
    tell(&msg!("{written} pages written to {path}", path = directory.display()))?;
    Ok(Exit::Done)
}

/// Writes the page of `command` and of all below it. Gives how many there are.
fn all(command: &Command, directory: &Path) -> Result<usize, EngineError> {
    let (name, page) = page(command.clone())?;
    keep(&directory.join(name), &page)?;
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below.map(|below| all(below, directory)).try_fold(1, |sum, count| Ok(sum + count?))
}

/// The page of one command, with the name of its file.
fn page(command: Command) -> Result<(String, Vec<u8>), EngineError> {
    let man = clap_mangen::Man::new(command).source(concat!("bcc-script ", env!("CARGO_PKG_VERSION")));
    let mut page = Vec::new();
    man.render(&mut page).map_err(|error| EngineError::failed(msg!("a page cannot be generated: {error}")))?;
    Ok((man.get_filename(), page))
}
