//! The tables `[tools.web_search]` and `[tools.graph_rag]` of `bcc-script.toml`, and their validation.

use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;
use std::collections::BTreeSet;
use std::path::{Component, Path};
use std::time::Duration;

use serde::Deserialize;
use serde::de::Deserializer;

use crate::config::places::ConfigError;
use crate::config::secrets::{is_key, is_variable, user_info};
use crate::config::validation::check_url;
use crate::config::values::{duration, named, whole};

/// The largest number of results of one search.
pub const MAX_RESULTS: u32 = 50;

/// The largest number of triples of one answer.
pub const MAX_TRIPLES: u32 = 200;

/// The largest number of steps from the triples that were found.
pub const MAX_HOPS: u32 = 3;

/// `[tools]`: the tools that scripts and models may call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolsTable {
    #[serde(default)]
    pub web_search: Option<WebSearchTable>,
    #[serde(default)]
    pub graph_rag: Option<GraphTable>,
}

/// A service that searches the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SearchProvider {
    /// A server with the JSON API of SearXNG.
    SearXng,
    Brave,
    Tavily,
}

impl SearchProvider {
    pub const ALL: [Self; 3] = [Self::SearXng, Self::Brave, Self::Tavily];

    pub const fn name(self) -> &'static str {
        match self {
            Self::SearXng => "searxng",
            Self::Brave => "brave",
            Self::Tavily => "tavily",
        }
    }

    /// The server if `url` is not set; SearXNG has none for everybody.
    pub const fn default_url(self) -> Option<&'static str> {
        match self {
            Self::SearXng => None,
            Self::Brave => Some("https://api.search.brave.com"),
            Self::Tavily => Some("https://api.tavily.com"),
        }
    }

    /// Whether the service refuses requests without a key.
    pub const fn needs_key(self) -> bool {
        !matches!(self, Self::SearXng)
    }
}

impl<'de> Deserialize<'de> for SearchProvider {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        named("provider", &Self::ALL, Self::name, &String::deserialize(deserializer)?)
    }
}

/// `[tools.web_search]`: the provider that is used unless a call names another one, and settings for all.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebSearchTable {
    pub provider: SearchProvider,
    pub url: Option<String>,
    pub api_key_env: Option<String>,
    /// The file that holds the key, relative to the project.
    pub api_key_file: Option<String>,
    /// For a complete search.
    #[serde(default, deserialize_with = "duration")]
    pub timeout: Option<Duration>,
    /// The number of results if the call does not say it.
    #[serde(default, deserialize_with = "whole::<_, _, 1, 50>")]
    pub max_results: Option<u32>,
    /// The language, and the country if it matters, as in `zh-CN`, if the call does not say it.
    pub locale: Option<String>,
    /// Other providers, which a call can name.
    #[serde(default)]
    pub more: Vec<SearchServerTable>,
}

/// `[[tools.web_search.more]]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchServerTable {
    pub provider: SearchProvider,
    pub url: Option<String>,
    pub api_key_env: Option<String>,
    /// The file that holds the key, relative to the project.
    pub api_key_file: Option<String>,
    /// For a complete search.
    #[serde(default, deserialize_with = "duration")]
    pub timeout: Option<Duration>,
}

impl SearchServerTable {
    pub fn server(&self) -> Option<&str> {
        self.url.as_deref().or(self.provider.default_url())
    }
}

impl WebSearchTable {
    /// All providers; the first one is the default.
    pub fn servers(&self) -> Vec<SearchServerTable> {
        let first = SearchServerTable {
            provider: self.provider,
            url: self.url.clone(),
            api_key_env: self.api_key_env.clone(),
            api_key_file: self.api_key_file.clone(),
            timeout: self.timeout,
        };
        std::iter::once(first).chain(self.more.iter().cloned()).collect()
    }
}

/// `[tools.graph_rag]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphTable {
    /// The files with triples, relative to the project; `*`, `?` and `**` are patterns.
    pub sources: Vec<String>,
    /// The number of triples if the call does not say it.
    #[serde(default, deserialize_with = "whole::<_, _, 1, 200>")]
    pub top_k: Option<u32>,
    /// The number of steps from the triples that were found, if the call does not say it.
    #[serde(default, deserialize_with = "whole::<_, _, 0, 3>")]
    pub hops: Option<u32>,
}

