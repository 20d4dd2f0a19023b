//! `doctor`: checks configuration, trust, models and store, and prints what to fix.

use bcc_lang::message::msg;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::cli::exit::Exit;
use crate::cli::language::{chosen, translated};
use crate::cli::print::{print, print_json};
use crate::cli::report;
use crate::cli::table::padded;
use crate::cli::traces::destination::{TraceDestination, public_address, trace_destination};
use bcc_authoring::doctor::doctor::{DoctorRequest, doctor as run_checks};
use bcc_authoring::doctor::finding::{CheckState, DoctorFinding};
use bcc_authoring::doctor::machine::Terminals;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Send nothing to any model (the default)
    #[arg(long, conflicts_with = "ask")]
    pub offline: bool,
    /// Send a short prompt to every model to see whether it answers
    #[arg(long)]
    pub ask: bool,
    /// Project directory [default: BCC_PROJECT, otherwise the current project]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Session store: a file, or a database (postgres://…) [default: BCC_STORE, otherwise .bcc/sessions.db in the project]
    #[arg(long, value_name = "PATH")]
    pub store: Option<PathBuf>,
}

/// `language_requested`: whether `--lang` is given.
/// Errors: when standard output cannot be written. All other problems are findings.
pub async fn doctor(
    options: DoctorArgs,
    language_requested: bool,
    environment: Environment,
) -> Result<Exit, EngineError> {
    let request = DoctorRequest {
        current_directory: PathBuf::from("."),
        project: options.project,
        store: options.store,
        ask: options.ask && !options.offline,
        language: chosen(),
        language_requested,
        terminals: Terminals { input: std::io::stdin().is_terminal(), output: std::io::stdout().is_terminal() },
    };
    let mut found = run_checks(&request, &environment).await;
    found.extend(traces(&environment));
    let count = |state| found.iter().filter(|finding| finding.state == state).count();
    let (problems, notes) = (count(CheckState::Problem), count(CheckState::Note));
    if options.json {
        let checks: Vec<Value> = found.iter().map(DoctorFinding::json).collect();
        let document = json!({ "version": 1, "ok": problems == 0, "checks": checks });
        print_json(&document)?;
    } else {
        print(&format_findings(&found))?;
        report::note(&msg!("problems: {problems}, notes: {notes}"));
    }
    Ok(if problems == 0 { Exit::Done } else { Exit::Failed })
}

/// Where traces go, if the environment says so.
fn traces(environment: &Environment) -> Option<DoctorFinding> {
    const SUBJECT: &str = "traces";
    Some(match trace_destination(environment) {
        Ok(None) => return None,
        Ok(Some(_)) if !cfg!(feature = "otel") => {
            DoctorFinding::note(SUBJECT, "traces are not exported: the program is built without the feature `otel`")
        }
        Ok(Some(TraceDestination { endpoint, .. })) => {
            let address = public_address(&endpoint);
            DoctorFinding::ok(SUBJECT, msg!("traces are exported to {address}"))
        }
        Err(warning) => DoctorFinding::note(SUBJECT, warning),
    })
}

/// The findings as text, each with its help.
fn format_findings(found: &[DoctorFinding]) -> String {
    let states = [CheckState::Ok, CheckState::Note, CheckState::Problem].map(|state| translated(state.name()).width());
    let state_width = states.into_iter().max().unwrap_or_default();
    let subject_width = found.iter().map(|finding| finding.subject.width()).max().unwrap_or_default();
    let indent = " ".repeat(state_width + subject_width + 4);
    let mut lines = Vec::new();
    for DoctorFinding { subject, state, message, help } in found {
        let message = translated(message).replace('\n', &format!("\n{indent}"));
        let (state, subject) = (padded(&translated(state.name()), state_width), padded(subject, subject_width));
        lines.push(format!("{state}  {subject}  {message}"));
        lines.extend(
            help.as_ref().map(|help| format!("{indent}{}", translated(&msg!("help: {help}", help = help.clone())))),
        );
    }
    lines.join("\n")
}
