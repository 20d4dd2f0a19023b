//! `templates render`: shows the messages that would be sent, without sending them.

use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::async_runtime::wait_for;
use crate::cli::exit::Exit;
use crate::cli::print::{print_json, write_out};
use crate::cli::render_output;
use crate::cli::report;
use crate::cli::terminal::color;
use bcc_authoring::render::action::prompt_of_action;
use bcc_authoring::render::comparison::compare;
use bcc_authoring::render::errors::with_template_findings;
use bcc_authoring::render::prompt::Prompt;
use bcc_authoring::render::request::{RenderRequest, SentRequest};
use bcc_authoring::render::stored_session::store;
use bcc_authoring::render::template_only::{looks_like_a_script, prompt_of_template};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::find_session::find_session;
use bcc_engine::project::Project;

#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct RenderArgs {
    /// Template, such as `ai_ask` or `ai_ask_v2`; with --action also `ai_ask_monitor` or `topic_orchestrator` [default
    /// with --action: the template of the action]
    #[arg(value_name = "NAME", required_unless_present_any = IMPLY_ACTION)]
    pub name: Option<String>,
    /// Template scheme to use [default: that of the script, otherwise that of bcc-script.toml, otherwise `default`]
    #[arg(long, value_name = "SCHEME")]
    pub scheme: Option<String>,
    /// Script that contains the action
    #[arg(long, value_name = "FILE", requires = "action", conflicts_with = "session")]
    pub script: Option<PathBuf>,
    /// Id of the action, which can be in a topic, in another action or in a skill
    #[arg(long, value_name = "ID")]
    pub action: Option<String>,
    /// Set a variable; can be repeated
    #[arg(long = "var", value_name = "NAME=VALUE", conflicts_with = "session")]
    pub variables: Vec<String>,
    /// Set variables from a JSON or YAML file; without --script these are the only names available to the template
    #[arg(long = "vars", value_name = "FILE", conflicts_with = "session")]
    pub variables_file: Option<PathBuf>,
    /// Round whose call to render: 1 is the opening, later ones judge the answer of that round [default: 1; with
    /// --session, the last round]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    pub round: Option<u32>,
    /// Answer of the user in that round; if repeated, earlier answers belong to earlier rounds
    #[arg(long = "answer", value_name = "TEXT", requires = "script")]
    pub answers: Vec<String>,
    /// Time to use as the current time
    #[arg(long, value_name = "RFC3339", requires = "script")]
    pub clock: Option<String>,
    /// Compare what was sent in this session with what the current templates would send
    #[arg(long, value_name = "ID", requires = "action", conflicts_with = "name")]
    pub session: Option<String>,
    /// With --session: the visit to compare if the action ran more than once, such as `each#2/think`
    #[arg(long, value_name = "PATH", requires = "session")]
    pub path: Option<String>,
    /// With --session: the number of the call in the round; without --path, counted over all visits [default: the last]
    #[arg(long, value_name = "N", requires = "session", value_parser = clap::value_parser!(u16).range(1..))]
    pub call: Option<u16>,
    /// Session store: a file, or a database (postgres://…) [default: BCC_STORE, otherwise .bcc/sessions.db in the project]
    #[arg(long, value_name = "PATH", requires = "session")]
    pub store: Option<PathBuf>,
    /// Project directory [default: BCC_PROJECT, otherwise the nearest parent of the script or of the current directory
    /// with bcc-script.toml, _system/ or .bcc/]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The options that require an action, from which the template follows.
const IMPLY_ACTION: [&str; 8] = ["action", "script", "session", "answers", "clock", "path", "call", "store"];

const AFTER: &str = "Rounds: a round is one message of the script and the answer to it. `--round 1` is the opening, which has no answer \
yet. `--round 1 --answer TEXT` is the call that judges TEXT as the answer to the opening, and `--round N` the call that \
judges the answer of round N. Missing answers and model replies are shown as ⟦answer of round 1⟧ and ⟦reply of \
round 1⟧.";

