//! A behavior server, ready to be asked.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use secrecy::ExposeSecret;
use serde_json::Value;

use crate::effects::behavior_server::arriving::{Answer, Body, Patience};
use crate::effects::behavior_server::fault::Fault;
use crate::effects::behavior_server::pieces::Pieces;
use crate::effects::behavior_server::settings::{Endpoint, Form, Settings, is_local};
use crate::effects::behaviors::{Arriving, BehaviorServer, Piece, ServerError};

/// The most bytes of a judgement: it says yes or no, why, and what changes.
const MOST_JUDGEMENT_BYTES: usize = 1024 * 1024;

/// The longest `Retry-After` that is waited for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The longest pause between two requests when the server asks for none.
const LONGEST_BACKOFF: Duration = Duration::from_secs(15);

/// A server over HTTP.
pub struct HttpServer {
    settings: Settings,
    client: Client,
    headers: HeaderMap,
    actions: Url,
    reflection: Url,
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn unusable(settings: &Settings, why: &str) -> ServerError {
    ServerError {
        code: "server-unknown",
        message: format!("the behavior server `{name}` cannot be used: {why}", name = settings.name),
        help: Some("docs/configuration.md lists what `[behavior_servers]` may hold".to_owned()),
    }
}

impl HttpServer {
    /// A server with these settings. Nothing is sent yet. Redirections are not followed, so that what is observed and the
    /// token go nowhere but to `url`; a server on this machine is reached without the proxy that the environment may name.
    ///
    /// # Errors
    /// For settings that cannot work.
    pub fn new(settings: Settings) -> Result<Self, ServerError> {
        let endpoint = |endpoint| settings.endpoint(endpoint).map_err(|why| unusable(&settings, &why));
        let (actions, reflection) = (endpoint(Endpoint::Actions)?, endpoint(Endpoint::Reflection)?);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, application/x-ndjson, text/event-stream"));
        if let Some(token) = &settings.token {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret().trim()))
                .map_err(|_| unusable(&settings, "its token cannot be sent in a header"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        // An error means that one is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(settings.connect_timeout)
            .user_agent(concat!("bcc-script/", env!("CARGO_PKG_VERSION")));
        if is_local(&actions) {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|_| unusable(&settings, "the HTTP client cannot be set up"))?;
        Ok(Self { settings, client, headers, actions, reflection })
    }

    /// One request; the answer as soon as its first bytes are there. None of them means that it is empty.
    async fn attempt(&self, to: &Url, body: Vec<u8>) -> Result<(Body, Option<Vec<u8>>), Fault> {
        let patience = Patience::new(&self.settings);
        let request = self.client.post(to.clone()).headers(self.headers.clone()).body(body);
        let response = patience.wait(request.send()).await?.map_err(|_| Fault::Unreachable)?;
        let status = response.status();
        if !status.is_success() {
            return Err(Fault::Status(status.as_u16(), retry_after(&response)));
        }
        let mut body = Body::new(response, patience);
        let first = body.next().await?.map(|bytes| bytes.as_ref().to_vec());
        Ok((body, first))
    }

    /// Requests until one brings the beginning of an answer, or there is no hope.
    async fn ask(&self, to: &Url, observation: &Value) -> Result<(Body, Option<Vec<u8>>), ServerError> {
        let name = &self.settings.name;
        let body = observation.to_string().into_bytes();
        let mut backoff = self.settings.first_backoff;
        let mut sent = 1;
        loop {
            let fault = match self.attempt(to, body.clone()).await {
                Ok(begun) => return Ok(begun),
                Err(fault) => fault,
            };
            let wait = match fault {
                Fault::Status(_, Some(wait)) => wait,
                // Full jitter: sessions that failed together do not come back together.
                _ => backoff.min(LONGEST_BACKOFF).mul_f64(fastrand::f64()),
            };
            if !fault.is_transient() || sent >= self.settings.max_attempts || wait > LONGEST_RETRY_AFTER {
                return Err(fault.told(name));
            }
            tracing::debug!(name, sent, pause_ms = wait.as_millis(), "asking the behavior server again");
            tokio::time::sleep(wait).await;
            backoff = backoff.saturating_mul(2);
            sent += 1;
        }
    }
}

/// How many seconds the server asks to wait; a date is not read.
fn retry_after(response: &Response) -> Option<Duration> {
    let header = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    header.trim().parse().ok().map(Duration::from_secs)
}

#[async_trait]
impl BehaviorServer for HttpServer {
    async fn actions(&self, observation: &Value) -> Result<Box<dyn Arriving>, ServerError> {
        let (body, first) = self.ask(&self.actions, observation).await?;
        Ok(Box::new(Answer::new(&self.settings.name, body, first.as_deref())))
    }

    async fn reflection(&self, observation: &Value) -> Result<Value, ServerError> {
        let told = |fault: Fault| fault.told(&self.settings.name);
        let (mut body, first) = self.ask(&self.reflection, observation).await?;
        let mut whole = first.unwrap_or_default();
        while let Some(bytes) = body.next().await.map_err(told)? {
            whole.extend_from_slice(bytes.as_ref());
            if whole.len() > MOST_JUDGEMENT_BYTES {
                return Err(told(Fault::Flood(MOST_JUDGEMENT_BYTES)));
            }
        }
        judgement(&whole).map_err(told)
    }

    fn older_form(&self) -> bool {
        self.settings.form == Form::Older
    }
}

/// A judgement out of a whole answer: one value, or the fields of all that a stream brought.
fn judgement(bytes: &[u8]) -> Result<Value, Fault> {
    if let Ok(truth @ Value::Bool(_)) = serde_json::from_slice(bytes) {
        return Ok(truth);
    }
    let mut pieces = Pieces::default();
    pieces.feed(bytes)?;
    pieces.end()?;
    let mut last = Err(Fault::Rubbish("it is no judgement"));
    while let Some(piece) = pieces.take() {
        if let Piece::Response(value) = piece {
            last = Ok(value);
        }
    }
    last
}
