//! `POST /v1/chat/completions`.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use bcc_lang::message::msg;
use bcc_runtime::run::head::SessionStatus;
use tracing::Instrument;

use crate::access::{ApiCaller, hex};
use crate::api::body::JsonBody;
use crate::api::gate::language_of;
use crate::api::messages::{NewMessage, OnBusy, SendOptions, say};
use crate::api::reply::{TurnReply, state_of};
use crate::api::sessions::start_with_id;
use crate::chat::branches::ChatBranch;
use crate::chat::conversation::{ChatPlace, ChatTurn};
use crate::chat::error::ChatErrorBody;
use crate::chat::request::{ChatRequest, SaidText};
use crate::chat::response::{Completion, CompletionHead, content_of, usage_of};
use crate::chat::stream::completion_stream;
use crate::live::command::{AcceptedSender, SessionCommand};
use crate::problem::Problem;
use crate::state::ServerState;
use bcc_lang::value::exact::ExactValues;

/// The header of the response with the id of the session.
const SESSION_HEADER: HeaderName = HeaderName::from_static("x-session-id");

/// The header in which OpenAI's own clients count how often they have sent a request again.
const RETRY_HEADER: &str = "x-stainless-retry-count";

/// Says something in a conversation, as in the chat completions of OpenAI.
///
/// Each script is a model. The first message of a conversation
/// begins a session; if the session speaks first, its opening is the reply. Each further request goes on with the session that said the
/// history; a request with a changed history, or for another reply to the same message, goes on with a fork of it.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    tag = "chat",
    request_body = ChatRequest,
    responses(
        (status = 200, description = "The reply. With `stream`, a stream of `chat.completion.chunk` objects that ends with `[DONE]`", body = Completion),
        (status = "default", description = "An error", body = ChatErrorBody),
    )
)]
pub(crate) async fn create_completion(
    State(state): State<ServerState>,
    caller: ApiCaller,
    headers: HeaderMap,
    JsonBody(request): JsonBody<ChatRequest>,
) -> Result<Response, Problem> {
    let history = request.history()?;
    let chat = &state.settings.chat;
    if request.is_task(&headers, &chat.task_header, &history) {
        let problem = Problem::invalid("tasks of the client, such as titles and tags, are not answered");
        return Err(problem.with_help("turn them off in the client, or send them to a language model"));
    }
    let retries = headers.get(RETRY_HEADER).and_then(|value| value.to_str().ok()).and_then(|value| value.parse().ok());
    let turn = ChatTurn {
        script: state.catalog.find(&request.model).await?,
        caller: hex(&caller.scope),
        user: request.user.clone().filter(|user| !user.is_empty()),
        conversation: request.conversation(&headers, &chat.conversation_header)?,
        history,
        is_repeated: retries.is_some_and(|retries: u64| retries > 0),
    };
    let place = turn.place(&state).await?;
    let (ChatPlace::Begin(id) | ChatPlace::Answer(id) | ChatPlace::Opened(id)) = &place;
    let number = turn.history.before.len() as u64 / 2 + 1;
    let head = CompletionHead::new(id, number, &request.model);
    // Ids have no characters that a header may not have, except letters of other scripts.
    let session = HeaderValue::from_bytes(id.as_bytes()).ok();
    let language = language_of(&headers);
    let wants_usage = request.stream_options.is_some_and(|options| options.include_usage);
    let mut response = match request.stream.unwrap_or_default() {
        true => completion_stream(state, turn, place, head, language, wants_usage).await?,
        false => {
            // In a task of its own: a client that leaves does not end the turn.
            let answering = async move {
                let reply = speak(&state, &turn, &place, None).await?;
                let content = content_of(&reply.reply, language);
                remember(&state, &turn, &reply.reply, &[&content]).await?;
                let store = state.sessions.store().as_ref();
                let usage = usage_of(store, &reply.reply.id, reply.after, reply.reply.last_seq).await?;
                Ok::<_, Problem>(Json(head.completion(content, usage)))
            };
            let task = tokio::spawn(answering.in_current_span());
            task.await.map_err(|error| Problem::failure(&msg!("a turn ended early: {error}")))??.into_response()
        }
    };
    if let Some(session) = session {
        response.headers_mut().insert(SESSION_HEADER, session);
    }
    Ok(response)
}

/// What was said in a turn.
pub(crate) struct ChatReply {
    pub(crate) reply: TurnReply,
    /// The number of the last event before the turn.
    pub(crate) after: u64,
}

/// Says the message in its session, and waits for the end of the turn. `accepted` learns the number of the last event before it.
pub(crate) async fn speak(
    state: &ServerState,
    turn: &ChatTurn,
    place: &ChatPlace,
    accepted: Option<AcceptedSender>,
) -> Result<ChatReply, Problem> {
    match place {
        ChatPlace::Begin(id) => {
            let opening =
                start_with_id(state, &turn.script, id.clone(), turn.user.clone(), ExactValues::default()).await?;
            let listens = opening.status == SessionStatus::WaitingInput.name();
            if !opening.messages.is_empty() || !listens {
                return Ok(ChatReply { reply: opening, after: 0 });
            }
            answer(state, turn, id, accepted).await
        }
        ChatPlace::Answer(id) => answer(state, turn, id, accepted).await,
        ChatPlace::Opened(id) => {
            let store = state.sessions.store().as_ref();
            let mut row = store.session(id).await?.ok_or_else(|| Problem::no_session(id))?;
            if row.status == SessionStatus::Running.name() {
                state.sessions.send(id, None, |ended| SessionCommand::Rest { ended }).await?;
                row = store.session(id).await?.ok_or_else(|| Problem::no_session(id))?;
            }
            let after = row.last_seq;
            Ok(ChatReply { reply: state_of(store, row).await?, after })
        }
    }
}

async fn answer(
    state: &ServerState,
    turn: &ChatTurn,
    id: &str,
    accepted: Option<AcceptedSender>,
) -> Result<ChatReply, Problem> {
    let store = state.sessions.store().as_ref();
    let before = store.session(id).await?.map_or(0, |row| row.last_seq);
    let message = NewMessage { text: turn.history.message.clone(), answer_id: None, on_busy: OnBusy::Wait };
    let options = SendOptions { key: Some(turn.message_key()), accepted, may_decide: false };
    Ok(ChatReply { reply: say(state, id, &message, options).await?, after: before })
}

/// Remembers where the session is now: after the history that the client has, in each form that it may have the reply in.
pub(crate) async fn remember(
    state: &ServerState,
    turn: &ChatTurn,
    reply: &TurnReply,
    contents: &[&str],
) -> Result<(), Problem> {
    let Some(row) = state.sessions.store().session(&reply.id).await? else { return Ok(()) };
    for content in contents {
        let mut history = turn.history.with_message();
        history.push(SaidText::new(false, content));
        let branch = ChatBranch { session: row.id.clone(), answers: row.answers };
        state.branches.add(turn.hash(&history), branch);
    }
    Ok(())
}
