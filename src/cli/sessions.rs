//! `sessions`: shows, exports, deletes and prunes stored sessions; `resume.rs` resumes them.

use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::sync::Arc;

use clap::Subcommand;

use crate::cli::command_output::{OutputOfCommandArgs, print_command_output};
use crate::cli::exit::Exit;
use crate::cli::export::{ExportArgs, export};
use crate::cli::front_end::FrontEnd;
use crate::cli::language::{chosen, filled};
use crate::cli::print::print;
use crate::cli::report;
use crate::cli::resume::{ResumeArgs, resume};
use crate::cli::retry::{RetryArgs, retry};
use crate::cli::session_list::{SessionListArgs, before_now, list_sessions};
use crate::cli::store_args::ProjectStoreArgs;
use bcc_engine::calls::table;
use bcc_engine::clock::stamp;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::export::document;
use bcc_engine::find_session::find_session;
use bcc_engine::left_kernel::{left_kernel, left_kernel_note};
use bcc_engine::markdown::{DocumentDetails, Medium, markdown};
use bcc_engine::notebook_file::outline::outline;
use bcc_engine::retry::related_sessions;
use bcc_engine::store_access::notice;
use bcc_engine::store_place::StorePlace;
use bcc_lang::source::render::visible::visible_line;
use bcc_runtime::effects::output::OutputStream;
use bcc_store::contract::Store;

#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// List sessions, newest first
    List(SessionListArgs),
    /// Show a session: its state, variables and transcript
    Show {
        /// Session id, or its beginning if that is unique
        id: String,
        /// Show its model calls and their cost instead
        #[arg(long)]
        calls: bool,
        #[command(flatten)]
        store: ProjectStoreArgs,
    },
    /// Resume a session
    Resume(ResumeArgs),
    /// Begin a new session from an ended one: what was done before a step is kept, and the rest runs again
    Retry(RetryArgs),
    /// Export a session as one document, or with --all many sessions as a data set
    Export(ExportArgs),
    /// Print what is stored of the output of a command
    Output(OutputOfCommandArgs),
    /// Delete a session and everything that is stored for it, even if it is unfinished
    Delete {
        /// Session id, or its beginning if that is unique
        id: String,
        #[command(flatten)]
        store: ProjectStoreArgs,
    },
    /// Delete all sessions that have not been used for a while, including unfinished ones
    Prune {
        /// Minimum time since the last use, such as 30d or 12h
        #[arg(long, value_name = "TIME")]
        older_than: String,
        #[command(flatten)]
        store: ProjectStoreArgs,
    },
}

pub async fn sessions(command: SessionsCommand, environment: Environment) -> Result<Exit, EngineError> {
    match command {
        SessionsCommand::List(options) => list_sessions(options, &environment).await,
        SessionsCommand::Show { id, calls, store } => {
            let store = open_existing(&store, &environment, Access::Read)?;
            let id = find_session(store.as_ref(), &id).await?;
            let document = document(store.as_ref(), &id, false).await?;
            let details = DocumentDetails::of_session(store.as_ref(), &id, Medium::Terminal).await?;
            print(&if calls { table(&document, chosen()) } else { markdown(&document, &details, chosen()) })?;
            let (of, repeating) = related_sessions(store.as_ref(), &id).await?;
            if let Some(of) = of.filter(|_| !calls) {
                print(&filled("it repeats the session {id}", &[("id", &visible_line(&of))]))?;
            }
            for other in repeating.iter().filter(|_| !calls) {
                print(&filled("it is repeated by the session {id}", &[("id", &visible_line(other))]))?;
            }
            if !calls && let Some(notebook) = outline(store.as_ref(), &id, chosen()).await? {
                print(&format!("\n{notebook}"))?;
            }
            Ok(Exit::Done)
        }
        SessionsCommand::Resume(options) => {
            let front = FrontEnd::of(&options.output);
            front.report_failure(resume(options, environment, front).await)
        }
        SessionsCommand::Retry(options) => {
            let front = FrontEnd::of(&options.resume.output);
            front.report_failure(retry(options, environment, front).await)
        }
        SessionsCommand::Export(options) => export(options, &environment).await,
        SessionsCommand::Output(OutputOfCommandArgs { id, action, stderr, output, store }) => {
            let store = open_existing(&store, &environment, Access::Read)?;
            let id = find_session(store.as_ref(), &id).await?;
            let stream = if stderr { OutputStream::Stderr } else { OutputStream::Stdout };
            print_command_output(store.as_ref(), &id, action.as_deref(), stream, output.as_deref()).await
        }
        SessionsCommand::Delete { id, store } => {
            let store = open_existing(&store, &environment, Access::Write)?;
            let id = find_session(store.as_ref(), &id).await?;
            let kernel = left_kernel(store.as_ref(), &id).await;
            if !store.delete(&id).await? {
                return Err(EngineError::usage(msg!("there is no session `{id}` in this store")));
            }
            report::note(&msg!("deleted {id}"));
            if let Some(kernel) = kernel {
                report::note(&left_kernel_note(&kernel));
            }
            Ok(Exit::Done)
        }
        SessionsCommand::Prune { older_than, store } => prune(&older_than, &store, &environment).await,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// Opens the store, which must exist, so that reading sessions creates no files.
pub fn open_existing(
    store: &ProjectStoreArgs,
    environment: &Environment,
    access: Access,
) -> Result<Arc<dyn Store>, EngineError> {
    let place = store.place(environment)?;
    if !place.exists() {
        return Err(no_store(&place));
    }
    existing_store(&place, access)?.ok_or_else(|| no_store(&place))
}

pub fn no_store(place: &StorePlace) -> EngineError {
    EngineError::usage(msg!("there is no store at {path}", path = place.named().display()))
        .with_help("run a script first, or specify the store with `--store`")
}

/// Opens the store at this place; `None` if it was never completed, because the process that created it was killed.
pub fn existing_store(place: &StorePlace, access: Access) -> Result<Option<Arc<dyn Store>>, EngineError> {
    if let Some(notice) = notice(place) {
        report::quiet(&msg!("note: {note}", note = notice));
    }
    match access {
        Access::Write => place.open().map(Some),
        Access::Read => place.open_for_reading(),
    }
}

async fn prune(older_than: &str, store: &ProjectStoreArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let before = before_now(older_than)?;
    let store = open_existing(store, environment, Access::Write)?;
    let before = stamp(before);
    let mut kernels = BTreeMap::new();
    for row in store.sessions().await?.into_iter().filter(|row| row.updated_at < before) {
        if let Some(kernel) = left_kernel(store.as_ref(), &row.id).await {
            kernels.insert(row.id, kernel);
        }
    }
    let deleted = store.prune(&before).await?;
    for id in &deleted {
        report::note(&msg!("deleted {id}"));
        if let Some(kernel) = kernels.get(id) {
            report::note(&left_kernel_note(kernel));
        }
    }
    report::note(&msg!("{} sessions deleted", deleted.len()));
    Ok(Exit::Done)
}
