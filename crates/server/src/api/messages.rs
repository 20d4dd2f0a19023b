//! `POST /v1/sessions/{id}/messages`: what a person says.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bcc_lang::message::msg;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::take_back::answered_question;
use bcc_store::rows::SessionRow;
use serde::Deserialize;
use tokio::sync::oneshot;
use tracing::Instrument;
use utoipa::{IntoParams, ToSchema};

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::{JsonBody, UrlPath, language_of};
use crate::api::events::turn_stream;
use crate::api::reply::{
    TurnReply, answer_with_key, earlier_reply, is_taken_back, key_reused, reply_from, reply_of, state_of,
};
use crate::live::command::{AcceptedSender, Answer, AnsweredTurn, SessionCommand, stored_key};
use crate::live::hand_over::ReplacingMessage;
use crate::problem::{Problem, ProblemDetails, ProblemKind};
use crate::state::ServerState;

/// The longest idempotency key, in bytes.
const MAX_KEY_BYTES: usize = 200;

/// How often, and with which pauses, it is looked whether the answer of a turn that has just begun is stored.
const ACCEPTING_ATTEMPTS: u32 = 500;
const ACCEPTING_PAUSE: Duration = Duration::from_millis(2);

/// What is done with a message while a turn of the session runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnBusy {
    /// The message answers the question that follows the turn.
    #[default]
    Wait,
    /// The message is rejected with 409.
    Reject,
    /// The turn ends at once, the message that it was about is taken back, and this one is the answer in its place. If there is no such
    /// message, or somebody has decided since then, it waits.
    Interrupt,
}

/// A message of a person.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMessage {
    /// What the person says.
    pub(crate) text: String,
    /// The question that it answers, as `waiting` named it. Without it, the current one. With `interrupt`, that of the message in whose
    /// place this one is.
    pub(crate) answer_id: Option<String>,
    /// While a turn runs: `wait`, `reject` or `interrupt`.
    #[serde(default)]
    pub(crate) on_busy: OnBusy,
}

/// The headers of a message, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only described; the header is read by hand, because its name is not that of a field")]
struct MessageHeaders {
    /// A new value for each message, of visible ASCII characters.
    #[param(rename = "Idempotency-Key", required = false, min_length = 1, max_length = 200, pattern = "^[!-~]+$")]
    idempotency_key: String,
}

/// Says something in a session, and waits for the end of the turn.
///
/// With `Accept: text/event-stream`, the events of the turn are
/// streamed instead. A client that leaves does not end the turn.
///
/// With an `Idempotency-Key`, a message that is sent again has no effect, and gets the same reply.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/messages",
    tag = "sessions",
    params(
        ("id" = String, Path, description = "The session"),
        MessageHeaders,
    ),
    request_body = NewMessage,
    responses(
        (status = 200, description = "The turn has ended", body = TurnReply),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn post_message(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
    headers: HeaderMap,
    JsonBody(message): JsonBody<NewMessage>,
) -> Result<Response, Problem> {
    let key = key_of(&headers)?;
    let is_stream = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|accepted| accepted.contains("text/event-stream"));
    if is_stream {
        return turn_stream(state, id, caller, message, key, language_of(&headers)).await;
    }
    let may_decide = caller.role >= AccessRole::Decide;
    let reply = say(&state, &id, &message, SendOptions { key, accepted: None, may_decide }).await?;
    Ok(Json(reply.shown_to(caller.role)).into_response())
}

/// The idempotency key in its stored form.
pub(crate) fn key_of(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let is_valid =
        |key: &&str| !key.is_empty() && key.len() <= MAX_KEY_BYTES && key.bytes().all(|byte| byte.is_ascii_graphic());
    let value = value.to_str().ok().map(str::trim).filter(is_valid);
    let invalid =
        || Problem::invalid(msg!("`Idempotency-Key` must have 1 to {MAX_KEY_BYTES} visible ASCII characters"));
    value.map(|key| Some(stored_key(key))).ok_or_else(invalid)
}

