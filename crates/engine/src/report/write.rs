//! Writes reports: as a text, and to the file that a script names.

use bcc_lang::message::ToMessage;
use bcc_lang::message::language::Language;
use bcc_lang::message::msg;
use bcc_lang::script::report::{ReportFile, ReportFormat};
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::run::session::Session;
use bcc_store::contract::Store;

use crate::error::EngineError;
use crate::host_services::WRITE_FILE;
use crate::report::collect::session_report;
use crate::report::html::html;
use crate::report::layout::layout;
use crate::report::markdown::markdown;

/// The report about a stored session as a document that ends with a line end. Its fixed texts are in `language`; those of the
/// JSON form are always English.
///
/// # Errors
/// There is no such session, or the store cannot be read.
pub async fn report_text(
    store: &dyn Store,
    id: &str,
    format: ReportFormat,
    language: Language,
) -> Result<String, EngineError> {
    match format {
        ReportFormat::Json => {
            let report = session_report(store, id, Language::English).await?;
            let text = serde_json::to_string_pretty(&report);
            text.map(|text| text + "\n").map_err(|error| EngineError::failed(error.to_message()))
        }
        ReportFormat::Markdown => Ok(markdown(&layout(&session_report(store, id, language).await?, language))),
        ReportFormat::Html => Ok(html(&layout(&session_report(store, id, language).await?, language), language)),
    }
}

/// Writes the report that the script of a session names, if it names one and the session is over. Whoever drives a session calls
/// this after its end. Returns the path of the file, relative to the project.
///
/// # Errors
/// The file cannot be written, or the store cannot be read; the session is not affected.
pub async fn write_script_report<'s>(
    session: &'s Session,
    store: &dyn Store,
    language: Language,
) -> Result<Option<&'s str>, EngineError> {
    let Some(file) = session.base.report.as_ref().filter(|_| session.status().is_final()) else { return Ok(None) };
    write_report_file(store, &session.id, session.host(), file, language).await?;
    Ok(Some(&file.out.value))
}

/// Writes a report about a session to a file of the project, with the checks and the permission of `write_file`.
///
/// # Errors
/// As [`write_script_report`].
pub async fn write_report_file(
    store: &dyn Store,
    id: &str,
    host: &HostServices,
    file: &ReportFile,
    language: Language,
) -> Result<(), EngineError> {
    let path = &file.out.value;
    if let Err(denied) = host.permissions.check(WRITE_FILE) {
        let error = EngineError::failed(msg!("the report {path} is not written: {reason}", reason = denied.message));
        return Err(error.with_help(denied.help));
    }
    let text = report_text(store, id, file.format, language).await?;
    let directory = &host.permissions.directory;
    host.files.write_conversation(directory, path, text.as_bytes()).map_err(|error| {
        let failed = EngineError::failed(msg!("the report {path} is not written: {reason}", reason = error.message));
        match error.help {
            Some(help) => failed.with_help(help),
            None => failed,
        }
    })
}
