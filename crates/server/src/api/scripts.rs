//! `/v1/scripts`: the scripts of the project.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bcc_engine::engine::RunRequest;
use bcc_engine::error::EngineError;
use bcc_engine::files::script;
use bcc_engine::loaded::LoadedProgram;
use bcc_lang::message::msg;
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::{UrlPath, language_of};
use crate::api::catalog::ScriptEntry;
use crate::api::uploads::script_version;
use crate::problem::{Problem, ProblemDetails, ProblemDiagnostic};
use crate::state::ServerState;

/// The scripts of the project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScriptList {
    pub(crate) scripts: Vec<ScriptEntry>,
}

/// Lists the scripts of the project.
#[utoipa::path(
    get,
    path = "/v1/scripts",
    tag = "scripts",
    responses(
        (status = 200, description = "The scripts, sorted by path", body = ScriptList),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list_scripts(
    State(state): State<ServerState>,
    _caller: ApiCaller,
) -> Result<Json<ScriptList>, Problem> {
    Ok(Json(ScriptList { scripts: state.catalog.list().await? }))
}

/// The result of a check.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckedScript {
    #[serde(flatten)]
    pub(crate) script: ScriptEntry,
    /// Whether sessions of it can be started.
    pub(crate) is_valid: bool,
    /// What the check found.
    pub(crate) diagnostics: Vec<ProblemDiagnostic>,
}

/// Gives the text of a script, as it is now.
#[utoipa::path(
    get,
    path = "/v1/scripts/{name}/source",
    tag = "scripts",
    params(("name" = String, Path, description = "Its `session_id`, or its path in the project")),
    responses(
        (status = 200, description = "The script", content((String = "application/yaml")), headers(("etag" = String, description = "Its version, for `If-Match`"))),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_source(
    State(state): State<ServerState>,
    UrlPath(name): UrlPath<String>,
    caller: ApiCaller,
) -> Result<Response, Problem> {
    caller.require(AccessRole::Author)?;
    let found = state.catalog.find(&name).await?;
    let read = tokio::task::spawn_blocking(move || script(&found.file).map(|source| source.text().to_owned()));
    let read = read.await.map_err(|error| Problem::failure(&msg!("the work has ended unexpectedly: {error}")))?;
    let text = read?;
    let version = script_version(&text);
    Ok(([(header::CONTENT_TYPE, "application/yaml"), (header::ETAG, &version)], text).into_response())
}

/// Checks a script, as it is now.
#[utoipa::path(
    get,
    path = "/v1/scripts/{name}",
    tag = "scripts",
    params(("name" = String, Path, description = "Its `session_id`, or its path in the project")),
    responses(
        (status = 200, description = "What the check found", body = CheckedScript),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn check_script(
    State(state): State<ServerState>,
    UrlPath(name): UrlPath<String>,
    caller: ApiCaller,
    headers: HeaderMap,
) -> Result<Json<CheckedScript>, Problem> {
    caller.require(AccessRole::Author)?;
    let script = state.catalog.find(&name).await?;
    let project = state.sessions.engine().project().clone();
    let named_from = Some(project.directory.clone());
    let request = RunRequest { file: script.file.clone(), named_from, ..RunRequest::default() };
    let loaded = tokio::task::spawn_blocking(move || {
        LoadedProgram::of(&project, &request).map(|loaded| loaded.diagnostics().to_vec())
    });
    let loaded = loaded.await.map_err(|error| Problem::failure(&msg!("the check failed: {error}")))?;
    let (is_valid, diagnostics) = match loaded {
        Ok(diagnostics) => (true, diagnostics),
        Err(EngineError::Invalid(diagnostics)) => (false, diagnostics),
        Err(error) => return Err(error.into()),
    };
    let directory = state.sessions.engine().project().directory.as_path();
    let shown = |found| ProblemDiagnostic::of(found, Some(directory), language_of(&headers));
    let diagnostics = diagnostics.iter().map(shown).collect();
    Ok(Json(CheckedScript { script, is_valid, diagnostics }))
}
