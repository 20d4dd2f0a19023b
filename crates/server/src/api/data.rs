//! What is known about a session: its export and parts of it.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bcc_engine::export::export;
use bcc_engine::exported_notebook::linked_notebook;
use bcc_engine::markdown::{DocumentDetails, Medium, markdown};
use bcc_engine::notebook_file::pictures::encoded;
use bcc_engine::notebook_file::write::{NotebookFileRequest, cell_count, page_of, write_to};
use bcc_engine::report::write::report_text;
use bcc_lang::script::report::ReportFormat;
use bcc_lang::value::exact::ExactValue;
use bcc_runtime::notebook::export::form::ExportForm;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::{UrlPath, UrlQuery, language_of};
use crate::api::outputs::SANDBOX;
use crate::problem::{Problem, ProblemDetails};
use crate::state::ServerState;

/// The form of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExportName {
    #[default]
    Json,
    /// The notebook as Markdown, or the transcript if there are no cells.
    Md,
    /// The notebook as a page, or the transcript if there are no cells.
    Html,
    /// A Jupyter notebook.
    Ipynb,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportQuery {
    /// `json`, `md`, `html` or `ipynb`; `md` and `html` have the notebook, or the transcript if there are no cells.
    #[serde(default)]
    #[param(inline)]
    format: ExportName,
    /// Whether the export contains prompts and raw replies.
    #[serde(default)]
    calls: bool,
}

/// Exports a session. Sensitive values are masked. The texts that are added for people are in the language of the client.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/export",
    tag = "data",
    params(("id" = String, Path, description = "The session"), ExportQuery),
    responses(
        (
            status = 200,
            description = "The session",
            content(
                (Object = "application/json"),
                (String = "text/markdown; charset=utf-8"),
                (String = "text/html; charset=utf-8"),
                (Object = "application/x-ipynb+json"),
            )
        ),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn export_session(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
    headers: HeaderMap,
    UrlQuery(query): UrlQuery<ExportQuery>,
) -> Result<Response, Problem> {
    caller.require(AccessRole::Author)?;
    let store = state.sessions.store().as_ref();
    require_session(&state, &id).await?;
    let language = language_of(&headers);
    let (form, content_type) = match query.format {
        ExportName::Json => return Ok(Json(export(store, &id, query.calls).await?).into_response()),
        ExportName::Md => (ExportForm::Markdown, "text/markdown; charset=utf-8"),
        ExportName::Html => (ExportForm::Html, "text/html; charset=utf-8"),
        ExportName::Ipynb => (ExportForm::Ipynb, "application/x-ipynb+json"),
    };
    let request = NotebookFileRequest::new(id.clone(), form, language);
    if form != ExportForm::Ipynb && cell_count(store, &id).await? == 0 {
        let document = bcc_engine::export::document(store, &id, query.calls).await?;
        let details = DocumentDetails::of_session(store, &id, Medium::Markdown).await?;
        let transcript = markdown(&document, &details, language);
        return Ok(typed(
            content_type,
            match form {
                ExportForm::Html => page_of(store, &request, transcript).await?,
                ExportForm::Markdown | ExportForm::Ipynb => transcript,
            },
        ));
    }
    let mut text = String::new();
    let mut write = |piece: &str| {
        text.push_str(piece);
        Ok(())
    };
    write_to(store, &request, &mut write).await?;
    Ok(typed(content_type, text))
}

/// A response with a text that ends with a line end, as a file with it does.
fn typed(content_type: &'static str, mut text: String) -> Response {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    ([(header::CONTENT_TYPE, content_type), (header::CONTENT_SECURITY_POLICY, SANDBOX)], text).into_response()
}

async fn require_session(state: &ServerState, id: &str) -> Result<(), Problem> {
    match state.sessions.store().session(id).await? {
        Some(_) => Ok(()),
        None => Err(Problem::no_session(id)),
    }
}

/// The values of the variables of a session, by scope.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/variables",
    tag = "data",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "The variables: `global`, `session`, `phase`, `topic`", body = Object),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_variables(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
) -> Result<Json<ExactValue>, Problem> {
    part(&state, &id, &caller, &["variables"], false).await
}

