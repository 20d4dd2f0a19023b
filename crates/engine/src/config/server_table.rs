//! The table `[behavior_servers.<name>]` of `bcc-script.toml`, and its validation.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde::de::Deserializer;

use crate::config::places::{ConfigError, table_header};
use crate::config::secrets::{is_key, is_variable};
use crate::config::values::{duration, named};
use bcc_runtime::effects::behavior_server::settings::{Endpoint, EndpointPaths, ProtocolForm, ServerSettings};

/// `[behavior_servers.<name>]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerTable {
    pub url: String,
    pub token_env: Option<String>,
    /// The file that holds its token, relative to the project.
    pub token_file: Option<String>,
    #[serde(default, deserialize_with = "form")]
    pub form: ProtocolForm,
    #[serde(default, deserialize_with = "paths")]
    pub paths: EndpointPaths,
    /// For a complete response.
    #[serde(default, deserialize_with = "duration")]
    pub timeout: Option<Duration>,
    /// Until the first byte of a response.
    #[serde(default, deserialize_with = "duration")]
    pub first_byte_timeout: Option<Duration>,
    /// Between two pieces of a response.
    #[serde(default, deserialize_with = "duration")]
    pub idle_timeout: Option<Duration>,
}

fn form<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ProtocolForm, D::Error> {
    named("form", &ProtocolForm::ALL, ProtocolForm::name, &String::deserialize(deserializer)?)
}

fn paths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EndpointPaths, D::Error> {
    named("set of paths", &EndpointPaths::ALL, EndpointPaths::name, &String::deserialize(deserializer)?)
}

impl ServerTable {
    /// The settings of the server, without its token.
    pub fn settings(&self, name: &str) -> ServerSettings {
        let defaults = ServerSettings::new(name, &self.url);
        ServerSettings {
            form: self.form,
            paths: self.paths,
            timeout: self.timeout.unwrap_or(defaults.timeout),
            first_byte_timeout: self.first_byte_timeout.unwrap_or(defaults.first_byte_timeout),
            idle_timeout: self.idle_timeout.unwrap_or(defaults.idle_timeout),
            ..defaults
        }
    }
}

/// The errors of all servers, in the order of their names.
pub fn errors(servers: &BTreeMap<String, ServerTable>) -> Vec<ConfigError> {
    let mut found = Vec::new();
    for (name, table) in servers {
        let mut report = |key: &str, message: Message, help: &'static str| {
            let table = Message::text(table_header("behavior_servers", name));
            let message = Message::list(Joint::Colon, [table, message]);
            found.push(ConfigError::new(&["behavior_servers", name, key], message, help));
        };
        if let Err(reason) = table.settings(name).endpoint(Endpoint::Actions) {
            report("url", reason, "use a URL such as \"http://localhost:8000\"");
        }
        let help =
            "put the token in an environment variable or a file, and write the name of the variable or file here";
        if table.token_env.as_ref().is_some_and(|variable| !is_variable(variable)) {
            report("token_env", "`token_env` is not a valid environment variable name".into(), help);
        }
        if table.token_file.as_ref().is_some_and(|file| is_key(file)) {
            report("token_file", "`token_file` is not a file name".into(), help);
        }
        if table.token_env.is_some() && table.token_file.is_some() {
            report("token_file", "`token_env` and `token_file` are both set".into(), "keep one of them");
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config::parse;

    #[test]
    fn all_settings_of_a_server_are_read() {
        let text = "[behavior_servers.gauges]\nurl = \"http://localhost:8000\"\ntoken_env = \"GAUGES_TOKEN\"\nform = \"older\"\n\
                    paths = \"planning\"\ntimeout = \"2m\"\nfirst_byte_timeout = \"5s\"\nidle_timeout = \"6s\"\n";
        let config = parse("bcc-script.toml", text).unwrap();
        let settings = config.behavior_servers["gauges"].settings("gauges");
        assert_eq!((settings.form, settings.paths), (ProtocolForm::Legacy, EndpointPaths::Planning));
        let times = (settings.timeout, settings.first_byte_timeout, settings.idle_timeout);
        assert_eq!(times, (Duration::from_secs(120), Duration::from_secs(5), Duration::from_secs(6)));
    }

    #[test]
    fn an_error_is_reported_with_its_line_and_without_secrets() {
        let url = "url = \"http://h\"\n";
        for (lines, line, part) in [
            ("url = \"secret\"\n".to_owned(), "line 2", "`url`"),
            ("url = \"http://ann:secret@h\"\n".to_owned(), "line 2", "user name or a password"),
            (format!("{url}token_env = \"sk-secret\"\n"), "line 3", "`token_env`"),
            (
                format!("{url}token_env = \"A\"\ntoken_file = \"b\"\n"),
                "line 4",
                "`token_env` and `token_file` are both set",
            ),
            (format!("{url}token = \"secret\"\n"), "line 3", "unknown field"),
            (format!("{url}form = \"oldest\"\n"), "line 3", "there is no form"),
            (format!("{url}paths = \"v2\"\n"), "line 3", "there is no set of paths"),
            (format!("{url}timeout = \"soon\"\n"), "line 3", "not a valid duration"),
            ("form = \"new\"\n".to_owned(), "line 1", "missing field `url`"),
        ] {
            let error = parse("bcc-script.toml", &format!("[behavior_servers.a]\n{lines}")).unwrap_err().to_string();
            assert!(error.contains(line) && error.contains(part) && !error.contains("secret"), "{error}");
        }
    }
}
