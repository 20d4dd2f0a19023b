//! A server, and one attempt: a request is sent and its answer read.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, Url};
use secrecy::ExposeSecret;

use crate::http::address::host_of;
use crate::http::body::{ByteSource, ResponseBody};
use crate::http::client::client;
use crate::http::retry::retry_after;
use crate::http::timeouts::Timeouts;
use crate::model::error::{LONGEST_SERVER_MESSAGE, ModelError};
use crate::model::provider::LiveObserver;
use crate::providers::http::address::endpoint;
use crate::providers::http::chunk::{ServerRejection, read_error};
use crate::providers::http::config::{ServerConfig, refuse};
use crate::providers::http::dialect::Dialect;
use crate::providers::http::draft::HttpAnswer;
use crate::providers::http::headers::with_custom;
use crate::providers::http::reading::{MAX_REPLY_BYTES, ReadError, Reading, as_model_error};
use bcc_lang::value::mask::MASK;

/// The most bytes that are read of an answer that is an error; its message stands at the beginning.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// How long the end of an answer is waited for after its reply is whole, so that the connection can be used again.
const LONGEST_FAREWELL: Duration = Duration::from_secs(2);

/// The shortest secret that is looked for in what a server says. A shorter one is part of ordinary words.
const SHORTEST_SECRET: usize = 4;

/// A server, ready to be asked. Its debug form shows no secret.
pub(crate) struct ModelServer {
    client: Client,
    endpoint: Url,
    headers: HeaderMap,
    pub(crate) host: String,
    pub(crate) config: ServerConfig,
    /// What must not be told even when the server repeats it.
    secrets: Vec<String>,
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelServer").field("host", &self.host).field("config", &self.config).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: ModelError,
    /// What the server said, where it said anything.
    pub(crate) refusal: Option<ServerRejection>,
}

impl From<ModelError> for Failed {
    fn from(error: ModelError) -> Self {
        Self { error, refusal: None }
    }
}

