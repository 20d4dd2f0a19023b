//! Creates the models of a project, from its configuration or from the environment.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::io;
use std::path::Path;
use std::sync::Arc;

use secrecy::SecretString;

use crate::api_key::api_key;
use crate::config::model_table::{ModelTable, ProviderKind};
use crate::config::places::table_header;
use crate::config::validation::OFFLINE;
use crate::config::values::TextOrEnv;
use crate::environment::Environment;
use crate::error::EngineError;
use crate::files::{read_bounded, read_configured};
use crate::models::chain::chain;
use crate::models::environment::environment_key;
use crate::models::shared::SharedModels;
use crate::project::{CONFIG_FILE, Project, absolute};
use crate::shell::quoted;
use bcc_lang::source::near::near_miss;
use bcc_llm::model::provider::{Provider, ReplyPolicy};
use bcc_llm::providers::configured::ConfiguredModel;
use bcc_llm::providers::fallback::Fallback;
use bcc_llm::providers::http::config::ServerConfig;
use bcc_llm::providers::offline::Offline;
use bcc_llm::providers::replay::Replay;

const MAX_REPLAY_BYTES: u64 = 64 * 1024 * 1024;

pub(crate) struct ModelFactory<'a> {
    /// The project with the configuration.
    pub project: &'a Project,
    /// The environment, which may contain keys.
    pub environment: &'a Environment,
    /// Connections and rate limiters that are shared with other sessions.
    pub shared: &'a SharedModels,
}

