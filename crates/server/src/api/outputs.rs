//! `/v1/sessions/{id}/outputs`: the large outputs of a notebook one by one, such as pictures.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bcc_engine::large_output::{LargeOutput, large_output};
use bcc_engine::pin::sha256;
use bcc_lang::message::msg;

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::UrlPath;
use crate::problem::{Problem, ProblemDetails};
use crate::state::ServerState;

/// What code has made, or was said in a conversation, may not run anything, wherever it is shown.
pub(crate) const SANDBOX: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";

/// The types that a browser may show in a page or a window of its own, with the endings of their files. SVG runs nothing: see [`SANDBOX`].
const SHOWN: [(&str, &str, &str); 6] = [
    ("image/png", "image/png", "png"),
    ("image/jpeg", "image/jpeg", "jpg"),
    ("image/gif", "image/gif", "gif"),
    ("image/webp", "image/webp", "webp"),
    ("image/svg+xml", "image/svg+xml", "svg"),
    ("text/plain", "text/plain; charset=utf-8", "txt"),
];

/// Types that are stored as files. Any other one is sent as bytes without a meaning.
const STORED: [(&str, &str, &str); 4] = [
    ("text/html", "text/html; charset=utf-8", "html"),
    ("text/markdown", "text/plain; charset=utf-8", "md"),
    ("application/json", "application/json", "json"),
    ("application/pdf", "application/pdf", "pdf"),
];

/// How a type is sent: whether it may be shown, the type that is said, and the ending of its file.
fn sent_as(media_type: &str) -> (bool, &'static str, &'static str) {
    let find = |table: &[(&str, &'static str, &'static str)]| {
        table.iter().find(|(known, _, _)| *known == media_type).map(|(_, sent, ending)| (*sent, *ending))
    };
    if let Some((sent, ending)) = find(&SHOWN) {
        return (true, sent, ending);
    }
    let (sent, ending) = match find(&STORED) {
        Some(stored) => stored,
        None if media_type.ends_with("+json") => ("application/json", "json"),
        None => ("application/octet-stream", "bin"),
    };
    (false, sent, ending)
}

/// One large output of the notebook of a session, such as a picture: with the address that `links` of its output has.
///
/// The type is that of the output, if it is one that can be shown safely or is well known. Sensitive values in texts are masked.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/outputs/{hash}",
    tag = "data",
    params(
        ("id" = String, Path, description = "The session"),
        ("hash" = String, Path, description = "The hash of the output, as its notebook names it"),
    ),
    responses(
        (
            status = 200,
            description = "The output. `Content-Disposition` says whether it is for pages (`inline`) or for files (`attachment`)",
            content(
                (String = "image/png"),
                (String = "image/jpeg"),
                (String = "image/gif"),
                (String = "image/webp"),
                (String = "image/svg+xml"),
                (String = "text/plain; charset=utf-8"),
                (String = "text/html; charset=utf-8"),
                (Object = "application/json"),
                (String = "application/pdf"),
                (String = "application/octet-stream"),
            ),
            headers(("etag" = String, description = "Its version: that of a picture never changes")),
        ),
        (status = 304, description = "It is the one that `If-None-Match` names"),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_output(
    State(state): State<ServerState>,
    UrlPath((id, hash)): UrlPath<(String, String)>,
    caller: ApiCaller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.require(AccessRole::Author)?;
    let store = state.sessions.store().as_ref();
    let row = store.session(&id).await?.ok_or_else(|| Problem::no_session(&id))?;
    let missing = || Problem::not_found(msg!("the notebook of session `{id}` has no such output"));
    let output = large_output(store, &row, &hash).await?.ok_or_else(missing)?;
    let LargeOutput { media_type, bytes, is_fixed } = output;
    let (is_shown, sent, ending) = sent_as(&media_type);
    let version = format!("\"{}\"", if is_fixed { hash.clone() } else { sha256(&bytes) });
    // A cache asks each time: the session may have been deleted, and the caller may not read it any more.
    let known = [(header::ETAG, version.as_str()), (header::CACHE_CONTROL, "private, no-cache")];
    if is_known(&headers, &version) {
        return Ok((StatusCode::NOT_MODIFIED, known).into_response());
    }
    let disposition = if is_shown { "inline" } else { "attachment" };
    let name: String = hash.chars().take(12).collect();
    let disposition = format!("{disposition}; filename=\"{name}.{ending}\"");
    let described: [(HeaderName, &str); 4] = [
        (header::CONTENT_TYPE, sent),
        (header::CONTENT_DISPOSITION, &disposition),
        (header::CONTENT_SECURITY_POLICY, SANDBOX),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((known, described, bytes).into_response())
}

/// Whether the client has this version (`If-None-Match`).
fn is_known(headers: &HeaderMap, version: &str) -> bool {
    let named = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    // A proxy that compresses makes weak tags of them.
    named
        .flat_map(|named| named.split(','))
        .map(|named| named.trim().trim_start_matches("W/"))
        .any(|named| named == "*" || named == version)
}
