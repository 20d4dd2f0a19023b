//! `bcc-script.toml` (docs/configuration.md), as written. What of it counts depends on trust.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::config::kinds::KindTable;
use crate::config::model_table::ModelTable;
use crate::config::places::ConfigSource;
use crate::config::secrets::{is_secret, without};
use crate::config::server_table::ServerTable;
use crate::config::validation::faults;
use crate::config::values::message_of;
use crate::error::EngineError;
use bcc_lang::message::library::library;
use bcc_lang::source::near::near_miss;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(default)]
    pub project: ProjectTable,
    #[serde(default)]
    pub models: BTreeMap<String, ModelTable>,
    /// `[rules]`: what `validate` treats otherwise than it does by itself.
    #[serde(default)]
    pub rules: BTreeMap<String, String>,
    /// `[kinds.<name>]`: kinds of action that the project makes itself.
    #[serde(default)]
    pub kinds: BTreeMap<String, KindTable>,
    /// `[behavior_servers.<name>]`: servers that send behaviors.
    #[serde(default)]
    pub behavior_servers: BTreeMap<String, ServerTable>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectTable {
    pub scheme: Option<String>,
    /// What scripts of the project may do outside the conversation: `exec`, `command`.
    #[serde(default)]
    pub allow: Vec<String>,
}

pub fn read(text: &str) -> Result<Config, toml::de::Error> {
    toml::from_str(text)
}

/// Where in a `bcc-script.toml` the value of `key` in `[table]` stands, in bytes.
pub fn place(text: &str, table: &str, key: &str) -> Option<std::ops::Range<usize>> {
    let tables: BTreeMap<String, BTreeMap<String, toml::Spanned<toml::Value>>> = toml::from_str(text).ok()?;
    tables.get(table)?.get(key).map(toml::Spanned::span)
}

/// Where a byte of a text stands, both counted from 1; columns in characters.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..text.floor_char_boundary(at)).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

/// What [`read`] says of `text`, without what the file holds.
pub fn message(error: &toml::de::Error, text: &str) -> Message {
    match message_of(error.message()) {
        Some(mut message) => {
            message.change_texts(&mut |part| *part = without(part, text));
            message
        }
        None => library(&cleaned(error.message(), text)),
    }
}

/// The same for a text of the library: a value that stands where another thing belongs is not repeated.
fn cleaned(message: &str, text: &str) -> String {
    let shown = without(message, text);
    match shown.split_once("string \"") {
        Some((begin, rest)) if begin.ends_with(": ") => match rest.rsplit_once("\", expected ") {
            Some((_, expected)) => format!("{begin}string, expected {expected}"),
            None => shown,
        },
        _ => shown,
    }
}

/// What to do about what [`read`] says: the key or the name that was meant, where it names an unknown one.
pub fn advice(error: &toml::de::Error) -> Message {
    let message = message_of(error.message()).map_or_else(|| error.message().to_owned(), |message| message.to_string());
    let mut names = message.split('`').skip(1).step_by(2);
    let is_name = message.starts_with("there is no ");
    if let (true, Some(unknown)) = (is_name || message.starts_with("unknown field "), names.next()) {
        let known: Vec<&str> = names.collect();
        let near = near_miss(unknown, known.iter().copied());
        let no_key_is_near = near.is_none_or(|near| near.starts_with("api_key"));
        if !is_name && is_secret(unknown) && known.contains(&"api_key_env") && no_key_is_near {
            return msg!(
                "keys must not be stored in this file: put the key in an environment variable, and write the name of that variable as `api_key_env = \"EXAMPLE_KEY\"`"
            );
        }
        if let Some(near) = near {
            return msg!("did you mean `{near}`?");
        }
    }
    if message.starts_with("invalid unquoted key") {
        return msg!("names with other characters must be quoted, as in `[models.\"咨询\"]`");
    }
    msg!("run `bcc-script schema config` to see what the file can contain")
}

/// Reads the text of a `bcc-script.toml`; `name` is what messages call the file.
///
/// # Errors
/// When it is no TOML, has unknown keys, a value of a wrong type, or values that do not go together. The message has the line
/// and the place, and shows no value of a key that holds a secret.
pub fn parse(name: &str, text: &str) -> Result<Config, EngineError> {
    let config = read(text).map_err(|error| {
        // Not the line itself: what is wrong with it may be that nobody can tell where a password in it ends.
        let (line, column) = error.span().map_or((1, 1), |span| line_and_column(text, span.start));
        let shown = message(&error, text);
        EngineError::usage(msg!("{name} cannot be read: line {line}, column {column}: {shown}"))
            .with_help(advice(&error))
    })?;
    let faults = faults(&config);
    let Some(first) = faults.first() else { return Ok(config) };
    let begins = ConfigSource::of(text).map_or(0, |places| places.span(&first.at).start);
    let line = text.get(..begins).unwrap_or_default().matches('\n').count() + 1;
    let more = match faults.len() - 1 {
        0 => Message::default(),
        more => msg!(" ({more} more: `bcc-script validate` shows them all)"),
    };
    Err(EngineError::usage(msg!("{name}, line {line}: {}{more}", first.message)).with_help(first.help.clone()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
            ("[models.default]\nprovider = \"openai\"\ntimeout = \"soon\"", "`soon` is not a valid duration"),
            ("[models.default]\nmodel = \"x\"", "provider"),
            ("[project", "line 1"),
        ] {
            let message = parse("bcc-script.toml", text).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn an_unknown_key_is_told_with_the_one_that_was_meant() {
        let advice_on = |text: &str| advice(&read(text).unwrap_err());
        assert_eq!(advice_on("[project]\nschem = \"x\""), "did you mean `scheme`?");
        assert_eq!(advice_on("[rule]\n"), "did you mean `rules`?");
        assert_eq!(
            advice_on("[project]\ncolour = 1"),
            "run `bcc-script schema config` to see what the file can contain"
        );
        let model = "[models.default]\nprovider = \"openai\"\n";
        assert_eq!(advice_on(&format!("{model}max_token = 5")), "did you mean `max_tokens`?");
        assert!(advice_on(&format!("{model}api_key = \"x\"")).to_string().contains("api_key_env = "));
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
    }

    #[test]
    fn no_message_shows_a_line_or_a_value_of_a_file_that_cannot_be_read() {
        for (text, place) in [
            ("[models.a]\nbase_url = \"http://ann:geheim@host/v1\n", "line 2, column "),
            ("[models.a]\nbase_url = 'http://ann:geheim@host/v1", "line 2, column "),
            ("[models.a]\nbase_url = http://ann:geheim@host/v1\n", "line 2, column "),
            (
                "[models.a]\nprovider = \"openai\"\nmax_tokens = \"my geheim\"\n",
                "line 3, column 14: invalid type: string, expected",
            ),
        ] {
            let error = parse("bcc-script.toml", text).unwrap_err().to_string();
            assert!(!error.contains("geheim") && error.contains(place), "{error}");
        }
    }
}
