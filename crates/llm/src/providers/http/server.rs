//! A model server, and one attempt to send a request and read the response.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::fmt;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Response, Url};
use secrecy::ExposeSecret;

use crate::http::address::host_of;
use crate::http::body::{ByteSource, ResponseBody};
use crate::http::client::{HttpClient, SendError};
use crate::http::retry::retry_after;
use crate::http::secrets::{ServerSecrets, password_secrets, query_secrets};
use crate::http::timeouts::Timeouts;
use crate::model::call_span::CalledModel;
use crate::model::error::{MAX_SERVER_MESSAGE_CHARS, ModelError};
use crate::model::provider::LiveObserver;
use crate::model::request::ModelRequest;
use crate::providers::http::address::endpoint;
use crate::providers::http::chunk::{ServerRejection, read_error};
use crate::providers::http::config::{ServerConfig, config_error};
use crate::providers::http::dialect::Dialect;
use crate::providers::http::draft::HttpAnswer;
use crate::providers::http::echo::without_request;
use crate::providers::http::headers::with_custom;
use crate::providers::http::reading::{MAX_REPLY_BYTES, ReadError, ResponseReader, as_model_error};

/// The maximum number of bytes that are read of an error response.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// How long to wait for the end of a response after a complete reply, so that the connection can be reused.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(2);

/// A configured server. Its debug output contains no secrets.
pub(crate) struct ModelServer {
    client: HttpClient,
    endpoint: Url,
    headers: HeaderMap,
    pub(crate) host: String,
    pub(crate) config: ServerConfig,
    /// Secrets that must be masked even in messages of the server.
    secrets: ServerSecrets,
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelServer").field("host", &self.host).field("config", &self.config).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct AttemptError {
    pub(crate) error: ModelError,
    /// The error that the server reported, if any.
    pub(crate) rejection: Option<ServerRejection>,
}

impl From<ModelError> for AttemptError {
    fn from(error: ModelError) -> Self {
        Self { error, rejection: None }
    }
}

