//! Sends a search to a provider and reads its answer, within limits of time and size.

use std::time::Duration;

use bcc_engine::config::tool_tables::SearchProvider;
use bcc_lang::message::message::Message;
use bcc_llm::http::body::ResponseBody;
use bcc_llm::http::client::{HttpClient, secret};
use bcc_llm::http::retry::retry_after;
use bcc_llm::http::timeouts::{TimeoutLimits, Timeouts};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Response, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::web_search::answer::{SearchResult, search_results};
use crate::web_search::error::SearchError;
use crate::web_search::request::{SearchQuery, SearchRequest, search_request};

/// The maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// The time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct SearchServer {
    provider: SearchProvider,
    base: Url,
    client: HttpClient,
    headers: HeaderMap,
}

impl SearchServer {
    /// A client. Nothing is sent yet.
    pub(crate) fn new(provider: SearchProvider, url: &str, key: Option<&SecretString>) -> Result<Self, Message> {
        let base = Url::parse(url.trim()).map_err(|_| Message::word("`url` of `[tools.web_search]` is not valid"))?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(key) = key {
            let (name, value) = match provider {
                SearchProvider::Brave => {
                    (HeaderName::from_static("x-subscription-token"), key.expose_secret().trim().to_owned())
                }
                _ => (AUTHORIZATION, format!("Bearer {}", key.expose_secret().trim())),
            };
            let value = secret(&value).ok_or_else(|| Message::word("its key cannot be sent in a header"))?;
            headers.insert(name, value);
        }
        let client = HttpClient::new(&base, None, Some(CONNECT_TIMEOUT))?;
        Ok(Self { provider, base, client, headers })
    }

    /// The results of one search.
    pub(crate) async fn search(
        &self,
        search: &SearchQuery,
        timeout: Duration,
    ) -> Result<Vec<SearchResult>, SearchError> {
        let timeouts = Timeouts::new(TimeoutLimits { total: timeout, first: timeout, idle: timeout });
        let request = match search_request(self.provider, &self.base, search) {
            SearchRequest::Get(url) => self.client.get(url),
            SearchRequest::Post(url, body) => {
                self.client.post(url).header(CONTENT_TYPE, "application/json").body(body.to_string())
            }
        };
        let sent = self.client.send(request.headers(self.headers.clone()));
        let response = timeouts.wait(sent).await?.map_err(|_| SearchError::Unreachable)?;
        if !response.status().is_success() {
            return Err(SearchError::Status(response.status().as_u16(), pause_of(&response)));
        }
        let mut body = ResponseBody::new(Box::new(response), timeouts, MAX_ANSWER_BYTES);
        let mut answer = Vec::new();
        while let Some(bytes) = body.next().await? {
            answer.extend_from_slice(&bytes);
        }
        let value: Value = serde_json::from_slice(&answer).map_err(|_| not_json(&answer))?;
        search_results(self.provider, &value, search.max_results).ok_or(SearchError::Unreadable)
    }
}

fn not_json(answer: &[u8]) -> SearchError {
    let first = answer.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'<') { SearchError::Page } else { SearchError::Unreadable }
}

/// The pause that the server requests.
fn pause_of(response: &Response) -> Option<Duration> {
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    retry_after(header(RETRY_AFTER)?, header(DATE))
}
