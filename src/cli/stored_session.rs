//! Opens a stored session for commands that act on it from outside of its conversation: decisions, answers, `cancel`, `tick`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_lang::message::msg;
use clap::Args;

use crate::cli::drive::ResumeHint;
use crate::cli::run::hint_of;
use crate::cli::store_args::StoreArgs;
use bcc_engine::engine::{Engine, OpenedSession, ResumeRequest};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::{Project, given_directory};
use bcc_engine::store_access::store_place;
use bcc_runtime::program::event::Observer;
use bcc_tools::project_tools::ConfiguredTools;

/// The project and the store of the session, as for `sessions resume`.
#[derive(Clone, Debug, Default, Args)]
pub struct StoredSessionArgs {
    /// Project whose settings and permissions the session uses [default: BCC_PROJECT, otherwise the current project]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Trust the project for this run, as with BCC_TRUST=1
    #[arg(long)]
    pub trust: bool,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// An engine over an existing store.
pub struct StoredSessions {
    pub engine: Engine,
    pub hint: ResumeHint,
    any_project: bool,
}

impl StoredSessions {
    /// Opens the store.
    /// Errors: there is none, or it cannot be opened.
    pub fn open(options: &StoredSessionArgs, environment: &Environment) -> Result<Self, EngineError> {
        Self::open_for(Path::new("."), options, environment)
    }

    /// Opens the store of the project of this file or directory.
    /// Errors: as [`StoredSessions::open`].
    pub fn open_for(path: &Path, options: &StoredSessionArgs, environment: &Environment) -> Result<Self, EngineError> {
        let given = options.project.as_deref();
        let project = Project::of(path, given, options.trust, environment)?;
        let any_project = given_directory(given, environment)?.is_some();
        let place = store_place(&project, environment, options.store.store.as_deref());
        if !place.exists() {
            return Err(EngineError::usage(msg!("there is no store at {path}", path = place.named().display()))
                .with_help("specify the store with `--store`"));
        }
        let hint = ResumeHint { trust: options.trust, ..hint_of(&project, &place, environment) };
        let engine = Engine::with_store(project, environment.clone(), options.store.store.as_deref())?
            .with_tools(Arc::new(ConfiguredTools));
        Ok(Self { engine, hint, any_project })
    }

    /// Opens a session, as `sessions resume` does.
    /// Errors: it is over, another process runs it, or it cannot be opened.
    pub async fn session(&self, id: &str, observer: Arc<dyn Observer>) -> Result<OpenedSession, EngineError> {
        let request = ResumeRequest { any_project: self.any_project, ..ResumeRequest::default() };
        self.engine.resume_as(id, &request, observer).await
    }
}

/// Shows nothing: whoever acts on a session from outside is not the person in its conversation.
#[derive(Debug)]
pub struct Silent;

impl Observer for Silent {
    fn committed(&self, _committed: &bcc_runtime::program::event::Committed<'_>) {}

    fn delta(&self, _delta: &bcc_runtime::program::event::Delta<'_>) {}
}
