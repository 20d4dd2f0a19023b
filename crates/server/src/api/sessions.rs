//! `/v1/sessions`: starts, lists, shows, ends and deletes sessions.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use bcc_engine::engine::RunRequest;
use bcc_engine::retry::RetryRequest;
use bcc_engine::session_ids::secret_id;
use bcc_lang::message::msg;
use bcc_lang::value::exact::ExactValues;
use bcc_lang::value::instant::instant;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::take_back::TakenBack;
use bcc_store::rows::{SessionCursor, SessionFilter, SessionRow};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::{JsonBody, OptionalBody, UrlPath, UrlQuery};
use crate::api::catalog::ScriptEntry;
use crate::api::given_states::{GivenStateBody, start_from_state};
use crate::api::reply::{TurnReply, reply_of, state_of};
use crate::live::command::{EndedTurn, SessionCommand};
use crate::problem::{Problem, ProblemDetails, ProblemKind};
use crate::settings::{MAX_BODY_BYTES, MAX_STATE_BODY_BYTES};
use crate::state::ServerState;

/// The number of sessions in a page, if the request names none, and the maximum.
const PAGE: usize = 100;
const MAX_PAGE: usize = 1000;

/// The limit on the name of a user, which each list of sessions contains.
const MAX_USER_CHARS: usize = 200;

/// A session to start.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSessionBody {
    /// The script: its `session_id`, or its path in the project. Without it, there must be a `state`.
    pub(crate) script: Option<String>,
    /// A state of the behavior protocol from which the session begins, in place of a script. Only with the role `author`, and refused
    /// where scripts are not accepted.
    #[schema(value_type = Option<Object>)]
    pub(crate) state: Option<Box<RawValue>>,
    /// The behavior server that continues the `state`. Without it, the only one of the project, or its model.
    pub(crate) behavior_server: Option<String>,
    /// Values for variables that the script declares.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub(crate) variables: ExactValues,
    /// The user whose global variables the session uses. Without it, the session has a user of its own.
    #[schema(max_length = 200)]
    pub(crate) user: Option<String>,
    /// The id of the session. Only with the role `author`: whoever knows the id of a session can talk in it. Without it, the server
    /// makes one that cannot be guessed.
    pub(crate) session_id: Option<String>,
}

/// A session in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListedSession {
    pub(crate) id: String,
    /// The `session_id` of its script.
    pub(crate) script: String,
    pub(crate) status: String,
    pub(crate) user: String,
    pub(crate) started_at: String,
    pub(crate) updated_at: String,
    /// How many answers it has accepted.
    pub(crate) answers: u64,
    /// The number of its last event.
    pub(crate) last_seq: u64,
}

impl From<SessionRow> for ListedSession {
    fn from(row: SessionRow) -> Self {
        let SessionRow { id, script, status, user, started_at, updated_at, answers, last_seq, .. } = row;
        Self { id, script, status, user, started_at, updated_at, answers, last_seq }
    }
}

/// A page of sessions, the most recently updated first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionPage {
    pub(crate) sessions: Vec<ListedSession>,
    /// The value of `after` for the next page; none after the last one.
    pub(crate) next: Option<String>,
}

