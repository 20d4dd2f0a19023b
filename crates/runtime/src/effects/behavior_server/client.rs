//! The HTTP client of a behavior server.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Response, Url};
use secrecy::ExposeSecret;
use serde_json::{Map, Value};

use crate::effects::behavior_server::answer::ServerAnswer;
use crate::effects::behavior_server::error::BehaviorServerError;
use crate::effects::behavior_server::pieces::AnswerPieces;
use crate::effects::behavior_server::settings::{Endpoint, EndpointPaths, ProtocolForm, ServerSettings};
use crate::effects::behavior_server::xml::{is_xml, read_xml};
use crate::effects::behaviors::{BehaviorPiece, BehaviorServer, ResponseStream, ServerError};
use bcc_llm::http::body::{BodyError, ResponseBody};
use bcc_llm::http::client::{HttpClient, secret};
use bcc_llm::http::lines::BYTE_ORDER_MARK;
use bcc_llm::http::retry::Retries;
use bcc_llm::http::timeouts::{TimeoutLimits, Timeouts};

/// The maximum size of one answer, in bytes.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// The maximum time of the check whether a server answers.
const MAX_CHECK_TIME: Duration = Duration::from_secs(10);

/// The maximum size of a plan or a reflection, in bytes: it holds a decision, a reason and changes of the context.
const MAX_REFLECTION_BYTES: usize = 1024 * 1024;

pub struct HttpServer {
    settings: ServerSettings,
    client: HttpClient,
    headers: HeaderMap,
    actions: Url,
    reflection: Url,
    plan: Url,
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn unusable_error(settings: &ServerSettings, why: &Message) -> ServerError {
    ServerError {
        code: "server-unknown",
        message: msg!("the behavior server `{name}` cannot be used: {why}", name = settings.name),
        help: Some(Message::word("`bcc-script schema config` lists what `[behavior_servers]` may contain")),
    }
}

impl HttpServer {
    /// A client with these settings. Nothing is sent yet.
    pub fn new(settings: ServerSettings) -> Result<Self, ServerError> {
        let endpoint = |endpoint| settings.endpoint(endpoint).map_err(|reason| unusable_error(&settings, &reason));
        let (actions, reflection) = (endpoint(Endpoint::Actions)?, endpoint(Endpoint::Reflection)?);
        let plan = endpoint(Endpoint::Plan)?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static(
                "application/json, application/x-ndjson, text/event-stream, application/xml;q=0.5",
            ),
        );
        if let Some(token) = &settings.token {
            let value = secret(&format!("Bearer {}", token.expose_secret().trim()))
                .ok_or_else(|| unusable_error(&settings, &Message::word("its token cannot be sent in a header")))?;
            headers.insert(AUTHORIZATION, value);
        }
        let client = HttpClient::new(&actions, None, Some(settings.connect_timeout))
            .map_err(|_| unusable_error(&settings, &Message::word("the HTTP client cannot be set up")))?;
        Ok(Self { settings, client, headers, actions, reflection, plan })
    }

    /// Sends one request and returns the answer when its first bytes are received; without any, it is empty.
    async fn attempt(&self, to: &Url, body: Vec<u8>) -> Result<(ResponseBody, Option<Vec<u8>>), BehaviorServerError> {
        let timeouts = Timeouts::new(self.settings.limits());
        let request = self.client.post(to.clone()).headers(self.headers.clone()).body(body);
        let response = timeouts.wait(self.client.send(request)).await?.map_err(|_| BehaviorServerError::Unreachable)?;
        let status = response.status();
        if !status.is_success() {
            return Err(BehaviorServerError::Status(status.as_u16(), retry_after(&response)));
        }
        let mut body = ResponseBody::new(Box::new(response), timeouts, MAX_ANSWER_BYTES);
        let first = body.next().await?;
        body.timeouts.mark_started();
        Ok((body, first))
    }