/// How a message is sent.
#[derive(Clone, Default)]
pub(crate) struct SendOptions {
    /// In the form of [`stored_key`].
    pub(crate) key: Option<String>,
    /// Learns the number of the last event before the turn.
    pub(crate) accepted: Option<AcceptedSender>,
    /// Whether it may also be the decision about an effect that was interrupted.
    pub(crate) may_decide: bool,
}

/// Says something, and waits for the end of the turn.
pub(crate) async fn say(
    state: &ServerState,
    id: &str,
    message: &NewMessage,
    options: SendOptions,
) -> Result<TurnReply, Problem> {
    let store = state.sessions.store().as_ref();
    let key = options.key.as_deref();
    // A message that was accepted before is not refused, and interrupts nothing.
    let repeated_key = match key {
        Some(key) if store.answer_accepted(id, key).await? => Some(key),
        _ => None,
    };
    if let Some(key) = repeated_key
        && !is_running(store.session(id).await?.as_ref())
    {
        // It does not continue a turn that has stopped either.
        return repeated(state, id, key, &message.text).await;
    }
    let mut expected_answers = None;
    if message.on_busy == OnBusy::Reject && repeated_key.is_none() {
        match idle_answers(state, id).await {
            Ok(answers) => expected_answers = answers,
            // The turn may be that of this message, which was sent twice at once.
            Err(busy) if busy.kind() == ProblemKind::Busy && is_this_accepted(state, id, key).await? => {}
            Err(problem) => return Err(problem),
        }
    }
    let answer = |answer_id: Option<&str>, ended| {
        SessionCommand::Answer(Answer {
            text: message.text.clone(),
            key: options.key.clone(),
            answer_id: answer_id.map(str::to_owned),
            expected_answers,
            may_decide: options.may_decide,
            accepted: options.accepted.clone(),
            ended,
        })
    };
    let given = message.answer_id.as_deref();
    let answered = match message.on_busy {
        OnBusy::Interrupt if repeated_key.is_none() => interrupting(state, id, given, answer).await,
        _ => state.sessions.send(id, None, |ended| answer(given, ended)).await,
    };
    match (answered, key) {
        (Ok(AnsweredTurn::Ended(turn)), _) => match reply_from(&state.sessions.feed(id), id, turn) {
            Some(reply) => reply,
            None => reply_of(store, id, turn).await,
        },
        (Ok(AnsweredTurn::Repeated), Some(key)) => repeated(state, id, key, &message.text).await,
        (Ok(AnsweredTurn::Repeated), None) => {
            Err(Problem::new(ProblemKind::Conflict, msg!("this answer was accepted before")))
        }
        // Only one that is rejected otherwise asks for it.
        (Ok(AnsweredTurn::MovedOn), _) => {
            let why = msg!("the session has accepted another message in the meantime");
            Err(Problem::new(ProblemKind::Busy, why).retry_after(1))
        }
        // A session that is over, or that is about to go on, may have got this message before.
        (Err(problem), Some(key))
            if problem.kind() == ProblemKind::Conflict && store.answer_accepted(id, key).await? =>
        {
            repeated(state, id, key, &message.text).await
        }
        (Err(problem), _) => Err(problem),
    }
}

/// The number of answers of a session of which no turn runs; none if there is no such session.
///
/// # Errors
/// `Busy`.
async fn idle_answers(state: &ServerState, id: &str) -> Result<Option<u64>, Problem> {
    // Before the turn is looked for: one that begins afterwards changes the number.
    let row = state.sessions.store().session(id).await?;
    state.sessions.claim_idle(id).await?;
    // A turn that was broken off, or has stopped, goes on: nobody has seen the question that follows it.
    if is_running(row.as_ref()) || row.as_ref().is_some_and(|row| row.status == SessionStatus::Stopped.name()) {
        return Err(Problem::busy());
    }
    Ok(row.map(|row| row.answers))
}

/// Whether a message with this key is accepted, or is about to be.
async fn is_this_accepted(state: &ServerState, id: &str, key: Option<&str>) -> Result<bool, Problem> {
    let Some(key) = key else { return Ok(false) };
    is_in_turn(state, id).await?;
    Ok(state.sessions.store().answer_accepted(id, key).await?)
}

