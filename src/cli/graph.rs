//! `graph`: draws a script as a graph of its phases, topics, actions, routes, skills and triggers.

use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::cli::async_runtime::wait_for;
use crate::cli::exit::Exit;
use crate::cli::output_form::{OutputForm, check_output};
use crate::cli::print::{print, save};
use crate::cli::report;
use crate::cli::sessions::{Access, existing_store, no_store};
use bcc_authoring::graph::fold::Depth;
use bcc_authoring::graph::request::{GraphFormat, GraphRequest, SessionSteps, graph as draw};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::export::stored_session;
use bcc_engine::files::write::is_same_file;
use bcc_engine::find_session::find_session;
use bcc_engine::project::Project;
use bcc_engine::report::collect::step_statuses;
use bcc_engine::store_access::store_place;
use bcc_engine::store_access::{check_store, is_named};
use bcc_engine::store_place::StorePlace;

#[derive(Debug, Args)]
pub struct GraphArgs {
    /// Script to draw
    pub file: PathBuf,
    /// Output format [default: mermaid, or dot if --output ends in .dot or .gv]
    #[arg(long, value_enum)]
    pub format: Option<DrawnAs>,
    /// Level of detail: 1 for phases, 2 for topics, 3 for actions with simple sequences grouped, 4 for every action
    /// [default: the most detailed level that is still readable]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=4))]
    pub depth: Option<u8>,
    /// Expand only this phase or topic; can be repeated
    #[arg(long, value_name = "PHASE | TOPIC")]
    pub only: Vec<String>,
    /// Color the actions by what this session did: its id, or the beginning of its id if that is unique
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Session store of --session [default: BCC_STORE, otherwise .bcc/sessions.db in the project]
    #[arg(long, value_name = "PATH", requires = "session")]
    pub store: Option<PathBuf>,
    /// Write the graph to this file instead of standard output; missing directories are created
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace an existing file whatever it contains, not only a document of the same form
    #[arg(long)]
    pub force: bool,
    /// Project directory [default: BCC_PROJECT, otherwise the nearest parent of FILE
    /// with bcc-script.toml, _system/ or .bcc/]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DrawnAs {
    /// A Mermaid flowchart
    Mermaid,
    /// A Graphviz graph
    Dot,
}

pub fn graph(options: &GraphArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let extension =
        options.output.as_deref().and_then(|path| path.extension()).and_then(|extension| extension.to_str());
    let format = match options.format {
        Some(DrawnAs::Dot) => GraphFormat::Dot,
        None if matches!(extension, Some("dot" | "gv")) => GraphFormat::Dot,
        Some(DrawnAs::Mermaid) | None => GraphFormat::Mermaid,
    };
    let request = GraphRequest {
        file: options.file.clone(),
        project: options.project.clone(),
        format,
        depth: options.depth.map(|depth| match depth {
            1 => Depth::Phases,
            2 => Depth::Topics,
            3 => Depth::Actions,
            _ => Depth::All,
        }),
        only: options.only.clone(),
        session: options.session.as_deref().map(|id| wait_for(session_steps(options, id, environment))).transpose()?,
    };
    if let Some(path) = &options.output {
        check_not_script(path, &options.file)?;
        let form = if format == GraphFormat::Dot { OutputForm::Dot } else { OutputForm::Mermaid };
        check_output(path, form, options.force)?;
    }
    let drawn = draw(&request, environment)?;
    report::warnings(&drawn.diagnostics);
    match &options.output {
        Some(path) => save(path, drawn.text.as_bytes())?,
        None => print(drawn.text.trim_end_matches('\n'))?,
    }
    for notice in &drawn.notices {
        report::note(notice);
    }
    Ok(Exit::Done)
}

/// The steps of a session in the store of the project.
async fn session_steps(options: &GraphArgs, id: &str, environment: &Environment) -> Result<SessionSteps, EngineError> {
    let place = match &options.store {
        Some(given) => StorePlace::of(given),
        None => {
            let project = Project::of(&options.file, options.project.as_deref(), false, environment)?;
            let place = store_place(&project, environment, None);
            check_store(&place, &project, is_named(None, environment))?;
            place
        }
    };
    let found = if place.exists() { existing_store(&place, Access::Read)? } else { None };
    let store = found.ok_or_else(|| no_store(&place))?;
    let id = find_session(store.as_ref(), id).await?;
    let row = stored_session(store.as_ref(), &id).await?;
    let steps = step_statuses(store.as_ref(), &id).await?;
    Ok(SessionSteps { script: row.script, script_sha256: row.script_sha256, steps })
}

/// Checks that the output is not the script itself, under any name, and not a directory.
fn check_not_script(output: &Path, script: &Path) -> Result<(), EngineError> {
    let shown = output.display();
    if is_same_file(output, script) {
        return Err(EngineError::usage(msg!("{shown} is the script itself, and the graph would overwrite it"))
            .with_help("nothing was written; choose another file for the graph"));
    }
    if output.is_dir() {
        return Err(EngineError::usage(msg!("{shown} is a directory, but the graph is a single file"))
            .with_help("specify a file name, as in `-o drawing.mmd`"));
    }
    Ok(())
}
