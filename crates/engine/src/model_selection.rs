//! Selects the models of a session: the configured ones, or a recording that replaces all of them.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use crate::environment::Environment;
use crate::error::EngineError;
use crate::models::choose::{ChosenModel, RequestedModel, choose};
use crate::models::shared::SharedModels;
use crate::project::Project;
use crate::replay::{ReplayRequest, ReplayedModels};
use bcc_runtime::program::models::ModelProviders;

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
}

/// The models of a session. `script` is the model that the script names.
pub(crate) fn select_models(
    project: &Project,
    environment: &Environment,
    shared: &Arc<SharedModels>,
    requested: ModelRequested<'_>,
    script: Option<&str>,
) -> Result<ModelSelection, EngineError> {
    if let Some(replay) = requested.replay {
        let replayed = replay.open()?;
        let (name, models) = (replayed.name().to_owned(), Arc::new(replayed.clone()));
        return Ok(ModelSelection { models, name, requested: None, notices: vec![], replayed: Some(replayed) });
    }
    let wanted = RequestedModel { requested: requested.model, stored: requested.stored, script };
    let chosen = choose(project, environment, shared, wanted)?;
    let notices = notices(project, &chosen);
    let ChosenModel { models, name, requested, .. } = chosen;
    Ok(ModelSelection { models: Arc::new(models), name, requested, notices, replayed: None })
}

/// Notices about the models and the configuration of a session.
fn notices(project: &Project, chosen: &ChosenModel) -> Vec<Message> {
    let mut notices = chosen.notices.clone();
    if project.has_config && !project.trusted && !project.config.project.allow.is_empty() {
        notices.push(msg!("`allow` is ignored: {path} is not trusted", path = project.directory.display()));
    }
    notices
}
