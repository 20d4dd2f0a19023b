//! `requests`: what the sessions of a store wait for, and answers to it.

use std::sync::Arc;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::cli::decide::{form_values, recorded, take, target};
use crate::cli::exit::Exit;
use crate::cli::language::translated;
use crate::cli::print::print;
use crate::cli::progress_texts::minute;
use crate::cli::report;
use crate::cli::sessions::{Access, open_existing};
use crate::cli::store_args::ProjectStoreArgs;
use crate::cli::stored_session::{Silent, StoredSessionArgs, StoredSessions};
use crate::cli::table::table;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::export::mask_requests;
use bcc_engine::find_session::find_session;
use bcc_lang::source::render::visible::visible_json;
use bcc_runtime::program::decision::{DecisionKind, RequestKind};
use bcc_runtime::run::approval_decision::ApprovalDecision;
use bcc_runtime::run::decisions::names_in;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::{Session, TakenAnswer};
use bcc_store::contract::Store;
use bcc_store::rows::{OpenRequest, RequestRow};

#[derive(Debug, Subcommand)]
pub enum RequestsCommand {
    /// List what sessions wait for
    List(RequestListArgs),
    /// Answer a request: an answer in the conversation, a decision, or what to do about an interrupted effect
    Answer(AnswerArgs),
}

#[derive(Debug, Args)]
pub struct RequestListArgs {
    /// Only those of this session
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Only those of this kind
    #[arg(long, value_enum)]
    pub kind: Option<RequestKindFilter>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub store: ProjectStoreArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum RequestKindFilter {
    Input,
    Approval,
    InterruptedEffect,
    Time,
}

impl RequestKindFilter {
    const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Approval => RequestKind::Approval.name(),
            Self::InterruptedEffect => "interrupted_effect",
            Self::Time => RequestKind::Time.name(),
        }
    }
}

#[derive(Debug, Args)]
pub struct AnswerArgs {
    /// Session id, or its beginning if that is unique; or SESSION/REQUEST, as `requests list` prints it
    pub request: String,
    /// The answer: the text, `approve`, `reject` or `push_back`, or `again`, `skip` or `fail`
    pub answer: String,
    /// Who answers, for a decision
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// Why, for a decision
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// A value of the form, for a decision; can be repeated
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    pub values: Vec<String>,
    #[command(flatten)]
    pub stored: StoredSessionArgs,
}

pub async fn requests(command: RequestsCommand, environment: Environment) -> Result<Exit, EngineError> {
    match command {
        RequestsCommand::List(options) => list(&options, &environment).await,
        RequestsCommand::Answer(options) => answer(options, environment).await,
    }
}

async fn list(options: &RequestListArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let has_store = options.store.is_named(environment) || options.store.place(environment)?.exists();
    let mut found = Vec::new();
    if has_store {
        let store = open_existing(&options.store, environment, Access::Read)?;
        let session = match &options.session {
            Some(given) => Some(find_session(store.as_ref(), given).await?),
            None => None,
        };
        found = store.open_requests(None).await?;
        found.retain(|open| {
            session.as_ref().is_none_or(|id| *id == open.session)
                && options.kind.is_none_or(|kind| kind.name() == open.request.kind)
        });
        mask_requests(store.as_ref(), &mut found).await?;
    }
    if options.json {
        let requests: Vec<Value> = found.iter().map(as_json).collect();
        print(&format!("{}", visible_json(&json!({ "version": 1, "requests": requests }).to_string())))?;
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        report::note("no session waits for anything");
        return Ok(Exit::Done);
    }
    let head = ["request", "kind", "since", "due", "who", "prompt"].map(|name| translated(name).into_owned()).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(found.iter().map(as_row)).collect();
    print(&table(&rows))?;
    Ok(Exit::Done)
}

/// The longest prompt in the list, in characters.
const SHOWN_CHARS: usize = 60;

