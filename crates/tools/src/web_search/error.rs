//! Errors of search providers. No message contains anything that a provider sent except its status.

use std::time::Duration;

use bcc_engine::config::tool_tables::SearchProvider;
use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;
use bcc_llm::http::body::BodyError;
use bcc_runtime::effects::tools::ToolError;

use crate::web_search::tool::WEB_SEARCH;

/// Why a search gave no results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SearchError {
    Unreachable,
    /// A response with this status, and the pause that the server requests.
    Status(u16, Option<Duration>),
    /// A web page instead of JSON.
    Page,
    /// Neither JSON nor a web page, or JSON of another form.
    Unreadable,
    Broken(BodyError),
}

impl From<BodyError> for SearchError {
    fn from(error: BodyError) -> Self {
        Self::Broken(error)
    }
}

impl SearchError {
    pub(crate) fn to_tool_error(&self, provider: SearchProvider) -> ToolError {
        let name = provider.name();
        let searxng = provider == SearchProvider::SearXng;
        let (message, help) = match self {
            Self::Broken(BodyError::Timeout(..)) => return ToolError::TimedOut { tool: WEB_SEARCH.to_owned() },
            Self::Unreachable => {
                let help = Message::word("check that it is running, and `url` of `[tools.web_search]`");
                (msg!("the search server {name} cannot be reached"), Some(help))
            }
            Self::Status(403, _) if searxng => (
                msg!("the search server {name} responded with status 403"),
                Some(Message::word("add `json` to `formats` of `search` in its settings.yml")),
            ),
            Self::Status(401 | 403, _) => (
                msg!("the search server {name} does not accept the key"),
                Some(Message::word("check `api_key_env` or `api_key_file` of `[tools.web_search]`")),
            ),
            Self::Status(429, pause) => {
                let message = msg!("the search server {name} permits no more requests now");
                let help = pause.map(|pause| msg!("try again in {}", humantime_of(pause)));
                (message, help)
            }
            Self::Status(status @ 300..=399, _) => (
                msg!("the search server {name} responded with status {status}"),
                Some(Message::word(
                    "it redirects elsewhere, and redirects are not followed: use that address as `url`",
                )),
            ),
            Self::Status(status, _) => (msg!("the search server {name} responded with status {status}"), None),
            Self::Page => {
                let help = Message::word("check `url` of `[tools.web_search]`");
                (msg!("the search server {name} sent a web page instead of JSON"), Some(help))
            }
            Self::Unreadable => (msg!("the search server {name} sent something else than results"), None),
            Self::Broken(BodyError::TooLarge(limit)) => {
                (msg!("the search server {name} sent more than {limit} bytes"), None)
            }
            Self::Broken(BodyError::CutOff | BodyError::Invalid(_)) => {
                (msg!("the connection to the search server {name} was lost in the middle of its response"), None)
            }
        };
        let why = Message::list(Joint::Semicolon, std::iter::once(message).chain(help));
        ToolError::Failed { tool: WEB_SEARCH.to_owned(), why }
    }
}

fn humantime_of(pause: Duration) -> String {
    format!("{} s", pause.as_secs())
}
