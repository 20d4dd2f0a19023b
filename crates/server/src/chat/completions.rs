//! `POST /v1/chat/completions`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use bcc_lang::message::language::Language;
use bcc_lang::message::msg;
use bcc_lang::value::exact::ExactValues;
use bcc_runtime::run::head::SessionStatus;
use bcc_store::contract::Store;
use bcc_store::error::StoreError;
use bcc_store::rows::SessionRow;
use tracing::Instrument;

use crate::access::{ApiCaller, hex};
use crate::api::body::{JsonBody, language_of};
use crate::api::messages::repeated;
use crate::api::reply::{TurnReply, answer_with_key, is_taken_back, opening_of, reply_from, reply_of, state_of};
use crate::api::sessions::{named_user, start_with_id};
use crate::chat::branches::ChatBranch;
use crate::chat::conversation::ChatTurn;
use crate::chat::error::ChatErrorBody;
use crate::chat::place::{ChatPlace, ChatTask};
use crate::chat::request::{ChatRequest, SaidText};
use crate::chat::response::{Completion, CompletionHead, content_of, usage_of};
use crate::chat::stream::completion_stream;
use crate::chat::transcript::last_shown;
use crate::live::command::{AcceptedSender, Answer, AnsweredTurn, SessionCommand};
use crate::problem::{Problem, ProblemKind};
use crate::state::ServerState;

/// How often another session is looked for if somebody else answers the one that was found.
const MAX_ATTEMPTS: usize = 16;

/// How often, and with which pauses, a session is looked for that another process creates.
const MAX_CHECKS: usize = 500;
const CHECK_AGAIN: Duration = Duration::from_millis(10);

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
        user: named_user(request.user.clone())?,
        conversation: request.conversation(&headers, &chat.conversation_header)?,
        history,
        is_repeated: retries.is_some_and(|retries: u64| retries > 0),
    };
    let turn = Arc::new(turn);
    let language = language_of(&headers);
    let wants_usage = request.stream_options.is_some_and(|options| options.include_usage);
    for _ in 0..MAX_ATTEMPTS {
        let place = turn.place(&state).await?;
        let number = turn.history.before.len() as u64 / 2 + 1;
        let head = CompletionHead::new(&place.session, number, &request.model);
        // Ids have no characters that a header may not have, except letters of other scripts.
        let session = HeaderValue::from_bytes(place.session.as_bytes()).ok();
        let (state, turn) = (state.clone(), Arc::clone(&turn));
        let answered = match request.stream.unwrap_or_default() {
            true => completion_stream(state, turn, place, head, language, wants_usage).await,
            false => completion(state, turn, place, head, language).await,
        };
        let mut response = match answered {
            Ok(response) => response,
            Err(Unanswered::MovedOn) => continue,
            Err(Unanswered::Problem(problem)) => return Err(problem),
        };
        if let Some(session) = session {
            response.headers_mut().insert(SESSION_HEADER, session);
        }
        return Ok(response);
    }
    Err(Problem::moved_on())
}

/// Answers with the whole reply.
async fn completion(
    state: ServerState,
    turn: Arc<ChatTurn>,
    place: ChatPlace,
    head: CompletionHead,
    language: Language,
) -> Result<Response, Unanswered> {
    // In a task of its own: a client that leaves does not end the turn.
    let answering = async move {
        let reply = speak(&state, &turn, &place, None).await?;
        let content = content_of(&reply.reply, language);
        remember(&state, &turn, &reply, &[&content]).await?;
        let store = state.sessions.store().as_ref();
        let usage = usage_of(store, &reply.reply.id, reply.after, reply.reply.last_seq).await?;
        Ok::<_, Unanswered>(Json(head.completion(content, usage)).into_response())
    };
    let task = tokio::spawn(answering.in_current_span());
    task.await.map_err(|error| Problem::failure(&msg!("a turn ended early: {error}")))?
}

/// Why a message was not answered.
#[derive(Clone, Debug)]
pub(crate) enum Unanswered {
    /// Somebody else was faster: its place is another one.
    MovedOn,
    Problem(Problem),
}

