//! Opens the store of a stored session read-only: nothing is created, locked or written, not even auxiliary files.

use bcc_lang::message::msg;
use std::path::Path;
use std::sync::Arc;

use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::Project;
use bcc_engine::store_access::{check_store, is_named, store_place};
use bcc_engine::store_place::StorePlace;
use bcc_store::contract::Store;
use bcc_store::sqlite::inspect::open_immutable;

/// Opens the store at `given`, or that of the project, for reading.
/// Errors: `Usage` if it does not exist; otherwise the error of the store.
pub fn store(
    given: Option<&Path>,
    project: &Project,
    environment: &Environment,
) -> Result<Arc<dyn Store>, EngineError> {
    let place = match given {
        Some(given) => StorePlace::of(given),
        None => {
            let place = store_place(project, environment, None);
            check_store(&place, project, is_named(None, environment))?;
            place
        }
    };
    let missing = || {
        EngineError::usage(msg!("there is no store at {path}", path = place.named().display()))
            .with_help("run a script first, or specify the store with `--store`")
    };
    match place.file() {
        Some(path) if path.exists() => Ok(Arc::new(open_immutable(path)?)),
        Some(_) => Err(missing()),
        None => place.open_for_reading()?.ok_or_else(missing),
    }
}
