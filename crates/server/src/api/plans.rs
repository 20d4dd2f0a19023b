//! `/v1/plans`: the plans of users.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bcc_engine::engine::DEFAULT_USER;
use bcc_engine::plan_masker::plan_masker;
use bcc_engine::session_ids::secret_id;
use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::msg;
use bcc_runtime::plan::access::{PlanAccess, PlanAccessError, PlanListing};
use bcc_runtime::plan::document::PlanDocument;
use bcc_runtime::plan::export::{markdown_list, mermaid_chart};
use bcc_runtime::plan::masking::PlanMasker;
use bcc_runtime::plan::task::{PlanHead, PlanId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::{UrlPath, UrlQuery};
use crate::problem::{Problem, ProblemDetails};
use crate::state::ServerState;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PlanUserQuery {
    /// Whose plans; `default` if not set.
    user: Option<String>,
}

/// A plan in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListedPlan {
    plan_id: u64,
    title: String,
    goal: String,
    /// `pending`, `running`, `completed`, `failed` or `skipped`.
    status: String,
    /// The number of its tasks.
    tasks: usize,
    /// The session that made it.
    session_id: String,
    /// The script of that session.
    workflow_id: String,
    created_at: String,
    updated_at: String,
}

impl From<PlanListing> for ListedPlan {
    fn from(plan: PlanListing) -> Self {
        let tasks = plan.tasks();
        let head = plan.head;
        Self {
            plan_id: plan.id,
            title: head.title,
            goal: head.goal,
            status: head.status.name().to_owned(),
            tasks,
            session_id: head.session_id,
            workflow_id: head.workflow_id,
            created_at: head.created_at,
            updated_at: head.updated_at,
        }
    }
}

/// The plans of a user.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlanList {
    pub(crate) plans: Vec<ListedPlan>,
}

fn plans_of(state: &ServerState, user: Option<&str>) -> PlanAccess {
    PlanAccess::new(Arc::clone(state.sessions.store()), user.unwrap_or(DEFAULT_USER))
}

async fn masker(state: &ServerState, head: &PlanHead, user: Option<&str>) -> Result<PlanMasker, Problem> {
    Ok(plan_masker(state.sessions.store().as_ref(), head, user.unwrap_or(DEFAULT_USER)).await?)
}

fn rejection(error: PlanAccessError) -> Problem {
    match error {
        PlanAccessError::Store(error) => error.into(),
        error @ PlanAccessError::NoPlan { .. } => Problem::not_found(error.to_message()),
        error => Problem::invalid(error.to_message()),
    }
}

/// Lists the plans of a user, by id, with sensitive values masked.
#[utoipa::path(
    get,
    path = "/v1/plans",
    tag = "data",
    params(PlanUserQuery),
    responses(
        (status = 200, description = "The plans", body = PlanList),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list_plans(
    State(state): State<ServerState>,
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<PlanUserQuery>,
) -> Result<Json<PlanList>, Problem> {
    caller.require(AccessRole::Author)?;
    let mut plans = plans_of(&state, query.user.as_deref()).list().await.map_err(rejection)?;
    for plan in &mut plans {
        plan.head = masker(&state, &plan.head, query.user.as_deref()).await?.head(&plan.head);
    }
    Ok(Json(PlanList { plans: plans.into_iter().map(ListedPlan::from).collect() }))
}

/// The form of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlanForm {
    #[default]
    Json,
    /// A list in Markdown.
    Md,
    /// A Mermaid flowchart.
    Mermaid,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PlanQuery {
    /// Whose plan; `default` if not set.
    user: Option<String>,
    /// `json`, `md` or `mermaid`.
    #[serde(default)]
    #[param(inline)]
    format: PlanForm,
}

/// Gives a plan with its tasks, as `bcc-script plans export` does, with sensitive values masked.
#[utoipa::path(
    get,
    path = "/v1/plans/{plan}",
    tag = "data",
    params(("plan" = u64, Path, description = "The plan"), PlanQuery),
    responses(
        (
            status = 200,
            description = "The plan",
            content((Object = "application/json"), (String = "text/markdown; charset=utf-8"), (String = "text/plain; charset=utf-8"))
        ),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_plan(
    State(state): State<ServerState>,
    UrlPath(plan): UrlPath<String>,
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<PlanQuery>,
) -> Result<Response, Problem> {
    caller.require(AccessRole::Author)?;
    let access = plans_of(&state, query.user.as_deref());
    let text =
        |content_type: &'static str, text: String| ([(header::CONTENT_TYPE, content_type)], text).into_response();
    let id = plan_id(&plan)?;
    let head = access.with_released_tree(id, |tree| tree.head().clone()).await.map_err(rejection)?;
    let masker = masker(&state, &head, query.user.as_deref()).await?;
    let given = access.with_released_tree(id, |tree| {
        let tree = &masker.tree(tree);
        match query.format {
            PlanForm::Json => serde_json::to_value(PlanDocument::of(tree)).map(|plan| Json(plan).into_response()),
            PlanForm::Md => Ok(text("text/markdown; charset=utf-8", markdown_list(tree))),
            PlanForm::Mermaid => Ok(text("text/plain; charset=utf-8", mermaid_chart(tree))),
        }
    });
    given.await.map_err(rejection)?.map_err(|error| Problem::failure(&error.to_message()))
}

/// Deletes a plan with all of its tasks.
#[utoipa::path(
    delete,
    path = "/v1/plans/{plan}",
    tag = "data",
    params(("plan" = u64, Path, description = "The plan"), PlanUserQuery),
    responses(
        (status = 204, description = "It is deleted"),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn delete_plan(
    State(state): State<ServerState>,
    UrlPath(plan): UrlPath<String>,
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<PlanUserQuery>,
) -> Result<StatusCode, Problem> {
    caller.require(AccessRole::Admin)?;
    // No other edit has this key.
    let key = secret_id("delete");
    let deleted: Result<Value, _> = plans_of(&state, query.user.as_deref()).delete(plan_id(&plan)?, &key).await;
    deleted.map_err(rejection)?;
    Ok(StatusCode::NO_CONTENT)
}

fn plan_id(given: &str) -> Result<PlanId, Problem> {
    given.parse().map_err(|_| Problem::not_found(msg!("`{given}` is not the number of a plan")))
}