/// Whether a pattern names only files of the project.
fn is_inside(pattern: &str) -> bool {
    let path = Path::new(pattern);
    !pattern.trim().is_empty()
        && path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        && path.components().any(|part| matches!(part, Component::Normal(_)))
}

/// The errors of all tools.
pub fn errors(tools: &ToolsTable) -> Vec<ConfigError> {
    let mut found = Vec::new();
    if let Some(table) = &tools.web_search {
        let mut seen = BTreeSet::new();
        for (number, server) in table.servers().iter().enumerate() {
            let index = number.saturating_sub(1).to_string();
            let more = [&["tools", "web_search", "more"][..], &[index.as_str()]].concat();
            let at = if number == 0 { &["tools", "web_search"][..] } else { &more };
            let header = if number == 0 { "[tools.web_search]" } else { "[[tools.web_search.more]]" };
            search_server(server, seen.insert(server.provider), |key, message, help| {
                let message = Message::list(Joint::Colon, [Message::text(header), message]);
                found.push(ConfigError::new(&[at, &[key]].concat(), message, help));
            });
        }
        if table.locale.as_ref().is_some_and(|locale| !is_locale(locale)) {
            let message = Message::list(
                Joint::Colon,
                [
                    Message::text("[tools.web_search]"),
                    Message::word("`locale` is not a language such as \"en\" or \"zh-CN\""),
                ],
            );
            found.push(ConfigError::new(&["tools", "web_search", "locale"], message, "write, for example, \"zh-CN\""));
        }
    }
    if let Some(table) = &tools.graph_rag {
        let header = "[tools.graph_rag]";
        if table.sources.is_empty() {
            let message = Message::list(Joint::Colon, [Message::text(header), Message::word("`sources` is empty")]);
            let help = "write the files with triples, such as \"knowledge/*.csv\"";
            found.push(ConfigError::new(&["tools", "graph_rag", "sources"], message, help));
        }
        for (number, pattern) in table.sources.iter().enumerate().filter(|(_, pattern)| !is_inside(pattern)) {
            let message = msg!("`{pattern}` in `sources` is not a path inside the project");
            let message = Message::list(Joint::Colon, [Message::text(header), message]);
            let help = "write a path relative to the project directory without `..`, such as \"knowledge/*.csv\"";
            found.push(ConfigError::new(&["tools", "graph_rag", "sources", &number.to_string()], message, help));
        }
    }
    found
}

/// Whether a text is a language tag: letters and digits in parts of at most eight, as in `zh-Hans-CN`.
pub fn is_locale(text: &str) -> bool {
    let mut parts = text.split(['-', '_']);
    let part = |part: &str| (1..=8).contains(&part.len()) && part.chars().all(|c| c.is_ascii_alphanumeric());
    parts.next().is_some_and(|first| first.len() >= 2 && part(first) && first.chars().all(|c| c.is_ascii_alphabetic()))
        && parts.all(part)
        && text.len() <= 35
}