pub fn render(options: &RenderArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let start = options.script.as_deref().unwrap_or(Path::new("."));
    let project = Project::of(start, options.project.as_deref(), false, environment)?;
    let scheme = options.scheme.as_deref();
    let result = match &options.session {
        Some(session) => wait_for(compare_with_sent(options, session, &project, environment)),
        None => wait_for(render_current(options, &project)),
    };
    match result.map_err(|error| with_template_findings(error, &project, scheme, environment)) {
        // An invalid template is a result of the command, not invalid usage.
        Err(EngineError::Invalid(found)) => {
            report::diagnostics(&found);
            Ok(Exit::Failed)
        }
        result => result,
    }
}

async fn render_current(options: &RenderArgs, project: &Project) -> Result<Exit, EngineError> {
    let request = RenderRequest {
        name: options.name.clone(),
        scheme: options.scheme.clone(),
        script: options.script.clone(),
        action: options.action.clone(),
        variables: options.variables.clone(),
        variables_file: options.variables_file.clone(),
        round: options.round.unwrap_or(1),
        answers: options.answers.clone(),
        clock: options.clock.clone(),
    };
    let prompt = match (&request.script, &request.action, &request.name) {
        (Some(script), Some(action), _) => prompt_of_action(project, &request, script, action).await?,
        (None, None, Some(name)) if looks_like_a_script(name) => {
            return Err(EngineError::usage(msg!("`{name}` is not the name of a template"))
                .with_help("specify a script with `--script`, and its action with `--action`"));
        }
        (None, None, Some(name)) if request.round == 1 => prompt_of_template(project, &request, name)?,
        _ => {
            return Err(EngineError::usage("an action or a round needs a script or a session")
                .with_help("specify it with `--script FILE` or `--session ID`"));
        }
    };
    show(&prompt, options.json)?;
    Ok(Exit::Done)
}

fn show(prompt: &Prompt, json: bool) -> Result<(), EngineError> {
    if json {
        return print_json(&prompt.as_value());
    }
    report::quiet(&render_output::head(prompt));
    for note in &prompt.notes {
        report::quiet(&msg!("note: {note}"));
    }
    let unknown: Vec<&str> = prompt.unknown.iter().map(|missing| missing.name.as_str()).collect();
    write(&render_output::messages(&prompt.messages, &unknown, color()))?;
    for line in render_output::warnings(prompt).iter().chain(&render_output::missing_names(prompt)) {
        report::note(line);
    }
    Ok(())
}

async fn compare_with_sent(
    options: &RenderArgs,
    session: &str,
    project: &Project,
    environment: &Environment,
) -> Result<Exit, EngineError> {
    // Nothing is written and no session is locked, so a running session is not affected.
    let store = store(options.store.as_deref(), project, environment)?;
    let request = SentRequest {
        session: find_session(store.as_ref(), session).await?,
        action: options.action.clone().unwrap_or_default(),
        path: options.path.clone(),
        round: options.round,
        call: options.call.map(usize::from),
        scheme: options.scheme.clone(),
        use_given_project: options.project.is_some(),
    };
    let comparison = compare(store.as_ref(), project, &request).await?;
    if options.json {
        print_json(&comparison.as_value())?;
    } else {
        report::quiet(&render_output::head_of_sent(&comparison));
        for note in &comparison.notes {
            report::quiet(&msg!("note: {note}"));
        }
        write(&render_output::changed(&comparison, color()))?;
        if let Ok(now) = &comparison.current {
            for line in render_output::missing_names(now) {
                report::note(&line);
            }
        }
    }
    Ok(if comparison.current.is_ok() { Exit::Done } else { Exit::Failed })
}

/// Writes text with color codes to standard output.
fn write(text: &str) -> Result<(), EngineError> {
    write_out(format!("{text}\n").as_bytes())
}
