//! The tables `[[kernel.jupyter]]` of `bcc-script.toml`: the Jupyter servers whose kernels scripts may use, and the validation of them.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

use bcc_llm::http::address::is_local;
use reqwest::Url;
use serde::Deserialize;

use crate::config::places::ConfigError;
use crate::config::secrets::{is_variable, user_info};
use crate::config::validation::check_url;

/// `[[kernel.jupyter]]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JupyterTable {
    /// The address of the server, below which `/api` is.
    pub url: String,
    /// The environment variable with its token.
    pub token_env: Option<String>,
}

impl JupyterTable {
    /// Whether this is the server at an address, which scripts write with or without a slash at the end.
    pub fn is_at(&self, url: &str) -> bool {
        let parse = |url: &str| Url::parse(url.trim().trim_end_matches('/')).ok();
        parse(&self.url).is_some_and(|own| parse(url).is_some_and(|other| own == other))
    }
}

/// The errors of all servers, in their order.
pub fn errors(servers: &[JupyterTable]) -> Vec<ConfigError> {
    let mut found = Vec::new();
    for (number, server) in servers.iter().enumerate() {
        let number = number.to_string();
        let mut report = |key: &str, message: Message, help: &'static str| {
            found.push(ConfigError::new(&["kernel", "jupyter", &number, key], message, help));
        };
        let help = "use the address of a Jupyter server, as in \"http://localhost:8888\", without a token";
        if let Err(reason) = check_url(&server.url) {
            report("url", msg!("`url` of `[[kernel.jupyter]]` {why}", why = reason), help);
            continue;
        }
        if user_info(&server.url).is_some() || server.url.contains(['?', '#']) {
            report("url", msg!("`url` of `[[kernel.jupyter]]` contains a user, a token or a query"), help);
        }
        let Some(variable) = &server.token_env else { continue };
        if !is_variable(variable) {
            let help = "put the token in an environment variable, and write the name of that variable here";
            report("token_env", msg!("`token_env` is not a valid environment variable name"), help);
        }
        let is_readable = Url::parse(&server.url).is_ok_and(|url| url.scheme() == "http" && !is_local(&url));
        if is_readable {
            let help = "use https, or forward the port to this machine, as in `ssh -L 8888:localhost:8888 HOST`";
            report("url", msg!("the token would be sent to another machine without encryption"), help);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config::parse;

    #[test]
    fn a_server_is_found_by_its_address_with_and_without_a_slash() {
        let server = JupyterTable { url: "https://hub.example:8888/user/ann/".to_owned(), token_env: None };
        assert!(
            server.is_at("https://hub.example:8888/user/ann") && server.is_at("https://HUB.example:8888/user/ann/")
        );
        for other in [
            "http://hub.example:8888/user/ann",
            "https://hub.example:8889/user/ann",
            "https://hub.example:8888/user/bob",
            "https://hub.example.org:8888/user/ann",
            "https://hub.example:8888",
        ] {
            assert!(!server.is_at(other), "{other}");
        }
    }

    #[test]
    fn an_error_is_reported_with_its_line_and_without_secrets() {
        for (lines, line, part) in [
            ("url = \"secret\"\n", "line 2", "`url`"),
            ("url = \"http://localhost:1/?token=secret\"\n", "line 2", "a user, a token or a query"),
            ("url = \"http://ann:secret@localhost:1\"\n", "line 2", "a user, a token or a query"),
            ("url = \"http://localhost:1\"\ntoken_env = \"sk-secret\"\n", "line 3", "`token_env`"),
            ("url = \"http://hub.example\"\ntoken_env = \"T\"\n", "line 2", "without encryption"),
            ("url = \"http://localhost:1\"\ntoken = \"secret\"\n", "line 3", "unknown field"),
        ] {
            let error = parse("bcc-script.toml", &format!("[[kernel.jupyter]]\n{lines}")).unwrap_err().to_string();
            assert!(error.contains(line) && error.contains(part) && !error.contains("secret"), "{error}");
        }
        parse("bcc-script.toml", "[[kernel.jupyter]]\nurl = \"https://hub.example\"\ntoken_env = \"T\"\n").unwrap();
        parse("bcc-script.toml", "[[kernel.jupyter]]\nurl = \"http://hub.example\"\n").unwrap();
    }
}
