//! The page itself and its parts, which are in the binary.

use std::sync::LazyLock;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bcc_lang::message::language::Language;
use bcc_lang::message::message::Message;
use bcc_lang::source::render::html::escape;
use sha2::{Digest, Sha256};

use crate::access::hex;
use crate::api::gate::language_of;
use crate::state::ServerState;
use crate::talk::error::TalkErrorKind;
use crate::talk::visit::Visit;

/// The parts of the page: names, types and texts.
const PARTS: [(&str, &str, &str); 8] = [
    ("talk.js", SCRIPT, include_str!("../../pages/talk.js")),
    ("address.js", SCRIPT, include_str!("../../pages/address.js")),
    ("answer.js", SCRIPT, include_str!("../../pages/answer.js")),
    ("messages.js", SCRIPT, include_str!("../../pages/messages.js")),
    ("server.js", SCRIPT, include_str!("../../pages/server.js")),
    ("texts.js", SCRIPT, include_str!("../../pages/texts.js")),
    ("talk.css", "text/css; charset=utf-8", include_str!("../../pages/talk.css")),
    ("icon.svg", "image/svg+xml", include_str!("../../pages/icon.svg")),
];

const SCRIPT: &str = "text/javascript; charset=utf-8";

const PAGE: &str = include_str!("../../pages/talk.html");

/// Part of the address of each part, so that a browser that has a part never asks for it again, and gets new ones from a new release.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for (name, _, text) in PARTS {
        hash.update(name);
        hash.update(text);
    }
    hex(&hash.finalize()).chars().take(16).collect()
});

/// Only the parts of the page run and are shown, and it talks to its own server only. No text becomes markup, because nothing that makes
/// markup of a text may be called (`require-trusted-types-for`).
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// What every response at `/t/` has.
pub(crate) fn add_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        // The address is a secret.
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for (name, value) in [
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
        ("x-robots-tag", "noindex, nofollow"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// `GET /t/TOKEN`: the page. What it shows, it asks for.
pub(crate) async fn link_page(
    State(state): State<ServerState>,
    Path(token): Path<String>,
    headers: HeaderMap,
) -> Response {
    page(&state, &token, &headers).await
}

/// `GET /t/TOKEN/SECRET`: the same page.
pub(crate) async fn talk_page(
    State(state): State<ServerState>,
    Path((token, _)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    page(&state, &token, &headers).await
}

async fn page(state: &ServerState, token: &str, headers: &HeaderMap) -> Response {
    let (status, language, title) = match Visit::of(state, token).await {
        Ok(visit) => (StatusCode::OK, visit.terms.language(), visit.terms.title),
        Err(TalkErrorKind::NotFound) => (StatusCode::NOT_FOUND, language_of(headers), String::new()),
        // The page says so, and tries again.
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, language_of(headers), String::new()),
    };
    let tag = if language == Language::Chinese { "zh-CN" } else { "en" };
    let html = PAGE.replace("{{version}}", &VERSION).replace("{{language}}", tag);
    // Last, so that nothing in it is replaced.
    let title = if title.is_empty() { Message::word("Conversation").render(language) } else { title };
    let html = html.replace("{{title}}", &escape(&title));
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

/// `GET /t/parts/VERSION/NAME`: a part of the page.
pub(crate) async fn part(Path((version, name)): Path<(String, String)>) -> Response {
    let Some((_, kind, text)) = PARTS.iter().find(|(known, _, _)| *known == name) else {
        return TalkErrorKind::NotFound.into_response();
    };
    // A page of an earlier release gets the parts of this one.
    let lasting = if version == *VERSION { "public, max-age=31536000, immutable" } else { "no-store" };
    ([(header::CONTENT_TYPE, *kind), (header::CACHE_CONTROL, lasting)], *text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small() {
        let size: usize = PARTS.iter().map(|(_, _, text)| text.len()).sum::<usize>() + PAGE.len();
        // Before compression.
        assert!(size < 60_000, "{size}");
    }
}
