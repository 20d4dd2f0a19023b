//! Reads the parts of requests, with errors that say what is wrong.

use std::error::Error;
use std::time::Duration;

use axum::BoxError;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Json, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use bcc_lang::message::language::Language;
use bcc_lang::message::library::library;
use bcc_lang::message::msg;
use futures_util::{StreamExt, stream};
use serde::de::DeserializeOwned;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use crate::access::ApiCaller;
use crate::api::error_text::without_values;
use crate::problem::{Problem, ProblemKind};
use crate::settings::MAX_BODY_BYTES;

/// A JSON object as body.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        Self::read(&parts.headers, body, MAX_BODY_BYTES).await
    }
}

impl<T: DeserializeOwned> JsonBody<T> {
    /// Reads a body of at most `max_bytes` bytes.
    ///
    /// # Errors
    /// `TooLarge`; `InvalidRequest` if it is no such object, or has not arrived completely; `Timeout`.
    pub(crate) async fn read(headers: &HeaderMap, body: Body, max_bytes: usize) -> Result<Self, Problem> {
        require_json(headers)?;
        Self::parse(&read_up_to(body, max_bytes).await?)
    }

    fn parse(body: &[u8]) -> Result<Self, Problem> {
        let unreadable = |why: String| {
            Problem::invalid(msg!("the body cannot be read: {error}", error = library(&without_values(&why))))
        };
        // A list would be taken for the fields of an object in order.
        if body.trim_ascii_start().starts_with(b"[") {
            return Err(Problem::invalid(msg!("the body must be a JSON object")));
        }
        let Json(value) = Json::<T>::from_bytes(body).map_err(|rejection| unreadable(cause(&rejection)))?;
        Ok(Self(value))
    }
}

/// A JSON object as body, or none.
pub(crate) struct OptionalBody<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let body = read(body).await?;
        if body.is_empty() {
            return Ok(Self(T::default()));
        }
        require_json(&parts.headers)?;
        let JsonBody(value) = JsonBody::<Option<T>>::parse(&body)?;
        Ok(Self(value.unwrap_or_default()))
    }
}

/// The language that the client wants most, of those that messages have (RFC 9110, section 12.5.4).
pub(crate) fn language_of(headers: &HeaderMap) -> Language {
    let accepted = headers.get_all(header::ACCEPT_LANGUAGE).into_iter().filter_map(|value| value.to_str().ok());
    let mut best: Option<(f32, Language)> = None;
    for entry in accepted.flat_map(|value| value.split(',')) {
        let mut parts = entry.split(';').map(str::trim);
        let name = parts.next().and_then(|range| range.split('-').next()).unwrap_or_default();
        // A weight that cannot be read says nothing.
        let weight = parts
            .find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")))
            .and_then(|weight| weight.parse().ok());
        let weight: f32 = weight.unwrap_or(1.0);
        if let Some(language) = Language::parse(name)
            && weight > best.map_or(0.0, |(weight, _)| weight)
        {
            best = Some((weight, language));
        }
    }
    best.map_or_else(Language::default, |(_, language)| language)
}

/// Limits the time in which the body of a request must arrive: all of it, however often a piece of it does.
pub(crate) async fn limit_body_time(State(time): State<Duration>, request: Request, next: Next) -> Response {
    next.run(request.map(|body| within(body, time))).await
}

/// A body that fails with [`Elapsed`] if it has not ended in time.
fn within(body: Body, time: Duration) -> Body {
    let end = Instant::now() + time;
    let pieces = stream::unfold(Some(body.into_data_stream()), move |pieces| async move {
        let mut pieces = pieces?;
        match timeout_at(end, pieces.next()).await {
            Ok(Some(Ok(piece))) => Some((Ok(piece), Some(pieces))),
            Ok(Some(Err(error))) => Some((Err(BoxError::from(error)), None)),
            Ok(None) => None,
            Err(elapsed) => Some((Err(BoxError::from(elapsed)), None)),
        }
    });
    Body::from_stream(pieces)
}

/// Why a body did not arrive.
fn body_problem(error: &axum::Error) -> Problem {
    let mut causes = std::iter::successors(Some(error as &(dyn Error + 'static)), |&error| error.source());
    match causes.any(|cause| cause.is::<Elapsed>()) {
        true => Problem::new(ProblemKind::Timeout, msg!("the body did not arrive in time")),
        false => Problem::invalid(msg!("the body did not arrive completely")),
    }
}

/// How much of a body that is too large is read, so that its client reads the response: a connection that is closed while the client
/// sends is an error to it.
const MAX_DISCARDED_BYTES: usize = 16 * MAX_BODY_BYTES;

/// The whole body.
///
/// # Errors
/// `TooLarge`; `InvalidRequest` if it has not arrived completely; `Timeout`.
pub(crate) async fn read(body: Body) -> Result<Vec<u8>, Problem> {
    read_up_to(body, MAX_BODY_BYTES).await
}

async fn read_up_to(body: Body, max_bytes: usize) -> Result<Vec<u8>, Problem> {
    let mut pieces = body.into_data_stream();
    let (mut read, mut length) = (Vec::new(), 0_usize);
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| body_problem(&error))?;
        length = length.saturating_add(piece.len());
        if length > max_bytes.saturating_add(MAX_DISCARDED_BYTES) {
            break;
        }
        if length <= max_bytes {
            read.extend_from_slice(&piece);
        }
    }
    match length <= max_bytes {
        true => Ok(read),
        false => Err(Problem::new(ProblemKind::TooLarge, msg!("the body is too large"))),
    }
}

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    match has_json(headers) {
        true => Ok(()),
        false => Err(Problem::invalid(msg!("the body must be JSON, with `Content-Type: application/json`"))),
    }
}

/// Whether a request says that its body is JSON. A page of another site cannot send that without asking first.
fn has_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// What is wrong, without the parts that are about this program.
fn cause(rejection: &(impl Error + 'static)) -> String {
    let mut cause: &dyn Error = rejection;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The values in the path of the URL.
pub(crate) struct UrlPath<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for UrlPath<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(Self(value)),
            // The values are texts.
            Err(_) => Err(Problem::invalid(msg!("the path of the URL is not UTF-8"))),
        }
    }
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
                error = library(&without_values(&cause(&rejection)))
            ))),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ApiCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        // The gate has put it there.
        let missing =
            || Problem::new(ProblemKind::Unauthorized, msg!("this needs a token: `Authorization: Bearer TOKEN`"));
        parts.extensions.get::<Self>().cloned().ok_or_else(missing)
    }
}
