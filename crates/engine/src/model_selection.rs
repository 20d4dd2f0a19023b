//! Selects the models of a session: the configured ones, or a recording that replaces all of them.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use serde_json::Value;

use crate::config::validation::OFFLINE;
use crate::environment::Environment;
use crate::error::EngineError;
use crate::export::parse;
use crate::models::choose::{ChosenModel, RequestedModel, choose};
use crate::models::shared::SharedModels;
use crate::project::Project;
use crate::replay::{ReplayRequest, ReplayedModels};
use bcc_runtime::program::models::ModelProviders;
use bcc_runtime::program::program::Program;
use bcc_store::contract::Store;

/// The requested model. A recording has priority.
#[derive(Clone, Copy)]
pub(crate) struct ModelRequested<'a> {
    pub model: Option<&'a str>,
    /// The model that a stored session was started with.
    pub stored: Option<&'a str>,
    pub replay: Option<&'a ReplayRequest>,
}

/// The models of a session.
pub(crate) struct ModelSelection {
    pub models: Arc<dyn ModelProviders>,
    /// The name of the session's model in events.
    pub name: String,
    /// The requested model, stored so that a resumed session uses it again.
    pub requested: Option<String>,
    /// Notices for the person.
    pub notices: Vec<Message>,
    pub replayed: Option<ReplayedModels>,
    /// Whether the offline responder is used because no model is configured.
    pub is_unconfigured: bool,
}

/// The models of a session. `script` is the model that the script names.
pub(crate) fn select_models(
    project: &Project,
    environment: &Environment,
    shared: &Arc<SharedModels>,
    requested: ModelRequested<'_>,
    program: &Program,
) -> Result<ModelSelection, EngineError> {
    if let Some(replay) = requested.replay {
        let replayed = replay.open()?;
        let (name, models) = (replayed.name().to_owned(), Arc::new(replayed.clone()));
        let replayed = Some(replayed);
        return Ok(ModelSelection { models, name, requested: None, notices: vec![], replayed, is_unconfigured: false });
    }
    let wanted =
        RequestedModel { requested: requested.model, stored: requested.stored, script: program.model.as_deref() };
    let chosen = match choose(project, environment, shared, wanted) {
        // Whoever asks no model needs none: an API key without a model does not stop a script that only works in a notebook.
        Err(_) if requested.model.is_none() && requested.stored.is_none() && !program.asks_models() => {
            choose(project, environment, shared, RequestedModel { script: Some(OFFLINE), ..wanted })?
        }
        chosen => chosen?,
    };
    let notices = notices(project, &chosen, program.asks_models());
    let ChosenModel { models, name, requested, is_unconfigured, .. } = chosen;
    Ok(ModelSelection { models: Arc::new(models), name, requested, notices, replayed: None, is_unconfigured })
}

/// Refuses to continue a session with the offline responder that was not asked for, after a real model took part in it: the
/// person would not notice that no model answers any more.
///
/// # Errors
/// `Usage`, which names the model; or the store cannot be read.
pub(crate) async fn refuse_silent_change(
    store: &dyn Store,
    id: &str,
    selected: &ModelSelection,
) -> Result<(), EngineError> {
    if !selected.is_unconfigured {
        return Ok(());
    }
    let started = store.journal_by_kind(id, "session_started", 0, 1).await?.into_iter().next();
    let resumed = store.last_by_kind(id, "session_resumed").await?;
    for event in started.iter().chain(&resumed) {
        let event = parse(&event.body, "event")?;
        let model = event.get("model").and_then(Value::as_str).unwrap_or(OFFLINE);
        if model != OFFLINE {
            return Err(EngineError::usage(msg!(
                "session `{id}` was run with the model `{model}`, and no model is configured now"
            ))
            .with_help(
                "set BCC_MODEL and the API key again, or choose a model with `--model`; `--model offline` continues without AI",
            ));
        }
    }
    Ok(())
}

/// Notices about the models, if the session asks them, and the configuration of a session.
fn notices(project: &Project, chosen: &ChosenModel, asks_models: bool) -> Vec<Message> {
    let mut notices = if asks_models { chosen.notices.clone() } else { vec![] };
    if project.has_config && !project.trusted && !project.config.project.allow.is_empty() {
        notices.push(msg!("`allow` is ignored: {path} is not trusted", path = project.directory.display()));
    }
    notices
}
