//! `report`: writes a report about a session, to standard output or to a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_lang::message::msg;
use bcc_lang::script::report::ReportFormat;
use clap::{Args, ValueEnum};

use crate::cli::exit::Exit;
use crate::cli::language::chosen;
use crate::cli::output_form::{OutputForm, check_output, check_target};
use crate::cli::print::{print, print_json_text, save_conversation};
use crate::cli::sessions::{Access, open_existing};
use crate::cli::store_args::ProjectStoreArgs;
use crate::cli::stored_session::{StoredSessionArgs, StoredSessions};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::find_session::find_session;
use bcc_engine::report::write::report_text;
use bcc_engine::state_file::open::newest_session_of_file;
use bcc_store::contract::Store;

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Session id, or its beginning if that is unique; or a workflow state file, for its newest session
    pub session: String,
    /// Format [default: from the extension of --out, otherwise md]
    #[arg(long, value_enum)]
    pub format: Option<WrittenAs>,
    /// Write to this file instead of standard output; missing directories are created
    #[arg(short, long, visible_alias = "output", value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace an existing file whatever it contains, not only a report of the same format
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub store: ProjectStoreArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WrittenAs {
    /// Markdown
    Md,
    /// An HTML page
    Html,
    /// One JSON document
    Json,
}

pub async fn session_report(options: ReportArgs, environment: Environment) -> Result<Exit, EngineError> {
    options.out.as_deref().map_or(Ok(()), check_target)?;
    let format = match (options.format, options.out.as_deref()) {
        (Some(WrittenAs::Md), _) | (None, None) => ReportFormat::Markdown,
        (Some(WrittenAs::Html), _) => ReportFormat::Html,
        (Some(WrittenAs::Json), _) => ReportFormat::Json,
        (None, Some(path)) => ReportFormat::of_path(path).ok_or_else(|| {
            let path = path.display();
            EngineError::usage(msg!("the extension of {path} is none of a report"))
                .with_help("use `.md`, `.html` or `.json`, or select a format with `--format`")
        })?,
    };
    if let Some(path) = options.out.as_deref() {
        check_output(path, OutputForm::Report(format), options.force)?;
    }
    let (store, id) = match Path::new(&options.session) {
        file if file.is_file() => of_state_file(file, &options.store, &environment).await?,
        _ => {
            let store = open_existing(&options.store, &environment, Access::Read)?;
            let id = find_session(store.as_ref(), &options.session).await?;
            (store, id)
        }
    };
    let text = report_text(store.as_ref(), &id, format, chosen()).await?;
    match options.out.as_deref() {
        Some(path) => save_conversation(path, text.as_bytes())?,
        None if format == ReportFormat::Json => print_json_text(text.trim_end_matches('\n'))?,
        None => print(text.trim_end_matches('\n'))?,
    }
    Ok(Exit::Done)
}

/// The store of the project of a state file, and the newest session that carries the file.
async fn of_state_file(
    file: &Path,
    store: &ProjectStoreArgs,
    environment: &Environment,
) -> Result<(Arc<dyn Store>, String), EngineError> {
    let stored = StoredSessionArgs { project: store.project.clone(), trust: false, store: store.store.clone() };
    let sessions = StoredSessions::open_for(file, &stored, environment)?;
    let shown = file.display();
    match newest_session_of_file(&sessions.engine, file).await? {
        Some(row) => Ok((Arc::clone(sessions.engine.store()), row.id)),
        None => Err(EngineError::usage(msg!("no session of the store carries the file {shown}"))
            .with_help(msg!("`bcc-script run {shown}` runs it, if it is a workflow state file"))),
    }
}
