//! For those who write scripts: graphs, schemas, templates, prompts, tests and uploads.

use std::path::{Component, Path as FilePath, PathBuf};
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bcc_authoring::graph::request::{GraphFormat, GraphRequest, SessionSteps, graph};
use bcc_authoring::render::action::prompt_of_action;
use bcc_authoring::render::request::RenderRequest;
use bcc_authoring::render::template_only::prompt_of_template;
use bcc_authoring::schemas;
use bcc_authoring::templates::list::list;
use bcc_authoring::test_runner::find::find;
use bcc_authoring::test_runner::json::document;
use bcc_authoring::test_runner::request::TestRequest;
use bcc_authoring::test_runner::run::run;
use bcc_engine::config::kinds::kinds;
use bcc_engine::error::EngineError;
use bcc_engine::export::stored_session;
use bcc_engine::files::within::resolve_within;
use bcc_engine::report::collect::step_statuses;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::diagnostic::Diagnostic;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::{JsonBody, UrlPath, UrlQuery, language_of, read};
use crate::api::uploads::{ScriptUpload, StoredScript, new_script, refuse_unseen, store_script};
use crate::problem::{Problem, ProblemDetails, ProblemDiagnostic, ProblemKind, rendered};
use crate::state::ServerState;

/// Does work that takes processor time or reads many files, away from the tasks of sessions.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|error| Problem::failure(&msg!("the work has ended unexpectedly: {error}")))?;
    Ok(done?)
}

/// A path that a client names, in the project: nothing leads out of it.
fn project_path(project: &FilePath, given: &str) -> Result<PathBuf, Problem> {
    let path = FilePath::new(given);
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    let outside = || Problem::invalid(msg!("`{given}` is not a path in the project"));
    if !is_inside || given.is_empty() {
        return Err(outside());
    }
    resolve_within(project, &project.join(path)).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Problem::not_found(msg!("the project has no `{given}`")),
        _ => outside(),
    })
}

/// The form of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DrawingForm {
    #[default]
    Mermaid,
    /// Graphviz.
    Dot,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DrawingQuery {
    /// `mermaid` or `dot`.
    #[serde(default)]
    #[param(inline)]
    format: DrawingForm,
    /// A session of the script, whose steps are colored by what became of them.
    session: Option<String>,
}

/// Draws a script.
#[utoipa::path(
    get,
    path = "/v1/scripts/{name}/graph",
    tag = "scripts",
    params(("name" = String, Path, description = "Its `session_id`, or its path in the project"), DrawingQuery),
    responses(
        (status = 200, description = "The graph as text", content((String = "text/plain; charset=utf-8"))),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_graph(
    State(state): State<ServerState>,
    UrlPath(name): UrlPath<String>,
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<DrawingQuery>,
) -> Result<Response, Problem> {
    caller.require(AccessRole::Author)?;
    let script = state.catalog.find(&name).await?;
    let session = match query.session.filter(|id| !id.is_empty()) {
        Some(id) => {
            let store = state.sessions.store().as_ref();
            let row = match store.session(&id).await? {
                Some(_) => stored_session(store, &id).await?,
                None => return Err(Problem::no_session(&id)),
            };
            let steps = step_statuses(store, &id).await?;
            Some(SessionSteps { script: row.script, script_sha256: row.script_sha256, steps })
        }
        None => None,
    };
    let engine = state.sessions.engine();
    let format = if query.format == DrawingForm::Dot { GraphFormat::Dot } else { GraphFormat::Mermaid };
    let project = Some(engine.project().directory.clone());
    let request = GraphRequest { file: script.file, project, format, depth: None, only: vec![], session };
    let environment = engine.environment().clone();
    let drawn = blocking(move || graph(&request, &environment)).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], drawn.text).into_response())
}

/// A schema in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListedSchema {
    name: &'static str,
    description: String,
}

/// The schemas of documents and action types.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SchemaList {
    schemas: Vec<ListedSchema>,
}

