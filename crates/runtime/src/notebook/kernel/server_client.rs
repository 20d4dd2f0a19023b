//! The REST API of a Jupyter server, as far as a session needs it: its kernel specs, and its kernels.

use bcc_lang::message::library::library;
use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::time::Duration;

use bcc_llm::http::client::{HttpClient, secret};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{RequestBuilder, Response, Url};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::notebook::kernel::contract::{KernelError, ServerKernel};
use crate::notebook::kernel::location::KernelLocation;

/// The maximum time for one request. A server starts a kernel within one.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The maximum time until a connection is there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum time to interrupt code.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(2);

/// The maximum time to end a kernel.
pub(crate) const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// The maximum number of names in a message.
const MAX_NAMES: usize = 30;

/// The maximum length of such a name.
const MAX_NAME_BYTES: usize = 100;

/// A client of one server.
pub(crate) struct ServerClient {
    http: HttpClient,
    /// The address of the server, without a slash at its end.
    url: String,
    headers: HeaderMap,
}

/// Why a server gave no answer that can be used.
#[derive(Debug)]
pub(crate) enum ServerProblem {
    /// The cause.
    Unreachable(String),
    TimedOut,
    Status(u16),
    /// It is no answer of a Jupyter server.
    NotJupyter,
}

/// A request of the REST API.
#[derive(Clone, Copy)]
enum Method {
    Get,
    Post,
    Delete,
}

#[derive(Deserialize)]
struct KernelModel {
    id: String,
    #[serde(default)]
    connections: u64,
}

