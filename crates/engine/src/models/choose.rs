//! Selects the model of a session: from the command line, then the environment, then the configuration of the project, then the
//! built-in responder (docs/configuration.md).

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::validation::OFFLINE;
use crate::environment::Environment;
use crate::error::EngineError;
use crate::models::environment::environment_key;
use crate::models::factory::{ModelFactory, replay};
use crate::models::shared::SharedModels;
use crate::project::{Project, absolute};
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::Provider;
use bcc_llm::model::request::Purpose;
use bcc_runtime::program::models::ModelProviders;

/// The name under which a project configures the model of its monitors (docs/monitors.md).
pub(crate) const MONITOR: &str = "monitor";

pub struct ModelSet {
    project: Project,
    environment: Environment,
    shared: Arc<SharedModels>,
    /// The model of the command line or the environment. It replaces all models of the session.
    requested: Option<Arc<dyn Provider>>,
    /// The `model:` of the script, for callers outside the script, such as monitors.
    script: Option<String>,
    providers: Mutex<BTreeMap<String, Arc<dyn Provider>>>,
}

/// The models of a session.
pub struct ChosenModel {
    pub models: ModelSet,
    /// The name of the session's model in events.
    pub name: String,
    pub notices: Vec<Message>,
    /// The requested model, stored so that a resumed session uses it again.
    pub requested: Option<String>,
    /// Whether the offline responder is used because no model is configured.
    pub is_unconfigured: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct RequestedModel<'a> {
    pub requested: Option<&'a str>,
    /// The model that a stored session was started with. The environment has priority over it.
    pub stored: Option<&'a str>,
    pub script: Option<&'a str>,
}

/// Selects the model of a session, and creates it with its fallbacks, so that configuration errors are found before anything
/// runs.
///
/// `shared` belongs to all sessions of an engine.
///
/// # Errors
/// When the model does not exist, cannot be created, or must not be used because the project is not trusted.
pub fn choose(
    project: &Project,
    environment: &Environment,
    shared: &Arc<SharedModels>,
    wanted: RequestedModel<'_>,
) -> Result<ChosenModel, EngineError> {
    let mut set = ModelSet {
        project: project.clone(),
        environment: environment.clone(),
        shared: Arc::clone(shared),
        requested: None,
        script: wanted.script.map(str::to_owned),
        providers: Mutex::default(),
    };
    let key = environment_key(&project.config, environment);
    let from_environment = environment.get("BCC_MODEL").filter(|name| names_a_model(project, name) || key.is_none());
    let requested = wanted.requested.or(from_environment).or(wanted.stored);
    if let Some(requested) = requested {
        // Only the person who runs the session can name a replies file. The path is made absolute, to be found when it is resumed.
        let replies = requested.strip_prefix("replay:").map(|file| absolute(Path::new(file)));
        let provider = match &replies {
            Some(file) => Arc::new(replay(file)?),
            None => set.make(requested)?,
        };
        let requested = replies.map_or_else(|| requested.to_owned(), |file| format!("replay:{}", file.display()));
        let name = provider.name().to_owned();
        set.requested = Some(provider);
        let (requested, notices) = (Some(requested), Vec::new());
        return Ok(ChosenModel { models: set, name, notices, requested, is_unconfigured: false });
    }
    let wanted = wanted.script.unwrap_or("default");
    let (mut notices, mut is_unconfigured) = (Vec::new(), false);
    if wanted == "default" && !project.config.models.contains_key("default") {
        match key {
            Some(key) => notices.extend(key.notice()),
            None => {
                notices.push(NOTHING_CONFIGURED.into());
                is_unconfigured = true;
            }
        }
    }
    let provider = set.make(wanted)?;
    let name = provider.name().to_owned();
    if project.config.models.contains_key(MONITOR) {
        set.make(MONITOR)?;
    }
    Ok(ChosenModel { models: set, name, notices, requested: None, is_unconfigured })
}

const NOTHING_CONFIGURED: &str = "no model is configured: the built-in offline responder answers (no AI); to use a model, set BCC_MODEL and an API key such as OPENAI_API_KEY";

/// Whether this is the name of a model.
pub(crate) fn names_a_model(project: &Project, name: &str) -> bool {
    name == OFFLINE || name.starts_with("replay:") || project.config.models.contains_key(name)
}

impl ModelSet {
    fn make(&self, name: &str) -> Result<Arc<dyn Provider>, EngineError> {
        if let Some(provider) = self.providers.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(Arc::clone(provider));
        }
        let factory = ModelFactory { project: &self.project, environment: &self.environment, shared: &self.shared };
        let provider = factory.make(name)?;
        let mut providers = self.providers.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(providers.entry(name.to_owned()).or_insert(provider)))
    }
}

impl ModelProviders for ModelSet {
    fn provider(&self, name: Option<&str>) -> Result<Arc<dyn Provider>, ModelError> {
        if let Some(requested) = &self.requested {
            return Ok(Arc::clone(requested));
        }
        self.make(name.unwrap_or("default")).map_err(|error| ModelError::Config { message: error.to_message() })
    }

