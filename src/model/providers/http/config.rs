//! How a model's server is reached, and what is refused before anything is sent.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use crate::model::error::ModelError;

/// The longest timeout that may be set; a longer one is a mistake of units.
pub const LONGEST_TIMEOUT: Duration = Duration::from_hours(24);

/// The settings of one model (INTERFACES.md, "Configuration").
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where the API is, up to and with its version: `http://localhost:11434/v1`, with or without a trailing slash.
    pub base_url: String,
    /// The model's name as the server knows it.
    pub model: String,
    /// The API key; `None` or an empty one sends no `Authorization` header, as local servers want it.
    pub api_key: Option<SecretString>,
    /// The temperature where a request says none; `None` leaves it to the server.
    pub temperature: Option<f64>,
    /// The longest reply in tokens where a request says none; `None` leaves it to the server.
    pub max_tokens: Option<u32>,
    /// Headers that are sent besides the provider's own. Their values are secrets like the key.
    pub headers: Vec<(String, SecretString)>,
    /// Fields that are merged into the body of each request.
    pub extra: Map<String, Value>,
    /// The proxy that the server is reached through: an `http://` address, or `none`; `None` takes the one that the
    /// environment names, and none for a server on this machine.
    pub proxy: Option<String>,
    /// How the server is told what a reply must look like.
    pub structured: Structured,
    /// The limit of one attempt from request to end.
    pub timeout: Duration,
    /// The limit until the first piece of the reply (for a server that does not stream: until its answer begins).
    pub first_token_timeout: Duration,
    /// The limit of silence after that.
    pub idle_timeout: Duration,
    /// The most requests that one call may send; 1 tries once.
    pub max_attempts: u32,
    /// The middle of the first pause before a repetition; each later one doubles it.
    pub first_backoff: Duration,
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
    /// Every form, in the order in which messages list them.
    pub const ALL: [Self; 5] = [Self::Auto, Self::JsonSchema, Self::JsonObject, Self::Tool, Self::Off];

    /// The name in `bcc-script.toml`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::JsonSchema => "json_schema",
            Self::JsonObject => "json_object",
            Self::Tool => "tool",
            Self::Off => "off",
        }
    }

    /// The form with this name.
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
    ///
    /// # Errors
    /// [`ModelError::Config`] names the setting and what to write.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        if self.model.trim().is_empty() {
            return Err(refuse("`model` is empty; write the model's name as the server knows it"));
        }
        if self.max_attempts == 0 {
            return Err(refuse("`max_attempts` must be at least 1"));
        }
        if !self.temperature.is_none_or(|temperature| temperature.is_finite() && temperature >= 0.0) {
            return Err(refuse("`temperature` must be a number from 0 up"));
        }
        let limits = [
            ("timeout", self.timeout),
            ("first_token_timeout", self.first_token_timeout),
            ("idle_timeout", self.idle_timeout),
        ];
        for (name, limit) in limits {
            if limit.is_zero() || limit > LONGEST_TIMEOUT {
                return Err(refuse(&format!("`{name}` must be more than 0 and at most a day, as in \"60s\"")));
            }
        }
        Ok(())
    }

    /// The address that requests go to. A `base_url` that already ends in `chat/completions` is taken as it is; a query
    /// stays.
    ///
    /// # Errors
    /// [`ModelError::Config`] when `base_url` is no http or https address, or carries a user name or password.
    pub(crate) fn endpoint(&self) -> Result<Url, ModelError> {
        // The address itself is left out of the messages: it may carry a key where none belongs.
        let url = Url::parse(self.base_url.trim()).map_err(|error| {
            refuse(&format!("`base_url` is no address ({error}); write one like http://localhost:11434/v1"))
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse(&format!("`base_url` must begin with http:// or https://, not {}:", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("`base_url` must not carry a user name or password; use `api_key_env`"));
        }
        let mut endpoint = url;
        endpoint.set_fragment(None);
        if !endpoint.path().trim_end_matches('/').ends_with("/chat/completions") {
            endpoint
                .path_segments_mut()
                .map_err(|()| refuse("`base_url` is no address; write one like http://localhost:11434/v1"))?
                .pop_if_empty()
                .extend(["chat", "completions"]);
        }
        Ok(endpoint)
    }

    /// The `Authorization` header, marked sensitive.
    ///
    /// # Errors
    /// [`ModelError::Config`] when the key holds what no header can carry.
    pub(crate) fn authorization(&self) -> Result<Option<HeaderValue>, ModelError> {
        let Some(key) = self.key() else { return Ok(None) };
        let mut header = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
            refuse("the API key holds characters that no key has; was the right file or variable read?")
        })?;
        header.set_sensitive(true);
        Ok(Some(header))
    }

    /// The key without the white space that files end with; `None` when there is none.
    pub(crate) fn key(&self) -> Option<&str> {
        self.api_key.as_ref().map(|key| key.expose_secret().trim()).filter(|key| !key.is_empty())
    }
}

/// Host, and port when the address names one: all that errors say about where a server is.
pub(crate) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Whether the address is this machine, which no proxy can reach.
pub(crate) fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.ends_with(".localhost") || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn refuse(message: &str) -> ModelError {
    ModelError::Config { message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(base_url: &str) -> ServerConfig {
        ServerConfig::new(base_url, "qwen3")
    }

    #[test]
    fn the_endpoint_is_found_from_every_spelling_of_the_base() {
        let table = [
            ("http://localhost:11434/v1", "http://localhost:11434/v1/chat/completions"),
            ("http://localhost:11434/v1/", "http://localhost:11434/v1/chat/completions"),
            (" https://api.example.com ", "https://api.example.com/chat/completions"),
            ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
            ("https://h/v1/chat/completions/", "https://h/v1/chat/completions/"),
            ("https://h/openai?api-version=1#x", "https://h/openai/chat/completions?api-version=1"),
        ];
        for (base_url, expected) in table {
            assert_eq!(config(base_url).endpoint().unwrap().as_str(), expected, "{base_url}");
        }
    }

    #[test]
    fn an_address_that_cannot_work_is_refused_without_repeating_it() {
        for base_url in
            ["", "localhost:11434/v1", "ftp://h/secret", "/v1", "http://", "http://u:secret@h/v1", "file:///x"]
        {
            let error = config(base_url).endpoint().unwrap_err();
            assert!(matches!(error, ModelError::Config { .. }), "{base_url}");
            let message = error.to_string();
            assert!(message.contains("`base_url`") && !message.contains("secret"), "{message}");
        }
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
    fn a_key_is_trimmed_and_one_that_is_no_key_is_refused() {
        let with = |key: &str| ServerConfig { api_key: Some(key.into()), ..config("http://h") };
        assert_eq!(with("sk-1\n").authorization().unwrap().unwrap(), "Bearer sk-1");
        assert_eq!(with(" \n").authorization().unwrap(), None);
        let error = with("-----BEGIN\nsecret").authorization().unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
        assert!(!format!("{:?}", with("sk-1")).contains("sk-1"));
        assert!(!format!("{:?}", with("sk-1").authorization()).contains("sk-1"));
    }

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        for local in
            ["http://localhost:1", "http://127.0.0.1", "http://127.9.9.9", "http://[::1]:8080", "http://a.localhost"]
        {
            assert!(is_local(&Url::parse(local).unwrap()), "{local}");
        }
        for far in ["http://localhost.example.com", "http://10.0.0.1", "http://[2001:db8::1]"] {
            assert!(!is_local(&Url::parse(far).unwrap()), "{far}");
        }
    }
}
