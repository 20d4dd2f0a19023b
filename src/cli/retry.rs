//! `sessions retry`: begins a new session from an ended one, at one of its steps, and drives it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;
use clap::{Arg, Args};
use serde::Serialize;

use crate::cli::exit::{Exit, SESSION_CODES};
use crate::cli::front_end::FrontEnd;
use crate::cli::language::translated;
use crate::cli::print::{print, print_json};
use crate::cli::report;
use crate::cli::resume::{ResumeArgs, resume, resume_with};
use bcc_engine::again::restart::{AgainPlan, AgainPoint, AgainRequest};
use bcc_engine::engine::Engine;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::find_session::find_session;
use bcc_engine::project::{Project, given_directory};
use bcc_engine::retry::{RetryPlan, RetryRequest};
use bcc_engine::store_access::store_place;
use bcc_lang::message::ToMessage;
use bcc_lang::source::render::visible::visible_line;
use bcc_tools::project_tools::ConfiguredTools;

/// The maximum number of lines of each list of a preview.
const MAX_LINES: usize = 100;

#[derive(Debug, Args)]
#[command(after_help = SESSION_CODES, mut_arg("id", without_default))]
pub struct RetryArgs {
    /// The step from which it runs again: an action, or a path as in `report` [default: the step that failed]
    #[arg(long, value_name = "STEP")]
    pub from: Option<String>,
    /// Begin the conversation again with its answer N, also if the session has not ended; the answers from N on are given again. 0 begins it
    /// anew
    #[arg(long, value_name = "N", conflicts_with = "from")]
    pub turn: Option<u64>,
    /// Use this edited script; what is kept must still be in it. With --turn, its templates are used as they are now
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Use another scheme of templates
    #[arg(long, value_name = "SCHEME", requires_all = ["turn", "script"])]
    pub scheme: Option<String>,
    /// Print what is kept and what runs, and change nothing
    #[arg(long)]
    pub preview: bool,
    #[command(flatten)]
    pub resume: ResumeArgs,
}

/// The argument of the session, which `resume` can choose itself.
fn without_default(argument: Arg) -> Arg {
    argument.help("Session id, or its beginning if that is unique")
}

pub async fn retry(options: RetryArgs, environment: Environment, front: FrontEnd) -> Result<Exit, EngineError> {
    let RetryArgs { from, turn, script, scheme, preview, resume: resuming } = options;
    let Some(given) = &resuming.id else {
        return Err(EngineError::usage(msg!("specify the session that is repeated"))
            .with_help("run `bcc-script sessions list` to list the sessions"));
    };
    let directory = resuming.project.as_deref();
    let project = Project::of(Path::new("."), directory, resuming.trust, &environment)?;
    let any_project = given_directory(directory, &environment)?.is_some();
    let place = store_place(&project, &environment, resuming.store.store.as_deref());
    if !place.exists() {
        return Err(EngineError::usage(msg!("there is no store at {path}", path = place.named().display()))
            .with_help("specify the store with `--store`"));
    }
    let engine = Engine::with_store(project, environment.clone(), resuming.store.store.as_deref())?
        .with_tools(Arc::new(ConfiguredTools));
    let id = find_session(engine.store().as_ref(), given).await?;
    if let Some(turn) = turn {
        let model = resuming.model.clone();
        let request = AgainRequest {
            id: id.clone(),
            at: AgainPoint::Turn(turn),
            script,
            scheme,
            model,
            new_id: None,
            gives_answers: false,
            any_project,
        };
        let prepared = engine.prepare_again(&request).await?;
        report::warnings(&prepared.diagnostics);
        if preview {
            return previewed(&prepared.plan, resuming.output.json, show_again);
        }
        report::quiet(&calls_message(&prepared.plan));
        let new = engine.create_again(&prepared).await?;
        report::quiet(&msg!("session {new} begins again with answer {turn} of {id}"));
        drop(engine);
        let answers = prepared.answers.into();
        return resume_with(ResumeArgs { id: Some(new), model: None, ..resuming }, answers, environment, front).await;
    }
    let prepared =
        engine.prepare_retry(&RetryRequest { id: id.clone(), from, script, new_id: None, any_project }).await?;
    report::warnings(&prepared.diagnostics);
    if preview {
        return previewed(&prepared.plan, resuming.output.json, show);
    }
    let from = prepared.plan.from.clone();
    if let Some(message) = undone_message(&prepared.plan) {
        report::note(&message);
    }
    let new = engine.create_retry(prepared).await?;
    report::quiet(&msg!("session {new} repeats {id} from {from}"));
    drop(engine);
    resume(ResumeArgs { id: Some(new), ..resuming }, environment, front).await
}

