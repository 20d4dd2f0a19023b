//! For those who watch over the server.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use bcc_lang::message::msg;
use bcc_store::error::StoreError;

use crate::access::{AccessRole, ApiCaller};
use crate::problem::{Problem, ProblemDetails, ProblemKind};
use crate::state::ServerState;

/// Whether the process works.
#[utoipa::path(get, path = "/healthz", tag = "server", security(()), responses((status = 200, description = "It does", body = String)))]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether the server takes requests: its store can be read, and it does not end.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "server",
    security(()),
    responses((status = 200, description = "It does", body = String), (status = 503, description = "It does not")),
)]
pub(crate) async fn readyz(State(state): State<ServerState>) -> Result<&'static str, Problem> {
    if state.sessions.is_ending() {
        return Err(Problem::new(ProblemKind::Unavailable, msg!("the server ends; try again")));
    }
    match state.sessions.store().check_files().await {
        Ok(()) => Ok("ok\n"),
        Err(error @ StoreError::Newer { .. }) => Err(error.into()),
        Err(_) => Err(Problem::new(ProblemKind::Unavailable, msg!("the store cannot be used"))),
    }
}

/// Counters in the text format of OpenMetrics.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "server",
    responses((status = 200, description = "The counters", body = String, content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn metrics(State(state): State<ServerState>, caller: ApiCaller) -> Result<impl IntoResponse, Problem> {
    caller.require(AccessRole::Admin)?;
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, content_type)], state.metrics.text()))
}
