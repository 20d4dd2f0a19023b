//! Which store a command reads: the one that is named, or that of a project.

use std::path::{Path, PathBuf};

use clap::Args;

use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::{Project, absolute};
use bcc_engine::store_access::{check_store, is_named, store_path};

/// Where sessions are looked for.
#[derive(Clone, Debug, Default, Args)]
pub struct StoreArgs {
    /// Session store [default: BCC_STORE, otherwise .bcc/sessions.db in the current project]
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
    /// The store at this path.
    pub fn at(path: PathBuf) -> Self {
        Self { project: None, store: StoreArgs { store: Some(path) } }
    }

    /// Whether the command line names the store, so that it is an error if there is none.
    pub fn is_named(&self) -> bool {
        self.store.store.is_some()
    }

    /// The path of the store. If it is set, the project is not read.
    ///
    /// # Errors
    /// The project cannot be read, or its store belongs to somebody else ([`check_store`]).
    pub fn path(&self, environment: &Environment) -> Result<PathBuf, EngineError> {
        if let Some(path) = &self.store.store {
            return Ok(absolute(path));
        }
        let project = Project::of(Path::new("."), self.project.as_deref(), false, environment)?;
        let path = store_path(&project, environment, None);
        check_store(&path, &project, is_named(None, environment))?;
        Ok(path)
    }
}
