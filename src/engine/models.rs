//! Which model a session asks: command line over environment over the project's file over the built-in one
//! (INTERFACES.md, "Configuration").

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use secrecy::SecretString;

use crate::engine::config::ModelTable;
use crate::engine::environment::Environment;
use crate::engine::error::EngineError;
use crate::engine::files::read_bounded;
use crate::engine::project::{CONFIG_FILE, Project, absolute};
use crate::model::error::ModelError;
use crate::model::provider::Provider;
use crate::model::providers::http::config::ServerConfig;
use crate::model::providers::offline::Offline;
use crate::model::providers::openai::OpenAi;
use crate::model::providers::replay::Replay;
use crate::model::request::Purpose;
use crate::program::services::Models;
use crate::source::near::near_miss;

/// The largest file of written replies, in bytes.
const MOST_REPLAY_BYTES: u64 = 64 * 1024 * 1024;

/// The largest file that holds a key, in bytes.
const MOST_KEY_BYTES: u64 = 64 * 1024;

/// Where an API key alone is taken to belong when nothing says otherwise.
pub const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// The name under which a project configures the model of its monitors (LANGUAGE.md section 9).
const MONITOR: &str = "monitor";

/// The models of a project.
pub struct ModelSet {
    project: Project,
    environment: Environment,
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
    /// Whether nothing was configured, so that the offline responder stands in.
    pub nothing_configured: bool,
    /// What a resumed session must be told to ask for the same model again.
    pub asked: Option<String>,
}

/// Chooses the session's model and makes it, so that a mistake in the configuration is found before anything runs.
///
/// `asked` is `--model` (or what a stored session was started with), `script` the `model:` of the script.
///
/// # Errors
/// When the model does not exist, cannot be made, or must not be used because the project is not trusted.
pub fn choose(
    project: &Project,
    environment: &Environment,
    asked: Option<&str>,
    script: Option<&str>,
) -> Result<Chosen, EngineError> {
    let mut set = ModelSet {
        project: project.clone(),
        environment: environment.clone(),
        asked: None,
        script: script.map(str::to_owned),
        made: Mutex::default(),
    };
    let from_environment = environment.get("BCC_MODEL").filter(|name| set.names_a_model(name) || !set.has_key_alone());
    let asked = asked.or(from_environment);
    if let Some(asked) = asked {
        // A file of replies is named by whoever runs the session and by nobody else; it is found again from elsewhere.
        let replies = asked.strip_prefix("replay:").map(|file| absolute(Path::new(file)));
        let provider = match &replies {
            Some(file) => replay(file)?,
            None => set.make(asked)?,
        };
        let asked = replies.map_or_else(|| asked.to_owned(), |file| format!("replay:{}", file.display()));
        let name = provider.name().to_owned();
        set.asked = Some(provider);
        return Ok(Chosen { models: set, name, nothing_configured: false, asked: Some(asked) });
    }
    let wanted = script.unwrap_or("default");
    let nothing_configured =
        wanted == "default" && !set.project.config.models.contains_key("default") && !set.has_key_alone();
    let provider = set.make(wanted)?;
    let name = provider.name().to_owned();
    if set.project.config.models.contains_key(MONITOR) {
        set.make(MONITOR)?;
    }
    Ok(Chosen { models: set, name, nothing_configured, asked: None })
}

impl ModelSet {
    /// Whether a key stands in the environment and no file says what `default` is.
    fn has_key_alone(&self) -> bool {
        self.environment.get("OPENAI_API_KEY").is_some() && !self.project.config.models.contains_key("default")
    }

    fn names_a_model(&self, name: &str) -> bool {
        name == "offline" || name.starts_with("replay:") || self.project.config.models.contains_key(name)
    }