impl From<Problem> for Unanswered {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<StoreError> for Unanswered {
    fn from(error: StoreError) -> Self {
        Self::Problem(error.into())
    }
}

impl Unanswered {
    /// For the client.
    pub(crate) fn into_problem(self) -> Problem {
        match self {
            Self::MovedOn => Problem::moved_on(),
            Self::Problem(problem) => problem,
        }
    }
}

/// What was said in a turn.
pub(crate) struct ChatReply {
    pub(crate) reply: TurnReply,
    /// The number of the last event before the turn.
    pub(crate) after: u64,
    /// The number of answers that the session has accepted then.
    answers: u64,
    /// The number of the last message that the client has, if the reply has no message.
    shown: Option<u64>,
}

/// Says the message in its session, and waits for the end of the turn. `accepted` learns the number of the last event before it.
///
/// # Errors
/// `Unavailable` if the turn has stopped before the session said anything: there is no reply yet.
pub(crate) async fn speak(
    state: &ServerState,
    turn: &ChatTurn,
    place: &ChatPlace,
    accepted: Option<AcceptedSender>,
) -> Result<ChatReply, Unanswered> {
    let said = match &place.task {
        ChatTask::Begin { .. } => open_conversation(state, turn, place, accepted).await?,
        ChatTask::Answer { answers } => answer(state, turn, place, *answers, accepted).await?,
        ChatTask::Tell { answers, messages, shown } => {
            let store = state.sessions.store().as_ref();
            let row = store.session(&place.session).await?.ok_or_else(|| Problem::no_session(&place.session))?;
            let after = row.last_seq;
            let mut reply = state_of(store, row).await?;
            reply.messages.retain(|said| messages.contains(&said.message_id));
            if messages.is_empty() && reply.waits_for_person() {
                // Somebody has decided at this moment.
                return Err(Unanswered::MovedOn);
            }
            ChatReply { reply, after, answers: *answers, shown: Some(*shown) }
        }
    };
    match said.reply.messages.is_empty() && said.reply.status == SessionStatus::Stopped.name() {
        true => Err(Problem::stopped(&place.session).into()),
        false => Ok(said),
    }
}

/// Begins the session, or waits until it has begun. If it listens first, the message is its first answer.
async fn open_conversation(
    state: &ServerState,
    turn: &ChatTurn,
    place: &ChatPlace,
    accepted: Option<AcceptedSender>,
) -> Result<ChatReply, Unanswered> {
    let (store, id) = (state.sessions.store().as_ref(), place.session.as_str());
    let (user, begun_by) = (turn.user.clone(), Some(place.key.clone()));
    let started = start_with_id(state, &turn.script, id.to_owned(), user, ExactValues::default(), begun_by);
    let opening = match started.await {
        Ok(opening) => opening,
        // The same request has begun it before, or another process begins it.
        Err(problem) if matches!(problem.kind(), ProblemKind::Conflict | ProblemKind::Held) => {
            let mut row = created(store, id).await?.ok_or(problem)?;
            if [SessionStatus::Running, SessionStatus::Stopped].iter().any(|status| row.status == status.name()) {
                state.sessions.send(id, None, |ended| SessionCommand::Rest { ended }).await?;
                row = store.session(id).await?.ok_or_else(|| Problem::no_session(id))?;
            }
            opening_of(store, row).await?
        }
        Err(problem) => return Err(problem.into()),
    };
    let listens = opening.messages.is_empty() && opening.status == SessionStatus::WaitingInput.name();
    match listens {
        true => answer(state, turn, place, 0, accepted).await,
        false => Ok(ChatReply { reply: opening, after: 0, answers: 0, shown: None }),
    }
}

/// A session that another process may be about to create.
async fn created(store: &dyn Store, id: &str) -> Result<Option<SessionRow>, Problem> {
    for _ in 0..MAX_CHECKS {
        if let Some(row) = store.session(id).await? {
            return Ok(Some(row));
        }
        tokio::time::sleep(CHECK_AGAIN).await;
    }
    Ok(None)
}

/// The key for a message whose key `used` was accepted before; none if that answer stands. A client that says the same again at the same
/// place, after somebody has taken the answer back, means it: that is another answer.
async fn next_key(store: &dyn Store, id: &str, place: &ChatPlace, used: &str) -> Result<Option<String>, Problem> {
    match answer_with_key(store, id, used).await? {
        Some(answer) if is_taken_back(store, id, &answer).await? => Ok(Some(format!("{}.{}", place.key, answer.seq))),
        _ => Ok(None),
    }
}

async fn answer(
    state: &ServerState,
    turn: &ChatTurn,
    place: &ChatPlace,
    answers: u64,
    accepted: Option<AcceptedSender>,
) -> Result<ChatReply, Unanswered> {
    let (store, id) = (state.sessions.store().as_ref(), place.session.as_str());
    let after = store.session(id).await?.map_or(0, |row| row.last_seq);
    let mut key = place.key.clone();
    let reply = loop {
        let answered = state.sessions.send(id, None, |ended| {
            SessionCommand::Answer(Answer {
                text: turn.history.message.clone(),
                key: Some(key.clone()),
                answer_id: None,
                expected_answers: Some(answers),
                may_decide: false,
                accepted: accepted.clone(),
                ended,
            })
        });
        match answered.await {
            Ok(AnsweredTurn::Ended(ended)) => match reply_from(&state.sessions.feed(id), id, ended) {
                Some(reply) => break reply?,
                None => break reply_of(store, id, ended).await?,
            },
            Ok(AnsweredTurn::Repeated) => {}
            Ok(AnsweredTurn::MovedOn) => return Err(Unanswered::MovedOn),
            // A session that is over, or that is about to go on, may have got this message before, or another one.
            Err(problem) if problem.kind() == ProblemKind::Conflict => {
                if !store.answer_accepted(id, &key).await? {
                    return match store.session(id).await?.is_some_and(|row| row.answers != answers) {
                        true => Err(Unanswered::MovedOn),
                        false => Err(problem.into()),
                    };
                }
            }
            Err(problem) => return Err(problem.into()),
        }
        match next_key(store, id, place, &key).await? {
            Some(next) => key = next,
            None => break repeated(state, id, &key, &turn.history.message).await?,
        }
    };
    // An answer about an effect does not count.
    let row = store.session(id).await?.ok_or_else(|| Problem::no_session(id))?;
    Ok(ChatReply { reply, after, answers: row.answers.min(answers + 1), shown: None })
}

/// Remembers where the session is now: after the history that the client has, in each form that it may have the reply in.
pub(crate) async fn remember(
    state: &ServerState,
    turn: &ChatTurn,
    ChatReply { reply, answers, shown, .. }: &ChatReply,
    contents: &[&str],
) -> Result<(), Problem> {
    let last = reply.messages.last().map(|said| said.message_id.as_str());
    let shown = match (last, shown) {
        (None, Some(shown)) => *shown,
        _ => last_shown(state.sessions.store().as_ref(), &reply.id, last).await?,
    };
    for content in contents {
        let mut history = turn.history.with_message();
        history.push(SaidText::new(false, content));
        let branch = ChatBranch { session: reply.id.clone(), answers: *answers, shown };
        state.branches.add(turn.hash(&history), branch);
    }
    Ok(())
}
