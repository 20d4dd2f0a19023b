//! `/v1/sessions/{id}/again`: begins a session again at one of its answers (docs/begin-again.md).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bcc_authoring::templates::list::list;
use bcc_engine::again::restart::{AgainPlan, AgainPoint, AgainRequest, CallPlace, RepeatedCalls};
use bcc_engine::session_ids::secret_id;
use bcc_lang::message::msg;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::{AccessRole, ApiCaller};
use crate::api::authoring::blocking;
use crate::api::body::{JsonBody, UrlPath};
use crate::live::command::SessionCommand;
use crate::problem::{Problem, ProblemDetails, ProblemKind};
use crate::state::ServerState;

/// The model that is always there.
const OFFLINE: &str = "offline";

/// How a session begins again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgainBody {
    /// The number of the first answer that is given again; what was before it is kept. With 0, the session begins anew.
    turn: Option<u64>,
    /// Instead of `turn`: the session begins again at the answer for which it waited after this event.
    after_seq: Option<u64>,
    /// A script of the project with the same `session_id`, by its `session_id` or path: it and its templates are used as they are now. Without
    /// it, those with which the session started.
    script: Option<String>,
    /// Another scheme of templates. Needs `script`.
    scheme: Option<String>,
    /// Another configured model, or `offline`. It is asked for everything.
    model: Option<String>,
    /// Whether to say only what it takes.
    #[serde(default)]
    preview: bool,
}

/// With what a session can begin again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgainChoices {
    /// The paths of the scripts of the project with its `session_id`.
    scripts: Vec<String>,
    /// The schemes of templates.
    schemes: Vec<String>,
    /// The configured models, and `offline`.
    models: Vec<String>,
}

/// What it takes to begin a session again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgainReply {
    /// The new session, which is given the answers while it is live: `GET /v1/sessions/{id}/events` tells its events. None for a preview.
    id: Option<String>,
    /// How many answers are given again.
    answers: u64,
    /// The number of the first of them; 0 if the session begins anew.
    turn: u64,
    model_calls: AgainCalls,
    /// The first call for which a model is asked; none if no model is asked.
    first_difference: Option<AgainCall>,
    /// How many effects the earlier session had from there on. The session asks before it repeats one.
    effects: u64,
}

/// The model calls of the earlier session from the answer on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgainCalls {
    earlier: u64,
    /// Those whose reply is used again, because their prompt is the same.
    recorded: u64,
    /// The others: about as many times, a model is asked.
    asked: u64,
}

/// Where a model is called.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgainCall {
    action_id: String,
    purpose: String,
    round: u32,
}

impl AgainReply {
    fn new(id: Option<String>, plan: AgainPlan) -> Self {
        let RepeatedCalls { earlier, recorded, asked } = plan.model_calls;
        let call =
            |CallPlace { action_id, purpose, round }| AgainCall { action_id, purpose: purpose.to_owned(), round };
        Self {
            id,
            answers: plan.answers,
            turn: plan.turn,
            model_calls: AgainCalls { earlier, recorded, asked },
            first_difference: plan.first_difference.map(call),
            effects: plan.effects,
        }
    }
}

/// Lists with which scripts, schemes of templates and models a session can begin again.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/again",
    tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "The choices", body = AgainChoices),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list_choices(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
) -> Result<Json<AgainChoices>, Problem> {
    caller.require(AccessRole::Author)?;
    let row = state.sessions.store().session(&id).await?.ok_or_else(|| Problem::no_session(&id))?;
    let scripts = state.catalog.list().await?.into_iter().filter(|script| script.session_id == row.script);
    let scripts = scripts.map(|script| script.path).collect();
    let project = state.sessions.engine().project();
    let directory = project.directory.clone();
    let listing = blocking(move || list(&directory, None, None)).await?;
    let schemes = listing.schemes.into_iter().map(|scheme| scheme.name).collect();
    let models = project.config.models.keys().map(String::as_str).chain([OFFLINE]).map(str::to_owned).collect();
    Ok(Json(AgainChoices { scripts, schemes, models }))
}

/// Starts a session that repeats another one from one of its answers.
///
/// The later answers are given again, and recorded replies are used as long as the prompts are the same. The other session does not change.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/again",
    tag = "sessions",
    params(("id" = String, Path, description = "The session that begins again")),
    request_body = AgainBody,
    responses(
        (status = 200, description = "What it takes", body = AgainReply),
        (status = 201, description = "The new session", body = AgainReply),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn restart_session(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
    JsonBody(body): JsonBody<AgainBody>,
) -> Result<(StatusCode, Json<AgainReply>), Problem> {
    caller.require(AccessRole::Author)?;
    let store = state.sessions.store().as_ref();
    let row = store.session(&id).await?.ok_or_else(|| Problem::no_session(&id))?;
    let engine = state.sessions.engine();
    let AgainBody { turn, after_seq, script, scheme, model, preview } = body;
    let at = match (turn, after_seq) {
        (Some(turn), None) => AgainPoint::Turn(turn),
        (None, Some(seq)) => AgainPoint::AfterEvent(seq),
        _ => return Err(Problem::new(ProblemKind::InvalidRequest, msg!("name either `turn` or `after_seq`"))),
    };
    // Not any text that `--model` takes: that may name a file.
    if let Some(model) = model.as_ref().filter(|model| *model != OFFLINE)
        && !engine.project().config.models.contains_key(model)
    {
        return Err(Problem::new(ProblemKind::InvalidRequest, msg!("the project has no model `{model}`")));
    }
    let script = match script {
        Some(name) => Some(state.catalog.find(&name).await?.file),
        None => None,
    };
    let new_id = Some(secret_id(&row.script));
    let request = AgainRequest { id, at, script, scheme, model, new_id, gives_answers: true, any_project: false };
    let prepared = engine.prepare_again(&request).await?;
    if preview {
        return Ok((StatusCode::OK, Json(AgainReply::new(None, prepared.plan))));
    }
    let new = engine.create_again(&prepared).await?;
    // Whoever opens it gives the answers.
    state.sessions.send(&new, None, |ended| SessionCommand::Rest { ended }).await?;
    Ok((StatusCode::CREATED, Json(AgainReply::new(Some(new), prepared.plan))))
}
