//! What a person does in a conversation: answers, takes the last answer back, tries again.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bcc_runtime::run::take_back::TakenBack;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument;

use crate::api::messages::{NewMessage, OnBusy, SendOptions, key_of, say};
use crate::api::reply::answer_with_key;
use crate::live::command::SessionCommand;
use crate::problem::ProblemKind;
use crate::state::ServerState;
use crate::talk::beginning::ensure_started;
use crate::talk::error::TalkErrorKind;
use crate::talk::view::go_on;
use crate::talk::visit::{TalkVisit, body_of};

/// An answer of the person.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TalkAnswer {
    text: String,
    /// The question that it answers, as the page had it.
    answer_id: String,
}

/// `POST /t/TOKEN/SECRET/messages`: answers as soon as the answer is stored, and does not wait for what follows from it.
pub(crate) async fn answer(
    State(state): State<ServerState>,
    Path((token, secret)): Path<(String, String)>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, TalkErrorKind> {
    let TalkAnswer { text, answer_id } = body_of(&state, &token, request).await?;
    let key = key_of(&headers)?.ok_or(TalkErrorKind::BadRequest)?;
    if text.trim().is_empty() {
        return Err(TalkErrorKind::BadRequest);
    }
    let visit = TalkVisit::of(&state, &token, &secret).await?;
    ensure_started(&state, &visit).await?;
    let (store, id) = (state.sessions.store().as_ref(), visit.talk.session.as_str());
    // Sent again after the connection broke: whatever has happened since, it is stored, and is not waited for.
    if store.answer_accepted(id, &key).await? {
        return match answer_with_key(store, id, &key).await? {
            Some(earlier) if earlier.text == text => Ok(stored(earlier.seq)),
            _ => Err(TalkErrorKind::BadRequest),
        };
    }
    visit.require_valid()?;
    let (accepted, mut answered) = mpsc::channel(1);
    let (end, ended) = oneshot::channel();
    let message = NewMessage { text, answer_id: Some(answer_id), on_busy: OnBusy::Wait };
    let (turn_state, turn_id, sent_key) = (state.clone(), visit.talk.session.clone(), key.clone());
    // In a task of its own: a person who leaves does not end the turn.
    let options = SendOptions { key: Some(key), accepted: Some(accepted), may_decide: false };
    let saying = async move {
        let said = say(&turn_state, &turn_id, &message, options).await;
        drop(end.send(said.map(drop)));
    };
    tokio::spawn(saying.in_current_span());
    if let Some(after) = answered.recv().await {
        return Ok(stored(after + 1));
    }
    match ended.await {
        // Another request with the same key was faster.
        Ok(Ok(())) => match answer_with_key(store, id, &sent_key).await? {
            Some(earlier) => Ok(stored(earlier.seq)),
            None => Err(TalkErrorKind::Unavailable),
        },
        Ok(Err(problem)) if problem.kind() == ProblemKind::Conflict => Err(TalkErrorKind::Answered),
        Ok(Err(problem)) => Err(problem.into()),
        Err(_) => Err(TalkErrorKind::Unavailable),
    }
}

/// `seq` is the number of the event of the answer, which is in the id of its message.
fn stored(seq: u64) -> Response {
    (StatusCode::ACCEPTED, Json(json!({ "stored": true, "id": format!("u{seq}") }))).into_response()
}

/// What the person takes back.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TakeBackBody {
    /// The question that the page shows, so that two tabs do not take back two answers.
    answer_id: String,
}

/// `POST /t/TOKEN/SECRET/take_back`: takes the last answer back.
pub(crate) async fn take_back(
    State(state): State<ServerState>,
    Path((token, secret)): Path<(String, String)>,
    request: Request,
) -> Result<Response, TalkErrorKind> {
    let TakeBackBody { answer_id } = body_of(&state, &token, request).await?;
    let visit = TalkVisit::of(&state, &token, &secret).await?;
    visit.require_valid()?;
    let command = |done| SessionCommand::TakeBack { answer_id: Some(answer_id.clone()), done };
    match state.sessions.send(&visit.talk.session, None, command).await? {
        TakenBack::Yes => Ok(Json(json!({ "taken_back": true })).into_response()),
        TakenBack::NoAnswer | TakenBack::Final | TakenBack::NotKept | TakenBack::Decided => {
            Err(TalkErrorKind::NotPossible)
        }
    }
}

/// `POST /t/TOKEN/SECRET/continue`: tries to go on with a conversation that has stopped, for example because its model was unreachable.
pub(crate) async fn try_again(
    State(state): State<ServerState>,
    Path((token, secret)): Path<(String, String)>,
) -> Result<Response, TalkErrorKind> {
    let visit = TalkVisit::of(&state, &token, &secret).await?;
    visit.require_valid()?;
    go_on(&state, &visit.talk.session).await;
    Ok((StatusCode::ACCEPTED, Json(json!({}))).into_response())
}
