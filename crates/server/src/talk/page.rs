//! The page itself and its parts, which are in the binary.

use std::sync::LazyLock;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bcc_lang::message::language::Language;
use bcc_lang::message::message::Message;
use bcc_lang::source::render::html::escape;

use crate::api::body::language_of;
use crate::pages::embedded::{EmbeddedFile, ICON, SCRIPT, STYLE, embedded_file, version_of};
use crate::pages::page_headers::with_page_headers;
use crate::state::ServerState;
use crate::talk::error::TalkErrorKind;
use crate::talk::visit::{Visit, secret_hash};

/// The parts of the page.
const PARTS: [EmbeddedFile; 9] = [
    ("talk.js", SCRIPT, include_str!("../../pages/talk.js")),
    ("address.js", SCRIPT, include_str!("../../pages/address.js")),
    ("answer.js", SCRIPT, include_str!("../../pages/answer.js")),
    ("messages.js", SCRIPT, include_str!("../../pages/messages.js")),
    ("pause.js", SCRIPT, include_str!("../../pages/pause.js")),
    ("server.js", SCRIPT, include_str!("../../pages/server.js")),
    ("texts.js", SCRIPT, include_str!("../../pages/texts.js")),
    ("talk.css", STYLE, include_str!("../../pages/talk.css")),
    ICON,
];

const PAGE: &str = include_str!("../../pages/talk.html");

static VERSION: LazyLock<String> = LazyLock::new(|| version_of(&PARTS));

/// Only the parts of the page run and are shown, and it talks to its own server only. No text becomes markup, because nothing that makes
/// markup of a text may be called (`require-trusted-types-for`).
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// What every response at `/t/` has.
pub(crate) fn add_headers(response: Response) -> Response {
    with_page_headers(response, POLICY)
}

/// `GET /t/TOKEN`: the page. What it shows, it asks for.
pub(crate) async fn link_page(
    State(state): State<ServerState>,
    Path(token): Path<String>,
    headers: HeaderMap,
) -> Response {
    page(&state, &token, None, &headers).await
}

/// `GET /t/TOKEN/SECRET`: the same page.
pub(crate) async fn talk_page(
    State(state): State<ServerState>,
    Path((token, secret)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    page(&state, &token, Some(&secret), &headers).await
}

async fn page(state: &ServerState, token: &str, secret: Option<&str>, headers: &HeaderMap) -> Response {
    let (status, language, title) = match Visit::of(state, token).await {
        Ok(visit) => (StatusCode::OK, visit.terms.language(), visit.terms.title),
        Err(TalkErrorKind::NotFound) => (StatusCode::NOT_FOUND, language_of(headers), String::new()),
        // The page says so, and tries again.
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, language_of(headers), String::new()),
    };
    let tag = if language == Language::Chinese { "zh-CN" } else { "en" };
    // The conversation is on its way while the modules load that show it.
    let preload = match secret {
        Some(secret) if status == StatusCode::OK && secret_hash(secret).is_ok() => {
            format!("<link rel=\"preload\" as=\"fetch\" href=\"/t/{}/{secret}/state\" crossorigin>", escape(token))
        }
        _ => String::new(),
    };
    let html = PAGE.replace("{{version}}", &VERSION).replace("{{language}}", tag).replace("{{preload}}", &preload);
    // Last, so that nothing in it is replaced.
    let title = if title.is_empty() { Message::word("Conversation").render(language) } else { title };
    let html = html.replace("{{title}}", &escape(&title));
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

/// `GET /t/parts/VERSION/NAME`: a part of the page.
pub(crate) async fn part(Path((version, name)): Path<(String, String)>) -> Response {
    let found = embedded_file(&PARTS, &name, version == *VERSION);
    found.unwrap_or_else(|| TalkErrorKind::NotFound.into_response())
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
