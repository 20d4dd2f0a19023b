//! The table `[mcp_servers.<name>]` of `bcc-script.toml`, and its validation.

use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::config::places::{ConfigError, table_header};
use crate::config::secrets::{is_key, is_variable, names_secret, user_info};
use crate::config::values::{TextOrEnv, custom, duration};
use bcc_lang::script::fields::shortened;

/// The maximum length of the name of a server, in characters.
const MAX_NAME_LENGTH: usize = 64;

/// `[mcp_servers.<name>]`: a server of tools, either a program or an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpTable {
    /// The program with its arguments.
    #[serde(default, deserialize_with = "command")]
    pub command: Option<Vec<String>>,
    /// The environment variables that the program receives in addition to the usual ones.
    #[serde(default)]
    pub env: BTreeMap<String, TextOrEnv>,
    /// The directory in which the program runs, relative to the project.
    pub cwd: Option<String>,
    pub url: Option<String>,
    pub api_key_env: Option<String>,
    /// The file that holds its key, relative to the project.
    pub api_key_file: Option<String>,
    /// The limit for one call, in addition to that of the caller.
    #[serde(default, deserialize_with = "duration")]
    pub timeout: Option<Duration>,
    /// The limit from the start until the server has listed its tools.
    #[serde(default, deserialize_with = "duration")]
    pub start_timeout: Option<Duration>,
}

/// A list. The error for a text shows the list that was probably meant.
fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    match toml::Value::deserialize(deserializer)? {
        toml::Value::String(text) => {
            let words: Vec<String> = text.split_whitespace().map(|word| format!("\"{word}\"")).collect();
            let list = format!("[{}]", words.join(", "));
            Err(custom(&msg!("`command` must be a list of the program and its arguments; write `command = {list}`")))
        }
        value => Vec::deserialize(value).map(Some).map_err(|error| D::Error::custom(error.message())),
    }
}

/// The errors of all servers, in the order of their names.
pub fn errors(servers: &BTreeMap<String, McpTable>) -> Vec<ConfigError> {
    let mut found = Vec::new();
    for (name, table) in servers {
        let mut checked = CheckedTable { name, table, found: &mut found };
        checked.name();
        checked.kind();
        checked.program();
        checked.address();
    }
    found
}

/// Whether a name can be a part of the names of tools.
pub fn is_server_name(name: &str) -> bool {
    (1..=MAX_NAME_LENGTH).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

struct CheckedTable<'a> {
    name: &'a str,
    table: &'a McpTable,
    found: &'a mut Vec<ConfigError>,
}

