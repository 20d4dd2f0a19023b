//! The endpoints of the behavior protocol.

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bcc_lang::message::language::Language;
use serde_json::json;

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::{JsonBody, language_of};
use crate::behavior::actions::action_objects;
use crate::behavior::answers::{judgement, next_behavior, plan, text_without_actions};
use crate::behavior::judgement::ReflectionSignals;
use crate::behavior::lines::lines;
use crate::behavior::live::{LineForm, stream_behavior};
use crate::behavior::plan::PlanLevel;
use crate::behavior::plan_format::WorkflowPlanFormat;
use crate::behavior::request::BehaviorRequest;
use crate::problem::{Problem, ProblemDetails};
use crate::state::ServerState;

/// A request of someone who may use the protocol.
pub(crate) struct ClientCall {
    request: BehaviorRequest,
    language: Language,
}

impl<S: Send + Sync> FromRequest<S> for ClientCall {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let caller = ApiCaller::from_request_parts(&mut parts, state).await?;
        caller.require(AccessRole::Talk)?;
        let language = language_of(&parts.headers);
        let JsonBody(body) = JsonBody::from_request(Request::from_parts(parts, body), state).await?;
        Ok(Self { request: BehaviorRequest::read(body)?.of_caller(caller.name), language })
    }
}

/// Gives the next behavior of a step: its actions, and what follows from it.
///
/// The body is an observation of the behavior protocol, in any of its forms; `bcc-script schema protocol-request` describes it, and
/// `protocol-response` the answer. With `options.stream`, the answer has one JSON object a line: the behavior, each action as soon as the
/// model has written it, and what follows.
#[utoipa::path(
    post,
    path = "/v1/actions",
    tag = "behavior",
    request_body = Object,
    responses(
        (status = 200, description = "The next behavior", content((Object = "application/json"), (String = "application/x-ndjson"))),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn create_actions(
    State(state): State<ServerState>,
    ClientCall { request, language }: ClientCall,
) -> Result<Response, Problem> {
    if request.stream {
        return stream_behavior(state, request, language, LineForm::Current).await;
    }
    let behavior = next_behavior(&state, &request, language).await?;
    Ok(Json(behavior.to_json(&request)).into_response())
}

/// Judges whether the target of a step is achieved.
///
/// `bcc-script schema protocol-reflection` describes the answer.
#[utoipa::path(
    post,
    path = "/v1/reflection",
    tag = "behavior",
    request_body = Object,
    responses(
        (status = 200, description = "The judgement", body = Object),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn create_reflection(
    State(state): State<ServerState>,
    ClientCall { request, language }: ClientCall,
) -> Result<Response, Problem> {
    let judgement = judgement(&state, &request, language).await?;
    Ok(Json(judgement.to_json(false)).into_response())
}

/// Plans what a notebook client needs next, or judges what it reports.
///
/// In the state `IDLE`, the answer has `stages`; in `STAGE_RUNNING`, `steps`; in `STEP_RUNNING`, a `behavior`. A request with
/// `behavior_feedback`, or in another state, gets a judgement. Plans are XML for clients that accept it.
#[utoipa::path(
    post,
    path = "/planning",
    tag = "behavior",
    request_body = Object,
    responses(
        (status = 200, description = "The plan, or the judgement", content((Object = "application/json"), (String = "application/xml"))),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn create_plan(
    State(state): State<ServerState>,
    headers: HeaderMap,
    ClientCall { request, language }: ClientCall,
) -> Result<Response, Problem> {
    let level = request.state.and_then(PlanLevel::of_state).filter(|_| !request.reports);
    let Some(level) = level else {
        let judgement = judgement(&state, &request, language).await?;
        return Ok(Json(judgement.to_json(true)).into_response());
    };
    let plan = plan(&state, &request, level, language).await?;
    Ok(match WorkflowPlanFormat::accepted(&headers, state.settings.behavior.plan_format) {
        WorkflowPlanFormat::Json => Json(plan.to_json()).into_response(),
        WorkflowPlanFormat::Xml => {
            ([(header::CONTENT_TYPE, "application/xml; charset=utf-8")], plan.to_xml()).into_response()
        }
    })
}

/// Gives the next actions to a notebook client, with their older names. They are never empty.
///
/// With `options.stream`, the answer has one `{"action": …}` a line, as soon as the model has written it. A client that sends a todo list also gets a `context_update`.
#[utoipa::path(
    post,
    path = "/generating",
    tag = "behavior",
    request_body = Object,
    responses(
        (status = 200, description = "The actions", content((Object = "application/json"), (String = "application/x-ndjson"))),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn generate_actions(
    State(state): State<ServerState>,
    ClientCall { request, language }: ClientCall,
) -> Result<Response, Problem> {
    if request.stream {
        return stream_behavior(state, request, language, LineForm::Older).await;
    }
    let behavior = next_behavior(&state, &request, language).await?;
    let actions = behavior.to_older_actions(&text_without_actions(&request, language));
    // Only clients with a todo list know updates; others would take one for an action.
    let update = behavior.context_update().filter(|_| !request.observed.todo_list.is_empty());
    let mut whole = json!({ "actions": actions });
    if let (Some(fields), Some(update)) = (whole.as_object_mut(), update) {
        fields.insert("context_update".to_owned(), update);
    }
    Ok(Json(whole).into_response())
}

/// Tells a notebook client what follows from what it has completed.
///
/// The actions are `mark_step_complete`, if the target of the step is achieved; `mark_stage_complete`, if the stage has no further
/// steps; and `complete_reflection` at the end.
#[utoipa::path(
    post,
    path = "/reflecting",
    tag = "behavior",
    request_body = Object,
    responses(
        (status = 200, description = "The signals", content((Object = "application/json"), (String = "application/x-ndjson"))),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn reflect(
    State(state): State<ServerState>,
    ClientCall { request, language }: ClientCall,
) -> Result<Response, Problem> {
    let signals = match ReflectionSignals::of_progress(&request) {
        Some(signals) => signals,
        None => ReflectionSignals::of_behavior(&judgement(&state, &request, language).await?),
    };
    Ok(match request.stream {
        true => lines(action_objects(signals.actions)),
        false => Json(signals.to_json()).into_response(),
    })
}
