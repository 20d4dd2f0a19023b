//! `sessions export`: writes a session as a document, to standard output or to a file; many sessions in `data_set.rs`.

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::cli::data_set::export_sessions;
use crate::cli::exit::Exit;
use crate::cli::language::chosen;
use crate::cli::output_form::{OutputForm, check_output};
use crate::cli::print::{print, print_json_text, save_conversation};
use crate::cli::report;
use crate::cli::session_list::SessionFilterArgs;
use crate::cli::sessions::{Access, open_existing};
use crate::cli::store_args::ProjectStoreArgs;
use bcc_engine::data_set::request::DataSetFormat;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::export::make_document_public;
use bcc_engine::exported_state::{protocol_state, why_unreadable};
use bcc_engine::find_session::find_session;
use bcc_engine::markdown::{DocumentDetails, Medium, markdown};
use bcc_engine::notebook_file::pictures::PictureFolder;
use bcc_engine::notebook_file::write::{NotebookFileRequest, cell_count, page_of, write_file, write_to};
use bcc_runtime::notebook::export::form::ExportForm;
use bcc_store::contract::Store;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON document
    Json,
    /// The notebook as Markdown, or the transcript if there are no cells
    Md,
    /// The notebook as an HTML page, or the transcript if there are no cells
    Html,
    /// The notebook for Jupyter (nbformat 4.5)
    Ipynb,
    /// The state of the notebook in the behavior protocol: `run FILE` goes on from it
    Protocol,
    /// With --all: tables as CSV
    Csv,
    /// With --all: tables as JSON Lines, one object for each session
    Jsonl,
    /// With --all: tables as Parquet
    Parquet,
    /// With --all: projects for tools of qualitative analysis (REFI-QDA)
    Qdpx,
}

/// The format of a single session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DocumentFormat {
    Json,
    Md,
    Html,
    Ipynb,
    Protocol,
}

/// What a format is for.
enum FormatUse {
    Document(DocumentFormat),
    DataSet(DataSetFormat),
}

impl ExportFormat {
    fn used_for(self) -> FormatUse {
        match self {
            Self::Json => FormatUse::Document(DocumentFormat::Json),
            Self::Md => FormatUse::Document(DocumentFormat::Md),
            Self::Html => FormatUse::Document(DocumentFormat::Html),
            Self::Ipynb => FormatUse::Document(DocumentFormat::Ipynb),
            Self::Protocol => FormatUse::Document(DocumentFormat::Protocol),
            Self::Csv => FormatUse::DataSet(DataSetFormat::Csv),
            Self::Jsonl => FormatUse::DataSet(DataSetFormat::JsonLines),
            Self::Parquet => FormatUse::DataSet(DataSetFormat::Parquet),
            Self::Qdpx => FormatUse::DataSet(DataSetFormat::Qdpx),
        }
    }
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Session id, or its beginning if that is unique
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub id: Option<String>,
    /// Export all sessions, or those that are selected, as a data set in the folder of --output
    #[arg(long, requires = "output", conflicts_with_all = ["calls", "force"])]
    pub all: bool,
    #[command(flatten)]
    pub filter: SessionFilterArgs,
    /// Include sensitive values and the ids of users
    #[arg(long, requires = "all")]
    pub include_sensitive: bool,
    /// Format [default: from the extension of --output, otherwise json; with --all csv]
    #[arg(long, value_enum)]
    pub format: Option<ExportFormat>,
    /// Of JSON: include prompts and raw replies
    #[arg(long)]
    pub calls: bool,
    /// Of Markdown: write pictures to files in this folder, which must be beside the document
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    pub pictures: Option<PathBuf>,
    /// Of HTML: let charts and other outputs run their own scripts, each in a frame that reaches nothing else
    #[arg(long, conflicts_with = "all")]
    pub run_scripts: bool,
    /// Write to this file instead of standard output, with --all to this folder; missing directories are created
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Replace an existing file whatever it contains, not only a document of the same form
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub store: ProjectStoreArgs,
}