impl ServerClient {
    /// A client of the server, with the token that the project names for it. Nothing is sent yet.
    pub(crate) fn new(server: &ServerKernel, location: &KernelLocation) -> Result<Self, KernelError> {
        let unusable = |why: Message| KernelError {
            code: "kernel-unreachable",
            message: msg!("the Jupyter server {} cannot be used: {why}", server.url),
            help: None,
        };
        let token = match &location.servers {
            Some(servers) => servers.token(server)?,
            None => return Err(unusable(Message::word("no project allows it"))),
        };
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            let value = secret(&["token", token.expose_secret().trim()].join(" "))
                .ok_or_else(|| unusable(Message::word("its token cannot be sent in a header")))?;
            headers.insert(AUTHORIZATION, value);
        }
        let endpoint =
            Url::parse(&server.url).map_err(|_| unusable(Message::word("this is not the address of a server")))?;
        let http = HttpClient::new(&endpoint, None, Some(CONNECT_TIMEOUT)).map_err(unusable)?;
        Ok(Self { http, url: server.url.clone(), headers })
    }

    /// Starts a kernel of this name. Returns its id.
    pub(crate) async fn start(&self, name: &str) -> Result<String, ServerProblem> {
        let answer = self.call(Method::Post, "/api/kernels", Some(&json!({ "name": name }))).await?;
        let model: Option<KernelModel> = serde_json::from_value(answer).ok();
        model.map(|model| model.id).filter(|id| is_id(id)).ok_or(ServerProblem::NotJupyter)
    }

    /// Whether the kernel with this id runs.
    pub(crate) async fn runs(&self, id: &str) -> Result<bool, ServerProblem> {
        Ok(self.connections(id).await?.is_some())
    }

    /// How many clients are connected to the kernel with this id; `None` if it does not run.
    pub(crate) async fn connections(&self, id: &str) -> Result<Option<u64>, ServerProblem> {
        if !is_id(id) {
            return Ok(None);
        }
        match self.call(Method::Get, &format!("/api/kernels/{id}"), None).await {
            Ok(model) => match serde_json::from_value(model) {
                Ok(KernelModel { id: found, connections }) if found == id => Ok(Some(connections)),
                _ => Err(ServerProblem::NotJupyter),
            },
            // Other servers answer 404 as well: this one lists its kernels.
            Err(ServerProblem::Status(404)) => match self.call(Method::Get, "/api/kernels", None).await? {
                Value::Array(_) => Ok(None),
                _ => Err(ServerProblem::NotJupyter),
            },
            Err(problem) => Err(problem),
        }
    }

    /// Interrupts the code of a kernel.
    pub(crate) async fn interrupt(&self, id: &str) {
        let path = format!("/api/kernels/{id}/interrupt");
        let answer = within(INTERRUPT_TIMEOUT, self.call(Method::Post, &path, None)).await;
        if let Err(problem) = answer {
            tracing::debug!(?problem, "the kernel could not be interrupted");
        }
    }

    /// Ends a kernel. Returns whether it is gone.
    pub(crate) async fn delete(&self, id: &str) -> bool {
        // An id from a store may be anything.
        if !is_id(id) {
            return false;
        }
        let answer = within(END_TIMEOUT, self.call(Method::Delete, &format!("/api/kernels/{id}"), None)).await;
        match answer {
            Ok(_) | Err(ServerProblem::Status(404)) => true,
            Err(problem) => {
                tracing::debug!(?problem, "the kernel could not be ended");
                false
            }
        }
    }

    /// Whether the server has a kernel spec of this name.
    pub(crate) async fn check_name(&self, name: &str) -> Result<(), KernelError> {
        let specs = self.call(Method::Get, "/api/kernelspecs", None).await.map_err(|problem| self.error(&problem))?;
        let Some(specs) = specs.get("kernelspecs").and_then(Value::as_object) else {
            return Err(self.error(&ServerProblem::NotJupyter));
        };
        if specs.contains_key(name) {
            return Ok(());
        }
        let url = &self.url;
        let names = specs.keys().filter(|name| is_kernel_name(name)).take(MAX_NAMES);
        let names = names.map(|name| Message::text(format!("`{name}`")));
        let names = Message::list(Joint::Item, names);
        Err(KernelError {
            code: "no-kernel",
            message: msg!("the Jupyter server {url} has no kernel `{name}`"),
            help: Some(msg!("these are installed there: {names}; choose one with `name` of `session.kernel`")),
        })
    }

    /// The response to a request for a websocket.
    pub(crate) async fn upgrade(&self, path: &str, headers: HeaderMap) -> Result<Response, ServerProblem> {
        // The address of a websocket is that of HTTP: only the scheme has another name.
        let request = self.http.get(self.address(path)?).headers(headers);
        self.send(request).await
    }

    /// The error for a person.
    pub(crate) fn error(&self, problem: &ServerProblem) -> KernelError {
        let url = &self.url;
        let (message, help) = match problem {
            ServerProblem::Unreachable(cause) => (
                msg!("the Jupyter server {url} cannot be reached ({})", library(cause)),
                Message::word("start it, or correct `jupyter` of `session.kernel`"),
            ),
            ServerProblem::TimedOut => (
                msg!("the Jupyter server {url} does not answer"),
                Message::word("check whether it hangs; the session can be resumed"),
            ),
            ServerProblem::Status(status @ (401 | 403)) => (
                msg!("the Jupyter server {url} refuses the request (status {status})"),
                Message::word(
                    "check the token: its variable is `token_env` of `[[kernel.jupyter]]` in bcc-script.toml",
                ),
            ),
            ServerProblem::Status(status @ 300..=399) => (
                msg!("the Jupyter server {url} redirects the request (status {status})"),
                Message::word(
                    "redirects are not followed: use the address of the server itself, and a token if it asks people to log in",
                ),
            ),
            ServerProblem::Status(404) | ServerProblem::NotJupyter => (
                msg!("at {url} there is no Jupyter server"),
                Message::word(
                    "use the address below which `/api/kernels` is, as in `http://localhost:8888`, or with the base URL of the server",
                ),
            ),
            ServerProblem::Status(status) => (
                msg!("the Jupyter server {url} answered with status {status}"),
                Message::word("check the log of the server; the session can be resumed"),
            ),
        };
        KernelError { code: "kernel-unreachable", message, help: Some(help) }
    }

    /// Sends a request and returns the JSON of a successful answer, null if it is empty.
    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ServerProblem> {
        let address = self.address(path)?;
        let request = match method {
            Method::Get => self.http.get(address),
            Method::Post => self.http.post(address),
            Method::Delete => self.http.delete(address),
        };
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body);
        let mut response = self.send(request).await?;
        let status = response.status();
        if !status.is_success() {
            return Err(ServerProblem::Status(status.as_u16()));
        }
        let mut answer = Vec::new();
        let read = timeout(REQUEST_TIMEOUT, async {
            while let Some(piece) = response.chunk().await.map_err(|_| ServerProblem::NotJupyter)? {
                answer.extend_from_slice(&piece);
                if answer.len() > MAX_ANSWER_BYTES {
                    return Err(ServerProblem::NotJupyter);
                }
            }
            Ok(())
        });
        read.await.map_err(|_| ServerProblem::TimedOut)??;
        if answer.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&answer).map_err(|_| ServerProblem::NotJupyter)
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, ServerProblem> {
        let request = request.headers(self.headers.clone());
        let sent = timeout(REQUEST_TIMEOUT, self.http.send(request)).await.map_err(|_| ServerProblem::TimedOut)?;
        sent.map_err(|error| ServerProblem::Unreachable(error.0))
    }

    fn address(&self, path: &str) -> Result<Url, ServerProblem> {
        Url::parse(&format!("{}{path}", self.url)).map_err(|_| ServerProblem::NotJupyter)
    }
}

/// The answer, if it comes in time.
pub(crate) async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, ServerProblem>>,
) -> Result<T, ServerProblem> {
    timeout(limit, answer).await.unwrap_or(Err(ServerProblem::TimedOut))
}

/// Whether this is a name that Jupyter permits for a kernel spec.
fn is_kernel_name(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Whether an id from a server can be a part of an address.
fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 100 && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}