/// Starts a session, and runs it until it waits for something or ends.
#[utoipa::path(
    post,
    path = "/v1/sessions",
    tag = "sessions",
    request_body = NewSessionBody,
    responses(
        (status = 201, description = "The session has started", body = TurnReply),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn create_session(
    State(state): State<ServerState>,
    caller: ApiCaller,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<TurnReply>), Problem> {
    let max_bytes = match caller.require(AccessRole::Author) {
        Ok(()) => MAX_STATE_BODY_BYTES,
        Err(_) => MAX_BODY_BYTES,
    };
    let JsonBody(body) = JsonBody::read(&headers, body, max_bytes).await?;
    Ok((StatusCode::CREATED, Json(start(&state, &caller, body).await?.shown_to(caller.role))))
}

/// Starts a session, and runs it until it rests.
pub(crate) async fn start(state: &ServerState, caller: &ApiCaller, body: NewSessionBody) -> Result<TurnReply, Problem> {
    if body.session_id.is_some() {
        caller.require(AccessRole::Author)?;
    }
    let NewSessionBody { script, state: document, behavior_server, variables, user, session_id } = body;
    let script = match (script, document) {
        (Some(script), None) if behavior_server.is_none() => script,
        (None, Some(document)) => {
            let given = GivenStateBody { document, behavior_server, variables, user, session_id };
            return start_from_state(state, caller, given).await;
        }
        (Some(_), None) => return Err(Problem::invalid(msg!("`behavior_server` is for a `state`"))),
        _ => return Err(Problem::invalid(msg!("the request must have a `script` or a `state`, and not both"))),
    };
    let script = state.catalog.find(&script).await?;
    let id = session_id.unwrap_or_else(|| secret_id(&script.session_id));
    start_with_id(state, &script, id, user, variables, None).await
}

/// Starts a session with this id, and runs it until it rests. `begun_by` is the key of the request.
pub(crate) async fn start_with_id(
    state: &ServerState,
    script: &ScriptEntry,
    id: String,
    user: Option<String>,
    values: ExactValues,
    begun_by: Option<String>,
) -> Result<TurnReply, Problem> {
    let request = RunRequest {
        file: script.file.clone(),
        // Without a user, two persons must not share the variables of a common one.
        user: Some(named_user(user)?.unwrap_or_else(|| id.clone())),
        values,
        model: state.settings.model.clone(),
        begun_by,
        ..RunRequest::default()
    };
    let turn = state.sessions.start(request, &id).await?;
    reply_of(state.sessions.store().as_ref(), &id, turn).await
}

/// The user that a client names. A blank name is none: whoever sends one does not mean a user whom all of them share.
///
/// # Errors
/// `InvalidRequest` if it is too long for the lists that show it, or contains control characters.
pub(crate) fn named_user(user: Option<String>) -> Result<Option<String>, Problem> {
    let Some(user) = user.filter(|user| !user.trim().is_empty()) else { return Ok(None) };
    if user.chars().count() > MAX_USER_CHARS {
        return Err(Problem::invalid(msg!("`user` has more than {MAX_USER_CHARS} characters")));
    }
    match user.contains(char::is_control) {
        true => Err(Problem::invalid(msg!("`user` contains control characters"))),
        false => Ok(Some(user)),
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SessionsQuery {
    /// Only sessions of the script with this `session_id`.
    script: Option<String>,
    /// Only sessions with this status.
    status: Option<String>,
    /// Only sessions of this user.
    user: Option<String>,
    /// Only sessions that have changed since: a time (RFC 3339), or a date in UTC.
    since: Option<String>,
    /// Continues the list after this session: `next` of the page before.
    after: Option<String>,
    /// The number of sessions in a page: 100, at most 1000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Lists sessions, the most recently updated first.
#[utoipa::path(
    get,
    path = "/v1/sessions",
    tag = "sessions",
    params(SessionsQuery),
    responses(
        (status = 200, description = "A page of sessions", body = SessionPage),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list_sessions(
    State(state): State<ServerState>,
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<SessionsQuery>,
) -> Result<Json<SessionPage>, Problem> {
    caller.require(AccessRole::Author)?;
    // As a form sends a field that is empty.
    let after = query.after.filter(|after| !after.is_empty());
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Problem::invalid(msg!("`limit` must be from 1 to {MAX_PAGE}")));
    }
    let after = match &after {
        Some(after) => {
            let place = after.split_once('/');
            let (at, id) = place.ok_or_else(|| Problem::invalid(msg!("`after` is not that of a page")))?;
            Some(SessionCursor { updated_at: at.to_owned(), id: id.to_owned() })
        }
        None => None,
    };
    let filter = session_filter(query.script, query.status, query.user, query.since)?;
    let mut found = state.sessions.store().sessions_page(&filter, after.as_ref(), limit + 1).await?;
    let next = match found.len() > limit {
        true => {
            found.truncate(limit);
            found.last().map(|last| format!("{}/{}", last.updated_at, last.id))
        }
        false => None,
    };
    Ok(Json(SessionPage { sessions: found.into_iter().map(ListedSession::from).collect(), next }))
}

/// The filter that a query names. What is empty does not count, as a form sends it.
pub(crate) fn session_filter(
    script: Option<String>,
    status: Option<String>,
    user: Option<String>,
    since: Option<String>,
) -> Result<SessionFilter, Problem> {
    let [script, status, user, since] =
        [script, status, user, since].map(|given| given.filter(|text| !text.is_empty()));
    let since = match since {
        Some(since) => {
            let time = instant(&since, &TimeZone::UTC);
            Some(time.ok_or_else(|| Problem::invalid(msg!("`since` is not a time: `{since}`")))?)
        }
        None => None,
    };
    if let Some(status) = status.as_ref().filter(|status| SessionStatus::parse(status).is_none()) {
        return Err(Problem::invalid(msg!("sessions have no status `{status}`")));
    }
    Ok(SessionFilter { id: None, script, status, user, since })
}

/// Shows where a session is, with everything that was said.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}",
    tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "The session", body = TurnReply),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_session(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
) -> Result<Json<TurnReply>, Problem> {
    let store = state.sessions.store().as_ref();
    let row = store.session(&id).await?.ok_or_else(|| Problem::no_session(&id))?;
    Ok(Json(state_of(store, row).await?.shown_to(caller.role)))
}

/// Deletes a session with all its data. The variables of its user stay.
#[utoipa::path(
    delete,
    path = "/v1/sessions/{id}",
    tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 204, description = "It is deleted"),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn delete_session(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
) -> Result<StatusCode, Problem> {
    caller.require(AccessRole::Admin)?;
    match state.sessions.delete(&id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::no_session(&id)),
    }
}

