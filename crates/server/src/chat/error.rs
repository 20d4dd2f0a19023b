//! Errors in the form that clients of OpenAI expect.

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::{Problem, ProblemKind};

/// The body of a response with an error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatErrorBody {
    pub(crate) error: ChatErrorDetails,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatErrorDetails {
    /// What is wrong, for people.
    pub(crate) message: String,
    /// `invalid_request_error`, `authentication_error`, `permission_error`, `rate_limit_error` or `server_error`.
    pub(crate) r#type: &'static str,
    /// Always null.
    pub(crate) param: Option<String>,
    /// The kind of the problem, as in the `type` of problem details.
    pub(crate) code: &'static str,
}

impl ChatErrorBody {
    pub(crate) fn of(problem: &Problem) -> Self {
        let kind = problem.kind();
        let r#type = match kind {
            ProblemKind::Unauthorized => "authentication_error",
            ProblemKind::Forbidden => "permission_error",
            ProblemKind::TooManyRequests => "rate_limit_error",
            ProblemKind::Failed | ProblemKind::Unavailable | ProblemKind::Timeout => "server_error",
            _ => "invalid_request_error",
        };
        let message = match problem.help() {
            Some(help) => format!("{}: {help}", problem.detail()),
            None => problem.detail(),
        };
        Self { error: ChatErrorDetails { message, r#type, param: None, code: kind.name() } }
    }
}

/// A problem as a response of the chat completions.
pub(crate) fn chat_error(problem: &Problem) -> Response {
    let mut response = (problem.kind().status(), Json(ChatErrorBody::of(problem))).into_response();
    response.headers_mut().extend(problem.headers());
    response
}