pub async fn export(options: ExportArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let ExportArgs {
        id,
        all: _,
        filter,
        include_sensitive,
        format,
        calls,
        pictures,
        run_scripts,
        output,
        force,
        store,
    } = options;
    let Some(id) = id else {
        let format = match format.map(ExportFormat::used_for) {
            None => DataSetFormat::Csv,
            Some(FormatUse::DataSet(format)) => format,
            Some(FormatUse::Document(_)) => {
                return Err(EngineError::usage("this format is for a single session")
                    .with_help("with `--all`, choose csv, jsonl, parquet or qdpx"));
            }
        };
        let store = open_existing(&store, environment, Access::Read)?;
        let folder = output.unwrap_or_default();
        return export_sessions(store.as_ref(), filter.filter()?, format, include_sensitive, &folder, environment)
            .await;
    };
    if filter.is_given() {
        return Err(EngineError::usage("`--script`, `--status`, `--user` and `--since` select sessions for `--all`")
            .with_help("omit the id of the session, and add `--all`"));
    }
    let format = match format.map(ExportFormat::used_for) {
        None => None,
        Some(FormatUse::Document(format)) => Some(format),
        Some(FormatUse::DataSet(_)) => {
            return Err(EngineError::usage("this format is for a data set of many sessions")
                .with_help("omit the id of the session, and add `--all`"));
        }
    };
    let store = open_existing(&store, environment, Access::Read)?;
    let id = find_session(store.as_ref(), &id).await?;
    let details = ExportDetails { calls, pictures, runs_scripts: run_scripts, force };
    export_as(store.as_ref(), &id, format, details, output.as_deref()).await
}

/// What an export contains, and what it may replace.
struct ExportDetails {
    calls: bool,
    pictures: Option<PathBuf>,
    runs_scripts: bool,
    force: bool,
}

async fn export_as(
    store: &dyn Store,
    id: &str,
    format: Option<DocumentFormat>,
    details: ExportDetails,
    output: Option<&Path>,
) -> Result<Exit, EngineError> {
    let ExportDetails { calls, pictures, runs_scripts, force } = details;
    if let Some(path) = output.filter(|path| path.is_dir()) {
        let path = path.display();
        return Err(EngineError::usage(msg!("{path} is a directory, but the document is a single file"))
            .with_help("specify a file name, as in `-o notebook.ipynb`"));
    }
    let format = match (format, output) {
        (Some(format), _) => format,
        (None, Some(path)) => format_of_file(path)?,
        (None, None) => DocumentFormat::Json,
    };
    if calls && format != DocumentFormat::Json {
        return Err(EngineError::usage("`--calls` is for JSON: add `--format json`"));
    }
    if pictures.is_some() && format != DocumentFormat::Md {
        return Err(EngineError::usage("`--pictures` is for Markdown: add `--format md`"));
    }
    if runs_scripts && format != DocumentFormat::Html {
        return Err(EngineError::usage("`--run-scripts` is for HTML: add `--format html`"));
    }
    let form = match format {
        DocumentFormat::Json | DocumentFormat::Protocol => None,
        DocumentFormat::Md => Some(ExportForm::Markdown),
        DocumentFormat::Html => Some(ExportForm::Html),
        DocumentFormat::Ipynb => Some(ExportForm::Ipynb),
    };
    if let Some(path) = output {
        let written = match format {
            DocumentFormat::Json => OutputForm::Session,
            DocumentFormat::Md => OutputForm::Markdown,
            DocumentFormat::Html => OutputForm::Page,
            DocumentFormat::Ipynb => OutputForm::Notebook,
            DocumentFormat::Protocol => OutputForm::ProtocolState,
        };
        check_output(path, written, force)?;
    }
    let cells = cell_count(store, id).await?;
    let Some(form) = form.filter(|form| cells > 0 || *form == ExportForm::Ipynb) else {
        return write_document(&document(store, id, format, calls).await?, format, output);
    };
    if cells == 0 {
        report::quiet(&msg!("session {id} has no cells: its notebook is empty"));
    }
    let folder = pictures.as_deref().map(|folder| PictureFolder::for_document(folder, output)).transpose()?;
    let request = NotebookFileRequest::new(id, form, chosen());
    let request = NotebookFileRequest { pictures: folder, runs_scripts, ..request };
    match output {
        Some(path) => drop(write_file(store, &request, path).await?),
        None => {
            let print = if form == ExportForm::Ipynb { print_json_text } else { print };
            // Printing adds a line end, so the text is printed up to its last line end, and the remainder is buffered.
            let mut buffered = String::new();
            let mut write = |text: &str| {
                buffered.push_str(text);
                match buffered.rfind('\n') {
                    Some(at) if at > 0 => {
                        let rest = buffered.split_off(at);
                        print(&buffered)?;
                        buffered = rest.get(1..).unwrap_or_default().to_owned();
                        Ok(())
                    }
                    _ => Ok(()),
                }
            };
            write_to(store, &request, &mut write).await?;
            if !buffered.is_empty() {
                print(&buffered)?;
            }
        }
    }
    Ok(Exit::Done)
}

