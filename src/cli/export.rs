//! `sessions export`: writes a session as a document, to standard output or to a file.

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::msg;
use std::path::Path;

use clap::ValueEnum;

use crate::cli::exit::Exit;
use crate::cli::language::chosen;
use crate::cli::output_form::{OutputForm, check_output};
use crate::cli::print::{print, print_json_text, save};
use crate::cli::report;
use bcc_engine::error::EngineError;
use bcc_engine::export::make_document_public;
use bcc_engine::markdown::{DocumentDetails, Medium, markdown};
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
}

pub async fn export_as(
    store: &dyn Store,
    id: &str,
    format: Option<ExportFormat>,
    calls: bool,
    output: Option<&Path>,
    force: bool,
) -> Result<Exit, EngineError> {
    if let Some(path) = output.filter(|path| path.is_dir()) {
        let path = path.display();
        return Err(EngineError::usage(msg!("{path} is a directory, but the document is a single file"))
            .with_help("specify a file name, as in `-o notebook.ipynb`"));
    }
    let format = match (format, output) {
        (Some(format), _) => format,
        (None, Some(path)) => format_of_file(path)?,
        (None, None) => ExportFormat::Json,
    };
    let form = match format {
        ExportFormat::Json => None,
        ExportFormat::Md => Some(ExportForm::Markdown),
        ExportFormat::Html => Some(ExportForm::Html),
        ExportFormat::Ipynb => Some(ExportForm::Ipynb),
    };
    if let Some(path) = output {
        let written = match format {
            ExportFormat::Json => OutputForm::Session,
            ExportFormat::Md => OutputForm::Markdown,
            ExportFormat::Html => OutputForm::Page,
            ExportFormat::Ipynb => OutputForm::Notebook,
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
    let request = NotebookFileRequest { session: id.to_owned(), form, language: chosen() };
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
fn format_of_file(path: &Path) -> Result<ExportFormat, EngineError> {
    match ExportForm::of_path(path) {
        Some(ExportForm::Ipynb) => return Ok(ExportFormat::Ipynb),
        Some(ExportForm::Markdown) => return Ok(ExportFormat::Md),
        Some(ExportForm::Html) => return Ok(ExportFormat::Html),
        None => {}
    }
    match path.extension() {
        None => Ok(ExportFormat::Json),
        Some(extension) if extension.eq_ignore_ascii_case("json") => Ok(ExportFormat::Json),
        Some(extension) => {
            let extension = extension.to_string_lossy();
            let message = msg!("a session cannot be exported to a file with the extension `.{extension}`");
            Err(EngineError::usage(message)
                .with_help("use `.json`, `.md`, `.html` or `.ipynb`, or select a format with `--format`"))
        }
    }
}

/// The complete text of a document that is not written cell by cell.
async fn document(store: &dyn Store, id: &str, format: ExportFormat, calls: bool) -> Result<String, EngineError> {
    let mut document = bcc_engine::export::document(store, id, calls).await?;
    match format {
        ExportFormat::Json => {
            document.change(make_document_public);
            serde_json::to_string_pretty(&document).map_err(|error| EngineError::failed(error.to_message()))
        }
        ExportFormat::Html => {
            let request = NotebookFileRequest { session: id.to_owned(), form: ExportForm::Html, language: chosen() };
            let details = DocumentDetails::of_session(store, id, Medium::Markdown).await?;
            let page = page_of(store, &request, markdown(&document, &details, chosen())).await?;
            Ok(page.trim_end().to_owned())
        }
        ExportFormat::Md | ExportFormat::Ipynb => {
            let details = DocumentDetails::of_session(store, id, Medium::Markdown).await?;
            Ok(markdown(&document, &details, chosen()))
        }
    }
}

fn write_document(text: &str, format: ExportFormat, output: Option<&Path>) -> Result<Exit, EngineError> {
    match output {
        Some(path) => save(path, format!("{text}\n").as_bytes())?,
        None if format == ExportFormat::Json => print_json_text(text)?,
        None => print(text)?,
    }
    Ok(Exit::Done)
}
