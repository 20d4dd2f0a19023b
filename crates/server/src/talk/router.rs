//! The routes of the page. They are for the page alone and not part of the API: their paths are secrets, and they need no token.

use axum::Router;
use axum::middleware::map_response;
use axum::routing::{get, post};

use crate::pages::embedded::page_compression;
use crate::state::ServerState;
use crate::talk::{answers, beginning, copy, page, stream, view, withdrawal};

/// The beginning of all of their paths.
pub(crate) const TALK_PREFIX: &str = "/t/";

pub(crate) fn router() -> Router<ServerState> {
    Router::new()
        .route("/t/parts/{version}/{name}", get(page::part).layer(page_compression()))
        .route("/t/{token}", get(page::link_page))
        .route("/t/{token}/link", get(beginning::link_view))
        .route("/t/{token}/{secret}", get(page::talk_page))
        .route("/t/{token}/{secret}/begin", post(beginning::start_talk))
        .route("/t/{token}/{secret}/state", get(view::talk_view))
        .route("/t/{token}/{secret}/events", get(stream::events))
        .route("/t/{token}/{secret}/messages", post(answers::answer))
        .route("/t/{token}/{secret}/take_back", post(answers::take_back))
        .route("/t/{token}/{secret}/continue", post(answers::try_again))
        .route("/t/{token}/{secret}/copy", get(copy::copy))
        .route("/t/{token}/{secret}/withdraw", post(withdrawal::withdraw))
        .layer(map_response(async |response| page::add_headers(response)))
}