/// The format that the extension of a file selects; JSON if it has none.
fn format_of_file(path: &Path) -> Result<DocumentFormat, EngineError> {
    match ExportForm::of_path(path) {
        Some(ExportForm::Ipynb) => return Ok(DocumentFormat::Ipynb),
        Some(ExportForm::Markdown) => return Ok(DocumentFormat::Md),
        Some(ExportForm::Html) => return Ok(DocumentFormat::Html),
        None => {}
    }
    match path.extension() {
        None => Ok(DocumentFormat::Json),
        Some(extension) if extension.eq_ignore_ascii_case("json") => Ok(DocumentFormat::Json),
        Some(extension) => {
            let extension = extension.to_string_lossy();
            let message = msg!("a session cannot be exported to a file with the extension `.{extension}`");
            Err(EngineError::usage(message)
                .with_help("use `.json`, `.md`, `.html` or `.ipynb`, or select a format with `--format`"))
        }
    }
}

/// A document as JSON for people. The digits of its numbers are those that were written.
fn pretty(document: &impl serde::Serialize) -> Result<String, EngineError> {
    serde_json::to_string_pretty(document).map_err(|error| EngineError::failed(error.to_message()))
}

/// The complete text of a document that is not written cell by cell.
async fn document(store: &dyn Store, id: &str, format: DocumentFormat, calls: bool) -> Result<String, EngineError> {
    if format == DocumentFormat::Protocol {
        let state = pretty(&protocol_state(store, id).await?)?;
        if let Some(why) = why_unreadable(&state) {
            report::quiet(&msg!("no session can begin from this state: {why}"));
        }
        return Ok(state);
    }
    let mut document = bcc_engine::export::document(store, id, calls).await?;
    match format {
        DocumentFormat::Json => {
            document.change(make_document_public);
            pretty(&document)
        }
        DocumentFormat::Html => {
            let request = NotebookFileRequest::new(id, ExportForm::Html, chosen());
            let details = DocumentDetails::of_session(store, id, Medium::Markdown).await?;
            let page = page_of(store, &request, markdown(&document, &details, chosen())).await?;
            Ok(page.trim_end().to_owned())
        }
        DocumentFormat::Md | DocumentFormat::Ipynb | DocumentFormat::Protocol => {
            let details = DocumentDetails::of_session(store, id, Medium::Markdown).await?;
            Ok(markdown(&document, &details, chosen()))
        }
    }
}

fn write_document(text: &str, format: DocumentFormat, output: Option<&Path>) -> Result<Exit, EngineError> {
    match output {
        Some(path) => save_conversation(path, format!("{text}\n").as_bytes())?,
        None if matches!(format, DocumentFormat::Json | DocumentFormat::Protocol) => print_json_text(text)?,
        None => print(text)?,
    }
    Ok(Exit::Done)
}