impl ModelFactory<'_> {
    /// The model of this name, with its fallbacks.
    ///
    /// # Errors
    /// When there is none, one of them cannot be created, or must not be used because the project is not trusted.
    pub(crate) fn make(&self, name: &str) -> Result<Arc<dyn Provider>, EngineError> {
        let first = self.single(name)?;
        let fallbacks = chain(&self.project.config, name).into_iter().skip(1).map(|other| {
            self.single(other).map_err(|error| {
                let help = error.help().cloned();
                let error = EngineError::usage(msg!("{error}; `{name}` may fall back to it"));
                if let Some(help) = help { error.with_help(help) } else { error }
            })
        });
        let fallbacks = fallbacks.collect::<Result<Vec<_>, _>>()?;
        Ok(if fallbacks.is_empty() { first } else { Arc::new(Fallback::new(first, fallbacks)) })
    }

    /// The model of this name, without fallbacks.
    fn single(&self, name: &str) -> Result<Arc<dyn Provider>, EngineError> {
        if let Some(table) = self.project.config.models.get(name) {
            return self.configured(name, table);
        }
        match name {
            OFFLINE => Ok(Arc::new(Offline)),
            "default" => match environment_key(&self.project.config, self.environment) {
                Some(key) => {
                    let server = key.server(self.environment)?;
                    Ok(Arc::new(ConfiguredModel {
                        provider: self.shared.server(&self.project.directory, name, key.kind, server)?,
                        rate_limiter: None,
                        price: None,
                        reply_policy: key.kind.reply_policy(),
                        max_tokens: None,
                    }))
                }
                None => Ok(Arc::new(Offline)),
            },
            _ => Err(self.unknown(name)),
        }
    }

    pub(crate) fn unknown(&self, name: &str) -> EngineError {
        let known = self.project.config.models.keys().map(String::as_str).chain([OFFLINE]);
        let help = match near_miss(name, known.clone()) {
            Some(near) => msg!("did you mean `{near}`?"),
            None => msg!(
                "available models are {} and `replay:FILE`; define others in {CONFIG_FILE} as {}",
                Message::names(known),
                table_header("models", name)
            ),
        };
        EngineError::usage(msg!("there is no model `{name}`")).with_help(help)
    }

    fn configured(&self, name: &str, table: &ModelTable) -> Result<Arc<dyn Provider>, EngineError> {
        let place = table_header("models", name);
        let directory = &self.project.directory;
        let provider: Arc<dyn Provider> = match table.provider {
            ProviderKind::Offline => Arc::new(Offline),
            ProviderKind::Replay => Arc::new(self.replay(name, table)?),
            ProviderKind::OpenAi | ProviderKind::Anthropic => {
                let server = self.server(name, table)?;
                let connected = self.shared.server(directory, name, table.provider, server);
                connected.map_err(|error| EngineError::usage(msg!("{place} in {CONFIG_FILE}: {error}")))?
            }
        };
        let limiter = self.shared.limiter(directory, name, table.limits());
        let (price, policy) = (table.price(), table.reply_policy());
        if limiter.is_none() && price.is_none() && policy == ReplyPolicy::default() {
            return Ok(provider);
        }
        let max_tokens = table.max_tokens;
        Ok(Arc::new(ConfiguredModel { provider, rate_limiter: limiter, price, reply_policy: policy, max_tokens }))
    }

    /// The replies of a model of provider `replay`.
    ///
    /// # Errors
    /// When they cannot be read, or are outside a project that is not trusted.
    pub(crate) fn replay(&self, name: &str, table: &ModelTable) -> Result<Replay, EngineError> {
        let place = table_header("models", name);
        let missing = || EngineError::usage(msg!("{place} in {CONFIG_FILE} needs `file`"));
        let written = Path::new(table.file.as_deref().ok_or_else(missing)?);
        let path = absolute(&self.project.directory.join(written));
        if !self.project.trusted && !path.starts_with(&self.project.directory) {
            return Err(EngineError::usage(msg!(
                "{place} in {CONFIG_FILE} refers to a file outside the project, and the project is not trusted"
            ))
            .with_help(msg!("run `bcc-script trust {}` once", quoted(&self.project.directory))));
        }
        parse_replay(&path, read_configured(&self.project.directory, written, MAX_REPLAY_BYTES))
    }

    /// The settings of the server of a model.
    ///
    /// # Errors
    /// When the project is not trusted, or a setting or a key is missing.
    pub(crate) fn server(&self, name: &str, table: &ModelTable) -> Result<ServerConfig, EngineError> {
        let place = table_header("models", name);
        if !self.project.trusted {
            return Err(self.untrusted(name));
        }
        let missing = |field: &str| EngineError::usage(msg!("{place} in {CONFIG_FILE} needs `{field}`"));
        let base_url = table.server().ok_or_else(|| missing("base_url"))?;
        let mut config = ServerConfig::new(base_url, table.model.as_deref().ok_or_else(|| missing("model"))?);
        config.api_key = self.key(name, table)?;
        config.temperature = table.temperature;
        config.max_tokens = table.max_tokens;
        config.extra = table.extra.clone();
        for (header, value) in &table.headers {
            config.headers.push((header.clone(), SecretString::from(self.resolve(name, header, value)?)));
        }
        config.proxy = table.proxy.as_ref().map(|proxy| self.resolve(name, "proxy", proxy)).transpose()?;
        config.timeout = table.timeout.unwrap_or(config.timeout);
        config.first_token_timeout = table.first_token_timeout.unwrap_or(config.first_token_timeout);
        config.idle_timeout = table.idle_timeout.unwrap_or(config.idle_timeout);
        config.structured = table.structured.unwrap_or_default();
        config.max_attempts = table.max_attempts.unwrap_or(config.max_attempts);
        Ok(config)
    }

    /// The error for a model of an untrusted project.
    pub(crate) fn untrusted(&self, name: &str) -> EngineError {
        let place = table_header("models", name);
        let directory = self.project.directory.display();
        EngineError::usage(msg!(
            "{place} in {CONFIG_FILE} would send the conversation to a server, but {directory} is not trusted"
        ))
        .with_help(msg!(
            "read the file; if it does what you want, run `bcc-script trust {}` once, or use `--trust` for this run",
            quoted(&self.project.directory)
        ))
    }

    /// The text of a setting, or the value of its environment variable.
    fn resolve(&self, name: &str, setting: &str, value: &TextOrEnv) -> Result<String, EngineError> {
        let place = table_header("models", name);
        match value {
            TextOrEnv::Text(text) => Ok(text.clone()),
            TextOrEnv::Env(variable) => {
                self.environment.get(variable).map(|value| value.trim().to_owned()).ok_or_else(|| {
                    EngineError::usage(msg!("{place}: the environment variable {variable} is not set"))
                        .with_help(msg!("set it to the value of `{setting}`, or remove `{setting}`"))
                })
            }
        }
    }

    fn key(&self, name: &str, table: &ModelTable) -> Result<Option<SecretString>, EngineError> {
        let (place, directory) = (table_header("models", name), &self.project.directory);
        let (variable, file) = (table.api_key_env.as_deref(), table.api_key_file.as_deref());
        api_key(directory, self.environment, &place, variable, file)
    }
}

pub fn replay(path: &Path) -> Result<Replay, EngineError> {
    parse_replay(path, read_bounded(path, MAX_REPLAY_BYTES))
}

fn parse_replay(path: &Path, bytes: io::Result<Vec<u8>>) -> Result<Replay, EngineError> {
    let shown = path.display().to_string();
    let bytes = bytes.map_err(|error| EngineError::usage(msg!("the replies file {shown} cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_REPLAY_BYTES {
        return Err(EngineError::usage(msg!("the replies file {shown} is larger than {MAX_REPLAY_BYTES} bytes")));
    }
    let text =
        String::from_utf8(bytes).map_err(|_| EngineError::usage(msg!("the replies file {shown} is not UTF-8 text")))?;
    Ok(Replay::parse(&shown, &text)?)
}
