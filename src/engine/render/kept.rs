//! The store that a kept session is looked at in: nothing is made, held or written, not even beside its file.

use std::path::Path;

use crate::archive::sqlite::look::open_untouched;
use crate::archive::sqlite::store::SqliteArchive;
use crate::engine::engine::store_path;
use crate::engine::environment::Environment;
use crate::engine::error::EngineError;
use crate::engine::project::{Project, absolute};

/// Opens the store at `given`, else that of the project, for reading.
///
/// # Errors
/// `Usage` when there is none; else as the store says why it cannot be read.
pub fn store(given: Option<&Path>, project: &Project, environment: &Environment) -> Result<SqliteArchive, EngineError> {
    let path = match given {
        Some(path) => absolute(path),
        None => store_path(project, environment, None),
    };
    if !path.exists() {
        return Err(EngineError::usage(format!("there is no store {path}", path = path.display()))
            .with_help("run a script first, or say where the store is with `--store`"));
    }
    Ok(open_untouched(&path)?)
}
