//! `bcc-script.toml` (INTERFACES.md, "Configuration"), as written. What of it counts depends on trust.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use crate::engine::error::EngineError;
use crate::source::near::near_miss;

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
    /// `[rules]`: what `validate` treats otherwise than it does by itself.
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

/// What to do about what [`read`] says: the key that was meant, where it names an unknown one.
pub fn advice(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    if let (Some(rest), Some(unknown)) = (message.strip_prefix("unknown field "), names.next()) {
        let known: Vec<&str> = names.collect();
        if is_secret(unknown) && known.contains(&"api_key_env") {
            return "a key never stands in this file: put it into an environment variable, and write the name of that variable \
                    as `api_key_env = \"EXAMPLE_KEY\"`"
                .to_owned();
        }
        if let Some(near) = near_miss(unknown, known.iter().copied()).filter(|_| !rest.is_empty()) {
            return format!("did you mean `{near}`?");
        }
    }
    "docs/configuration.md lists what it may hold".to_owned()
}

/// Whether a key of this name holds a secret, wherever it stands.
fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let named = ["key", "token", "secret", "passw"].iter().any(|part| key.contains(part));
    named && !key.ends_with("_env") && !key.ends_with("_file") && !key.starts_with("max")
}

/// What no message may show of the line that `at` lies in: the values of keys that hold secrets.
pub fn concealed(text: &str, at: usize) -> Option<std::ops::Range<usize>> {
    let at = text.floor_char_boundary(at);
    let start = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(start..)?.lines().next()?;
    let of_secret = |equals: usize| {
        let key = line.get(..equals).unwrap_or_default().trim_end().trim_end_matches(['"', '\'']);
        let word = key.rsplit(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-')).next();
        word.is_some_and(is_secret)
    };
    let equals = line.match_indices('=').map(|(at, _)| at).find(|at| of_secret(*at))?;
    let value = line.get(equals + 1..)?;
    let begins = equals + 1 + value.find(|c: char| !c.is_whitespace() && !matches!(c, '"' | '\''))?;
    let ends = line.trim_end().trim_end_matches(['"', '\'']).len();
    (begins < ends).then(|| start + begins..start + ends)
}

/// Reads the text of a `bcc-script.toml`; `name` is what messages call the file.
///
/// # Errors
/// When it is no TOML, has unknown keys, or a value of a wrong type. The message has the line and the place, and shows no
/// value of a key that holds a secret.
pub fn parse(name: &str, text: &str) -> Result<Config, EngineError> {
    read(text).map_err(|error| {
        let mut shown = error.to_string();
        let hidden = error.span().and_then(|span| concealed(text, span.start)).and_then(|hidden| text.get(hidden));
        if let Some(hidden) = hidden {
            shown = shown.replace(hidden, &"*".repeat(hidden.chars().count()));
        }
        EngineError::usage(format!("{name} cannot be read:\n{}", shown.trim_end())).with_help(advice(error.message()))
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

    #[test]
    fn an_unknown_key_is_told_with_the_one_that_was_meant() {
        let advice_on = |text: &str| advice(read(text).unwrap_err().message());
        assert_eq!(advice_on("[project]\nschem = \"x\""), "did you mean `scheme`?");
        assert_eq!(advice_on("[rule]\n"), "did you mean `rules`?");
        assert_eq!(advice_on("[project]\ncolour = 1"), "docs/configuration.md lists what it may hold");
        let model = "[models.default]\nprovider = \"openai\"\n";
        assert_eq!(advice_on(&format!("{model}max_token = 5")), "did you mean `max_tokens`?");
        assert!(advice_on(&format!("{model}api_key = \"x\"")).contains("api_key_env = "));
    }

    #[test]
    fn no_message_shows_a_key_that_stands_in_the_file() {
        for line in ["api_key = \"geheim\" ", "api-key='geheim'", "\"token\" = \"geheim\" # geheim", "password=geheim"]
        {
            let text = format!("[models.default]\nprovider = \"openai\"\n{line}\nmodel = \"x\"\n");
            let error = parse("bcc-script.toml", &text).unwrap_err().to_string();
            assert!(!error.contains("geheim") && error.contains("line 3"), "{error}");
        }
        let inline = "models = { default = { provider = \"openai\", api_key = \"geheim\" } }";
        assert!(!parse("bcc-script.toml", inline).unwrap_err().to_string().contains("geheim"));
        for harmless in ["api_key_env = \"EXAMPLE\"", "max_tokens = 5", "model = \"x\""] {
            assert_eq!(concealed(harmless, 3), None, "{harmless}");
        }
    }
}
