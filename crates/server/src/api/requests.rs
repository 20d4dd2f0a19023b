//! `/v1/requests`: what sessions wait for, and what is decided.

use axum::Json;
use axum::extract::State;
use bcc_engine::export::mask_requests;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_runtime::program::decision::{DecisionKind, RequestKind};
use bcc_runtime::program::flow::WaitReason;
use bcc_runtime::program::interrupted_effects::is_effect_decision;
use bcc_runtime::run::approval_decision::ApprovalDecision;
use bcc_runtime::run::decisions::{earlier_answer, names_in};
use bcc_store::rows::{OpenRequest, RequestRow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::{JsonBody, UrlPath, UrlQuery};
use crate::api::messages::{NewMessage, OnBusy, SendOptions, say};
use crate::api::reply::{TurnReply, reply_of};
use crate::live::command::SessionCommand;
use crate::problem::{Problem, ProblemDetails, ProblemKind};
use crate::state::ServerState;

/// What a session waits for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListedRequest {
    /// The session and the request: `SESSION/REQUEST`.
    pub(crate) id: String,
    pub(crate) session_id: String,
    pub(crate) request_id: String,
    /// `input`, `approval`, `form`, `interrupted_effect` or `time`.
    pub(crate) kind: String,
    pub(crate) prompt: String,
    /// The JSON Schema of the values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) schema: Option<Value>,
    /// The permitted decisions.
    pub(crate) decisions: Vec<String>,
    /// Who may decide; everybody if it is empty.
    pub(crate) approvers: Vec<String>,
    pub(crate) opened_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) due_at: Option<String>,
}

impl From<OpenRequest> for ListedRequest {
    fn from(open: OpenRequest) -> Self {
        let OpenRequest { session, request } = open;
        Self {
            id: format!("{session}/{}", request.id),
            session_id: session,
            // What cannot be read is not shown; deciding about it is refused.
            schema: request.schema.and_then(|schema| serde_json::from_str(&schema).ok()),
            decisions: names_in(request.decisions.as_deref()).unwrap_or_default(),
            approvers: names_in(request.approvers.as_deref()).unwrap_or_default(),
            request_id: request.id,
            kind: request.kind,
            prompt: request.prompt,
            opened_at: request.opened_at,
            due_at: request.due_at,
        }
    }
}

/// What sessions wait for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestList {
    pub(crate) requests: Vec<ListedRequest>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RequestsQuery {
    /// Only those of this session.
    session: Option<String>,
    /// Only those of this kind.
    kind: Option<String>,
}

/// Lists what sessions wait for, sorted by session.
#[utoipa::path(
    get,
    path = "/v1/requests",
    tag = "requests",
    params(RequestsQuery),
    responses(
        (status = 200, description = "The open requests", body = RequestList),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list_requests(
    State(state): State<ServerState>,
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<RequestsQuery>,
) -> Result<Json<RequestList>, Problem> {
    caller.require(AccessRole::Decide)?;
    let store = state.sessions.store();
    // What is empty does not count, as a form sends it.
    let [session, kind] = [query.session, query.kind].map(|given| given.filter(|text| !text.is_empty()));
    let mut open = match session {
        Some(session) => {
            let rows = store.requests(&session).await?.into_iter().filter(|row| row.answered_at.is_none());
            rows.map(|request| OpenRequest { session: session.clone(), request }).collect()
        }
        None => store.open_requests(None).await?,
    };
    open.retain(|open| kind.as_ref().is_none_or(|kind| *kind == open.request.kind));
    mask_requests(state.sessions.store().as_ref(), &mut open).await?;
    Ok(Json(RequestList { requests: open.into_iter().map(ListedRequest::from).collect() }))
}

/// An answer to a request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionBody {
    /// Of a decision: one of the permitted ones, such as `approve`, `reject` or `push_back`. Of an interrupted effect: `again`, `skip` or
    /// `fail`. Of an answer in the conversation: the text.
    decision: String,
    /// Values of the form.
    #[serde(default)]
    #[schema(value_type = Object)]
    values: ExactValues,
    comment: Option<String>,
    /// Who decides. With tokens, the name of the token is used, unless its role is `author` or more.
    by: Option<String>,
}