fn previewed<P: Serialize>(
    plan: &P,
    is_json: bool,
    show: impl FnOnce(&P) -> Result<(), EngineError>,
) -> Result<Exit, EngineError> {
    if is_json {
        print_json(&serde_json::to_value(plan).map_err(|error| EngineError::failed(error.to_message()))?)?;
    } else {
        show(plan)?;
    }
    Ok(Exit::Done)
}

/// How often models are asked.
fn calls_message(plan: &AgainPlan) -> Message {
    let calls = plan.model_calls;
    let (recorded, earlier, asked) = (calls.recorded, calls.earlier, calls.asked);
    match &plan.first_difference {
        None => msg!("model calls: the replies of {recorded} of {earlier} are used again; no model is asked"),
        Some(place) => {
            let (action, round) = (&place.action_id, place.round);
            match asked {
                1 => msg!(
                    "model calls: the replies of {recorded} of {earlier} are used again; from `{action}`, round {round}, on, a model is asked, about once"
                ),
                _ => msg!(
                    "model calls: the replies of {recorded} of {earlier} are used again; from `{action}`, round {round}, on, a model is asked, about {asked} times"
                ),
            }
        }
    }
}

fn show_again(plan: &AgainPlan) -> Result<(), EngineError> {
    print(&translated(&msg!("answers that are given again: {}", plan.answers)))?;
    print(&translated(&calls_message(plan)))?;
    match plan.effects {
        0 => Ok(()),
        effects => print(&translated(&msg!("effects that are repeated only if you say so: {effects}"))),
    }
}

/// Which kept steps count as done although they were undone.
fn undone_message(plan: &RetryPlan) -> Option<Message> {
    let names = plan.undone.iter().map(|path| Message::text(format!("`{path}`")));
    (!plan.undone.is_empty()).then(|| {
        msg!("undone by the earlier session, and not run again: {names}", names = Message::list(Joint::Comma, names))
    })
}

fn show(plan: &RetryPlan) -> Result<(), EngineError> {
    let count = plan.kept.len();
    print(&translated(&msg!("kept: {count} steps")))?;
    list(&plan.kept, |step| {
        let status = translated(&step.status.label()).into_owned();
        format!("{} ({}): {status}", step.path, step.action_type)
    })?;
    if let Some(message) = undone_message(plan) {
        print(&translated(&message))?;
    }
    let from = visible_line(&plan.from);
    print(&translated(&msg!("runs, from {from} on, as far as routes lead there:")))?;
    list(&plan.runs, |step| {
        let calls = match (step.earlier_model_calls, step.calls_model) {
            (Some(count), true) => msg!(", {count} model calls in the earlier session"),
            (None, true) => Message::word(", calls a model, has not run yet"),
            (_, false) => Message::default(),
        };
        format!("{} ({}){}", step.action_id, step.action_type, translated(&calls))
    })?;
    let calls = plan.model_calls;
    print(&translated(&msg!(
        "model calls: {} in the earlier session from there on; {} recorded replies are used again while the prompts are the same",
        calls.earlier,
        calls.recorded
    )))?;
    if calls.not_run_yet > 0 {
        print(&translated(&msg!("{} actions that call a model have not run yet", calls.not_run_yet)))?;
    }
    Ok(())
}

fn list<S>(steps: &[S], line: impl Fn(&S) -> String) -> Result<(), EngineError> {
    for step in steps.iter().take(MAX_LINES) {
        print(&format!("  {}", visible_line(&line(step))))?;
    }
    match steps.len().saturating_sub(MAX_LINES) {
        0 => Ok(()),
        more => print(&translated(&msg!("  … and {more} more"))),
    }
}