/// Lists the schemas of scripts, action types and configurations, for editors.
#[utoipa::path(
    get,
    path = "/v1/schemas",
    tag = "scripts",
    responses(
        (status = 200, description = "The schemas", body = SchemaList),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list_schemas(caller: ApiCaller) -> Result<Json<SchemaList>, Problem> {
    caller.require(AccessRole::Author)?;
    let schemas = schemas::list().into_iter().map(|(name, description)| ListedSchema { name, description });
    Ok(Json(SchemaList { schemas: schemas.collect() }))
}

/// Gives a JSON Schema, with the action types of the project.
#[utoipa::path(
    get,
    path = "/v1/schemas/{name}",
    tag = "scripts",
    params(("name" = String, Path, description = "Its name, as in the list")),
    responses(
        (status = 200, description = "The schema", content((Object = "application/schema+json"))),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_schema(
    State(state): State<ServerState>,
    UrlPath(name): UrlPath<String>,
    caller: ApiCaller,
) -> Result<Response, Problem> {
    caller.require(AccessRole::Author)?;
    let own = kinds(&state.sessions.engine().project().config);
    let text = schemas::text_in(&name, &own).ok_or_else(|| {
        Problem::not_found(msg!("there is no schema `{name}`")).with_help("`GET /v1/schemas` lists the schemas")
    })?;
    Ok(([(header::CONTENT_TYPE, "application/schema+json")], text).into_response())
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TemplatesQuery {
    /// Only this scheme.
    scheme: Option<String>,
}

/// Lists the prompt templates of the project, as `bcc-script templates list --json` does.
#[utoipa::path(
    get,
    path = "/v1/templates",
    tag = "scripts",
    params(TemplatesQuery),
    responses(
        (status = 200, description = "The templates of each scheme", body = Object),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list_templates(
    State(state): State<ServerState>,
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<TemplatesQuery>,
) -> Result<Json<Value>, Problem> {
    caller.require(AccessRole::Author)?;
    let project = state.sessions.engine().project();
    let (directory, chosen) = (project.directory.clone(), project.config.project.scheme.clone());
    let scheme = query.scheme.filter(|scheme| !scheme.is_empty());
    blocking(move || {
        let listing = list(&directory, scheme.as_deref(), chosen.as_deref())?;
        Ok(Json(listing.as_value(chosen.as_deref())))
    })
    .await
}

/// A prompt to render.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenderBody {
    /// The template, such as `ai_ask`; without it, that of the action.
    template: Option<String>,
    /// The template scheme; without it, that of the script or of the project.
    scheme: Option<String>,
    /// The script that contains the action: its `session_id`, or its path in the project.
    script: Option<String>,
    /// The id of the action.
    action: Option<String>,
    /// Values of variables.
    #[serde(default)]
    #[schema(value_type = Object)]
    variables: Map<String, Value>,
    /// The round whose call is rendered, from 1 to 50.
    #[schema(minimum = 1, maximum = 50)]
    round: Option<u32>,
    /// The answers so far; the last one belongs to the round.
    #[serde(default)]
    answers: Vec<String>,
}

/// Renders the messages that would be sent to the model, without sending them. Sensitive values are masked.
#[utoipa::path(
    post,
    path = "/v1/templates/render",
    tag = "scripts",
    request_body = RenderBody,
    responses(
        (status = 200, description = "The prompt, as `bcc-script templates render --json` prints it", body = Object),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn render_template(
    State(state): State<ServerState>,
    caller: ApiCaller,
    JsonBody(body): JsonBody<RenderBody>,
) -> Result<Json<Value>, Problem> {
    caller.require(AccessRole::Author)?;
    let round = body.round.unwrap_or(1);
    if !(1..=50).contains(&round) {
        return Err(Problem::invalid(msg!("`round` must be from 1 to 50")));
    }
    let pair = |(name, value): (String, Value)| match value {
        Value::String(text) => format!("{name}={text}"),
        value => format!("{name}={value}"),
    };
    let script = match &body.script {
        Some(name) => Some(state.catalog.find(name).await?.file),
        None => None,
    };
    let request = RenderRequest {
        name: body.template.clone(),
        scheme: body.scheme,
        script: script.clone(),
        action: body.action.clone(),
        variables: body.variables.into_iter().map(pair).collect(),
        variables_file: None,
        round,
        answers: body.answers,
        clock: None,
    };
    let project = state.sessions.engine().project().clone();
    let prompt = match (script, body.action, body.template) {
        (Some(script), Some(action), _) => prompt_of_action(&project, &request, &script, &action).await?,
        (None, None, Some(name)) => blocking(move || prompt_of_template(&project, &request, &name)).await?,
        _ => {
            let problem = Problem::invalid(msg!("the request must name a `template`, or a `script` and an `action`"));
            return Err(problem);
        }
    };
    Ok(Json(prompt.as_value()))
}

/// Which conversation tests to run.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TestsBody {
    /// Files and folders in the project; all of `tests/` if there is none.
    #[serde(default)]
    paths: Vec<String>,
    /// Only tests whose name, case or file contains this.
    filter: Option<String>,
}

/// Runs conversation tests of the project, and waits for their results.
///
/// Sessions of tests are not stored, and no model is called: tests without replies use the offline responder. What is wrong with a test or
/// its script is in `diagnostics`, and in `why` of the tests that could not be run.
#[utoipa::path(
    post,
    path = "/v1/tests",
    tag = "scripts",
    request_body = TestsBody,
    responses(
        (status = 200, description = "The results, as `bcc-script test --format json` prints them, in the language of the client; `diagnostics` as in problems", body = Object),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn run_tests(
    State(state): State<ServerState>,
    caller: ApiCaller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<TestsBody>,
) -> Result<Json<Value>, Problem> {
    caller.require(AccessRole::Author)?;
    let engine = state.sessions.engine();
    let directory = engine.project().directory.clone();
    let paths = match body.paths.is_empty() {
        true => vec![project_path(&directory, "tests")?],
        false => body.paths.iter().map(|path| project_path(&directory, path)).collect::<Result<_, _>>()?,
    };
    let request = TestRequest {
        paths,
        project: Some(directory.clone()),
        named_from: Some(directory.clone()),
        filter: body.filter,
        model: Some("offline".to_owned()),
        trust: engine.project().trust_all,
        ..TestRequest::default()
    };
    let environment = engine.environment().clone();
    let language = language_of(&headers);
    // One run after the other: each uses all processors, also when its client has left.
    let turn = Arc::clone(&state.tests).lock_owned().await;
    blocking(move || {
        let _turn = turn;
        let tests = find(&request, &environment)?;
        let outcome = run(&tests, &request, &environment)?;
        let project = Some(directory.as_path());
        let finding = |found: &Diagnostic| json!(ProblemDiagnostic::of(found, project, language));
        let findings = outcome.findings(&tests).iter().map(finding).collect();
        let shown = |message: &Message| rendered(message, project, language);
        Ok(Json(document(&outcome.results, tests.unreadable(), findings, &[], &shown)))
    })
    .await
}

/// What became of an upload.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadedScript {
    /// Its path in the project.
    path: String,
    /// Whether a file was replaced.
    replaced: bool,
}

/// Stores a script of the project, if it has no errors.
///
/// Running sessions keep the script with which they started. Refused in a project that lets scripts run code or commands or that has
/// servers of tools: somebody has to look at what they do.
#[utoipa::path(
    put,
    path = "/v1/scripts/{name}",
    tag = "scripts",
    params(
        ("name" = String, Path, description = "The path of the script in the project, such as `scripts/care/intake.yaml`, or its name in the folder of the scripts"),
        ("if-match" = Option<String>, Header, description = "The `ETag` of the script that this one is to replace. If it is another one by now, nothing changes"),
    ),
    request_body(content = String, content_type = "application/yaml", description = "The script"),
    responses(
        (status = 200, description = "It is stored", body = UploadedScript, headers(("etag" = String, description = "Its version"))),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn put_script(
    State(state): State<ServerState>,
    UrlPath(name): UrlPath<String>,
    caller: ApiCaller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.require(AccessRole::Author)?;
    let project = state.sessions.engine().project();
    refuse_unseen(project)?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // A page of another site cannot send this type without asking first.
    if kind.split(';').next().unwrap_or_default().trim() != "application/yaml" {
        return Err(Problem::invalid(msg!("the body must be a script, with `Content-Type: application/yaml`")));
    }
    let folder = state.catalog.folder();
    // What is listed is stored where it is.
    let file = match state.catalog.list().await?.into_iter().find(|script| script.path == name) {
        Some(script) => script.file,
        None => new_script(&project.directory, &folder, &name)?,
    };
    let body = read(body).await?;
    let project = project.clone();
    // One that is no text names no version.
    let expected = headers.get(header::IF_MATCH).map(|value| value.to_str().unwrap_or_default().to_owned());
    let catalog = Arc::clone(&state.catalog);
    let stored = blocking(move || {
        let upload = ScriptUpload { path: &file, text: &body, expected: expected.as_deref() };
        store_script(&project, &folder, &upload, &catalog.replacing)
    });
    let Some(StoredScript { path, replaced, version }) = stored.await? else {
        let why = msg!("the script is not the one that `If-Match` names: somebody has changed it in the meantime");
        return Err(Problem::new(ProblemKind::Changed, why)
            .with_help("read it again, or send it without `If-Match` to replace it in any case"));
    };
    Ok(([(header::ETAG, version)], Json(UploadedScript { path, replaced })).into_response())
}
