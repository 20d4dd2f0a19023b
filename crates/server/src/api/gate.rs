//! What every request passes first: its origin, its token, and the limit of its client.

use std::net::IpAddr;
use std::path::Path;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bcc_lang::message::language::Language;
use bcc_lang::message::msg;
use tracing::Instrument;

use crate::access::ApiCaller;
use crate::api::body::language_of;
use crate::api::request_span::{record_response, request_span};
use crate::chat::error::chat_error;
use crate::client_limit::client_at;
use crate::metrics::ResponseLabels;
use crate::problem::{Problem, ProblemKind};
use crate::state::ServerState;
use crate::studio::prefix::STUDIO_PREFIX;
use crate::talk::router::TALK_PREFIX;

/// The address of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

/// Checks a request before its handler sees it, and adds what all responses have, in a span.
pub(crate) async fn gate(State(state): State<ServerState>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let span = request_span(&request, route.as_ref().map(MatchedPath::as_str), state.settings.continue_trace);
    let response = checked(state, request, next).instrument(span.clone()).await;
    record_response(&span, response.status());
    response
}

async fn checked(state: ServerState, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("none", |path| path.as_str()).to_owned();
    let language = language_of(request.headers());
    let access = &state.settings.access;
    let origin = request.headers().get(header::ORIGIN).cloned();
    let checked = access.check_origin(request.headers());
    let is_allowed_origin = checked.is_ok();
    // Browsers ask before they send: without a token.
    let is_preflight = request.method() == Method::OPTIONS && origin.is_some();
    let response = match checked {
        Err(problem) => problem.into_response(),
        Ok(()) if is_preflight => preflight(request.headers()),
        Ok(()) => match admit(&state, &mut request, &route) {
            Err(problem) => problem.into_response(),
            Ok(()) => next.run(request).await,
        },
    };
    let is_chat = CHAT_ROUTES.iter().any(|chat| route.starts_with(chat));
    let mut response = in_form(response, language, &state.sessions.engine().project().directory, is_chat);
    let headers = response.headers_mut();
    if let Some(origin) = origin.filter(|_| is_allowed_origin) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED_HEADERS));
        headers.insert(header::VARY, HeaderValue::from_static("origin"));
    }
    // Conversations are not for caches, and no browser guesses a type.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let labels = ResponseLabels { route, status: response.status().as_u16() };
    state.metrics.responses.get_or_create(&labels).inc();
    response
}

/// The headers of responses that the pages of listed origins may read.
const EXPOSED_HEADERS: &str = "etag, retry-after, x-session-id";

/// The beginnings of the routes of the chat completions.
const CHAT_ROUTES: [&str; 2] = ["/v1/chat/", "/v1/models"];

/// The routes that tell nothing of conversations, for those who watch over the server.
const OPEN_ROUTES: [&str; 2] = ["/healthz", "/readyz"];

fn admit(state: &ServerState, request: &mut Request, route: &str) -> Result<(), Problem> {
    if OPEN_ROUTES.contains(&route) {
        return Ok(());
    }
    // Whoever has the address of a page may load it, and nothing else: no caller is known behind these routes.
    let is_page = route.starts_with(TALK_PREFIX) || route.starts_with(STUDIO_PREFIX);
    let caller = match is_page {
        true => Ok(None),
        false => state.settings.access.caller(request.headers()).map(Some),
    };
    let address = request.extensions().get::<ClientAddress>().map(|address| address.0);
    // Also for requests with a wrong token, so that tokens are not guessed.
    let client = match &caller {
        Ok(Some(ApiCaller { name: Some(name), .. })) => name.clone(),
        _ => address.map(client_at).unwrap_or_default(),
    };
    if let Err(until) = state.limiter.check_key(&client) {
        state.metrics.rejected.inc();
        let wait = until.wait_time_from(governor::clock::Clock::now(state.limiter.clock())).as_secs() + 1;
        return Err(
            Problem::new(ProblemKind::TooManyRequests, msg!("too many requests; wait {wait} s")).retry_after(wait)
        );
    }
    if let Some(caller) = caller? {
        request.extensions_mut().insert(caller);
    }
    Ok(())
}

/// The answer to a browser whose page has a listed origin. The page may send what it likes: the names of some headers are configured.
fn preflight(request: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, PUT, DELETE"));
    if let Some(wanted) = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// A problem is written again in the language of the client, with files as they are in the project, and in the form that clients of the
/// chat completions expect. Where the project is on the machine is not for clients.
fn in_form(response: Response, language: Language, project: &Path, is_chat: bool) -> Response {
    let Some(problem) = response.extensions().get::<Problem>().cloned() else { return response };
    let problem = problem.in_language(language).in_project(project);
    if is_chat { chat_error(&problem) } else { problem.into_response() }
}
