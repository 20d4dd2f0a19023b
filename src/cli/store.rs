//! `store`: checks a session store, and saves what can be read of a damaged one.

use std::path::{Path, PathBuf};

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use clap::Subcommand;
use serde_json::{Value, json};

use crate::cli::exit::{Exit, STORE_CODES};
use crate::cli::language::translated;
use crate::cli::print::{print, print_json, print_translated};
use crate::cli::report;
use crate::cli::sessions::no_store;
use crate::cli::signals::temporary_directory;
use crate::cli::store_args::ProjectStoreArgs;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::shell::quoted;
use bcc_engine::store_place::StorePlace;
use bcc_store::copying::copy_store;
use bcc_store::error::StoreError;
use bcc_store::sqlite::recover::{RecoveredSession, Recovery, RecoveryReport, check, recover};
use bcc_store::sqlite::salvage::Saved;

#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Check whether a store is damaged, and which sessions can be read; changes nothing
    #[command(after_help = STORE_CODES)]
    Check {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        store: ProjectStoreArgs,
    },
    /// Save what can be read of a damaged store in a new one next to it; the damaged one stays as it is
    #[command(after_help = STORE_CODES)]
    Recover {
        /// Put the new store in the place of the damaged one, which is moved aside
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        store: ProjectStoreArgs,
    },
    /// Copy all sessions, the variables of users, plans and links to another store, which keeps what it has
    #[command(after_help = STORE_CODES)]
    Copy {
        /// The store that is copied: a file, or a database (postgres://…)
        #[arg(value_name = "FROM")]
        from: PathBuf,
        /// The store that gets the copy: a file, or a database (postgres://…)
        #[arg(value_name = "TO")]
        to: PathBuf,
    },
}

pub async fn store(command: &StoreCommand, environment: &Environment) -> Result<Exit, EngineError> {
    match command {
        StoreCommand::Copy { from, to } => copy(&StorePlace::of(from), &StorePlace::of(to)).await,
        StoreCommand::Check { json, store } => {
            let path = file_of(store, environment)?;
            let report = check(&path, temporary_directory).map_err(|error| failed(error, &path))?;
            if *json {
                print_json(&document(&report, &path))?;
                return Ok(if report.is_sound() { Exit::Done } else { Exit::Failed });
            }
            print_report(&report)?;
            let shown = path.display();
            if report.is_sound() {
                print_translated(&msg!("the store {shown} is sound; sessions: {}", report.sessions.len()))?;
                return Ok(Exit::Done);
            }
            print_translated(&msg!(
                "the store {shown} is damaged; `bcc-script store recover --store {path}` saves what can be read in a new store",
                path = quoted(&path)
            ))?;
            Ok(Exit::Failed)
        }
        StoreCommand::Recover { replace, store } => {
            let path = file_of(store, environment)?;
            let Recovery { report, store, moved_to } =
                recover(&path, *replace, temporary_directory).map_err(|error| failed(error, &path))?;
            print_report(&report)?;
            let shown = path.display();
            match (store, moved_to) {
                (None, _) => print_translated(&msg!(
                    "the store {shown} is sound, so there is nothing to recover; sessions: {}",
                    report.sessions.len()
                ))?,
                (Some(_), Some(moved)) => print_translated(&msg!(
                    "the recovered store is now {shown}; the damaged one was moved to {moved}",
                    moved = moved.display()
                ))?,
                (Some(new), None) => print_translated(&msg!(
                    "the recovered store is {new}; the damaged one was left unchanged. To continue with the recovered one, name it with `--store`, or run this command again with `--replace`",
                    new = new.display()
                ))?,
            }
            Ok(if report.is_complete() { Exit::Done } else { Exit::Failed })
        }
    }
}

async fn copy(from: &StorePlace, to: &StorePlace) -> Result<Exit, EngineError> {
    if from == to {
        return Err(EngineError::usage("the store and its copy are the same"));
    }
    let (source, target) = (from.open_to_copy_from()?, to.open_to_copy_into()?);
    let copied = |id: &str| report::quiet(&msg!("copied session {id}"));
    let report = copy_store(source.as_ref(), target.as_ref(), copied).await?;
    for (id, holder) in &report.held {
        report::note(&msg!(
            "session {id} was not copied: it is in use by {holder}; copy the store again when it has ended"
        ));
    }
    for id in &report.different {
        report::note(&msg!("session {id} was not copied: the other store has it in another state, and keeps it"));
    }
    for plan in &report.different_plans {
        report::note(&msg!(
            "plan {plan} was not copied: the other store has it in another state, or another plan with its tasks or its edits, and keeps that"
        ));
    }
    for link in &report.different_links {
        report::note(&msg!(
            "link {link} was not copied with all of its conversations: the other store has another link or another conversation in its place, and keeps it"
        ));
    }
    print_translated(&msg!(
        "sessions copied: {}, there already: {}; plans: {}",
        report.copied.len(),
        report.unchanged,
        report.plans
    ))?;
    Ok(if report.is_complete() { Exit::Done } else { Exit::Failed })
}

/// The file of a store. A database has tools of its own for this.
fn file_of(store: &ProjectStoreArgs, environment: &Environment) -> Result<PathBuf, EngineError> {
    match store.place(environment)? {
        StorePlace::File(path) => Ok(path),
        StorePlace::Database(url) => {
            let url = url.to_string();
            Err(EngineError::usage(msg!(
                "the store {url} is a database, not a file: only files are checked and recovered"
            ))
            .with_help("PostgreSQL checks its data itself; `pg_dump` and `pg_restore` save and restore it"))
        }
    }
}

fn failed(error: StoreError, path: &Path) -> EngineError {
    match error {
        StoreError::Missing { .. } => no_store(&StorePlace::File(path.to_owned())),
        error => error.into(),
    }
}

/// The report for programs (docs/sessions.md, "Damaged stores").
fn document(report: &RecoveryReport, path: &Path) -> Value {
    let session = |session: &RecoveredSession| {
        let readable = match session.saved {
            Saved::Whole => "all",
            Saved::Earlier => "earlier",
            Saved::Readable => "conversation",
            Saved::Nothing => "nothing",
        };
        json!({
            "id": session.id, "readable": readable, "answers": session.answers, "all_answers": session.all_answers,
        })
    };
    let sessions: Vec<Value> = report.sessions.iter().map(session).collect();
    json!({
        "version": 1, "ok": report.is_sound(), "store": path.display().to_string(), "damage": report.damage,
        "sessions": sessions,
    })
}

/// Prints what is damaged, and each session with what can be read of it.
fn print_report(report: &RecoveryReport) -> Result<(), EngineError> {
    for damage in &report.damage {
        print_translated(&msg!("damage: {damage}", damage = damage.clone()))?;
    }
    for session in &report.sessions {
        let answers = session.answers;
        let state: Message = match (session.saved, session.all_answers) {
            (Saved::Whole, _) => msg!("complete; answers: {answers}"),
            (Saved::Earlier, Some(all)) if all != answers => msg!("up to answer {answers} of {all}"),
            (Saved::Earlier, _) => msg!("as it was before its last changes; answers: {answers}"),
            (Saved::Readable, _) => msg!("cannot be continued, but its conversation can be read; answers: {answers}"),
            (Saved::Nothing, _) => Message::word("cannot be read"),
        };
        print(&format!("{}\t{}", session.id, translated(&state)))?;
    }
    Ok(())
}
