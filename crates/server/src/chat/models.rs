//! `/v1/models`: the scripts of the project as models.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::ApiCaller;
use crate::api::body::UrlPath;
use crate::api::catalog::ScriptEntry;
use crate::chat::error::ChatErrorBody;
use crate::problem::Problem;
use crate::state::ServerState;

/// A script as a model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatModel {
    /// The `session_id` of the script.
    pub(crate) id: String,
    /// `model`
    pub(crate) object: &'static str,
    /// Always 0: scripts have no date.
    pub(crate) created: u64,
    /// `bcc-script`
    pub(crate) owned_by: &'static str,
    /// The name of the script for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
}

impl ChatModel {
    /// A script as a model. Several scripts with the same id are told apart by their paths.
    fn of(script: ScriptEntry, is_unique: bool) -> Self {
        let id = if is_unique { script.session_id } else { script.path };
        Self { id, object: "model", created: 0, owned_by: "bcc-script", name: script.name }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatModelList {
    /// `list`
    pub(crate) object: &'static str,
    pub(crate) data: Vec<ChatModel>,
}

/// Lists the scripts as models, for clients of OpenAI.
#[utoipa::path(
    get,
    path = "/v1/models",
    tag = "chat",
    responses(
        (status = 200, description = "The scripts", body = ChatModelList),
        (status = "default", description = "An error", body = ChatErrorBody),
    )
)]
pub(crate) async fn list_models(
    State(state): State<ServerState>,
    _caller: ApiCaller,
) -> Result<Json<ChatModelList>, Problem> {
    let scripts = state.catalog.list().await?;
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    scripts.iter().for_each(|script| *count.entry(script.session_id.clone()).or_default() += 1);
    let data = scripts.into_iter().map(|script| {
        let is_unique = count.get(&script.session_id) == Some(&1);
        ChatModel::of(script, is_unique)
    });
    Ok(Json(ChatModelList { object: "list", data: data.collect() }))
}

/// Shows a script as a model.
#[utoipa::path(
    get,
    path = "/v1/models/{name}",
    tag = "chat",
    params(("name" = String, Path, description = "The `session_id` of the script")),
    responses(
        (status = 200, description = "The script", body = ChatModel),
        (status = "default", description = "An error", body = ChatErrorBody),
    )
)]
pub(crate) async fn get_model(
    State(state): State<ServerState>,
    UrlPath(name): UrlPath<String>,
    _caller: ApiCaller,
) -> Result<Json<ChatModel>, Problem> {
    let script = state.catalog.find(&name).await?;
    let others = state.catalog.list().await?;
    let is_same = |other: &ScriptEntry| other.session_id == script.session_id && other.path != script.path;
    let is_unique = !others.iter().any(is_same);
    Ok(Json(ChatModel::of(script, is_unique)))
}
