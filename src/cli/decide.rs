//! `approve`, `reject`, `push-back`: decide about the request that a session waits for.

use std::path::Path;
use std::sync::Arc;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use clap::Args;

use crate::cli::drive::{GivenInput, ResumeHint, drive, interrupted_early_notice};
use crate::cli::exit::Exit;
use crate::cli::front_end::{FrontEnd, OutputArgs};
use crate::cli::live_notebook::LiveNotebook;
use crate::cli::print::print_translated;
use crate::cli::signals::Signals;
use crate::cli::state_file::WatchedFile;
use crate::cli::stored_session::{Silent, StoredSessionArgs, StoredSessions};
use bcc_engine::engine::OpenedSession;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::find_session::find_session;
use bcc_engine::state_file::open::session_of_file;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_runtime::program::decision::{DecisionKind, RequestKind};
use bcc_runtime::program::location::EventLocation;
use bcc_runtime::run::approval_decision::{ApprovalDecision, DecisionError};
use bcc_runtime::run::decisions::earlier_answer;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::Session;
use bcc_store::contract::Store;

#[derive(Debug, Args)]
pub struct DecideArgs {
    /// Session id, or its beginning if that is unique; SESSION/REQUEST, as `requests list` prints it; or a workflow
    /// state file
    pub session: String,
    /// The action that asks, or the request, if it must be this one
    pub step: Option<String>,
    /// Who decides; needed if the script names who may
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// A value of the form; can be repeated
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    pub values: Vec<String>,
    /// Then continue the session here, as `sessions resume` does
    #[arg(long)]
    pub run: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub stored: StoredSessionArgs,
}

pub async fn decide(
    decision: DecisionKind,
    options: DecideArgs,
    environment: Environment,
) -> Result<Exit, EngineError> {
    let values = form_values(&options.values)?;
    let (sessions, id, request) = match Path::new(&options.session) {
        file if file.is_file() => {
            let sessions = StoredSessions::open_for(file, &options.stored, &environment)?;
            let id = of_file(&sessions, file).await?;
            (sessions, id, None)
        }
        _ => {
            let sessions = StoredSessions::open(&options.stored, &environment)?;
            let (id, request) = target(sessions.engine.store().as_ref(), &options.session).await?;
            (sessions, id, request)
        }
    };
    let store = Arc::clone(sessions.engine.store());
    check_waits(store.as_ref(), &id, request.as_deref()).await?;
    let front = FrontEnd::of(&options.output);
    let shows = options.run || options.output.json;
    let observer = if shows { front.observer() } else { Arc::new(Silent) };
    let OpenedSession { mut session, state_file, .. } = sessions.session(&id, observer).await?;
    let request = asked_for(&session, request, options.step.as_deref())?;
    let decision = ApprovalDecision { request, decision, by: options.by, comment: options.comment, values };
    take(&mut session, decision).await?;
    if options.run {
        let signals = Signals::new(interrupted_early_notice())?;
        let watched = state_file.map(|keeper| WatchedFile { keeper, waits: false });
        let given = GivenInput { watched, ..GivenInput::default() };
        return drive(session, store.as_ref(), front, &sessions.hint, LiveNotebook::default(), signals, given).await;
    }
    if !options.output.json {
        recorded(&sessions.hint, &id)?;
    }
    Ok(Exit::Done)
}

/// Says that a decision or an answer is stored, and how the session continues.
pub fn recorded(hint: &ResumeHint, id: &str) -> Result<(), EngineError> {
    print_translated(&msg!("recorded. Continue the session with: {resume}", resume = hint.command(id)))
}

/// Passes a decision to the session.
pub async fn take(session: &mut Session, decision: ApprovalDecision) -> Result<(), EngineError> {
    session.decide(decision).await.map_err(|error| match error {
        DecisionError::Run(error) => error.into(),
        DecisionError::Refused { message, help, .. } => {
            let error = EngineError::usage(message);
            match help {
                Some(help) => error.with_help(help),
                None => error,
            }
        }
    })
}

