//! `sessions export`: a session as a document, to standard output or into a file.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::Path;

use clap::ValueEnum;

use crate::cli::exit::Exit;
use crate::cli::language::chosen;
use crate::cli::print::{keep, print};
use crate::cli::report;
use bcc_engine::error::EngineError;
use bcc_engine::export::make_document_public;
use bcc_engine::markdown::markdown;
use bcc_engine::notebook_file::write::{NotebookFileRequest, cell_count, page_of, write_file, write_to};
use bcc_lang::message::language::Language;
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
    archive: &dyn Store,
    id: &str,
    format: Option<ExportFormat>,
    calls: bool,
    output: Option<&Path>,
) -> Result<Exit, EngineError> {
    let format = format.or_else(|| output.and_then(of_ending)).unwrap_or(ExportFormat::Json);
    if let Some(path) = output.filter(|path| path.is_dir()) {
        let path = path.display();
        return Err(EngineError::usage(msg!("{path} is a directory, but the document is a single file"))
            .with_help("specify a file name, as in `-o notebook.ipynb`"));
    }
    let form = match format {
        ExportFormat::Json => None,
        ExportFormat::Md => Some(ExportForm::Markdown),
        ExportFormat::Html => Some(ExportForm::Html),
        ExportFormat::Ipynb => Some(ExportForm::Ipynb),
    };
    let cells = cell_count(archive, id).await?;
    let Some(form) = form.filter(|form| cells > 0 || *form == ExportForm::Ipynb) else {
        return whole(&document(archive, id, format, calls).await?, output);
    };
    if cells == 0 {
        report::quiet(&msg!("session {id} has no cells: its notebook is empty"));
    }
    let asked = NotebookFileRequest { session: id.to_owned(), form, language: chosen() };
    match output {
        Some(path) => drop(write_file(archive, &asked, path).await?),
        None => {
            // Line ends inside of what is written are its own; the last one is that of the printing.
            let mut held = String::new();
            let mut write = |text: &str| {
                held.push_str(text);
                match held.rfind('\n') {
                    Some(at) if at > 0 => {
                        let rest = held.split_off(at);
                        print(&held)?;
                        held = rest.get(1..).unwrap_or_default().to_owned();
                        Ok(())
                    }
                    _ => Ok(()),
                }
            };
            write_to(archive, &asked, &mut write).await?;
            if !held.is_empty() {
                print(&held)?;
            }
        }
    }
    Ok(Exit::Done)
}

fn of_ending(path: &Path) -> Option<ExportFormat> {
    Some(match ExportForm::of_path(path)? {
        ExportForm::Ipynb => ExportFormat::Ipynb,
        ExportForm::Markdown => ExportFormat::Md,
        ExportForm::Html => ExportFormat::Html,
    })
}

/// A document that is not written cell by cell.
async fn document(archive: &dyn Store, id: &str, format: ExportFormat, calls: bool) -> Result<String, EngineError> {
    let mut document = bcc_engine::export::document(archive, id, calls).await?;
    match format {
        ExportFormat::Json => {
            make_document_public(&mut document);
            serde_json::to_string_pretty(&document)
                .map_err(|error| EngineError::failed(Message::text(error.to_string())))
        }
        ExportFormat::Html => {
            let asked = NotebookFileRequest { session: id.to_owned(), form: ExportForm::Html, language: chosen() };
            let page = page_of(archive, &asked, markdown(&document, chosen())).await?;
            Ok(page.trim_end().to_owned())
        }
        ExportFormat::Md | ExportFormat::Ipynb => Ok(markdown(&document, Language::English)),
    }
}

fn whole(text: &str, output: Option<&Path>) -> Result<Exit, EngineError> {
    match output {
        Some(path) => keep(path, format!("{text}\n").as_bytes())?,
        None => print(text)?,
    }
    Ok(Exit::Done)
}
