//! Writes the reports that are due at the end of a session: the one that its script names, and that of a deployment with a state file.

use bcc_lang::message::msg;
use bcc_lang::script::report::ReportFormat;

use crate::cli::language::chosen;
use crate::cli::output_form::{OutputForm, check_output, check_target};
use crate::cli::print::save_conversation;
use crate::cli::report;
use bcc_engine::error::EngineError;
use bcc_engine::report::write::{report_text, write_script_report};
use bcc_engine::state_file::keeper::StateFileKeeper;
use bcc_runtime::run::session::Session;
use bcc_store::contract::Store;

/// Writes the report that the script of a session names, and that of its state file, if the session is over. Returns whether nothing
/// failed; a failure is reported, and does not affect the session.
pub async fn write_report_of(session: &Session, store: &dyn Store, state_file: Option<&StateFileKeeper>) -> bool {
    let named = write_script_report(session, store, chosen()).await.map(|path| path.map(str::to_owned));
    let of_deployment = match state_file.filter(|_| session.status().is_final()) {
        Some(keeper) => write_deployment_report(session, store, keeper).await,
        None => Ok(None),
    };
    let mut written = true;
    for result in [named, of_deployment] {
        match result {
            Ok(Some(path)) => report::quiet(&msg!("the report is in {path}")),
            Ok(None) => {}
            Err(error) => {
                report::error(&error);
                written = false;
            }
        }
    }
    written
}

/// Writes the report of a deployment beside its state file. A file that is not such a report is not replaced.
async fn write_deployment_report(
    session: &Session,
    store: &dyn Store,
    keeper: &StateFileKeeper,
) -> Result<Option<String>, EngineError> {
    let Some(path) = keeper.report_path() else { return Ok(None) };
    check_target(&path)?;
    check_output(&path, OutputForm::Report(ReportFormat::Markdown), false)?;
    let text = report_text(store, &session.id, ReportFormat::Markdown, chosen()).await?;
    save_conversation(&path, text.as_bytes())?;
    Ok(Some(path.display().to_string()))
}
