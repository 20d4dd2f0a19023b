//! `bcc-script.toml` (INTERFACES.md, "Configuration"), as written. What of it counts depends on trust.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::engine::error::EngineError;

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `[project]`
    #[serde(default)]
    pub project: ProjectTable,
    /// `[models.<name>]`
    #[serde(default)]
    pub models: BTreeMap<String, ModelTable>,
    /// `[rules]`: read by `validate`, which comes with a later release.
    #[serde(default)]
    pub rules: BTreeMap<String, String>,
}

/// `[project]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectTable {
    /// The default template scheme.
    pub scheme: Option<String>,
    /// What scripts of the project may do outside the conversation; no kind of this release asks for any of it.
    #[serde(default)]
    pub allow: Vec<String>,
}

/// `[models.<name>]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelTable {
    /// `openai`, `offline` or `replay`.
    pub provider: String,
    /// Where an OpenAI-compatible server listens.
    pub base_url: Option<String>,
    /// The server's name of the model.
    pub model: Option<String>,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// The file that holds the key, relative to the project.
    pub api_key_file: Option<String>,
    /// The file of replies, for `replay`, relative to the project.
    pub file: Option<String>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// The most tokens of one reply.
    pub max_tokens: Option<u32>,
    /// For a whole attempt.
    #[serde(default, deserialize_with = "duration")]
    pub timeout: Option<Duration>,
    /// For the first piece of a reply.
    #[serde(default, deserialize_with = "duration")]
    pub first_token_timeout: Option<Duration>,
    /// Between two pieces of a reply.
    #[serde(default, deserialize_with = "duration")]
    pub idle_timeout: Option<Duration>,
    /// Models to ask when this one fails: read, but this release does not fall back yet.
    #[serde(default)]
    pub fallback: Vec<String>,
}

fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map(Some).map_err(|error| {
        serde::de::Error::custom(format!("`{text}` is no duration ({error}); write for example \"60s\" or \"2m\""))
    })
}

/// Reads the text of a `bcc-script.toml`.
///
/// # Errors
/// As [`parse`], with the place as bytes of the text.
pub fn read(text: &str) -> Result<Config, toml::de::Error> {
    toml::from_str(text)
}

/// Where in a `bcc-script.toml` the value of `key` in `[table]` stands, in bytes.
pub fn place(text: &str, table: &str, key: &str) -> Option<std::ops::Range<usize>> {
    let tables: BTreeMap<String, BTreeMap<String, toml::Spanned<toml::Value>>> = toml::from_str(text).ok()?;
    tables.get(table)?.get(key).map(toml::Spanned::span)
}

/// Reads the text of a `bcc-script.toml`; `name` is what messages call the file.
///
/// # Errors
/// When it is no TOML, has unknown keys, or a value of a wrong type. The message has the line and the place.
pub fn parse(name: &str, text: &str) -> Result<Config, EngineError> {
    read(text).map_err(|error| {
        EngineError::usage(format!("{name} cannot be read:\n{}", error.to_string().trim_end()))
            .with_help("docs/configuration.md lists what it may hold")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_configuration_is_read() {
        let text = r#"
            [project]
            scheme = "english"
            allow = ["exec"]
            [models.default]
            provider = "openai"
            base_url = "http://localhost:11434/v1"
            model = "qwen3"
            api_key_env = "OPENAI_API_KEY"
            temperature = 0.4
            timeout = "60s"
            first_token_timeout = "20s"
            idle_timeout = "1m 30s"
            fallback = ["local"]
            [rules]
            unused-variable = "off"
        "#;
        let config = parse("bcc-script.toml", text).unwrap();
        let model = config.models.get("default").unwrap();
        assert_eq!(model.idle_timeout, Some(Duration::from_secs(90)));
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        for (text, part) in [
            ("[project]\nschem = \"x\"", "schem"),
            ("[models.default]\nprovider = \"openai\"\ntimeout = \"soon\"", "`soon` is no duration"),
            ("[models.default]\nmodel = \"x\"", "provider"),
            ("[project", "line 1"),
        ] {
            let message = parse("bcc-script.toml", text).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
