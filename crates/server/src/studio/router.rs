//! The routes of the page. They need no token, because they contain nothing but the page: it asks for the token that the API needs.

use axum::Router;
use axum::middleware::map_response;
use axum::routing::get;

use crate::pages::embedded::page_compression;
use crate::state::ServerState;
use crate::studio::page;

pub(crate) fn router() -> Router<ServerState> {
    Router::new()
        .route("/studio", get(page::studio_page))
        .route("/studio/parts/{version}/{*name}", get(page::part).layer(page_compression()))
        .layer(map_response(async |response| page::add_headers(response)))
}