/// Why a session is ended.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelBody {
    /// Why, for its report.
    reason: Option<String>,
    /// Whether what its steps did is undone (`compensate`).
    #[serde(default = "yes")]
    compensate: bool,
}

const fn yes() -> bool {
    true
}

/// Ends a session for good. What its steps did is undone first, as its script says.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/cancel",
    tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    request_body = CancelBody,
    responses(
        (status = 200, description = "It is cancelled", body = TurnReply),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn cancel_session(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
    JsonBody(body): JsonBody<CancelBody>,
) -> Result<Json<TurnReply>, Problem> {
    caller.require(AccessRole::Author)?;
    let turn = state.sessions.send_first(&id, |ended| SessionCommand::Cancel {
        reason: body.reason.clone(),
        compensate: body.compensate,
        ended,
    });
    Ok(Json(reply_of(state.sessions.store().as_ref(), &id, turn.await?).await?))
}

/// From where a session is repeated.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryBody {
    /// An action, or the path of a step as in the report. Without it, the step that failed.
    from: Option<String>,
}

/// Starts a session that repeats an ended one from one of its steps: what was done before it is kept.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/retry",
    tag = "sessions",
    params(("id" = String, Path, description = "The session that is repeated")),
    request_body = RetryBody,
    responses(
        (status = 201, description = "The new session", body = TurnReply),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn retry_session(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
    JsonBody(body): JsonBody<RetryBody>,
) -> Result<(StatusCode, Json<TurnReply>), Problem> {
    caller.require(AccessRole::Author)?;
    let store = state.sessions.store().as_ref();
    let row = store.session(&id).await?.ok_or_else(|| Problem::no_session(&id))?;
    if !SessionStatus::parse(&row.status).is_some_and(SessionStatus::is_final) {
        let why = msg!("session `{id}` has not ended: its status is `{}`", row.status);
        return Err(Problem::new(ProblemKind::Conflict, why));
    }
    let engine = state.sessions.engine();
    let request = RetryRequest { id, from: body.from, new_id: Some(secret_id(&row.script)), ..RetryRequest::default() };
    let new = engine.create_retry(engine.prepare_retry(&request).await?).await?;
    let copied = store.session(&new).await?.map_or(0, |row| row.last_seq);
    let turn = state.sessions.send(&new, None, |ended| SessionCommand::Rest { ended }).await?;
    Ok((StatusCode::CREATED, Json(reply_of(store, &new, EndedTurn { after: copied, ..turn }).await?)))
}

/// Which answer is taken back.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TakeBackRequest {
    /// The question that the session must wait for, as `waiting` named it, so that a request that is sent again does not take back another
    /// answer. Without it, the session may wait for any.
    answer_id: Option<String>,
}

/// Takes the last answer back, with everything that followed from it: the session waits for another answer to the same question.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/take_back",
    tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    request_body = Option<TakeBackRequest>,
    responses(
        (status = 200, description = "The session after it", body = TurnReply),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn take_back(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
    OptionalBody(body): OptionalBody<TakeBackRequest>,
) -> Result<Json<TurnReply>, Problem> {
    let command = |done| SessionCommand::TakeBack { answer_id: body.answer_id.clone(), done };
    let taken: TakenBack = state.sessions.send_first(&id, command).await?;
    let conflict = |why| Err(Problem::new(ProblemKind::Conflict, why));
    match taken {
        TakenBack::Yes => {}
        TakenBack::NoAnswer => return conflict(msg!("there is no answer to take back")),
        TakenBack::Final => return conflict(msg!("the session is over")),
        TakenBack::NotKept => return conflict(msg!("the store does not keep the state before the answer")),
        TakenBack::Decided => return conflict(msg!("somebody has decided since then")),
    }
    let store = state.sessions.store().as_ref();
    let row = store.session(&id).await?.ok_or_else(|| Problem::no_session(&id))?;
    Ok(Json(state_of(store, row).await?.shown_to(caller.role)))
}

/// Continues a session that has stopped, or whose server ended in the middle of a turn, and waits for the end of the turn.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/continue",
    tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "The session after it; one that waits is as it was", body = TurnReply),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn proceed(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
) -> Result<Json<TurnReply>, Problem> {
    state.sessions.send(&id, None, |ended| SessionCommand::Rest { ended }).await?;
    let store = state.sessions.store().as_ref();
    let row = store.session(&id).await?.ok_or_else(|| Problem::no_session(&id))?;
    Ok(Json(state_of(store, row).await?.shown_to(caller.role)))
}
