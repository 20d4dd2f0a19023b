//! `/v1/sessions/{id}/fork`: starts a session with everything that another one was.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bcc_engine::again::restart::{AgainPoint, AgainRequest};
use bcc_engine::fork::{ForkPoint, ForkRequest};
use bcc_engine::session_ids::secret_id;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::{JsonBody, UrlPath};
use crate::api::reply::{TurnReply, state_of};
use crate::problem::{Problem, ProblemDetails};
use crate::state::ServerState;

/// Where a session is forked.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForkBody {
    /// The number of an event after which the session waited: `last_seq` of a reply. Without it, the session is forked as it is now.
    after_seq: Option<u64>,
    /// The id of the new session. Without it, the server makes one that cannot be guessed.
    session_id: Option<String>,
    /// A script of the project with the same `session_id`, by its `session_id` or path: the new session goes on with it as with
    /// `POST /v1/sessions/{id}/again`, but is given no answers. Without it, the script with which the session started.
    script: Option<String>,
}

/// Starts a session with everything that another one was at one of its questions. The other one does not change.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/fork",
    tag = "sessions",
    params(("id" = String, Path, description = "The session that is forked")),
    request_body = ForkBody,
    responses(
        (status = 201, description = "The new session", body = TurnReply),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn fork_session(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
    JsonBody(body): JsonBody<ForkBody>,
) -> Result<(StatusCode, Json<TurnReply>), Problem> {
    caller.require(AccessRole::Author)?;
    let store = state.sessions.store().as_ref();
    let row = store.session(&id).await?.ok_or_else(|| Problem::no_session(&id))?;
    let new = body.session_id.unwrap_or_else(|| secret_id(&row.script));
    match body.script {
        Some(script) => {
            let at = AgainPoint::AfterEvent(body.after_seq.unwrap_or(row.last_seq));
            let script = Some(state.catalog.find(&script).await?.file);
            let request = AgainRequest { id, at, script, new_id: Some(new.clone()), ..AgainRequest::default() };
            state.sessions.fork_with_script(&request, &new).await?;
        }
        None => {
            let at = body.after_seq.map_or(ForkPoint::Now, ForkPoint::AfterEvent);
            state.sessions.fork(ForkRequest { id: &id, at, new: &new, user: None }).await?;
        }
    }
    let row = store.session(&new).await?.ok_or_else(|| Problem::no_session(&new))?;
    Ok((StatusCode::CREATED, Json(state_of(store, row).await?)))
}
