//! The table `[serve]` of `bcc-script.toml`, and its validation.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde::Deserialize;

use crate::config::places::ConfigError;
use crate::config::values::duration;

/// The address of the server if none is configured: only this machine.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:8711";

/// The roles of tokens, from the one that permits least.
pub const ROLES: [&str; 4] = ["talk", "decide", "author", "admin"];

/// `[serve]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServeTable {
    /// Where the server listens.
    pub address: Option<String>,
    /// The names of the server in requests, besides those of this machine.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// The origins of pages that may call the server.
    #[serde(default)]
    pub origins: Vec<String>,
    /// How many requests a client may send.
    pub requests_per_minute: Option<u32>,
    /// `[serve.tokens.<name>]`
    #[serde(default)]
    pub tokens: BTreeMap<String, TokenTable>,
    /// `[serve.chat]`
    #[serde(default)]
    pub chat: ChatTable,
    /// `[serve.behavior]`
    #[serde(default)]
    pub behavior: BehaviorTable,
}

/// `[serve.behavior]`: who answers clients of the behavior protocol, and their kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BehaviorTable {
    /// The model that is asked.
    pub model: Option<String>,
    /// The script that is run instead of asking a model: its `session_id`, or its path in the project.
    pub script: Option<String>,
    /// The form of plans for clients that accept any: `json` or `xml`.
    pub plan_format: Option<String>,
    /// The name of the kernel spec for code of clients.
    pub kernel: Option<String>,
    /// How long a cell of a client may run.
    #[serde(default, deserialize_with = "duration")]
    pub cell_timeout: Option<Duration>,
}

/// The forms of plans.
pub const PLAN_FORMATS: [&str; 2] = ["json", "xml"];

/// `[serve.chat]`: what chat clients send in addition to OpenAI's chat completions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatTable {
    /// The header with the id of the conversation.
    pub conversation_header: Option<String>,
    /// The header that says that a request is a task of the client, such as a title, and no message of the person.
    pub task_header: Option<String>,
}

/// `[serve.tokens.<name>]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenTable {
    pub role: String,
    /// The hash of the token.
    pub sha256: String,
}

/// All errors.
pub fn errors(table: &ServeTable) -> Vec<ConfigError> {
    let mut found = Vec::new();
    let mut report = |at: &[&str], message: Message, help: Message| {
        found.push(ConfigError::new(&[&["serve"], at].concat(), message, help));
    };
    if let Some(address) = table.address.as_ref().filter(|address| address.parse::<SocketAddr>().is_err()) {
        let message = msg!("`address` in `[serve]` is not an address: `{address}`");
        report(
            &["address"],
            message,
            "write an address with a port, such as \"127.0.0.1:8711\" or \"0.0.0.0:8711\"".into(),
        );
    }
    if table.requests_per_minute == Some(0) {
        let message = "`requests_per_minute` in `[serve]` must be at least 1".into();
        report(&["requests_per_minute"], message, "remove it for 600".into());
    }
    for (number, origin) in table.origins.iter().enumerate() {
        let is_origin = origin.split_once("://").is_some_and(|(scheme, host)| {
            matches!(scheme, "http" | "https") && !host.is_empty() && !host.contains('/')
        });
        if !is_origin {
            let message = msg!("`{origin}` in `origins` of `[serve]` is not an origin");
            report(&["origins", &number.to_string()], message, "write it like \"https://example.org\"".into());
        }
    }
    let headers = [("conversation_header", &table.chat.conversation_header), ("task_header", &table.chat.task_header)];
    for (key, header) in headers {
        let is_name = |name: &String| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if let Some(header) = header.as_ref().filter(|header| !is_name(header)) {
            let message = msg!("`{key}` in `[serve.chat]` is not the name of a header: `{header}`");
            report(&["chat", key], message, "write a name such as \"X-Chat-Id\"".into());
        }
    }
    let behavior = &table.behavior;
    if let Some(format) = behavior.plan_format.as_ref().filter(|format| !PLAN_FORMATS.contains(&format.as_str())) {
        let message = msg!("`plan_format` in `[serve.behavior]` is not a format: `{format}`");
        report(&["behavior", "plan_format"], message, msg!("the formats are {}", Message::names(PLAN_FORMATS)));
    }
    if behavior.model.is_some() && behavior.script.is_some() {
        let message = "`[serve.behavior]` has both `model` and `script`".into();
        report(&["behavior", "model"], message, "remove one: a script names its own model".into());
    }
    for (name, token) in &table.tokens {
        if !ROLES.contains(&token.role.as_str()) {
            let message = msg!("`role` in `[serve.tokens.{name}]` is not a role: `{}`", token.role);
            report(&["tokens", name, "role"], message, msg!("the roles are {}", Message::names(ROLES)));
        }
        // It may be the token itself, so it is not repeated.
        if token.sha256.len() != 64 || !token.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let message = msg!("`sha256` in `[serve.tokens.{name}]` is not a SHA-256 hash");
            let help = "`bcc-script serve --new-token ROLE` prints a new token and its hash".into();
            report(&["tokens", name, "sha256"], message, help);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::config::config::parse;

    #[test]
    fn all_settings_are_read() {
        let text = format!(
            "[serve]\naddress = \"0.0.0.0:80\"\nhosts = [\"h\"]\norigins = [\"https://o:1\"]\nrequests_per_minute = 5\n\
             [serve.tokens.front]\nrole = \"talk\"\nsha256 = \"{}\"\n",
            "0".repeat(64)
        );
        let table = parse("bcc-script.toml", &text).unwrap().serve;
        assert_eq!((table.hosts.len(), table.origins.len(), table.requests_per_minute), (1, 1, Some(5)));
        assert_eq!(table.tokens["front"].role, "talk");
    }

    #[test]
    fn an_error_is_reported_with_its_line_and_without_secrets() {
        for (lines, line, part) in [
            ("address = \"8711\"\n", "line 2", "`address`"),
            ("requests_per_minute = 0\n", "line 2", "at least 1"),
            ("origins = [\n\"https://o\",\n\"o\"]\n", "line 4", "`o` in `origins`"),
            ("chat.task_header = \"X Task\"\n", "line 2", "not the name of a header"),
            ("behavior.plan_format = \"yaml\"\n", "line 2", "is not a format: `yaml`"),
            ("[serve.behavior]\nmodel = \"a\"\nscript = \"b\"\n", "line 3", "both `model` and `script`"),
            ("[serve.tokens.a]\nrole = \"boss\"\nsha256 = \"secret\"\n", "line 3", "is not a role"),
            ("[serve.tokens.a]\nrole = \"talk\"\nsha256 = \"secret\"\n", "line 4", "not a SHA-256 hash"),
            ("[serve.tokens.a]\nrole = \"talk\"\ntoken = \"secret\"\n", "line 4", "unknown field"),
        ] {
            let error = parse("bcc-script.toml", &format!("[serve]\n{lines}")).unwrap_err().to_string();
            assert!(error.contains(line) && error.contains(part) && !error.contains("secret"), "{error}");
        }
    }
}
