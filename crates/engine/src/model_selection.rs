//! What speaks in a session: the models that were chosen, or a recording that stands for all of them.

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

/// Which model was asked for: a recording before any other.
#[derive(Clone, Copy)]
pub struct ModelRequested<'a> {
    pub model: Option<&'a str>,
    /// What a stored session was started with.
    pub stored: Option<&'a str>,
    pub replay: Option<&'a ReplayRequest>,
}

/// What speaks in a session.
pub struct ModelSelection {
    pub models: Arc<dyn ModelProviders>,
    /// The name of the session's model, as events show it.
    pub name: String,
    /// What a resumed session must be told to ask for the same model again.
    pub asked: Option<String>,
    /// What a person should know about them.
    pub notices: Vec<Message>,
    pub repeated: Option<ReplayedModels>,
}

/// The models of a session of a script that names the model `script`.
pub fn voices(
    project: &Project,
    environment: &Environment,
    shared: &Arc<SharedModels>,
    asked: ModelRequested<'_>,
    script: Option<&str>,
) -> Result<ModelSelection, EngineError> {
    if let Some(replay) = asked.replay {
        let repeated = replay.open()?;
        let (name, models) = (repeated.name().to_owned(), Arc::new(repeated.clone()));
        return Ok(ModelSelection { models, name, asked: None, notices: vec![], repeated: Some(repeated) });
    }
    let wanted = RequestedModel { asked: asked.model, stored: asked.stored, script };
    let chosen = choose(project, environment, shared, wanted)?;
    let notices = notices(project, &chosen);
    let ChosenModel { models, name, asked, .. } = chosen;
    Ok(ModelSelection { models: Arc::new(models), name, asked, notices, repeated: None })
}

/// What a person should know about the model and the configuration of a session.
fn notices(project: &Project, chosen: &ChosenModel) -> Vec<Message> {
    let mut notices = chosen.notices.clone();
    if project.has_config && !project.trusted && !project.config.project.allow.is_empty() {
        notices.push(msg!("`allow` is ignored: {path} is not trusted", path = project.directory.display()));
    }
    notices
}