fn as_row(open: &OpenRequest) -> Vec<String> {
    let RequestRow { id, kind, prompt, approvers, due_at, opened_at, .. } = &open.request;
    let mut shown: String = prompt.chars().take(SHOWN_CHARS).collect();
    if shown.len() < prompt.len() {
        shown.push('…');
    }
    let due = due_at.as_deref().map_or_else(|| "-".to_owned(), minute);
    let who = match names_in(approvers.as_deref()) {
        Some(names) if names.is_empty() => "-".to_owned(),
        Some(names) => names.join(", "),
        None => "?".to_owned(),
    };
    vec![format!("{}/{id}", open.session), kind.clone(), minute(opened_at), due, who, shown]
}

fn as_json(open: &OpenRequest) -> Value {
    let RequestRow { id, kind, prompt, schema, decisions, approvers, due_at, opened_at, .. } = &open.request;
    let parsed = |text: &Option<String>| text.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    json!({
        "session_id": open.session, "request_id": id, "kind": kind, "prompt": prompt, "schema": parsed(schema),
        "decisions": parsed(decisions), "approvers": parsed(approvers), "opened_at": opened_at, "due_at": due_at,
    })
}

async fn answer(options: AnswerArgs, environment: Environment) -> Result<Exit, EngineError> {
    let values = form_values(&options.values)?;
    let sessions = StoredSessions::open(&options.stored, &environment)?;
    let store = Arc::clone(sessions.engine.store());
    let (id, request) = target(store.as_ref(), &options.request).await?;
    let mut session = sessions.session(&id, Arc::new(Silent)).await?.session;
    let requests = session.requests();
    let named = request.as_ref().and_then(|id| requests.iter().map(|(_, open)| *open).find(|open| open.id == *id));
    let first = session.request().filter(|_| request.is_none() && session.status() != SessionStatus::WaitingInput);
    let open = named.or(first).map(|request| request.kind.clone());
    if open.as_deref() == Some(RequestKind::Approval.name()) {
        let Some(decision) = DecisionKind::parse(options.answer.trim()) else {
            return Err(EngineError::usage(msg!("the answer to an approval is a decision, but this is none"))
                .with_help(
                    "write `approve`, `reject` or `push_back`; for the call of a tool also `edit` or `answer`",
                ));
        };
        let (by, comment) = (options.by, options.comment);
        take(&mut session, ApprovalDecision { request, decision, by, comment, values }).await?;
    } else if !values.is_empty() {
        return Err(EngineError::usage(msg!("`--set` gives values of a form, but this request has none"))
            .with_help("`bcc-script requests list` shows what sessions wait for"));
    } else {
        check_answer(store.as_ref(), &session, request.as_deref(), &options.answer).await?;
        let taken = session.answer(&options.answer, request.as_deref()).await?;
        let refused = match taken {
            TakenAnswer::Yes => None,
            TakenAnswer::AlreadyUsed => Some(msg!("the request was answered before")),
            TakenAnswer::Unknown => Some(msg!("the session has not asked this yet")),
            TakenAnswer::NotAwaited => Some(msg!("session `{id}` waits for no answer")),
            TakenAnswer::TooLong => Some(msg!("the answer is too long")),
        };
        if let Some(message) = refused {
            return Err(
                EngineError::usage(message).with_help("`bcc-script requests list` shows what sessions wait for")
            );
        }
    }
    recorded(&sessions.hint, &id)?;
    Ok(Exit::Done)
}

/// Refuses an answer that the open request does not take.
/// Errors: another request is named, or the answer is not one of the decisions about an interrupted effect.
async fn check_answer(
    store: &dyn Store,
    session: &Session,
    request: Option<&str>,
    answer: &str,
) -> Result<(), EngineError> {
    let open = store.requests(&session.id).await?;
    let known = |id: &str| open.iter().any(|row| row.id == id);
    if let Some(request) = request.filter(|request| !known(request)) {
        return Err(EngineError::usage(msg!("session `{}` has no request `{request}`", session.id))
            .with_help("`bcc-script requests list` shows what sessions wait for"));
    }
    let awaited = open.iter().find(|row| Some(row.id.as_str()) == session.awaited());
    let decisions = names_in(awaited.and_then(|row| row.decisions.as_deref())).unwrap_or_default();
    if decisions.is_empty() || decisions.iter().any(|decision| decision == answer.trim()) {
        return Ok(());
    }
    let help = msg!("permitted: {}", Message::names(&decisions));
    Err(EngineError::usage(msg!("this request is answered with a decision, but this is none")).with_help(help))
}
