//! Parses `bcc-script.toml` (docs/configuration.md). Which settings apply depends on trust.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;

use bytesize::ByteSize;
use serde::Deserialize;

use crate::config::jupyter_table::JupyterTable;
use crate::config::kinds::KindTable;
use crate::config::mcp_table::McpTable;
use crate::config::model_table::ModelTable;
use crate::config::places::ConfigSource;
use crate::config::secrets::{names_secret, redact};
use crate::config::serve_table::ServeTable;
use crate::config::server_table::ServerTable;
use crate::config::tool_tables::ToolsTable;
use crate::config::validation::errors;
use crate::config::values::message_of;
use crate::error::EngineError;
use bcc_lang::message::library::library;
use bcc_lang::source::near::near_miss;
use bcc_runtime::notebook::kernel::contract::ExecPolicy;
use bcc_runtime::notebook::kernel::limits::OutputLimits;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(default)]
    pub project: ProjectTable,
    #[serde(default)]
    pub models: BTreeMap<String, ModelTable>,
    /// `[rules]`: levels of rules of `validate` that differ from the default.
    #[serde(default)]
    pub rules: BTreeMap<String, String>,
    /// `[kinds.<name>]`: action types that the project defines.
    #[serde(default)]
    pub kinds: BTreeMap<String, KindTable>,
    /// `[kernel]`: what the kernels of the project receive.
    #[serde(default)]
    pub kernel: KernelTable,
    /// `[behavior_servers.<name>]`: servers that send behaviors.
    #[serde(default)]
    pub behavior_servers: BTreeMap<String, ServerTable>,
    /// `[serve]`: the server, and who may call it.
    #[serde(default)]
    pub serve: ServeTable,
    /// `[tools]`: what scripts and models may call.
    #[serde(default)]
    pub tools: ToolsTable,
    /// `[mcp_servers.<name>]`: servers of tools.
    #[serde(default)]
    pub mcp_servers: BTreeMap<String, McpTable>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectTable {
    pub scheme: Option<String>,
    /// Permissions of the scripts of the project outside the conversation: `exec`, `command`.
    #[serde(default)]
    pub allow: Vec<String>,
}

/// `[kernel]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelTable {
    /// The names of environment variables that kernels receive in addition to the usual ones.
    #[serde(default)]
    pub env: Vec<String>,
    /// Whether people approve code that a model or a server wants to run.
    #[serde(default)]
    pub exec: ExecTable,
    /// `[[kernel.jupyter]]`: the Jupyter servers whose kernels scripts may use.
    #[serde(default)]
    pub jupyter: Vec<JupyterTable>,
    /// The size of the text that one cell may print.
    pub max_text: Option<String>,
    /// The size of one picture, table or other displayed data.
    pub max_display: Option<String>,
    /// The size of the large outputs of a session, together.
    pub max_session: Option<String>,
}

/// `exec` of `[kernel]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecTable {
    #[default]
    Run,
    Approve,
}

impl KernelTable {
    pub fn exec_policy(&self) -> ExecPolicy {
        match self.exec {
            ExecTable::Run => ExecPolicy::Run,
            ExecTable::Approve => ExecPolicy::Approve,
        }
    }

    /// The limits on outputs. A size that is not valid is reported by [`crate::config::validation::errors`].
    pub fn limits(&self) -> OutputLimits {
        let usual = OutputLimits::default();
        let size = |written: &Option<String>, usual| written.as_deref().and_then(size_in_bytes).unwrap_or(usual);
        OutputLimits {
            text: size(&self.max_text, usual.text),
            display: size(&self.max_display, usual.display),
            session: size(&self.max_session, usual.session),
        }
    }
}

/// A size such as `16 MiB`, in bytes.
pub fn size_in_bytes(written: &str) -> Option<u64> {
    written.trim().parse::<ByteSize>().ok().map(|size| size.as_u64())
}

pub fn read(text: &str) -> Result<Config, toml::de::Error> {
    toml::from_str(text)
}

/// The byte range of the value of `key` in `[table]`.
pub fn value_span(text: &str, table: &str, key: &str) -> Option<std::ops::Range<usize>> {
    let tables: BTreeMap<String, BTreeMap<String, toml::Spanned<toml::Value>>> = toml::from_str(text).ok()?;
    tables.get(table)?.get(key).map(toml::Spanned::span)
}

/// The line and the column of a byte offset, both counted from 1; columns in characters.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..text.floor_char_boundary(offset)).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

/// The message for an error of [`read`], without secrets of the file.
pub fn message(error: &toml::de::Error, text: &str) -> Message {
    match message_of(error.message()) {
        Some(mut message) => {
            message.change_texts(&mut |part| *part = redact(part, text));
            message
        }
        None => library(&redact_value(error.message(), text)),
    }
}

/// The message of the TOML library without secrets, and without the value of a wrong type.
fn redact_value(message: &str, text: &str) -> String {
    let shown = redact(message, text);
    match shown.split_once("string \"") {
        Some((prefix, rest)) if prefix.ends_with(": ") => match rest.rsplit_once("\", expected ") {
            Some((_, expected)) => format!("{begin}string, expected {expected}", begin = prefix),
            None => shown,
        },
        _ => shown,
    }
}

/// The help for an error of [`read`]: for an unknown key or name, the most similar one.
pub fn advice(error: &toml::de::Error) -> Message {
    let message = message_of(error.message()).map_or_else(|| error.message().to_owned(), |message| message.to_string());
    let mut names = message.split('`').skip(1).step_by(2);
    let is_name = message.starts_with("there is no ");
    if let (true, Some(unknown)) = (is_name || message.starts_with("unknown field "), names.next()) {
        let known: Vec<&str> = names.collect();
        let near = near_miss(unknown, known.iter().copied());
        let no_key_is_near = near.is_none_or(|near| near.starts_with("api_key"));
        if !is_name && names_secret(unknown) && known.contains(&"api_key_env") && no_key_is_near {
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
    if message.starts_with("string values must be quoted") {
        return msg!("put the text in ASCII quotes, as in `scheme = \"own\"`: full-width quotes are not quotes here");
    }
    msg!("run `bcc-script schema config` to see what the file can contain")
}

/// Parses and validates the text of a `bcc-script.toml`. `name` is the file name in messages.
///
/// # Errors
/// When it is not TOML, or has an unknown key, a value of a wrong type, or contradictory values. The message contains the line
/// and the column, and no secrets.
pub fn parse(name: &str, text: &str) -> Result<Config, EngineError> {
    let config = read(text).map_err(|error| {
        // Without the line itself: the syntax error may make it impossible to find the end of a password in it.
        let (line, column) = error.span().map_or((1, 1), |span| line_and_column(text, span.start));
        let shown = message(&error, text);
        EngineError::usage(msg!("{name} cannot be read: line {line}, column {column}: {shown}"))
            .with_help(advice(&error))
    })?;
    let errors = errors(&config);
    let Some(first) = errors.first() else { return Ok(config) };
    let start = ConfigSource::of(text).map_or(0, |places| places.span(&first.path).start);
    let line = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
    let more = match errors.len() - 1 {
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
    fn a_complete_configuration_is_read() {
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
    fn an_error_is_reported_with_its_line() {
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
    fn the_help_for_an_unknown_key_names_the_most_similar_key() {
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
    fn messages_do_not_contain_keys_of_the_file() {
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
    fn messages_contain_no_line_and_no_value_of_a_file_that_cannot_be_read() {
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
