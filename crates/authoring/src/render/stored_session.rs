//! Opens the store of a stored session read-only: nothing is created, locked or written, not even auxiliary files.

use bcc_lang::message::msg;
use std::path::Path;

use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::{Project, absolute};
use bcc_engine::store_access::store_path;
use bcc_engine::store_access::{check_store, is_named};
use bcc_store::sqlite::inspect::open_immutable;
use bcc_store::sqlite::store::SqliteStore;

/// Opens the store at `given`, or that of the project, for reading.
/// Errors: `Usage` if it does not exist; otherwise the error of the store.
pub fn store(given: Option<&Path>, project: &Project, environment: &Environment) -> Result<SqliteStore, EngineError> {
    let path = match given {
        Some(path) => absolute(path),
        None => {
            let path = store_path(project, environment, None);
            check_store(&path, project, is_named(None, environment))?;
            path
        }
    };
    if !path.exists() {
        return Err(EngineError::usage(msg!("there is no store at {path}", path = path.display()))
            .with_help("run a script first, or specify the store with `--store`"));
    }
    Ok(open_immutable(&path)?)
}