    fn make(&self, name: &str) -> Result<Arc<dyn Provider>, EngineError> {
        if let Some(made) = self.made.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(Arc::clone(made));
        }
        let provider = self.make_new(name)?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(made.entry(name.to_owned()).or_insert(provider)))
    }

    fn make_new(&self, name: &str) -> Result<Arc<dyn Provider>, EngineError> {
        if let Some(table) = self.project.config.models.get(name) {
            return self.configured(name, table);
        }
        match name {
            "offline" => Ok(Arc::new(Offline)),
            "default" if self.has_key_alone() => self.of_the_environment(),
            "default" => Ok(Arc::new(Offline)),
            _ => {
                let known = self.project.config.models.keys().map(String::as_str).chain(["offline"]);
                let help = match near_miss(name, known.clone()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!(
                        "there are {}, and `replay:FILE`; others are defined in {CONFIG_FILE} as [models.{name}]",
                        known.map(|known| format!("`{known}`")).collect::<Vec<_>>().join(", ")
                    ),
                };
                Err(EngineError::usage(format!("there is no model `{name}`")).with_help(help))
            }
        }
    }

    fn of_the_environment(&self) -> Result<Arc<dyn Provider>, EngineError> {
        let Some(model) = self.environment.get("BCC_MODEL") else {
            return Err(EngineError::usage("OPENAI_API_KEY is set, but nothing says which model to ask")
                .with_help("set BCC_MODEL to the server's name of the model, or use `--model offline`"));
        };
        let base_url = self.environment.get("OPENAI_BASE_URL").unwrap_or(OPENAI_BASE_URL);
        let mut config = ServerConfig::new(base_url, model);
        config.api_key = self.environment.get("OPENAI_API_KEY").map(|key| SecretString::from(key.to_owned()));
        Ok(Arc::new(OpenAi::new(config)?))
    }

    fn configured(&self, name: &str, table: &ModelTable) -> Result<Arc<dyn Provider>, EngineError> {
        let missing = |field: &str| EngineError::usage(format!("[models.{name}] in {CONFIG_FILE} needs `{field}`"));
        match table.provider.as_str() {
            "offline" => Ok(Arc::new(Offline)),
            "replay" => {
                let file = table.file.as_deref().ok_or_else(|| missing("file"))?;
                let path = absolute(&self.project.directory.join(file));
                if !self.project.trusted && !path.starts_with(&self.project.directory) {
                    return Err(EngineError::usage(format!(
                        "[models.{name}] in {CONFIG_FILE} names a file outside the project, which is not trusted"
                    ))
                    .with_help(format!("say `bcc-script trust {}` once", self.project.directory.display())));
                }
                replay(&path)
            }
            "openai" => {
                if !self.project.trusted {
                    let directory = self.project.directory.display();
                    return Err(EngineError::usage(format!(
                        "[models.{name}] in {CONFIG_FILE} would send the conversation to a server, and {directory} is not trusted"
                    ))
                    .with_help(format!(
                        "read the file; if it does what you want, say `bcc-script trust {directory}` once, or `--trust` for this run"
                    )));
                }
                let base_url = table.base_url.as_deref().unwrap_or(OPENAI_BASE_URL);
                let model = table.model.as_deref().ok_or_else(|| missing("model"))?;
                let mut config = ServerConfig::new(base_url, model);
                config.api_key = self.key(name, table)?;
                config.temperature = table.temperature;
                config.max_tokens = table.max_tokens;
                if let Some(timeout) = table.timeout {
                    config.timeout = timeout;
                }
                if let Some(timeout) = table.first_token_timeout {
                    config.first_token_timeout = timeout;
                }
                if let Some(timeout) = table.idle_timeout {
                    config.idle_timeout = timeout;
                }
                Ok(Arc::new(OpenAi::new(config)?))
            }
            "anthropic" => {
                Err(EngineError::usage(format!("[models.{name}]: this release has no `anthropic` provider yet"))
                    .with_help("use an OpenAI-compatible server, or `--model offline`"))
            }
            other => {
                let known = ["openai", "offline", "replay"];
                let error = EngineError::usage(format!("[models.{name}]: there is no provider `{other}`"));
                Err(error.with_help(match near_miss(other, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("providers are {}", known.join(", ")),
                }))
            }
        }
    }

    fn key(&self, name: &str, table: &ModelTable) -> Result<Option<SecretString>, EngineError> {
        if let Some(variable) = &table.api_key_env {
            return match self.environment.get(variable) {
                Some(key) => Ok(Some(SecretString::from(key.to_owned()))),
                None => {
                    Err(EngineError::usage(format!("[models.{name}]: the environment variable {variable} is not set"))
                        .with_help("set it to the API key, or remove `api_key_env` if the server needs none"))
                }
            };
        }
        let Some(file) = &table.api_key_file else { return Ok(None) };
        let path = self.project.directory.join(file);
        let bytes = read_bounded(&path, MOST_KEY_BYTES).map_err(|error| {
            EngineError::usage(format!("[models.{name}]: the key file {} cannot be read: {error}", path.display()))
        })?;
        if bytes.len() as u64 > MOST_KEY_BYTES {
            let message = format!("[models.{name}]: the key file {} is too large to be one", path.display());
            return Err(EngineError::usage(message));
        }
        // The bytes themselves must not appear in any message.
        let key = String::from_utf8(bytes)
            .map_err(|_| EngineError::usage(format!("[models.{name}]: the key file {} is no text", path.display())))?;
        Ok(Some(SecretString::from(key.trim().to_owned())))
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

fn replay(path: &Path) -> Result<Arc<dyn Provider>, EngineError> {
    let shown = path.display().to_string();
    let bytes = read_bounded(path, MOST_REPLAY_BYTES)
        .map_err(|error| EngineError::usage(format!("the replies {shown} cannot be read: {error}")))?;
    if bytes.len() as u64 > MOST_REPLAY_BYTES {
        return Err(EngineError::usage(format!("the replies {shown} are larger than {MOST_REPLAY_BYTES} bytes")));
    }
    let text =
        String::from_utf8(bytes).map_err(|_| EngineError::usage(format!("the replies {shown} are no UTF-8 text")))?;
    Ok(Arc::new(Replay::parse(&shown, &text)?))
}
