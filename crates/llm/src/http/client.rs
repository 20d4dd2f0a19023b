//! The HTTP client for a server. It follows no redirects, so that requests go only to the configured address, and does
//! not use the proxy of the environment for a server on the local machine.

use bcc_lang::message::library::library;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::redirect::Policy;
use reqwest::{Client, Proxy, RequestBuilder, Response, Url};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::http::address::is_local;
use crate::http::host_lookup::HostLookup;

/// A client whose connections are read by a thread of their own. A server can keep the reader of a connection busy without sending
/// anything that reaches the caller, for example with informational responses without end; on the thread of the caller, no timeout
/// would expire in the meantime.
pub struct HttpClient {
    client: Client,
    connections: Arc<Connections>,
}

/// The thread that reads the connections. It ends when this is dropped.
struct Connections {
    handle: Handle,
    _running: oneshot::Sender<()>,
}

/// Why there is no response: the cause, without the address, which may contain a password.
#[derive(Debug)]
pub struct SendError(pub String);

impl HttpClient {
    /// A client for the server at `endpoint`. `proxy` is an address or `none`; by default the proxy of the environment is
    /// used. `connect_timeout` is an optional limit for connecting.
    ///
    /// # Errors
    /// When the proxy is invalid or the client cannot be built. The message omits the proxy's address, which may contain a password.
    pub fn new(endpoint: &Url, proxy: Option<&str>, connect_timeout: Option<Duration>) -> Result<Self, Message> {
        let client = plain_client(endpoint, proxy, connect_timeout)?;
        let connections = Connections::start()
            .map_err(|error| msg!("cannot set up the HTTP client ({})", library(&error.to_string())))?;
        Ok(Self { client, connections: Arc::new(connections) })
    }

    pub fn post(&self, to: Url) -> RequestBuilder {
        self.client.post(to)
    }

    pub fn get(&self, from: Url) -> RequestBuilder {
        self.client.get(from)
    }

    pub fn delete(&self, at: Url) -> RequestBuilder {
        self.client.delete(at)
    }

    /// Sends a request, and returns its response when the head is received. If this is dropped, the connection is closed.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, SendError> {
        let (mut send, receive) = oneshot::channel();
        self.connections.handle.spawn(async move {
            let response = tokio::select! {
                () = send.closed() => return,
                response = request.send() => response,
            };
            let _ = send.send(response);
        });
        match receive.await {
            Ok(Ok(mut response)) => {
                // The rest of the response is read by the thread as well.
                response.extensions_mut().insert(Arc::clone(&self.connections));
                Ok(response)
            }
            Ok(Err(error)) => Err(SendError(cause(error))),
            Err(_) => Err(SendError("the connection was closed".to_owned())),
        }
    }
}

/// A client without a thread of its own, for callers that have one. The arguments and the errors are those of [`HttpClient::new`].
///
/// # Errors
/// When the proxy is invalid or the client cannot be built.
pub fn plain_client(endpoint: &Url, proxy: Option<&str>, connect_timeout: Option<Duration>) -> Result<Client, Message> {
    // An error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = Client::builder()
        .redirect(Policy::none())
        .dns_resolver(Arc::new(HostLookup))
        .user_agent(concat!("bcc-script/", env!("CARGO_PKG_VERSION")));
    if let Some(timeout) = connect_timeout {
        client = client.connect_timeout(timeout);
    }
    match proxy.map(str::trim) {
        Some("none") => client = client.no_proxy(),
        Some(address) => client = client.proxy(proxy_at(address)?),
        None if is_local(endpoint) => client = client.no_proxy(),
        None => {}
    }
    let client = client.build().map_err(|error| msg!("cannot set up the HTTP client ({})", error.without_url()))?;
    Ok(client)
}

impl Connections {
    fn start() -> std::io::Result<Self> {
        let (started, result) = std::sync::mpsc::channel();
        let (running, ended) = oneshot::channel();
        // The runtime is made and dropped in the thread, because asynchronous code may drop none.
        std::thread::Builder::new().name("http".to_owned()).spawn(move || {
            // After each step, it is checked what came from the callers, such as a timeout.
            match Builder::new_current_thread().enable_all().event_interval(1).global_queue_interval(1).build() {
                Ok(runtime) => {
                    let _ = started.send(Ok(runtime.handle().clone()));
                    let _ = runtime.block_on(ended);
                }
                Err(error) => drop(started.send(Err(error))),
            }
        })?;
        let handle = result.recv().unwrap_or_else(|_| Err(std::io::ErrorKind::Interrupted.into()))?;
        Ok(Self { handle, _running: running })
    }
}

fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

fn proxy_at(address: &str) -> Result<Proxy, Message> {
    const WRITE: &str = "write a URL such as http://proxy.example:3128, or \"none\"";
    let url = Url::parse(address)
        .map_err(|error| msg!("`proxy` is not a valid URL ({error}); {WRITE}", WRITE = Message::word(WRITE)))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(msg!("`proxy` must start with http:// or https://; {WRITE}", WRITE = Message::word(WRITE)));
    }
    Proxy::all(url).map_err(|_| msg!("`proxy` is not a valid URL; {WRITE}", WRITE = Message::word(WRITE)))
}

/// A header value marked sensitive; `None` if the secret contains characters that are not allowed in a header.
pub fn secret(value: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(value).ok()?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::http::body::BodyError;
    use crate::http::timeouts::{TimeoutLimits, Timeouts};

    /// How long the server sends if nobody closes its connection. Only a broken client comes near it.
    const FLOOD: Duration = Duration::from_secs(120);

    #[tokio::test]
    async fn informational_responses_without_end_do_not_delay_a_timeout() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let server = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let _ = connection.read(&mut [0; 4096]).unwrap();
            let flood = "HTTP/1.1 100 Continue\r\n\r\n".repeat(10_000);
            let started = std::time::Instant::now();
            while connection.write_all(flood.as_bytes()).is_ok() {
                if started.elapsed() > FLOOD {
                    return false;
                }
            }
            true
        });
        let client = HttpClient::new(&endpoint, None, None).unwrap();
        let limit = Duration::from_secs(1);
        let timeouts = Timeouts::new(TimeoutLimits { total: limit, first: limit, idle: limit });
        let response = timeouts.wait(client.send(client.post(endpoint).body("{}"))).await;
        assert!(matches!(response, Err(BodyError::Timeout(..))), "{response:?}");
        // This thread does nothing for the connection while it waits.
        assert!(server.join().unwrap(), "the connection was not closed");
    }
}
