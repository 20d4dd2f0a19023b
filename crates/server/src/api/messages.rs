//! `POST /v1/sessions/{id}/messages`: what a person says.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bcc_lang::message::msg;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::access::ApiCaller;
use crate::api::body::JsonBody;
use crate::api::events::turn_stream;
use crate::api::reply::{TurnReply, answer_with_key, earlier_reply, key_reused, reply_from, reply_of};
use crate::live::command::{AcceptedSender, Answer, AnsweredTurn, SessionCommand, stored_key};
use crate::problem::{Problem, ProblemDetails, ProblemKind};
use crate::state::ServerState;

/// The longest idempotency key, in bytes.
const MAX_KEY_BYTES: usize = 200;

/// What is done with a message while a turn of the session runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnBusy {
    /// The message answers the question that follows the turn.
    #[default]
    Wait,
    /// The message is rejected with 409.
    Reject,
    /// The turn ends at once, the message that it was about is taken back, and this one is the answer in its place.
    Interrupt,
}

/// A message of a person.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMessage {
    /// What the person says.
    pub(crate) text: String,
    /// The question that it answers, as `waiting` named it. Without it, the current one.
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
    Path(id): Path<String>,
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
        return turn_stream(state, id, caller, message, key).await;
    }
    Ok(Json(say(&state, &id, &message, key.as_deref(), None).await?).into_response())
}

/// The idempotency key in its stored form.
pub(crate) fn key_of(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let value = value.to_str().ok().map(str::trim).filter(|key| !key.is_empty() && key.len() <= MAX_KEY_BYTES);
    let invalid =
        || Problem::invalid(msg!("`Idempotency-Key` must have 1 to {MAX_KEY_BYTES} visible ASCII characters"));
    value.map(|key| Some(stored_key(key))).ok_or_else(invalid)
}

/// Says something, and waits for the end of the turn. `accepted` learns the number of the last event before the turn.
pub(crate) async fn say(
    state: &ServerState,
    id: &str,
    message: &NewMessage,
    key: Option<&str>,
    accepted: Option<AcceptedSender>,
) -> Result<TurnReply, Problem> {
    let store = state.sessions.store().as_ref();
    if message.on_busy == OnBusy::Reject {
        state.sessions.claim_idle(id).await?;
    }
    // A message that was accepted before interrupts nothing.
    if message.on_busy == OnBusy::Interrupt
        && match key {
            Some(key) => !store.answer_accepted(id, key).await?,
            None => true,
        }
    {
        state.sessions.interrupt(id).await?;
    }
    let answered = state.sessions.send(id, None, |ended| {
        SessionCommand::Answer(Answer {
            text: message.text.clone(),
            key: key.map(str::to_owned),
            answer_id: message.answer_id.clone(),
            expected: None,
            accepted: accepted.clone(),
            ended,
        })
    });
    match (answered.await, key) {
        (Ok(AnsweredTurn::Ended(turn)), _) => match reply_from(&state.sessions.feed(id), id, turn) {
            Some(reply) => reply,
            None => reply_of(store, id, turn).await,
        },
        (Ok(AnsweredTurn::Repeated), Some(key)) => repeated(state, id, key, &message.text).await,
        (Ok(AnsweredTurn::Repeated), None) => {
            Err(Problem::new(ProblemKind::Conflict, msg!("this answer was accepted before")))
        }
        (Ok(AnsweredTurn::MovedOn), _) => Err(Problem::moved_on()),
        // A session that is over, or that is about to go on, may have got this message before.
        (Err(problem), Some(key))
            if problem.kind() == ProblemKind::Conflict && store.answer_accepted(id, key).await? =>
        {
            repeated(state, id, key, &message.text).await
        }
        (Err(problem), _) => Err(problem),
    }
}

/// The reply to a message whose key was accepted before.
pub(crate) async fn repeated(state: &ServerState, id: &str, key: &str, text: &str) -> Result<TurnReply, Problem> {
    let store = state.sessions.store().as_ref();
    match answer_with_key(store, id, key).await? {
        Some(answer) if answer.text == text => earlier_reply(store, id, &answer).await,
        _ => Err(key_reused()),
    }
}
