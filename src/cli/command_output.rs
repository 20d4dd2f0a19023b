//! `sessions output`: prints what is stored of the output of a command.

use std::path::{Path, PathBuf};

use bcc_lang::message::msg;
use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::print::{print, save_conversation};
use crate::cli::report;
use crate::cli::store_args::ProjectStoreArgs;
use bcc_engine::command_output::{StoredOutput, command_output};
use bcc_engine::error::EngineError;
use bcc_runtime::effects::output::OutputStream;
use bcc_store::contract::Store;

#[derive(Debug, Args)]
pub struct OutputOfCommandArgs {
    /// Session id, or its beginning if that is unique
    pub id: String,
    /// Id of the action [default: the last command of the session]
    pub action: Option<String>,
    /// Print the standard error instead of the standard output
    #[arg(long)]
    pub stderr: bool,
    /// Write to this file instead of standard output, with exactly the stored text
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub store: ProjectStoreArgs,
}

/// Prints what is stored of the output of a command, or writes it to `file`.
pub async fn print_command_output(
    store: &dyn Store,
    id: &str,
    action: Option<&str>,
    stream: OutputStream,
    file: Option<&Path>,
) -> Result<Exit, EngineError> {
    let StoredOutput { text, bytes, is_complete, .. } = command_output(store, id, action, stream).await?;
    match file {
        Some(file) => save_conversation(file, text.as_bytes())?,
        None => print(text.strip_suffix('\n').unwrap_or(&text))?,
    }
    if !is_complete {
        let stored = text.len();
        report::note(&msg!(
            "the command printed {bytes} bytes; {stored} bytes of text are stored: its beginning and its end"
        ));
    }
    Ok(Exit::Done)
}