impl ModelServer {
    /// Creates a server without sending anything.
    pub(crate) fn new(dialect: &Dialect, config: ServerConfig) -> Result<Self, ModelError> {
        config.check()?;
        for key in config.extra.keys() {
            if let Some((_, instead)) = dialect.reserved_fields.iter().find(|(field, _)| field == key) {
                return Err(config_error(msg!(
                    "`extra` must not set `{key}`: {instead}",
                    instead = Message::word(instead)
                )));
            }
        }
        let endpoint = endpoint(&config.base_url, dialect.path, dialect.example)?;
        let mut headers = with_custom((dialect.headers)(&config)?, &config.headers)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("text/event-stream, application/json"));
        let client =
            HttpClient::new(&endpoint, config.proxy.as_deref(), None).map_err(|reason| config_error(&reason))?;
        let host = host_of(&endpoint);
        let secrets = secrets(&config, &endpoint);
        Ok(Self { client, endpoint, headers, host, config, secrets })
    }

    /// The model for traces.
    pub(crate) fn called(&self, dialect: &'static Dialect) -> CalledModel<'_> {
        let server = self.endpoint.host_str().map(|host| (host, self.endpoint.port_or_known_default()));
        CalledModel { provider: dialect.name, model: &self.config.model, server }
    }

    /// Sends `body` and returns the reply, each piece of which is also passed to `live`. `tool` means that the reply was requested as a
    /// tool call. `request` is what the body contains.
    pub(crate) async fn attempt(
        &self,
        dialect: &'static Dialect,
        body: Vec<u8>,
        request: &ModelRequest,
        tool: bool,
        live: &mut dyn LiveObserver,
    ) -> Result<HttpAnswer, AttemptError> {
        let timeouts = Timeouts::new(self.config.limits());
        let sent = self.client.post(self.endpoint.clone()).headers(self.headers.clone()).body(body);
        let response = timeouts.wait(self.client.send(sent)).await;
        let response = response.map_err(|error| as_model_error(error, &self.host))?;
        let response = response.map_err(|error| self.unreachable(&error))?;
        if !response.status().is_success() {
            return Err(self.rejected(response, timeouts, request).await);
        }
        let content_type = header(response.headers(), &CONTENT_TYPE).unwrap_or_default().to_owned();
        let body = ResponseBody::new(Box::new(response), timeouts, MAX_REPLY_BYTES);
        let mut reader = ResponseReader::new(body, dialect, &self.host);
        match reader.answer(&content_type, tool, live).await {
            Ok(answer) => {
                if let Some(source) = reader.into_unread_source() {
                    drain(source).await;
                }
                Ok(answer)
            }
            Err(ReadError::Model(error)) => Err(error.into()),
            Err(ReadError::Reported(rejection)) => Err(self.reported(rejection, request)),
        }
    }

    async fn rejected(&self, response: Response, timeouts: Timeouts, request: &ModelRequest) -> AttemptError {
        let status = response.status().as_u16();
        let headers = response.headers();
        let retry_after = header(headers, &RETRY_AFTER).and_then(|wait| retry_after(wait, header(headers, &DATE)));
        let mut body_reader = ResponseBody::new(Box::new(response), timeouts, usize::MAX);
        let mut body = Vec::new();
        // If the body cannot be read, the status is reported without a message.
        while let Ok(Some(bytes)) = body_reader.next().await {
            body.extend_from_slice(&bytes);
            if body.len() >= MAX_ERROR_BYTES {
                break;
            }
        }
        let rejection = ServerRejection { status: Some(status), ..read_error(&body) };
        let message = self.message(&rejection, request);
        let error = ModelError::Http { host: self.host.clone(), status, message, retry_after, attempts: 1 };
        AttemptError { error, rejection: Some(rejection) }
    }

    fn reported(&self, rejection: ServerRejection, request: &ModelRequest) -> AttemptError {
        let host = self.host.clone();
        let message = self.message(&rejection, request);
        let error = match rejection.status {
            Some(status) => ModelError::Http { host, status, message, retry_after: None, attempts: 1 },
            None if message.is_empty() => {
                ModelError::Protocol { host, message: msg!("it reports an error"), attempts: 1 }
            }
            None => ModelError::Protocol { host, message: msg!("it reports an error: {message}"), attempts: 1 },
        };
        AttemptError { error, rejection: Some(rejection) }
    }

    fn unreachable(&self, error: &SendError) -> ModelError {
        ModelError::Unreachable { host: self.host.clone(), reason: self.shorten(&error.0), attempts: 1 }
    }

    /// The message of a rejection without the text of the request that it repeats, which only the log then contains.
    fn message(&self, rejection: &ServerRejection, request: &ModelRequest) -> String {
        let message = self.shorten(&rejection.message);
        let Some(shown) = without_request(&rejection.message, request) else { return message };
        tracing::debug!(host = self.host, message, "the message of a model's server repeats the request");
        self.shorten(&shown)
    }

    /// The message on one line, without secrets, which servers may repeat, truncated to [`MAX_SERVER_MESSAGE_CHARS`].
    fn shorten(&self, message: &str) -> String {
        let masked = self.secrets.mask(message);
        let line = masked.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
        let line = line.collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(MAX_SERVER_MESSAGE_CHARS) {
            Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
            None => line,
        }
    }
}

/// All secrets of the settings.
fn secrets(config: &ServerConfig, endpoint: &Url) -> ServerSecrets {
    let headers = config.headers.iter().map(|(_, value)| value.expose_secret().trim().to_owned());
    let proxy = config.proxy.as_deref().and_then(|address| Url::parse(address.trim()).ok());
    let passwords = proxy.iter().flat_map(password_secrets);
    let secrets = config.key().map(str::to_owned).into_iter().chain(headers);
    ServerSecrets::new(secrets.chain(query_secrets(endpoint)).chain(passwords))
}

/// Reads the rest of a response after a complete reply in the background. A connection with an unread response is closed, so that the
/// next call would have to open a new one.
async fn drain(mut source: Box<dyn ByteSource>) {
    let next = tokio::time::timeout(Duration::ZERO, source.next()).await;
    if !matches!(next, Ok(Ok(None) | Err(_))) {
        tokio::spawn(tokio::time::timeout(MAX_DRAIN_TIME, async move {
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