    /// Sends an observation and waits for the complete answer, which is small.
    async fn ask_all(&self, to: &Url, observation: &Value) -> Result<Vec<u8>, ServerError> {
        let to_error = |error: BehaviorServerError| error.to_server_error(&self.settings.name);
        let (mut body, first) = self.ask(to, observation).await?;
        let mut answer = first.unwrap_or_default();
        while let Some(bytes) = body.next().await.map_err(|body_error| to_error(body_error.into()))? {
            answer.extend_from_slice(&bytes);
            if answer.len() > MAX_REFLECTION_BYTES {
                return Err(to_error(BodyError::TooLarge(MAX_REFLECTION_BYTES).into()));
            }
        }
        if answer.starts_with(BYTE_ORDER_MARK) {
            answer.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(answer)
    }

    async fn ask(&self, to: &Url, observation: &Value) -> Result<(ResponseBody, Option<Vec<u8>>), ServerError> {
        let name = &self.settings.name;
        let body = observation.to_string().into_bytes();
        let mut retries = Retries::new(self.settings.max_attempts, self.settings.first_backoff);
        loop {
            let attempts = retries.count();
            let error = match self.attempt(to, body.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let retry_after = if let BehaviorServerError::Status(_, retry_after) = error { retry_after } else { None };
            let Some(pause) = retries.pause(error.is_transient(), retry_after) else {
                return Err(error.to_server_error(name));
            };
            tracing::debug!(name, sent = attempts, pause_ms = pause.as_millis(), "asking the behavior server again");
            tokio::time::sleep(pause).await;
        }
    }
}

/// The pause that the server requests, in seconds; dates are not supported.
fn retry_after(response: &Response) -> Option<Duration> {
    let header = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    header.trim().parse().ok().map(Duration::from_secs)
}

#[async_trait]
impl BehaviorServer for HttpServer {
    /// Any answer counts, because servers need to answer only POST requests. It is not asked twice: what starts soon can be asked again
    /// by whoever starts the session.
    async fn check(&self) -> Result<(), ServerError> {
        let to_error = |error: BehaviorServerError| error.to_server_error(&self.settings.name);
        let limit = self.settings.first_byte_timeout.min(MAX_CHECK_TIME);
        let timeouts = Timeouts::new(TimeoutLimits { total: limit, first: limit, idle: limit });
        let request = self.client.get(self.actions.clone()).headers(self.headers.clone());
        let response = timeouts.wait(self.client.send(request)).await.map_err(|error| to_error(error.into()))?;
        match response.map_err(|_| to_error(BehaviorServerError::Unreachable))?.status().as_u16() {
            status @ (401 | 403) => Err(to_error(BehaviorServerError::Status(status, None))),
            _ => Ok(()),
        }
    }

    async fn actions(&self, observation: &Value) -> Result<Box<dyn ResponseStream>, ServerError> {
        let (body, first) = self.ask(&self.actions, observation).await?;
        Ok(Box::new(ServerAnswer::new(&self.settings.name, body, first.as_deref())))
    }

    async fn reflection(&self, observation: &Value) -> Result<Value, ServerError> {
        let answer = self.ask_all(&self.reflection, observation).await?;
        parse_reflection(&answer).map_err(|error| error.to_server_error(&self.settings.name))
    }

    fn plans(&self) -> bool {
        self.settings.paths == EndpointPaths::Reflecting
    }

    async fn plan(&self, observation: &Value) -> Result<Value, ServerError> {
        let answer = self.ask_all(&self.plan, observation).await?;
        parse_plan(&answer).map_err(|error| error.to_server_error(&self.settings.name))
    }

    fn is_legacy_form(&self) -> bool {
        self.settings.form == ProtocolForm::Legacy
    }
}

/// The plan in a complete answer: one JSON value, or XML.
fn parse_plan(bytes: &[u8]) -> Result<Value, BehaviorServerError> {
    if is_xml(bytes) {
        return read_xml(bytes);
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|_| BodyError::Invalid("it is not JSON"))?;
    match value.get("error").is_some_and(|error| !error.is_null()) {
        true => Err(BehaviorServerError::Reported),
        false => Ok(value),
    }
}

/// The reflection in a complete answer: a single value, or the merged fields and actions of a stream.
fn parse_reflection(bytes: &[u8]) -> Result<Value, BehaviorServerError> {
    if is_xml(bytes) {
        return read_xml(bytes);
    }
    if let Ok(value @ Value::Bool(_)) = serde_json::from_slice(bytes) {
        return Ok(value);
    }
    let mut pieces = AnswerPieces::default();
    pieces.feed(bytes)?;
    pieces.end()?;
    let (mut last, mut actions) = (None, Vec::new());
    while let Some(piece) = pieces.take() {
        match piece {
            BehaviorPiece::Response(value) => last = Some(value),
            BehaviorPiece::Action(action) => actions.push(action),
        }
    }
    if !actions.is_empty() {
        let response = last.get_or_insert_with(|| Value::Object(Map::new()));
        if let Some(fields) = response.as_object_mut() {
            fields.insert("actions".to_owned(), Value::Array(actions));
        }
    }
    last.ok_or_else(|| BodyError::Invalid("it is not a judgement").into())
}
