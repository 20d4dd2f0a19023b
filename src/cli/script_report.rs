//! Writes the report that the script of a session names, at the end of the session.

use bcc_lang::message::msg;

use crate::cli::language::chosen;
use crate::cli::report;
use bcc_engine::report::write::write_script_report;
use bcc_runtime::run::session::Session;
use bcc_store::contract::Store;

/// Writes the report that the script of a session names, if the session is over. Returns whether nothing failed; a failure is
/// reported, and does not affect the session.
pub async fn write_report_of(session: &Session, store: &dyn Store) -> bool {
    match write_script_report(session, store, chosen()).await {
        Ok(path) => {
            if let Some(path) = path {
                report::quiet(&msg!("the report is in {path}"));
            }
            true
        }
        Err(error) => {
            report::error(&error);
            false
        }
    }
}
