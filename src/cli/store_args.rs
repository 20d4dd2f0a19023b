//! Which store a command reads: the one that is named, or that of a project.

use std::path::{Path, PathBuf};

use clap::Args;

use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::Project;
use bcc_engine::store_access::{check_store, is_named, store_place};
use bcc_engine::store_place::StorePlace;

/// Where sessions are looked for.
#[derive(Clone, Debug, Default, Args)]
pub struct StoreArgs {
    /// Session store: a file, or a database (postgres://…) [default: BCC_STORE, otherwise .bcc/sessions.db in the current project]
    #[arg(long, value_name = "PATH")]
    pub store: Option<PathBuf>,
}

/// The store of a command that only reads or removes what is stored: it needs no other setting of the project.
#[derive(Clone, Debug, Default, Args)]
pub struct ProjectStoreArgs {
    /// Project whose store is used [default: BCC_PROJECT, otherwise the current project]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    #[command(flatten)]
    pub store: StoreArgs,
}

impl ProjectStoreArgs {
    /// Whether the command line or `BCC_STORE` names the store, so that it is an error if there is none.
    pub fn is_named(&self, environment: &Environment) -> bool {
        is_named(self.store.store.as_deref(), environment)
    }

    /// The place of the store. If it is set, the project is not read.
    ///
    /// # Errors
    /// The project cannot be read, or its store belongs to somebody else ([`check_store`]).
    pub fn place(&self, environment: &Environment) -> Result<StorePlace, EngineError> {
        if let Some(path) = &self.store.store {
            return Ok(StorePlace::of(path));
        }
        let project = Project::of(Path::new("."), self.project.as_deref(), false, environment)?;
        let place = store_place(&project, environment, None);
        check_store(&place, &project, is_named(None, environment))?;
        Ok(place)
    }
}
