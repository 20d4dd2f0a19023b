//! Errors of the page: a word that the page turns into a sentence. Nothing else of a problem is sent to it.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bcc_store::error::StoreError;
use serde_json::json;

use crate::problem::{Problem, ProblemKind};

/// Why the page cannot do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TalkErrorKind {
    BadRequest,
    /// There is no such link, or no conversation with this secret.
    NotFound,
    Revoked,
    Expired,
    /// As many conversations have begun as the link permits.
    UsedUp,
    /// The conversation begins only after the consent.
    ConsentNeeded,
    /// The consent was withdrawn.
    Withdrawn,
    /// The session is gone.
    Deleted,
    /// The question was answered before.
    Answered,
    /// The conversation is not in a state for this.
    NotPossible,
    TooLong,
    TooMany,
    /// Try again.
    Unavailable,
    Failed,
}

impl TalkErrorKind {
    const fn name(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::NotFound => "not_found",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::UsedUp => "used_up",
            Self::ConsentNeeded => "consent_needed",
            Self::Withdrawn => "withdrawn",
            Self::Deleted => "deleted",
            Self::Answered => "answered",
            Self::NotPossible => "not_possible",
            Self::TooLong => "too_long",
            Self::TooMany => "too_many",
            Self::Unavailable => "unavailable",
            Self::Failed => "failed",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Revoked | Self::Expired | Self::UsedUp | Self::Withdrawn | Self::Deleted => StatusCode::GONE,
            Self::ConsentNeeded | Self::Answered | Self::NotPossible => StatusCode::CONFLICT,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for TalkErrorKind {
    fn into_response(self) -> Response {
        (self.status(), Json(json!({ "error": self.name() }))).into_response()
    }
}

impl From<Problem> for TalkErrorKind {
    fn from(problem: Problem) -> Self {
        match problem.kind() {
            ProblemKind::InvalidRequest | ProblemKind::MethodNotAllowed => Self::BadRequest,
            // A session that the store does not have.
            ProblemKind::NotFound => Self::Deleted,
            ProblemKind::Conflict | ProblemKind::Changed | ProblemKind::KeyReused | ProblemKind::Interrupted => {
                Self::NotPossible
            }
            ProblemKind::TooLarge => Self::TooLong,
            ProblemKind::TooManyRequests => Self::TooMany,
            ProblemKind::Busy | ProblemKind::Held | ProblemKind::Unavailable | ProblemKind::Timeout => {
                Self::Unavailable
            }
            ProblemKind::Unauthorized | ProblemKind::Forbidden | ProblemKind::InvalidScript | ProblemKind::Failed => {
                tracing::warn!(error = %problem.detail(), "a conversation cannot be shown");
                Self::Failed
            }
        }
    }
}

impl From<StoreError> for TalkErrorKind {
    fn from(error: StoreError) -> Self {
        Problem::from(error).into()
    }
}