/// Whether a turn of the session runs, or was broken off.
fn is_running(row: Option<&SessionRow>) -> bool {
    row.is_some_and(|row| row.status == SessionStatus::Running.name())
}

/// Whether a turn of the session runs, here or in another process, or was broken off. The answer of one that has just begun is about to be
/// stored: that is waited for.
async fn is_in_turn(state: &ServerState, id: &str) -> Result<bool, Problem> {
    for _ in 0..ACCEPTING_ATTEMPTS {
        if is_running(state.sessions.store().session(id).await?.as_ref()) {
            return Ok(true);
        }
        if !state.sessions.may_run_turn(id) && !state.sessions.runs_turn_elsewhere(id).await? {
            return Ok(false);
        }
        tokio::time::sleep(ACCEPTING_PAUSE).await;
    }
    Ok(false)
}

/// Sends a message in place of the one whose turn runs. `given` is the question that it answers, if whoever sends it says so.
async fn interrupting(
    state: &ServerState,
    id: &str,
    given: Option<&str>,
    answer: impl Fn(Option<&str>, oneshot::Sender<Result<AnsweredTurn, Problem>>) -> SessionCommand,
) -> Result<AnsweredTurn, Problem> {
    let store = state.sessions.store().as_ref();
    let question = if is_in_turn(state, id).await? { answered_question(store, id).await? } else { None };
    // A turn that is not about an answer goes on: a decision of somebody else, what undoes actions, or the first one.
    let Some(question) = question else { return state.sessions.send(id, None, |ended| answer(given, ended)).await };
    if let Some(given) = given.filter(|given| question.answer_id.as_deref() != Some(*given)) {
        let problem = Problem::new(ProblemKind::Conflict, msg!("the turn that runs is not about the answer `{given}`"));
        return Err(match &question.answer_id {
            Some(expected) => problem.with_help(msg!("it is about the answer `{expected}`")),
            None => problem,
        });
    }
    let (ended, result) = oneshot::channel();
    let first = ReplacingMessage { command: answer(given, ended), answers: question.answers };
    let (sessions, interrupted) = (Arc::clone(&state.sessions), id.to_owned());
    // In a task of its own: if the client left between the end of the turn and taking its answer back, whoever gave that one would be told
    // that it was taken back, and it would be answered all the same.
    let interrupt = async move { sessions.interrupt(&interrupted, first).await }.in_current_span();
    let is_sent =
        tokio::spawn(interrupt).await.map_err(|_| Problem::failure(&msg!("the turn could not be ended")))??;
    if is_sent {
        match result.await {
            Ok(Err(problem)) if problem.is_outdated() => {}
            Ok(answered) => return answered,
            Err(_) => return Err(Problem::failure(&msg!("the session ended before it had the message"))),
        }
    }
    // Somebody else may have taken the answer back: then the same question has a new id.
    let row = store.session(id).await?;
    let is_taken_back = row.is_some_and(|row| row.answers == question.answers && !is_running(Some(&row)));
    let given = given.filter(|_| !is_taken_back);
    state.sessions.send(id, None, |ended| answer(given, ended)).await
}

/// The reply to a message whose key was accepted before.
pub(crate) async fn repeated(state: &ServerState, id: &str, key: &str, text: &str) -> Result<TurnReply, Problem> {
    let store = state.sessions.store().as_ref();
    match answer_with_key(store, id, key).await? {
        Some(answer) if answer.text == text && is_taken_back(store, id, &answer).await? => {
            let why = msg!("this message was accepted, and taken back since");
            let help = "say it again with a new key, if it is still meant";
            Err(Problem::new(ProblemKind::Interrupted, why).with_help(help))
        }
        Some(answer) if answer.text == text => earlier_reply(store, id, &answer).await,
        Some(_) => Err(key_reused()),
        // It was the decision about an effect, which is no message.
        None => {
            let row = store.session(id).await?.ok_or_else(|| Problem::no_session(id))?;
            state_of(store, row).await
        }
    }
}
