//! Reads the parts of requests, with errors that say what is wrong.

use std::error::Error;

use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Json, Query, Request};
use axum::http::request::Parts;
use bcc_lang::message::library::library;
use bcc_lang::message::msg;
use serde::de::DeserializeOwned;

use crate::access::Caller;
use crate::problem::{Problem, ProblemKind};

/// A JSON body.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match Json::<T>::from_request(request, state).await {
            Ok(Json(value)) => Ok(Self(value)),
            Err(rejection) => Err(unreadable(&rejection)),
        }
    }
}

fn unreadable(rejection: &JsonRejection) -> Problem {
    match rejection {
        JsonRejection::MissingJsonContentType(_) => {
            Problem::invalid(msg!("the body must be JSON, with `Content-Type: application/json`"))
        }
        JsonRejection::BytesRejection(_) if rejection.status().as_u16() == 413 => {
            Problem::new(ProblemKind::TooLarge, msg!("the body is too large"))
        }
        JsonRejection::BytesRejection(_) => Problem::invalid(msg!("the body did not arrive completely")),
        other => Problem::invalid(msg!("the body cannot be read: {error}", error = library(&cause(other)))),
    }
}

/// What is wrong, without the parts that are about this program.
fn cause(rejection: &(impl Error + 'static)) -> String {
    let mut cause: &dyn Error = rejection;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The query of the URL.
pub(crate) struct UrlQuery<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for UrlQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(rejection) => Err(Problem::invalid(msg!(
                "the query of the URL cannot be read: {error}",
                error = library(&cause(&rejection))
            ))),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        // The gate has put it there.
        let missing =
            || Problem::new(ProblemKind::Unauthorized, msg!("this needs a token: `Authorization: Bearer TOKEN`"));
        parts.extensions.get::<Self>().cloned().ok_or_else(missing)
    }
}