/// The metrics of the rounds of a session, and the suggestions that followed from them.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/metrics",
    tag = "data",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "The history", body = Object),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_metrics(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
) -> Result<Json<ExactValue>, Problem> {
    let parts = ["action_metrics_history", "progress_suggestion_history", "monitor_feedback"];
    part(&state, &id, &caller, &parts, false).await
}

/// The plans that changed the topics of a session, accepted or rejected, in order.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/plan",
    tag = "data",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "The `plans`", body = Object),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_plans_of_session(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
) -> Result<Json<ExactValue>, Problem> {
    part(&state, &id, &caller, &["plans"], false).await
}

/// The model calls of a session: prompts, raw replies, tokens and times.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/calls",
    tag = "data",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "The calls and their sums", body = Object),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_calls(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
) -> Result<Json<ExactValue>, Problem> {
    part(&state, &id, &caller, &["model_calls", "usage"], true).await
}

/// How the notebook has its large data, such as pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NotebookOutputs {
    /// In the outputs.
    #[default]
    Whole,
    /// As addresses: `links` of an output has the type, the address (`href`) and the size (`bytes`) of each: of a picture, that of its Base64.
    Linked,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct NotebookQuery {
    /// `whole` or `linked`: whether large data, such as pictures, are in the outputs, or addresses in their `links`. Texts are whole.
    #[serde(default)]
    #[param(inline)]
    outputs: NotebookOutputs,
}

/// The notebook of a session: its cells with their complete outputs.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/notebook",
    tag = "data",
    params(("id" = String, Path, description = "The session"), NotebookQuery),
    responses(
        (status = 200, description = "The notebook; null if the session has not used it", body = Object),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_notebook(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<NotebookQuery>,
) -> Result<Json<ExactValue>, Problem> {
    if query.outputs == NotebookOutputs::Whole {
        return part(&state, &id, &caller, &["notebook"], false).await;
    }
    caller.require(AccessRole::Author)?;
    let store = state.sessions.store().as_ref();
    let row = store.session(&id).await?.ok_or_else(|| Problem::no_session(&id))?;
    let outputs = format!("/v1/sessions/{}/outputs", encoded(&id));
    let notebook = linked_notebook(store, &row, |hash| format!("{outputs}/{hash}")).await?;
    Ok(Json(json!({ "notebook": notebook }).into()))
}

/// Parts of the export of a session.
async fn part(
    state: &ServerState,
    id: &str,
    caller: &ApiCaller,
    names: &[&str],
    calls: bool,
) -> Result<Json<ExactValue>, Problem> {
    caller.require(AccessRole::Author)?;
    require_session(state, id).await?;
    let mut export = export(state.sessions.store().as_ref(), id, calls).await?;
    export.change(|document| {
        if let Value::Object(fields) = document {
            fields.retain(|name, _| names.contains(&name.as_str()));
            for name in names {
                fields.entry(*name).or_insert(Value::Null);
            }
        }
    });
    Ok(Json(export))
}

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReportName {
    #[default]
    Json,
    Md,
    Html,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReportQuery {
    /// `json`, `md` or `html`.
    #[serde(default)]
    #[param(inline)]
    format: ReportName,
}

/// A report about a session: its steps, decisions, failures and times, in the language of the client.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/report",
    tag = "data",
    params(("id" = String, Path, description = "The session"), ReportQuery),
    responses(
        (
            status = 200,
            description = "The report",
            content(
                (Object = "application/json"),
                (String = "text/markdown; charset=utf-8"),
                (String = "text/html; charset=utf-8"),
            )
        ),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_report(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
    headers: HeaderMap,
    UrlQuery(query): UrlQuery<ReportQuery>,
) -> Result<Response, Problem> {
    caller.require(AccessRole::Author)?;
    require_session(&state, &id).await?;
    let (format, content_type) = match query.format {
        ReportName::Json => (ReportFormat::Json, "application/json"),
        ReportName::Md => (ReportFormat::Markdown, "text/markdown; charset=utf-8"),
        ReportName::Html => (ReportFormat::Html, "text/html; charset=utf-8"),
    };
    let text = report_text(state.sessions.store().as_ref(), &id, format, language_of(&headers)).await?;
    Ok(typed(content_type, text))
}
