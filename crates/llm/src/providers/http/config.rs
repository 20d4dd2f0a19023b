//! How a model's server is reached, and what is refused before anything is sent.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::fmt;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use crate::http::timeouts::TimeoutLimits;
use crate::model::error::ModelError;

/// The longest timeout that may be set; a longer one is a mistake of units.
pub const LONGEST_TIMEOUT: Duration = Duration::from_hours(24);

/// The settings of one model (docs/configuration.md). Its debug form shows no secret, and nothing that may hold one.
#[derive(Clone)]
pub struct ServerConfig {
    /// Where the API is, up to and with its version: `http://localhost:11434/v1`, with or without a trailing slash. A
    /// query stays, and counts as a secret.
    pub base_url: String,
    pub model: String,
    /// The API key; `None` or an empty one sends no `Authorization` header, as local servers want it,
    /// and no `x-api-key`.
    pub api_key: Option<SecretString>,
    /// The temperature where a request says none; `None` leaves it to the server.
    pub temperature: Option<f64>,
    /// The longest reply in tokens where a request says none; `None` leaves it to the server.
    pub max_tokens: Option<u32>,
    /// Headers that are sent besides the provider's own. Their values are secrets like the key.
    pub headers: Vec<(String, SecretString)>,
    pub extra: Map<String, Value>,
    /// The proxy that the server is reached through: an `http://` address, or `none`; `None` takes the one that the
    /// environment names, and none for a server on this machine.
    pub proxy: Option<String>,
    pub structured: Structured,
    pub timeout: Duration,
    /// The limit until the first piece of the reply (for a server that does not stream: until its answer begins).
    pub first_token_timeout: Duration,
    /// The limit of silence after that.
    pub idle_timeout: Duration,
    /// The most requests that one call may send; 1 tries once.
    pub max_attempts: u32,
    /// The longest that the first pause before a repetition may be; each later one may be twice as long.
    pub first_backoff: Duration,
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let extra: Vec<&str> = self.extra.keys().map(String::as_str).collect();
        f.debug_struct("ServerConfig")
            .field("model", &self.model)
            .field("has_key", &self.key().is_some())
            .field("temperature", &self.temperature)
            .field("max_tokens", &self.max_tokens)
            .field("headers", &names)
            .field("extra", &extra)
            .field("has_proxy", &self.proxy.is_some())
            .field("structured", &self.structured)
            .field("timeout", &self.timeout)
            .field("first_token_timeout", &self.first_token_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("max_attempts", &self.max_attempts)
            .field("first_backoff", &self.first_backoff)
            .finish_non_exhaustive()
    }
}

/// How a server is told what a reply must look like (`structured` in `bcc-script.toml`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Structured {
    /// The strictest form that the server takes, found by asking.
    #[default]
    Auto,
    /// `response_format` with the JSON Schema of the reply.
    JsonSchema,
    /// `response_format` that asks for any JSON object.
    JsonObject,
    /// A tool that the model must call, whose arguments are the reply.
    Tool,
    /// Not at all: only the prompt says it.
    Off,
}

impl Structured {
    pub const ALL: [Self; 5] = [Self::Auto, Self::JsonSchema, Self::JsonObject, Self::Tool, Self::Off];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::JsonSchema => "json_schema",
            Self::JsonObject => "json_object",
            Self::Tool => "tool",
            Self::Off => "off",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }
}

impl ServerConfig {
    /// The settings for a server and a model, with the defaults for everything else: 120 s in all, 60 s to the first
    /// token, 30 s of silence, 4 attempts, no key.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            api_key: None,
            temperature: None,
            max_tokens: None,
            headers: Vec::new(),
            extra: Map::new(),
            proxy: None,
            structured: Structured::Auto,
            timeout: Duration::from_secs(120),
            first_token_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(30),
            max_attempts: 4,
            first_backoff: Duration::from_millis(500),
        }
    }

    /// Refuses what cannot work.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        if self.model.trim().is_empty() {
            return Err(refuse("`model` is empty; write the model's name as the server knows it"));
        }
        if self.max_attempts == 0 {
            return Err(refuse("`max_attempts` must be at least 1"));
        }
        if !self.temperature.is_none_or(|temperature| temperature.is_finite() && temperature >= 0.0) {
            return Err(refuse("`temperature` must be a number, 0 or greater"));
        }
        let limits = [
            ("timeout", self.timeout),
            ("first_token_timeout", self.first_token_timeout),
            ("idle_timeout", self.idle_timeout),
        ];
        for (name, limit) in limits {
            if limit.is_zero() || limit > LONGEST_TIMEOUT {
                return Err(refuse(msg!("`{name}` must be greater than 0 and at most one day, such as \"60s\"")));
            }
        }
        Ok(())
    }

    /// How long an attempt may take. Before the first token it is always that limit which passes, even where the total is the shorter:
    /// that decides over a repetition.
    pub(crate) fn limits(&self) -> TimeoutLimits {
        TimeoutLimits {
            total: self.timeout,
            first: self.first_token_timeout.min(self.timeout),
            idle: self.idle_timeout,
        }
    }

    /// The key without the white space that files end with; `None` when there is none.
    pub(crate) fn key(&self) -> Option<&str> {
        self.api_key.as_ref().map(|key| key.expose_secret().trim()).filter(|key| !key.is_empty())
    }
}

pub(crate) fn refuse(message: impl Into<Message>) -> ModelError {
    ModelError::Config { message: message.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(base_url: &str) -> ServerConfig {
        ServerConfig::new(base_url, "qwen3")
    }

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        type Breaks = fn(&mut ServerConfig);
        let broken: [(&str, Breaks); 8] = [
            ("model", |config| config.model = "  ".into()),
            ("max_attempts", |config| config.max_attempts = 0),
            ("temperature", |config| config.temperature = Some(-0.1)),
            ("temperature", |config| config.temperature = Some(f64::NAN)),
            ("timeout", |config| config.timeout = Duration::ZERO),
            ("timeout", |config| config.timeout = Duration::MAX),
            ("first_token_timeout", |config| config.first_token_timeout = Duration::ZERO),
            ("idle_timeout", |config| config.idle_timeout = Duration::MAX),
        ];
        config("http://h").check().unwrap();
        for (name, breaks) in broken {
            let mut config = config("http://h");
            breaks(&mut config);
            assert!(config.check().unwrap_err().to_string().contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn a_total_shorter_than_the_first_token_limit_counts_as_that() {
        let limits = ServerConfig { timeout: Duration::from_secs(5), ..config("http://h") }.limits();
        assert_eq!((limits.total.as_secs(), limits.first.as_secs()), (5, 5));
        assert_eq!(config("http://h").limits().first.as_secs(), 60);
    }
}
