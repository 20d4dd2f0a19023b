//! All routes, and the document that describes them.

use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router, middleware};
use bcc_lang::message::msg;
use utoipa::openapi::OpenApi as OpenApiDocument;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::body::limit_body_time;
use crate::api::{
    again, authoring, data, data_sets, events, forks, gate, health, journal, links, messages, outline, outputs, plans,
    requests, scripts, sessions,
};
use crate::behavior::{endpoints as behavior, kernel_endpoints as kernels};
use crate::chat::{completions, models};
use crate::problem::{Problem, ProblemKind};
use crate::state::ServerState;
use crate::studio;
use crate::talk;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "bcc-script",
        description = "Conversations and workflows that scripts describe. Errors are problem details (RFC 9457); `type` tells them apart.",
        license(name = "MIT OR Apache-2.0"),
    ),
    modifiers(&Tokens),
    security(("token" = [])),
    tags(
        (name = "sessions", description = "Conversations: start them, talk in them, read their events"),
        (name = "links", description = "Links by which people begin conversations in their browsers"),
        (name = "requests", description = "What sessions wait for, and decisions about it"),
        (name = "scripts", description = "The scripts of the project, their templates and tests"),
        (name = "data", description = "What is known about a session"),
        (name = "chat", description = "The chat completions of OpenAI: every script is a model"),
        (name = "behavior", description = "The behavior protocol: plans, actions and judgements for clients that keep a notebook"),
        (name = "kernels", description = "Code of clients that keep a notebook: only in projects that allow `exec`, and with a token"),
        (name = "server", description = "For those who watch over the server"),
    ),
)]
struct ApiDescription;

/// Describes how tokens are sent.
struct Tokens;

impl Modify for Tokens {
    fn modify(&self, document: &mut OpenApiDocument) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

fn routes() -> OpenApiRouter<ServerState> {
    OpenApiRouter::with_openapi(ApiDescription::openapi())
        .routes(routes!(scripts::list_scripts))
        .routes(routes!(scripts::check_script, authoring::put_script))
        .routes(routes!(scripts::get_source))
        .routes(routes!(authoring::get_graph))
        .routes(routes!(authoring::list_schemas))
        .routes(routes!(authoring::get_schema))
        .routes(routes!(authoring::list_templates))
        .routes(routes!(authoring::render_template))
        .routes(routes!(authoring::run_tests))
        .routes(routes!(sessions::create_session, sessions::list_sessions))
        .routes(routes!(sessions::get_session, sessions::delete_session))
        .routes(routes!(sessions::cancel_session))
        .routes(routes!(sessions::take_back))
        .routes(routes!(sessions::proceed))
        .routes(routes!(forks::fork_session))
        .routes(routes!(sessions::retry_session))
        .routes(routes!(again::list_choices, again::restart_session))
        .routes(routes!(messages::post_message))
        .routes(routes!(events::get_events))
        .routes(routes!(journal::get_journal))
        .routes(routes!(outline::get_outline))
        .routes(routes!(requests::list_requests))
        .routes(routes!(requests::answer_request))
        .routes(routes!(requests::answer_request_with_id))
        .routes(routes!(data::export_session))
        .routes(routes!(data::get_variables))
        .routes(routes!(data::get_plans_of_session))
        .routes(routes!(data::get_metrics))
        .routes(routes!(data::get_calls))
        .routes(routes!(data::get_notebook))
        .routes(routes!(outputs::get_output))
        .routes(routes!(data::get_report))
        .routes(routes!(data_sets::get_data_set))
        .routes(routes!(links::create_link, links::list_links))
        .routes(routes!(links::get_link, links::revoke_link))
        .routes(routes!(plans::list_plans))
        .routes(routes!(plans::get_plan, plans::delete_plan))
        .routes(routes!(completions::create_completion))
        .routes(routes!(models::list_models))
        .routes(routes!(models::get_model))
        .routes(routes!(behavior::create_actions))
        .routes(routes!(behavior::create_reflection))
        .routes(routes!(behavior::create_plan))
        .routes(routes!(behavior::generate_actions))
        .routes(routes!(behavior::reflect))
        .routes(routes!(kernels::initialize))
        .routes(routes!(kernels::execute))
        .routes(routes!(kernels::restart_kernel))
        .routes(routes!(kernels::cancel_execution))
        .routes(routes!(kernels::execution_status))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
}

/// The OpenAPI document, as `GET /v1/openapi.json` gives it.
pub fn openapi() -> OpenApiDocument {
    routes().split_for_parts().1
}

/// All routes.
pub(crate) fn router(state: ServerState) -> Router {
    let (router, document) = routes().split_for_parts();
    let limits = state.settings.limits;
    let document = Json(document);
    let router = match state.settings.talk_request {
        // The server of one conversation has nothing else.
        Some(_) => Router::new(),
        None => router
            .route("/v1/openapi.json", get(move || async move { document.clone().into_response() }))
            .merge(studio::router::router()),
    };
    router
        .merge(talk::router::router())
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(limits.request_time, limit_body_time))
        .layer(middleware::from_fn_with_state(state.clone(), gate::gate))
        .with_state(state)
}

async fn unknown() -> Problem {
    Problem::not_found(msg!("there is nothing at this path")).with_help("`GET /v1/openapi.json` describes the API")
}

async fn wrong_method() -> Problem {
    Problem::new(ProblemKind::MethodNotAllowed, msg!("the path does not permit this method"))
        .with_help("`GET /v1/openapi.json` describes the API")
}