    fn monitor(&self, action_id: &str) -> Option<Arc<dyn Provider>> {
        let named = self.project.config.models.contains_key(MONITOR).then_some(MONITOR);
        // It was already created when the session's model was selected.
        let provider = self.provider(named.or(self.script.as_deref())).ok()?;
        provider.answers(Purpose::Monitor, action_id).then_some(provider)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;
    use bcc_llm::model::provider::NoLiveOutput;
    use bcc_llm::model::request::{ModelRequest, Task};

    /// A project with this configuration and a replies file with a delay of one second per reply.
    fn project(home: &Path, configuration: &str) -> Project {
        std::fs::write(home.join("bcc-script.toml"), configuration).unwrap();
        std::fs::write(home.join("slow.yaml"), "replies:\n  ask:\n    - { $after_ms: 1000, reply: hello }\n").unwrap();
        Project::in_directory(home.to_path_buf(), true, &Environment::default()).unwrap()
    }

    fn request() -> ModelRequest {
        let task = Task {
            kind: "ai_ask".into(),
            action_id: "ask".into(),
            path: "t/ask".into(),
            round: 1,
            opening: true,
            ..Task::default()
        };
        ModelRequest { messages: Vec::new(), schema: None, temperature: None, max_tokens: None, task }
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_of_one_engine_share_a_rate_limiter() {
        const SESSIONS: u64 = 40;
        let home = tempfile::tempdir().unwrap();
        let table = "[models.default]\nprovider = \"replay\"\nfile = \"slow.yaml\"\nconcurrency = 4\n";
        let project = project(home.path(), table);
        let shared = Arc::<SharedModels>::default();
        let start = Instant::now();
        let mut sessions = tokio::task::JoinSet::new();
        for _ in 0..SESSIONS {
            let chosen = choose(&project, &Environment::default(), &shared, RequestedModel::default()).unwrap();
            sessions.spawn(async move {
                let provider = chosen.models.provider(None).unwrap();
                provider.complete(&request(), &mut NoLiveOutput).await.unwrap().text
            });
        }
        let replies = sessions.join_all().await;
        assert!(replies.iter().all(|reply| reply == "hello") && replies.len() == SESSIONS as usize);
        assert_eq!(start.elapsed(), Duration::from_secs(SESSIONS / 4));
    }

    #[test]
    fn a_configuration_error_anywhere_in_a_chain_is_found_before_anything_runs() {
        let home = tempfile::tempdir().unwrap();
        let server = "provider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://localhost:1\"\n";
        let text = format!(
            "[models.default]\n{server}fallback = [\"second\"]\n[models.second]\n{server}fallback = [\"third\"]\n\
             [models.third]\n{server}api_key_env = \"THIRD_KEY\"\n"
        );
        let project = project(home.path(), &text);
        let choose = |environment: &Environment| {
            choose(&project, environment, &Arc::default(), RequestedModel::default()).map(|chosen| chosen.name)
        };
        let error = choose(&Environment::default()).unwrap_err();
        let expected = "[models.third]: the environment variable THIRD_KEY is not set; `default` may fall back to it";
        assert_eq!(error.to_string(), expected);
        assert!(error.help().unwrap().to_string().contains("set it to the API key"));
        assert_eq!(choose(&Environment::of([("THIRD_KEY", "k".to_owned())])).unwrap(), "openai:m");
    }

    #[test]
    fn the_reply_policy_of_a_model_is_that_of_its_table() {
        let home = tempfile::tempdir().unwrap();
        let table = "[models.default]\nprovider = \"offline\"\nrepair = true\nreask = 2\nfallback = [\"plain\"]\n\
                     [models.plain]\nprovider = \"offline\"\n";
        let configured = project(home.path(), table);
        let chosen = choose(&configured, &Environment::default(), &Arc::default(), RequestedModel::default()).unwrap();
        let policy = |name| chosen.models.provider(Some(name)).unwrap().reply_policy();
        assert!(policy("default").repair && policy("default").reask == 2);
        assert!(!policy("plain").repair && policy("plain").reask == 0);
        // A real model is asked again once, with a table and without.
        let home = tempfile::tempdir().unwrap();
        let server = project(home.path(), "[models.default]\nprovider = \"openai\"\nmodel = \"m\"\n");
        let key = Environment::of([("ANTHROPIC_API_KEY", "k".to_owned()), ("BCC_MODEL", "m".to_owned())]);
        let home = tempfile::tempdir().unwrap();
        let plain = project(home.path(), "");
        for (of, environment) in [(&server, &Environment::default()), (&plain, &key)] {
            let wanted = RequestedModel { requested: Some("default"), ..RequestedModel::default() };
            let chosen = choose(of, environment, &Arc::default(), wanted).unwrap();
            let policy = chosen.models.provider(None).unwrap().reply_policy();
            assert!(!policy.repair && policy.reask == 1, "{}", chosen.name);
        }
    }

    #[test]
    fn the_environment_has_priority_over_the_model_of_a_stored_session() {
        let home = tempfile::tempdir().unwrap();
        let project = project(home.path(), "[models.local]\nprovider = \"replay\"\nfile = \"slow.yaml\"\n");
        let name = |variables: Vec<(&'static str, &str)>, wanted| {
            let environment = Environment::of(variables.into_iter().map(|(name, value)| (name, value.to_owned())));
            choose(&project, &environment, &Arc::default(), wanted).unwrap().name
        };
        let stored = RequestedModel { stored: Some("offline"), ..RequestedModel::default() };
        assert_eq!(name(vec![], stored), "offline");
        assert_eq!(name(vec![("BCC_MODEL", "local")], stored), "replay");
        assert_eq!(
            name(vec![("BCC_MODEL", "local")], RequestedModel { requested: Some("offline"), ..stored }),
            "offline"
        );
        // With only an API key, BCC_MODEL is the server's name of the model, also when a session is resumed.
        let key = vec![("OPENAI_API_KEY", "k"), ("BCC_MODEL", "gpt")];
        assert_eq!(name(key, RequestedModel::default()), "openai:gpt");
    }
}
