//! `GET /v1/sessions/{id}/outline`: the parts of the script with which a session runs.

use axum::Json;
use axum::extract::State;
use bcc_engine::settings::RunSettings;
use bcc_runtime::program::program::{Phase, ProgramStep, ProgramSteps, Topic};
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::UrlPath;
use crate::problem::{Problem, ProblemDetails};
use crate::state::ServerState;

/// How deep actions may contain actions, as far as they are listed.
const MAX_DEPTH: usize = 32;

/// A session and the parts of its script.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionOutline {
    id: String,
    /// The `session_id` of its script.
    script: String,
    /// The name of its script for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    user: String,
    status: String,
    /// The scheme of templates that was chosen for it; none if it has that of its script or of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    scheme: Option<String>,
    /// The SHA-256 of its script.
    script_sha256: String,
    started_at: String,
    updated_at: String,
    answers: u64,
    last_seq: u64,
    phases: Vec<OutlinePhase>,
}

/// A phase of a script.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OutlinePhase {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    topics: Vec<OutlineTopic>,
}

/// A topic of a phase.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OutlineTopic {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Whether it runs once for each element of a list.
    repeats: bool,
    actions: Vec<OutlineAction>,
}

/// An action, with the actions inside it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OutlineAction {
    id: String,
    action_type: String,
    /// Its most rounds, if it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_rounds: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    actions: Vec<OutlineAction>,
}

impl OutlinePhase {
    fn of(phase: &Phase) -> Self {
        Self {
            id: phase.id.clone(),
            name: phase.name.clone(),
            topics: phase.topics.iter().map(OutlineTopic::of).collect(),
        }
    }
}

impl OutlineTopic {
    fn of(topic: &Topic) -> Self {
        Self {
            id: topic.id.clone(),
            name: topic.name.clone(),
            repeats: topic.for_each.is_some(),
            actions: actions([&topic.steps, &topic.finally], MAX_DEPTH),
        }
    }
}

impl OutlineAction {
    fn of(step: &ProgramStep, depth: usize) -> Self {
        Self {
            id: step.id.clone(),
            action_type: step.kind.to_owned(),
            max_rounds: step.action.watched().map(|watched| watched.max_rounds),
            actions: actions(step.lists(), depth.saturating_sub(1)),
        }
    }
}

fn actions<'p>(lists: impl IntoIterator<Item = &'p ProgramSteps>, depth: usize) -> Vec<OutlineAction> {
    if depth == 0 {
        return vec![];
    }
    lists.into_iter().flat_map(|list| list.iter()).map(|step| OutlineAction::of(step, depth)).collect()
}

/// Lists the phases, topics and actions of the script with which a session runs.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/outline",
    tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "The session and the parts of its script", body = SessionOutline),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_outline(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
) -> Result<Json<SessionOutline>, Problem> {
    caller.require(AccessRole::Author)?;
    let row = state.sessions.store().session(&id).await?.ok_or_else(|| Problem::no_session(&id))?;
    let program = state.sessions.engine().session_program(&row).await?;
    Ok(Json(SessionOutline {
        id: row.id,
        script: row.script,
        name: program.name.clone(),
        user: row.user,
        status: row.status,
        scheme: serde_json::from_str::<RunSettings>(&row.settings).ok().and_then(|settings| settings.scheme),
        script_sha256: row.script_sha256,
        started_at: row.started_at,
        updated_at: row.updated_at,
        answers: row.answers,
        last_seq: row.last_seq,
        phases: program.phases.iter().map(OutlinePhase::of).collect(),
    }))
}
