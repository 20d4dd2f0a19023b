//! Which model a session asks: command line over environment over the project's file over the built-in one
//! (INTERFACES.md, "Configuration").

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::config::faults::OFFLINE;
use crate::engine::environment::Environment;
use crate::engine::error::EngineError;
use crate::engine::models::make::{Maker, replay};
use crate::engine::models::shared::Shared;
use crate::engine::models::surroundings::key_alone;
use crate::engine::project::{Project, absolute};
use crate::model::error::ModelError;
use crate::model::provider::Provider;
use crate::model::request::Purpose;
use crate::program::services::Models;

/// The name under which a project configures the model of its monitors (LANGUAGE.md section 9).
pub const MONITOR: &str = "monitor";

/// The models of a project, for one session.
pub struct ModelSet {
    project: Project,
    environment: Environment,
    shared: Arc<Shared>,
    /// What the command line or the environment asked for: it stands for every model of the session.
    asked: Option<Arc<dyn Provider>>,
    /// The `model:` of the script, for what asks the session's model without being part of the script.
    script: Option<String>,
    made: Mutex<BTreeMap<String, Arc<dyn Provider>>>,
}

/// What a session runs on.
pub struct Chosen {
    /// The models.
    pub models: ModelSet,
    /// The name of the session's model, as events show it.
    pub name: String,
    /// Things to know about the choice.
    pub notices: Vec<String>,
    /// What a resumed session must be told to ask for the same model again.
    pub asked: Option<String>,
}

/// Who asks for which model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// `--model`.
    pub asked: Option<&'a str>,
    /// What a stored session was started with; the environment wins over it.
    pub stored: Option<&'a str>,
    /// The `model:` of the script.
    pub script: Option<&'a str>,
}

/// Chooses the session's model and makes it with all that stand in for it, so that a mistake in the configuration is found
/// before anything runs.
///
/// `shared` is what the sessions of an engine share.
///
/// # Errors
/// When the model does not exist, cannot be made, or must not be used because the project is not trusted.
pub fn choose(
    project: &Project,
    environment: &Environment,
    shared: &Arc<Shared>,
    wanted: Wanted<'_>,
) -> Result<Chosen, EngineError> {
    let mut set = ModelSet {
        project: project.clone(),
        environment: environment.clone(),
        shared: Arc::clone(shared),
        asked: None,
        script: wanted.script.map(str::to_owned),
        made: Mutex::default(),
    };
    let alone = key_alone(&project.config, environment);
    let from_environment = environment.get("BCC_MODEL").filter(|name| names_a_model(project, name) || alone.is_none());
    let asked = wanted.asked.or(from_environment).or(wanted.stored);
    if let Some(asked) = asked {
        // A file of replies is named by whoever runs the session and by nobody else; it is found again from elsewhere.
        let replies = asked.strip_prefix("replay:").map(|file| absolute(Path::new(file)));
        let provider = match &replies {
            Some(file) => Arc::new(replay(file)?),
            None => set.make(asked)?,
        };
        let asked = replies.map_or_else(|| asked.to_owned(), |file| format!("replay:{}", file.display()));
        let name = provider.name().to_owned();
        set.asked = Some(provider);
        return Ok(Chosen { models: set, name, notices: Vec::new(), asked: Some(asked) });
    }
    let wanted = wanted.script.unwrap_or("default");
    let mut notices = Vec::new();
    if wanted == "default" && !project.config.models.contains_key("default") {
        match alone {
            Some(alone) => notices.extend(alone.notice()),
            None => notices.push(NOTHING_CONFIGURED.to_owned()),
        }
    }
    let provider = set.make(wanted)?;
    let name = provider.name().to_owned();
    if project.config.models.contains_key(MONITOR) {
        set.make(MONITOR)?;
    }
    Ok(Chosen { models: set, name, notices, asked: None })
}

/// What is said where no model is configured.
const NOTHING_CONFIGURED: &str = "no model is configured: the built-in offline responder answers (no AI). \
                                  docs/configuration.md tells how to choose a model";

/// Whether this is the name of a model, wherever it is asked for.
pub fn names_a_model(project: &Project, name: &str) -> bool {
    name == OFFLINE || name.starts_with("replay:") || project.config.models.contains_key(name)
}

impl ModelSet {
    fn make(&self, name: &str) -> Result<Arc<dyn Provider>, EngineError> {
        if let Some(made) = self.made.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(Arc::clone(made));
        }
        let maker = Maker { project: &self.project, environment: &self.environment, shared: &self.shared };
        let provider = maker.make(name)?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(made.entry(name.to_owned()).or_insert(provider)))
    }
}

impl Models for ModelSet {
    fn provider(&self, name: Option<&str>) -> Result<Arc<dyn Provider>, ModelError> {
        if let Some(asked) = &self.asked {
            return Ok(Arc::clone(asked));
        }
        self.make(name.unwrap_or("default")).map_err(|error| ModelError::Config { message: error.to_string() })
    }

    fn monitor(&self, action_id: &str) -> Option<Arc<dyn Provider>> {
        let named = self.project.config.models.contains_key(MONITOR).then_some(MONITOR);
        // That it can be made was settled when the session's model was chosen.
        let provider = self.provider(named.or(self.script.as_deref())).ok()?;
        provider.answers(Purpose::Monitor, action_id).then_some(provider)
    }
}
