//! `sessions export --all`: writes many sessions as a data set into a folder.

use std::path::Path;

use bcc_lang::message::msg;

use crate::cli::exit::Exit;
use crate::cli::language::chosen;
use crate::cli::report;
use bcc_engine::data_set::export::export_data_set;
use bcc_engine::data_set::request::{DataSetFormat, DataSetRequest};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_store::contract::Store;
use bcc_store::rows::SessionFilter;

/// How many sessions that could not be read are named on the terminal.
const MAX_SHOWN: usize = 20;

pub async fn export_sessions(
    store: &dyn Store,
    filter: SessionFilter,
    format: DataSetFormat,
    include_sensitive: bool,
    folder: &Path,
    environment: &Environment,
) -> Result<Exit, EngineError> {
    let request = DataSetRequest { filter, format, include_sensitive, language: chosen() };
    let written = export_data_set(store, environment, &request, folder).await?;
    for (id, reason) in written.failures.iter().take(MAX_SHOWN) {
        report::note(&msg!("session `{id}` was left out, because it cannot be read: {reason}"));
    }
    if written.failed > MAX_SHOWN as u64 {
        report::note(&msg!("{} sessions were left out in all", written.failed));
    }
    match written.continued {
        0 => {}
        1 => report::note(&msg!("1 session was left out, because another one continues it from a step")),
        count => report::note(&msg!("{count} sessions were left out, because others continue them from a step")),
    }
    match written.repeated {
        0 => {}
        1 => report::note(&msg!("1 session was left out, because it gives the answers of another one again")),
        count => {
            report::note(&msg!("{count} sessions were left out, because they give the answers of other ones again"))
        }
    }
    let path = folder.display();
    let sessions = match written.sessions {
        1 => msg!("1 session"),
        count => msg!("{count} sessions"),
    };
    report::note(&match written.scripts {
        1 => msg!("exported {sessions} of 1 script to {path}"),
        count => msg!("exported {sessions} of {count} scripts to {path}"),
    });
    Ok(if written.failed == 0 { Exit::Done } else { Exit::Failed })
}