impl CheckedTable<'_> {
    fn report(&mut self, at: &[&str], message: impl Into<Message>, help: impl Into<Message>) {
        let table = Message::text(table_header("mcp_servers", self.name));
        let message = Message::list(Joint::Colon, [table, message.into()]);
        self.found.push(ConfigError::new(&[&["mcp_servers", self.name], at].concat(), message, help));
    }

    fn name(&mut self) {
        if !is_server_name(self.name) {
            let help = msg!("a name consists of 1 to {MAX_NAME_LENGTH} ASCII letters, digits, `_` and `-`");
            self.report(&[], "this is not a valid name for a server of tools", help);
        }
    }

    /// A server is either a program or an address.
    fn kind(&mut self) {
        const HELP: &str =
            "write `command = [\"program\", \"argument\"]` for a program that is started, or `url = \"https://…\"`";
        let table = self.table;
        match (&table.command, &table.url) {
            (None, None) => self.report(&[], "neither `command` nor `url` is specified", HELP),
            (Some(_), Some(_)) => self.report(&["url"], "`command` and `url` are both set", "keep one of them"),
            (Some(_), None) => {
                let keys = [("api_key_env", &table.api_key_env), ("api_key_file", &table.api_key_file)];
                for (key, _) in keys.iter().filter(|(_, value)| value.is_some()) {
                    let help = "give a program its key in `env`: `env = { API_KEY = { env = \"API_KEY\" } }`";
                    self.report(&[key], msg!("`{key}` is only for a server with `url`"), help);
                }
            }
            (None, Some(_)) => {
                if !table.env.is_empty() {
                    self.report(&["env"], "`env` is only for a server with `command`", "remove it");
                }
                if table.cwd.is_some() {
                    self.report(&["cwd"], "`cwd` is only for a server with `command`", "remove it");
                }
            }
        }
    }

    fn program(&mut self) {
        let table = self.table;
        let words = table.command.as_deref().unwrap_or_default();
        if table.command.is_some() && words.first().is_none_or(|program| program.trim().is_empty()) {
            let help = "write the command as `[\"program\", \"argument\"]`";
            self.report(&["command"], "there is no program to run", help);
        }
        for (number, word) in words.iter().enumerate() {
            let at = number.to_string();
            if is_key(word) {
                let help = "give a program its key in `env`: `env = { API_KEY = { env = \"API_KEY\" } }`";
                self.report(&["command", &at], "an argument of `command` contains a secret", help);
            } else if word.contains('\0') {
                self.report(&["command", &at], "an argument of `command` contains a NUL character", "remove it");
            }
        }
        for (variable, value) in &table.env {
            let at = ["env", variable.as_str()];
            let is_name = variable.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_name || variable.is_empty() || variable.starts_with(|c: char| c.is_ascii_digit()) {
                let message = msg!("`{}` in `env` is not a valid environment variable name", shortened(variable));
                self.report(&at, message, "use letters, digits and `_`");
            }
            match value {
                TextOrEnv::Env(source) if !is_variable(source) => {
                    let help = "put the value in an environment variable, and write the name of that variable here";
                    let message = msg!("`env` of `{}` is not a valid environment variable name", shortened(variable));
                    self.report(&at, message, help);
                }
                TextOrEnv::Text(text) if names_secret(variable) || is_key(text) => {
                    let help = msg!(
                        "keys must not be stored in this file: put the value in an environment variable, and write `{} = {{ env = \"EXAMPLE_KEY\" }}`",
                        shortened(variable)
                    );
                    let message = msg!("the environment variable `{}` contains a secret", shortened(variable));
                    self.report(&at, message, help);
                }
                TextOrEnv::Text(text) if text.contains('\0') => {
                    let message = msg!("the environment variable `{}` contains a NUL character", shortened(variable));
                    self.report(&at, message, "remove it");
                }
                _ => {}
            }
        }
        if table.cwd.as_ref().is_some_and(|cwd| cwd.trim().is_empty() || cwd.contains('\0')) {
            self.report(&["cwd"], "`cwd` is not a directory name", "write a directory relative to the project");
        }
    }

    fn address(&mut self) {
        let table = self.table;
        if let Some(url) = &table.url {
            let help = "use a URL such as \"https://tools.example/mcp\"";
            match Url::parse(url.trim()) {
                Err(error) => self.report(&["url"], msg!("`url` is not a valid URL ({error})"), help),
                Ok(parsed) if !["http", "https"].contains(&parsed.scheme()) || parsed.host_str().is_none() => {
                    self.report(&["url"], "`url` must start with http:// or https://", help);
                }
                Ok(_) if user_info(url).is_some() => {
                    let help = "put the key in an environment variable, and write the name of that variable here as `api_key_env`";
                    self.report(&["url"], "`url` contains a user name or a password", help);
                }
                Ok(_) => {}
            }
        }
        let help = "put the key in an environment variable or a file, and write the name of the variable or file here";
        if table.api_key_env.as_ref().is_some_and(|name| !is_variable(name)) {
            self.report(&["api_key_env"], "`api_key_env` is not a valid environment variable name", help);
        }
        if table.api_key_file.as_ref().is_some_and(|file| is_key(file)) {
            self.report(&["api_key_file"], "`api_key_file` is not a file name", help);
        }
        if table.api_key_env.is_some() && table.api_key_file.is_some() {
            self.report(&["api_key_file"], "`api_key_env` and `api_key_file` are both set", "keep one of them");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config::parse;

    #[test]
    fn all_settings_of_a_server_are_read() {
        let text = "[mcp_servers.files]\ncommand = [\"npx\", \"server\", \"a b\"]\ncwd = \"data\"\ntimeout = \"2m\"\n\
                    start_timeout = \"5s\"\nenv = { MODE = \"fast\", TOKEN = { env = \"FILES_TOKEN\" } }\n\
                    [mcp_servers.web]\nurl = \"https://tools.example/mcp\"\napi_key_file = \"key.txt\"\n";
        let config = parse("bcc-script.toml", text).unwrap();
        let files = &config.mcp_servers["files"];
        assert_eq!(files.command.as_deref().unwrap(), ["npx", "server", "a b"]);
        assert_eq!(
            (files.timeout, files.start_timeout),
            (Some(Duration::from_secs(120)), Some(Duration::from_secs(5)))
        );
        assert_eq!(files.env["TOKEN"], TextOrEnv::Env("FILES_TOKEN".to_owned()));
        assert_eq!(config.mcp_servers["web"].api_key_file.as_deref(), Some("key.txt"));
    }

    #[test]
    fn an_error_is_reported_with_its_line_and_without_secrets() {
        let program = "command = [\"a\"]\n";
        let url = "url = \"https://h/mcp\"\n";
        for (lines, line, part) in [
            ("command = \"npx -y server\"\n".to_owned(), "line 2", "write `command = [\"npx\", \"-y\", \"server\"]`"),
            ("command = [1]\n".to_owned(), "line 2", "expected a string"),
            ("command = []\n".to_owned(), "line 2", "no program"),
            ("command = [\" \"]\n".to_owned(), "line 2", "no program"),
            (
                "command = [\"a\", \"--key\", \"sk-Ab3dQf7hXj9kLm2nWp5qRs8t-secretsecret\"]\n".to_owned(),
                "line 2",
                "contains a secret",
            ),
            ("cwd = \"x\"\n".to_owned(), "line 1", "neither `command` nor `url`"),
            (format!("{program}{url}"), "line 3", "both set"),
            (format!("{program}api_key_env = \"A\"\n"), "line 3", "only for a server with `url`"),
            (format!("{program}env = {{ TOKEN = \"secret\" }}\n"), "line 3", "contains a secret"),
            (format!("{program}env = {{ \"A B\" = \"1\" }}\n"), "line 3", "`A B` in `env`"),
            (
                format!("{program}env = {{ A = {{ env = \"sk-Ab3dQf7hXj9kLm2nWp5qRs8t-secretsecret\" }} }}\n"),
                "line 3",
                "`env` of `A`",
            ),
            (format!("{program}cwd = \"\"\n"), "line 3", "`cwd` is not a directory"),
            (format!("{url}env = {{ A = \"1\" }}\n"), "line 3", "only for a server with `command`"),
            ("url = \"ftp://h\"\n".to_owned(), "line 2", "must start with http"),
            ("url = \"https://ann:secret@h/\"\n".to_owned(), "line 2", "user name or a password"),
            (format!("{url}api_key_env = \"A\"\napi_key_file = \"b\"\n"), "line 4", "are both set"),
            (format!("{url}timeout = \"soon\"\n"), "line 3", "not a valid duration"),
            (format!("{url}token = \"secret\"\n"), "line 3", "unknown field"),
        ] {
            let error = parse("bcc-script.toml", &format!("[mcp_servers.a]\n{lines}")).unwrap_err().to_string();
            assert!(error.contains(line) && error.contains(part), "{lines}: {error}");
            assert!(!error.contains("secretsecret") && !error.contains("\"secret\""), "{error}");
        }
    }

    #[test]
    fn the_name_of_a_server_can_be_a_part_of_the_names_of_tools() {
        for name in ["a.b", "文件", "a b", ""] {
            let text = format!("[mcp_servers.\"{name}\"]\ncommand = [\"a\"]\n");
            let error = parse("bcc-script.toml", &text).unwrap_err().to_string();
            assert!(error.contains("not a valid name"), "{error}");
        }
        assert!(is_server_name("my-Server_2"));
    }
}
