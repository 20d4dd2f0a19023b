//! The settings of a model server, and their validation.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::fmt;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use crate::http::timeouts::TimeoutLimits;
use crate::model::error::ModelError;

/// The maximum timeout; a longer one is probably a mistake in the unit.
pub const MAX_TIMEOUT: Duration = Duration::from_hours(24);

/// The settings of one model (docs/configuration.md). Its debug output contains no secrets, and no fields that may contain one.
#[derive(Clone)]
pub struct ServerConfig {
    /// The address of the API including its version: `http://localhost:11434/v1`, with or without a trailing slash. A query is kept and
    /// treated as a secret.
    pub base_url: String,
    pub model: String,
    /// The API key. With `None` or an empty key, no `Authorization` or `x-api-key` header is sent, as for local servers.
    pub api_key: Option<SecretString>,
    /// The temperature if a request has none; `None` uses the default of the server.
    pub temperature: Option<f64>,
    /// The token limit of a reply if a request has none; `None` uses the default of the server.
    pub max_tokens: Option<u32>,
    /// Additional headers. Their values are secret, like the key.
    pub headers: Vec<(String, SecretString)>,
    pub extra: Map<String, Value>,
    /// The proxy: an `http://` address, or `none`. `None` uses the proxy of the environment, except for a server on the local machine.
    pub proxy: Option<String>,
    pub structured: Structured,
    pub timeout: Duration,
    /// The limit until the first piece of the reply, or until the start of the response if the server does not stream.
    pub first_token_timeout: Duration,
    /// The limit without data after that.
    pub idle_timeout: Duration,
    /// The maximum number of requests of a call; 1 means no retries.
    pub max_attempts: u32,
    /// The upper bound of the pause before the first retry; it doubles with each retry.
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

/// How a server is told the schema of a reply (`structured` in `bcc-script.toml`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Structured {
    /// The strictest form that the server supports, determined by trying.
    #[default]
    Auto,
    /// `response_format` with the JSON Schema of the reply.
    JsonSchema,
    /// `response_format` for any JSON object.
    JsonObject,
    /// A tool that the model must call, whose arguments are the reply.
    Tool,
    /// Not at all: the schema is only in the prompt.
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
    /// The settings for a server and a model, with the defaults for all others: 120 s in total, 60 s until the first token, 30 s idle,
    /// 4 attempts, no key.
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

    /// Validates the settings.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        if self.model.trim().is_empty() {
            return Err(config_error("`model` is empty; write the model's name as the server knows it"));
        }
        if self.max_attempts == 0 {
            return Err(config_error("`max_attempts` must be at least 1"));
        }
        if !self.temperature.is_none_or(|temperature| temperature.is_finite() && temperature >= 0.0) {
            return Err(config_error("`temperature` must be a number, 0 or greater"));
        }
        let limits = [
            ("timeout", self.timeout),
            ("first_token_timeout", self.first_token_timeout),
            ("idle_timeout", self.idle_timeout),
        ];
        for (name, limit) in limits {
            if limit.is_zero() || limit > MAX_TIMEOUT {
                return Err(config_error(msg!("`{name}` must be greater than 0 and at most one day, such as \"60s\"")));
            }
        }
        Ok(())
    }

    /// The timeouts of an attempt. Before the first token, the first-token limit expires even if the total limit is shorter, because it
    /// determines whether the request is retried.
    pub(crate) fn limits(&self) -> TimeoutLimits {
        TimeoutLimits {
            total: self.timeout,
            first: self.first_token_timeout.min(self.timeout),
            idle: self.idle_timeout,
        }
    }

    /// The key without surrounding white space, such as the line end of a file; `None` if it is empty.
    pub(crate) fn key(&self) -> Option<&str> {
        self.api_key.as_ref().map(|key| key.expose_secret().trim()).filter(|key| !key.is_empty())
    }
}

pub(crate) fn config_error(message: impl Into<Message>) -> ModelError {
    ModelError::Config { message: message.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(base_url: &str) -> ServerConfig {
        ServerConfig::new(base_url, "qwen3")
    }

    #[test]
    fn invalid_settings_are_rejected_with_their_name() {
        type Change = fn(&mut ServerConfig);
        let cases: [(&str, Change); 8] = [
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
        for (name, change) in cases {
            let mut config = config("http://h");
            change(&mut config);
            assert!(config.check().unwrap_err().to_string().contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn a_shorter_total_limit_also_limits_the_first_token() {
        let limits = ServerConfig { timeout: Duration::from_secs(5), ..config("http://h") }.limits();
        assert_eq!((limits.total.as_secs(), limits.first.as_secs()), (5, 5));
        assert_eq!(config("http://h").limits().first.as_secs(), 60);
    }
}