/// Answers a request. A second answer is told who decided and when.
#[utoipa::path(
    post,
    path = "/v1/requests/{session}/{request}",
    tag = "requests",
    params(
        ("session" = String, Path, description = "The session"),
        ("request" = String, Path, description = "The request"),
    ),
    request_body = DecisionBody,
    responses(
        (status = 200, description = "It is answered, and the turn has ended", body = TurnReply),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn answer_request(
    State(state): State<ServerState>,
    UrlPath((session, request)): UrlPath<(String, String)>,
    caller: ApiCaller,
    JsonBody(body): JsonBody<DecisionBody>,
) -> Result<Json<TurnReply>, Problem> {
    answered(&state, (session, request), &caller, body).await
}

/// Answers a request by the `id` with which it is listed, as one part of the path: `SESSION%2FREQUEST`.
#[utoipa::path(
    post,
    path = "/v1/requests/{id}",
    tag = "requests",
    params(("id" = String, Path, description = "The `id` of the request in the list")),
    request_body = DecisionBody,
    responses(
        (status = 200, description = "It is answered, and the turn has ended", body = TurnReply),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn answer_request_with_id(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
    JsonBody(body): JsonBody<DecisionBody>,
) -> Result<Json<TurnReply>, Problem> {
    caller.require(AccessRole::Decide)?;
    let Some((session, request)) = id.rsplit_once('/') else {
        // Other sessions have requests of the same name, and may have one later.
        let problem = Problem::not_found(msg!("`{id}` is not the id of a request"));
        return Err(problem.with_help("the id contains the session: `SESSION/REQUEST`, as `GET /v1/requests` lists it"));
    };
    answered(&state, (session.to_owned(), request.to_owned()), &caller, body).await
}

async fn answered(
    state: &ServerState,
    (session, request): (String, String),
    caller: &ApiCaller,
    body: DecisionBody,
) -> Result<Json<TurnReply>, Problem> {
    caller.require(AccessRole::Decide)?;
    let store = state.sessions.store().as_ref();
    if store.session(&session).await?.is_none() {
        return Err(Problem::no_session(&session));
    }
    let requests = store.requests(&session).await?;
    let Some(open) = requests.iter().find(|row| row.id == request) else {
        return Err(Problem::not_found(msg!("session `{session}` has no request `{request}`")));
    };
    if open.answered_at.is_some() {
        let answered = earlier_answer(store, &session, Some(&request)).await?;
        let answered = answered.unwrap_or_else(|| msg!("the request `{request}` was answered"));
        return Err(Problem::new(ProblemKind::Conflict, answered));
    }
    if open.kind == RequestKind::Time.name() {
        return Err(Problem::new(
            ProblemKind::Conflict,
            msg!("the request `{request}` waits for a time, not for a person"),
        ));
    }
    let is_effect = open.kind == WaitReason::InterruptedEffect.name();
    if is_effect && !is_effect_decision(&body.decision) {
        return Err(no_decision(&body.decision, open));
    }
    if open.kind != RequestKind::Approval.name() {
        let message = NewMessage { text: body.decision, answer_id: Some(request), on_busy: OnBusy::Wait };
        return Ok(Json(
            say(state, &session, &message, SendOptions { may_decide: true, ..SendOptions::default() }).await?,
        ));
    }
    let Some(decision) = DecisionKind::parse(&body.decision) else {
        return Err(no_decision(&body.decision, open));
    };
    let by = match &caller.name {
        Some(_) if caller.role >= AccessRole::Author && body.by.is_some() => body.by,
        Some(name) => Some(name.clone()),
        None => body.by,
    };
    let values: ExactValues = body.values.into_iter().collect::<Vec<(String, ExactValue)>>().into_iter().collect();
    let decision = ApprovalDecision { request: Some(request), decision, by, comment: body.comment, values };
    let turn = state
        .sessions
        .send(&session, None, |ended| SessionCommand::Decide { decision: Box::new(decision.clone()), ended })
        .await?;
    Ok(Json(reply_of(store, &session, turn).await?))
}

fn no_decision(given: &str, open: &RequestRow) -> Problem {
    let permitted = names_in(open.decisions.as_deref()).unwrap_or_default();
    Problem::invalid(msg!("`{}` is not a decision", given)).with_help(msg!("permitted: {}", Message::names(&permitted)))
}