impl ModelServer {
    /// A server with these settings. Nothing is sent yet.
    pub(crate) fn new(dialect: &Dialect, config: ServerConfig) -> Result<Self, ModelError> {
        config.check()?;
        for key in config.extra.keys() {
            if let Some((_, instead)) = dialect.owned.iter().find(|(owned, _)| owned == key) {
                return Err(refuse(msg!("`extra` must not set `{key}`: {instead}", instead = Message::word(instead))));
            }
        }
        let endpoint = endpoint(&config.base_url, dialect.path, dialect.example)?;
        let mut headers = with_custom((dialect.headers)(&config)?, &config.headers)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("text/event-stream, application/json"));
        let client = client(&endpoint, config.proxy.as_deref(), None).map_err(|why| refuse(&why))?;
        let host = host_of(&endpoint);
        let secrets = secrets(&config, &endpoint);
        Ok(Self { client, endpoint, headers, host, config, secrets })
    }

    /// Sends `body` and gives what the model answers, each piece also to `live`. `tool` says that the reply was asked for
    /// as a call of a tool.
    pub(crate) async fn attempt(
        &self,
        dialect: &'static Dialect,
        body: Vec<u8>,
        tool: bool,
        live: &mut dyn LiveObserver,
    ) -> Result<HttpAnswer, Failed> {
        let patience = Timeouts::new(self.config.limits());
        let request = self.client.post(self.endpoint.clone()).headers(self.headers.clone()).body(body);
        let response = patience.wait(request.send()).await.map_err(|broken| as_model_error(broken, &self.host))?;
        let response = response.map_err(|error| self.unreachable(error))?;
        if !response.status().is_success() {
            return Err(self.refused(response, patience).await);
        }
        let kind = header(response.headers(), &CONTENT_TYPE).unwrap_or_default().to_owned();
        let body = ResponseBody::new(Box::new(response), patience, MAX_REPLY_BYTES);
        let mut reading = Reading::new(body, dialect, &self.host);
        match reading.answer(&kind, tool, live).await {
            Ok(answer) => {
                if let Some(source) = reading.rest() {
                    farewell(source).await;
                }
                Ok(answer)
            }
            Err(ReadError::Model(error)) => Err(error.into()),
            Err(ReadError::Reported(refusal)) => Err(self.reported(refusal)),
        }
    }

    async fn refused(&self, response: Response, patience: Timeouts) -> Failed {
        let status = response.status().as_u16();
        let headers = response.headers();
        let retry_after = header(headers, &RETRY_AFTER).and_then(|wait| retry_after(wait, header(headers, &DATE)));
        let mut arriving = ResponseBody::new(Box::new(response), patience, usize::MAX);
        let mut body = Vec::new();
        // A body that does not arrive leaves the status, which says most of it.
        while let Ok(Some(bytes)) = arriving.next().await {
            body.extend_from_slice(&bytes);
            if body.len() >= MAX_ERROR_BYTES {
                break;
            }
        }
        let refusal = ServerRejection { status: Some(status), ..read_error(&body) };
        let message = self.shorten(&refusal.message);
        let error = ModelError::Http { host: self.host.clone(), status, message, retry_after, attempts: 1 };
        Failed { error, refusal: Some(refusal) }
    }

    fn reported(&self, refusal: ServerRejection) -> Failed {
        let host = self.host.clone();
        let message = self.shorten(&refusal.message);
        let error = match refusal.status {
            Some(status) => ModelError::Http { host, status, message, retry_after: None, attempts: 1 },
            None => ModelError::Protocol { host, message: msg!("it reports an error: {message}"), attempts: 1 },
        };
        Failed { error, refusal: Some(refusal) }
    }

    fn unreachable(&self, error: reqwest::Error) -> ModelError {
        let error = error.without_url();
        let mut cause: &dyn Error = &error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        ModelError::Unreachable { host: self.host.clone(), reason: self.shorten(&cause.to_string()), attempts: 1 }
    }

    /// A message on one line, without secrets (servers repeat them), cut to [`LONGEST_SERVER_MESSAGE`].
    fn shorten(&self, message: &str) -> String {
        let masked = self.secrets.iter().fold(message.to_owned(), |text, secret| text.replace(secret, MASK));
        let line = masked.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
        let line = line.collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(LONGEST_SERVER_MESSAGE) {
            Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
            None => line,
        }
    }
}

/// Every secret of the settings, the longest first, so that none is hidden by a part of it.
fn secrets(config: &ServerConfig, endpoint: &Url) -> Vec<String> {
    let mut secrets: Vec<String> = config.key().map(str::to_owned).into_iter().collect();
    secrets.extend(config.headers.iter().map(|(_, value)| value.expose_secret().trim().to_owned()));
    secrets.extend(endpoint.query_pairs().map(|(_, value)| value.into_owned()));
    if let Some(proxy) = config.proxy.as_deref().and_then(|address| Url::parse(address.trim()).ok()) {
        secrets.extend(proxy.password().map(str::to_owned));
    }
    // `Bearer x` is no more secret than `x`, and a server may repeat either.
    let words: Vec<String> = secrets.iter().flat_map(|secret| secret.split_whitespace()).map(str::to_owned).collect();
    secrets.extend(words.into_iter().filter(|word| !word.eq_ignore_ascii_case("bearer")));
    secrets.retain(|secret| secret.len() >= SHORTEST_SECRET);
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.dedup();
    secrets
}

/// Reads what follows a whole reply, mostly nothing, beside whatever comes next: a connection whose answer was not read
/// to its end is closed, and the next call would have to open another.
async fn farewell(mut source: Box<dyn ByteSource>) {
    let rest = tokio::time::timeout(Duration::ZERO, source.next()).await;
    if !matches!(rest, Ok(Ok(None) | Err(_))) {
        tokio::spawn(tokio::time::timeout(LONGEST_FAREWELL, async move {
            let mut read = 0_usize;
            while let Ok(Some(bytes)) = source.next().await {
                read = read.saturating_add(bytes.len());
                if read > MAX_ERROR_BYTES {
                    return;
                }
            }
        }));
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