fn search_server(server: &SearchServerTable, is_first: bool, mut report: impl FnMut(&str, Message, Message)) {
    let name = server.provider.name();
    if !is_first {
        report("provider", msg!("the provider `{name}` is there twice"), Message::word("keep one of them"));
    }
    match &server.url {
        None if server.provider.default_url().is_none() => {
            let help = msg!("add `url = \"…\"`: the address of the server");
            report("provider", msg!("the provider `{name}` needs `url`"), help);
        }
        Some(url) => {
            if let Err(reason) = check_url(url) {
                let help = Message::word("use a URL such as \"http://localhost:8888\"");
                report("url", msg!("`url` {why}", why = reason), help);
            } else if user_info(url).is_some() {
                let help =
                    "put the key in an environment variable, and write the name of that variable here as `api_key_env`";
                report("url", Message::word("`url` contains a user name or a password"), Message::word(help));
            }
        }
        None => {}
    }
    let help = Message::word(
        "put the key in an environment variable or a file, and write the name of the variable or file here",
    );
    if server.api_key_env.as_ref().is_some_and(|variable| !is_variable(variable)) {
        let message = Message::word("`api_key_env` is not a valid environment variable name");
        report("api_key_env", message, help.clone());
    }
    if server.api_key_file.as_ref().is_some_and(|file| is_key(file)) {
        report("api_key_file", Message::word("`api_key_file` is not a file name"), help.clone());
    }
    match (&server.api_key_env, &server.api_key_file) {
        (Some(_), Some(_)) => {
            let message = Message::word("`api_key_env` and `api_key_file` are both set");
            report("api_key_file", message, Message::word("keep one of them"));
        }
        (None, None) if server.provider.needs_key() => {
            let help = Message::word("add `api_key_env` with the environment variable that contains the key");
            report("provider", msg!("the provider `{name}` needs a key"), help);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config::parse;

    #[test]
    fn all_settings_of_the_tools_are_read() {
        let text = "[tools.web_search]\nprovider = \"searxng\"\nurl = \"http://localhost:8888\"\nmax_results = 7\nlocale = \"zh-CN\"\n\
                    timeout = \"9s\"\n[[tools.web_search.more]]\nprovider = \"brave\"\napi_key_env = \"BRAVE_KEY\"\n\
                    [tools.graph_rag]\nsources = [\"knowledge/*.csv\"]\ntop_k = 3\nhops = 0\n";
        let tools = parse("bcc-script.toml", text).unwrap().tools;
        let search = tools.web_search.unwrap();
        let servers = search.servers();
        let names: Vec<_> = servers.iter().map(|server| (server.provider.name(), server.server().unwrap())).collect();
        assert_eq!(names, [("searxng", "http://localhost:8888"), ("brave", "https://api.search.brave.com")]);
        assert_eq!((search.max_results, servers[0].timeout), (Some(7), Some(Duration::from_secs(9))));
        let graph = tools.graph_rag.unwrap();
        assert_eq!((graph.top_k, graph.hops), (Some(3), Some(0)));
    }

    #[test]
    fn an_error_is_reported_with_its_line_and_without_secrets() {
        let search = |lines: &str| format!("[tools.web_search]\n{lines}");
        let graph = |lines: &str| format!("[tools.graph_rag]\n{lines}");
        let url = "provider = \"searxng\"\nurl = \"http://h\"\n";
        for (text, line, part) in [
            (search("provider = \"searxng\"\n"), "line 2", "needs `url`"),
            (search("provider = \"google\"\n"), "line 2", "there is no provider"),
            (search("provider = \"tavily\"\n"), "line 2", "needs a key"),
            (search("url = \"http://h\"\n"), "line 1", "missing field `provider`"),
            (search("provider = \"searxng\"\nurl = \"secret\"\n"), "line 3", "`url` is not a valid URL"),
            (search("provider = \"searxng\"\nurl = \"http://a:secret@h\"\n"), "line 3", "a password"),
            (search(&format!("{url}max_results = 0\n")), "line 4", "from 1 to 50"),
            (search(&format!("{url}locale = \"in English\"\n")), "line 4", "`locale` is not a language"),
            (search(&format!("{url}api_key_env = \"sk-secret\"\n")), "line 4", "`api_key_env`"),
            (search(&format!("{url}api_key = \"secret\"\n")), "line 4", "unknown field"),
            (
                search(&format!("{url}[[tools.web_search.more]]\nprovider = \"searxng\"\nurl = \"http://h\"\n")),
                "line 5",
                "is there twice",
            ),
            (graph("sources = []\n"), "line 2", "`sources` is empty"),
            (graph("sources = [\"a.csv\", \"../b.csv\"]\n"), "line 2", "`../b.csv` in `sources`"),
            (graph("sources = [\"/etc/passwd\"]\n"), "line 2", "is not a path inside the project"),
            (graph("sources = [\"a.csv\"]\nhops = 4\n"), "line 3", "from 0 to 3"),
            (graph("sources = [\"a.csv\"]\ntop_k = 0\n"), "line 3", "from 1 to 200"),
        ] {
            let error = parse("bcc-script.toml", &text).unwrap_err().to_string();
            assert!(error.contains(line) && error.contains(part) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_locale_is_a_language_tag() {
        for locale in ["en", "zh-CN", "zh_Hans_CN", "de-AT"] {
            assert!(is_locale(locale), "{locale}");
        }
        for locale in ["", "e", "en US", "en-", "en&x=1", "中文", "12"] {
            assert!(!is_locale(locale), "{locale}");
        }
    }
}
