//! `bcc-script`: an interpreter for declarative YAML scripts of model-driven conversations and workflows, as a library.
//!
//! A [`Project`] is a folder with scripts, templates and a configuration. An [`Engine`] runs sessions of its scripts and stores
//! them in a [`Store`]. [`Engine::start`] starts a session in a task and returns a [`SessionHandle`], which accepts answers and
//! delivers [`SessionEvent`]s.
//!
//! ```
//! use std::sync::Arc;
//!
//! use bcc_script::{Engine, Environment, Event, MemoryStore, Project, RunRequest, SessionEvent, Speaker};
//!
//! # async fn talk(file: &std::path::Path) -> Result<(), bcc_script::EngineError> {
//! let environment = Environment::of_process();
//! let project = Project::of(file, None, false, &environment)?;
//! let engine = Engine::new(project, environment, Arc::new(MemoryStore::default()));
//!
//! let mut session = engine.start(&RunRequest { file: file.into(), ..RunRequest::default() }).await?;
//! while let Some(event) = session.next().await {
//!     let SessionEvent::Committed { event, .. } = event else { continue };
//!     match *event {
//!         Event::Message { role: Speaker::Ai, text, .. } => println!("{text}"),
//!         Event::Waiting { answer_id, .. } => {
//!             session.answer("what the person says", Some(&answer_id)).await?;
//!         }
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! An engine has no tools, no budget of its own and the clock of the machine, unless it is given others:
//!
//! ```
//! use std::sync::Arc;
//!
//! use bcc_script::{Budget, Clock, ConfiguredTools, Engine, PromptLanguage};
//!
//! struct OneDay;
//!
//! impl Clock for OneDay {
//!     fn at(&self, _: u64) -> String {
//!         "2026-11-21T20:05:00.000000Z".to_owned()
//!     }
//!
//!     fn elapsed_ms(&self) -> u64 {
//!         0
//!     }
//!
//!     fn prompt_time(&self, _: u64, _: PromptLanguage) -> String {
//!         "2026-11-21 20:05 (Saturday)".to_owned()
//!     }
//!
//!     fn instant(&self, _: &str) -> Option<String> {
//!         None
//!     }
//! }
//!
//! # fn configure(engine: Engine) -> Engine {
//! engine
//!     .with_tools(Arc::new(ConfiguredTools))
//!     .with_budget(Budget { turns: Some(20), ..Budget::default() })
//!     .with_clock(Arc::new(OneDay))
//! # }
//! ```
//!
//! [`Engine::with_store`] stores sessions in SQLite; [`Engine::start_resumed`] resumes a session after any interruption. All types are
//! `Send`: sessions run on any tokio runtime, single-threaded or multi-threaded. `docs/embedding.md` in the repository has more,
//! and a client of `--json` for programs in other languages.

#![warn(missing_docs)]

pub use bcc_engine::engine::{Engine, ResumeRequest, RunRequest};
pub use bcc_engine::environment::Environment;
pub use bcc_engine::error::EngineError;
pub use bcc_engine::handle::{SessionEvent, SessionHandle};
pub use bcc_engine::project::Project;
pub use bcc_engine::tool_source::ToolSource;
pub use bcc_lang::message::message::Message;
pub use bcc_lang::source::diagnostic::Diagnostic;
pub use bcc_lang::template::language::PromptLanguage;
pub use bcc_lang::value::exact::{ExactValue, ExactValues};
pub use bcc_runtime::effects::tools::{
    ToolCall, ToolDescription, ToolError, ToolInputRequest, ToolLimits, ToolOutput, ToolProgress, Tools,
};
pub use bcc_runtime::program::clock::Clock;
pub use bcc_runtime::program::decision::DecisionKind;
pub use bcc_runtime::program::event::{Event, Speaker};
pub use bcc_runtime::program::limits::Budget;
pub use bcc_runtime::program::location::EventLocation;
pub use bcc_runtime::program::outcome::Outcome;
pub use bcc_runtime::run::approval_decision::ApprovalDecision;
pub use bcc_runtime::run::session::{SessionPause, TakenAnswer};
pub use bcc_runtime::run::take_back::TakenBack;
pub use bcc_store::contract::{LockNotice, LockReply, LockRequest, SessionLock, Store};
pub use bcc_store::error::StoreError;
pub use bcc_store::link_contract::LinkStore;
pub use bcc_store::memory::MemoryStore;
pub use bcc_store::plan_contract::PlanStore;
pub use bcc_store::{link_rows, plan_rows, rows};
pub use bcc_tools::project_tools::ConfiguredTools;

#[doc(hidden)]
pub mod cli;