/// The unfinished session of a state file.
async fn of_file(sessions: &StoredSessions, file: &Path) -> Result<String, EngineError> {
    let found = session_of_file(&sessions.engine, file).await?;
    let file = file.display();
    found.map(|row| row.id).ok_or_else(|| {
        let message = msg!("no session of {file} waits for a decision");
        EngineError::usage(message).with_help(msg!("`bcc-script run {file}` runs the file"))
    })
}

/// The session, and the request if the text names one (`SESSION/REQUEST`).
pub async fn target(store: &dyn Store, given: &str) -> Result<(String, Option<String>), EngineError> {
    match given.rsplit_once('/') {
        Some((session, request)) if store.session(given).await?.is_none() => {
            Ok((find_session(store, session).await?, Some(request.to_owned())))
        }
        _ => Ok((find_session(store, given).await?, None)),
    }
}

/// Refuses what needs no open session to be refused: opening it would be an event of its own.
/// Errors: the session waits for no decision; if somebody made it, who and when.
async fn check_waits(store: &dyn Store, id: &str, request: Option<&str>) -> Result<(), EngineError> {
    let Some(row) = store.session(id).await? else { return Ok(()) };
    let status = SessionStatus::parse(&row.status);
    // A session that is over is refused with its own exit code.
    if status.is_none_or(|status| status == SessionStatus::WaitingApproval || status.is_final()) {
        return Ok(());
    }
    // In branches a decision can be open while something else is waited for.
    let kind = RequestKind::Approval.name();
    if store.requests(id).await?.iter().any(|request| request.kind == kind && request.answered_at.is_none()) {
        return Ok(());
    }
    let message = match earlier_answer(store, id, request).await? {
        Some(answered) => answered,
        None => msg!("session `{id}` waits for no decision: its status is `{}`", row.status),
    };
    Err(EngineError::usage(message).with_help("`bcc-script requests list` shows what sessions wait for"))
}

/// The request that is meant. `step` is a request, or the action that asks.
/// Errors: the session waits at other actions.
fn asked_for(session: &Session, request: Option<String>, step: Option<&str>) -> Result<Option<String>, EngineError> {
    let Some(step) = step else { return Ok(request) };
    let open = session.requests();
    let at = |place: &EventLocation| place.action_id.as_deref() == Some(step);
    let meant = open.iter().find(|(place, open)| open.id == step || at(place)).map(|(_, open)| open.id.clone());
    if let Some(request) = request {
        if request != step && meant.as_ref() != Some(&request) {
            return Err(EngineError::usage(msg!("`{request}` and `{step}` are not the same request")));
        }
        return Ok(Some(request));
    }
    let is_request = step.strip_prefix('r').is_some_and(|digits| digits.parse::<u64>().is_ok());
    let here: Vec<&str> = open.iter().filter_map(|(place, _)| place.action_id.as_deref()).collect();
    match meant {
        None if !is_request && !here.is_empty() => Err(EngineError::usage(msg!(
            "session `{}` is not at `{step}`, but at {}",
            session.id,
            Message::names(here)
        ))),
        None => Ok(Some(step.to_owned())),
        meant => Ok(meant),
    }
}

/// The values of `--set`. They are texts: the form gives them their types.
pub fn form_values(given: &[String]) -> Result<ExactValues, EngineError> {
    let mut values = ExactValues::new();
    for (number, text) in given.iter().enumerate() {
        // The text may be a secret, so it is not repeated.
        let Some((name, value)) = text.split_once('=') else {
            let help = Message::word("write it as `--set FIELD=VALUE`");
            return Err(EngineError::usage(msg!("`--set` number {} has no `=`", number + 1)).with_help(help));
        };
        let name = name.trim().to_owned();
        if values.insert(name.clone(), ExactValue::from(serde_json::Value::from(value))).is_some() {
            return Err(EngineError::usage(msg!("`--set` gives `{name}` twice")));
        }
    }
    Ok(values)
}
