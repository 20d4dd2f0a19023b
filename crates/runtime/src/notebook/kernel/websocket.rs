//! The channels of a kernel over the websocket of a Jupyter server. A connection that is lost is opened again: the server keeps what the
//! kernel sent in the meantime for the same client, unless another client is connected to the kernel.

use std::io::{ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{StatusCode, Upgraded};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message as SocketMessage;
use tokio_tungstenite::tungstenite::error::Error as SocketError;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::notebook::kernel::channels::{ChannelState, KernelChannels, MessageSender, RequestChannel};
use crate::notebook::kernel::message::{Received, header, random};
use crate::notebook::kernel::server_client::{ServerClient, ServerProblem, within};
use crate::notebook::kernel::socket_form::{SocketChannel, SocketForm, V1};

/// How long a lost connection is opened again, until the kernel counts as lost.
const RECONNECT_LIMIT: Duration = Duration::from_secs(30);

/// The maximum time for one step of an attempt.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(10);

/// The pause before each attempt.
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);

/// A connection on which nothing came for this long is asked whether it still exists.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// How many requests wait to be sent.
const MAX_WAITING: usize = 16;

/// Messages of up to this many times the size of what is kept are read, so that it is known what they are.
const EXCESS: usize = 2;

pub(crate) struct SocketSender {
    requests: mpsc::Sender<Outgoing>,
    session: String,
}

struct Outgoing {
    channel: &'static str,
    header: Value,
    content: Value,
}

impl SocketSender {
    pub(crate) async fn send(&self, channel: RequestChannel, id: &str, kind: &str, content: &Value) -> Result<()> {
        let channel = match channel {
            RequestChannel::Shell => "shell",
            RequestChannel::Control => "control",
        };
        let outgoing = Outgoing { channel, header: header(&self.session, id, kind), content: content.clone() };
        let sent = self.requests.send(outgoing).await;
        sent.map_err(|_| ErrorKind::NotConnected.into())
    }
}

struct Socket {
    stream: WebSocketStream<Upgraded>,
    form: SocketForm,
}

/// What is needed to connect, and to connect again.
struct SocketEndpoint {
    client: Arc<ServerClient>,
    kernel_id: String,
    session: String,
    /// The maximum stored size of a message, in bytes.
    max_bytes: usize,
}

/// Connects to a kernel on a server.
pub(crate) async fn open(
    client: &Arc<ServerClient>,
    kernel_id: &str,
    max_bytes: usize,
) -> std::result::Result<KernelChannels, ServerProblem> {
    let session = random(16).map_err(|error| ServerProblem::Unreachable(error.to_string()))?;
    let endpoint = SocketEndpoint {
        client: Arc::clone(client),
        kernel_id: kernel_id.to_owned(),
        session: session.clone(),
        max_bytes,
    };
    let socket = endpoint.connect().await?;
    let state = ChannelState::new(Arc::default());
    let (requests, outgoing) = mpsc::channel(MAX_WAITING);
    let (shell_sender, shell) = mpsc::channel(1);
    let (iopub_sender, iopub) = mpsc::channel(1);
    let carrier = Carrier { endpoint, state: state.clone(), shell: shell_sender, iopub: iopub_sender };
    tokio::spawn(carrier.carry(socket, outgoing));
    let sender = SocketSender { requests, session: session.clone() };
    Ok(KernelChannels::new((shell, iopub), state, MessageSender::Socket(sender), session))
}

impl SocketEndpoint {
    async fn connect(&self) -> std::result::Result<Socket, ServerProblem> {
        let key = generate_key();
        let fixed = HeaderValue::from_static;
        let mut headers = HeaderMap::new();
        let mut add = |name: HeaderName, value: HeaderValue| headers.insert(name, value);
        add(CONNECTION, fixed("Upgrade"));
        add(UPGRADE, fixed("websocket"));
        add(SEC_WEBSOCKET_VERSION, fixed("13"));
        add(SEC_WEBSOCKET_PROTOCOL, fixed(V1));
        add(SEC_WEBSOCKET_KEY, HeaderValue::from_str(&key).map_err(|_| ServerProblem::NotJupyter)?);
        let path = format!("/api/kernels/{}/channels?session_id={}", self.kernel_id, self.session);
        let response = self.client.upgrade(&path, headers).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(ServerProblem::Status(response.status().as_u16()));
        }
        let text = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok());
        if text(SEC_WEBSOCKET_ACCEPT) != Some(derive_accept_key(key.as_bytes()).as_str()) {
            return Err(ServerProblem::NotJupyter);
        }
        let form = if text(SEC_WEBSOCKET_PROTOCOL) == Some(V1) { SocketForm::V1 } else { SocketForm::Json };
        let upgraded = response.upgrade().await.map_err(|_| ServerProblem::NotJupyter)?;
        let most = self.max_bytes.saturating_mul(EXCESS);
        let config = WebSocketConfig::default().max_message_size(Some(most)).max_frame_size(Some(most));
        let stream = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
        Ok(Socket { stream, form })
    }

    /// Connects again after a connection was lost. Also returns whether messages were lost in any case: a server keeps them only while
    /// no client is connected to the kernel.
    /// Errors: The kernel is gone, or the server does not come back in time.
    async fn connect_again(&self) -> std::result::Result<(Socket, bool), ServerProblem> {
        within(RECONNECT_LIMIT, async {
            loop {
                // The server has to notice the loss as well.
                sleep(RECONNECT_PAUSE).await;
                let connected = match within(ATTEMPT_LIMIT, self.client.connections(&self.kernel_id)).await {
                    Ok(None) => return Err(ServerProblem::Status(404)),
                    Ok(Some(others)) => within(ATTEMPT_LIMIT, self.connect()).await.map(|socket| (socket, others > 0)),
                    Err(problem) => Err(problem),
                };
                match connected {
                    Err(ServerProblem::Unreachable(_) | ServerProblem::TimedOut | ServerProblem::Status(500..=599)) => {
                    }
                    connected => return connected,
                }
            }
        })
        .await
    }
}

/// Carries messages between this side and the server. Its end closes the channels.
struct Carrier {
    endpoint: SocketEndpoint,
    state: ChannelState,
    shell: mpsc::Sender<Received>,
    iopub: mpsc::Sender<Received>,
}

/// What happened on the connection.
enum CarryStep {
    Continue,
    /// The connection was lost.
    Lost(LostSocket),
    /// Nobody needs the channels any more, or the kernel is gone.
    End,
}

#[derive(Default)]
struct LostSocket {
    /// A request that was not sent.
    unsent: Option<Outgoing>,
    /// Whether messages that the server has sent were not read.
    has_gap: bool,
}

impl Carrier {
    async fn carry(self, mut socket: Socket, mut outgoing: mpsc::Receiver<Outgoing>) {
        let mut unsent: Option<Outgoing> = None;
        let (mut ping_at, mut was_pinged) = (Instant::now() + PING_INTERVAL, false);
        loop {
            let step = if let Some(request) = unsent.take() {
                self.write(&mut socket, request).await
            } else {
                tokio::select! {
                    biased;
                    request = outgoing.recv() => match request {
                        Some(request) => self.write(&mut socket, request).await,
                        None => CarryStep::End,
                    },
                    message = socket.stream.next() => {
                        (ping_at, was_pinged) = (Instant::now() + PING_INTERVAL, false);
                        self.read(socket.form, message).await
                    }
                    () = sleep_until(ping_at) => {
                        ping_at = Instant::now() + PING_INTERVAL;
                        let is_alive = !std::mem::replace(&mut was_pinged, true)
                            && socket.stream.send(SocketMessage::Ping(Vec::new().into())).await.is_ok();
                        if is_alive { CarryStep::Continue } else { CarryStep::Lost(LostSocket { has_gap: true, unsent: None }) }
                    }
                }
            };
            match step {
                CarryStep::Continue => {}
                CarryStep::End => break,
                CarryStep::Lost(lost) => {
                    tracing::debug!("the connection to the Jupyter server was lost");
                    // The server keeps messages from now on.
                    drop(socket);
                    unsent = lost.unsent;
                    let again = tokio::select! {
                        again = self.endpoint.connect_again() => again,
                        () = self.shell.closed() => return,
                    };
                    let has_gap = match again {
                        Ok((again, has_gap)) => {
                            socket = again;
                            has_gap || lost.has_gap
                        }
                        Err(problem) => {
                            tracing::debug!(?problem, "the connection to the kernel could not be opened again");
                            return;
                        }
                    };
                    if has_gap && self.iopub.send(self.state.gap()).await.is_err() {
                        break;
                    }
                    self.state.reopened();
                    (ping_at, was_pinged) = (Instant::now() + PING_INTERVAL, false);
                }
            }
        }
        let _ = tokio::time::timeout(RECONNECT_PAUSE, socket.stream.close(None)).await;
    }

    async fn write(&self, socket: &mut Socket, request: Outgoing) -> CarryStep {
        let message = socket.form.written(request.channel, &request.header, &request.content);
        match socket.stream.send(message).await {
            Ok(()) => CarryStep::Continue,
            Err(_) => CarryStep::Lost(LostSocket { unsent: Some(request), has_gap: false }),
        }
    }

    async fn read(
        &self,
        form: SocketForm,
        message: Option<std::result::Result<SocketMessage, SocketError>>,
    ) -> CarryStep {
        let message = match message {
            Some(Ok(message)) => message,
            Some(Err(SocketError::Capacity(error))) => {
                // The rest of the connection cannot be read; the message counts as output that is too large.
                tracing::debug!(%error, "a message of the kernel is too large");
                let left_out = self.state.too_large(self.endpoint.max_bytes.saturating_mul(EXCESS) as u64);
                return match self.iopub.send(left_out).await {
                    Ok(()) => CarryStep::Lost(LostSocket { has_gap: true, unsent: None }),
                    Err(_) => CarryStep::End,
                };
            }
            Some(Err(_)) | None => return CarryStep::Lost(LostSocket::default()),
        };
        let Some((channel, received)) = form.read(&message, self.endpoint.max_bytes) else {
            return CarryStep::Continue;
        };
        let sent = match channel {
            SocketChannel::Shell => self.shell.send(received).await,
            SocketChannel::Iopub => {
                self.state.received_bytes.fetch_add(received.bytes.max(1), Ordering::Relaxed);
                if is_gone(&received) {
                    return CarryStep::End;
                }
                match self.state.is_delivered(&received) {
                    true => self.iopub.send(received).await,
                    false => Ok(()),
                }
            }
            SocketChannel::Control => {
                self.state.control_replied(&received);
                Ok(())
            }
            SocketChannel::Other => Ok(()),
        };
        if sent.is_ok() { CarryStep::Continue } else { CarryStep::End }
    }
}

/// Whether the server says that the kernel ended or was started again.
fn is_gone(received: &Received) -> bool {
    let state = received.content.as_ref().and_then(|content| content.get("execution_state")).and_then(Value::as_str);
    received.kind == "status" && matches!(state, Some("restarting" | "autorestarting" | "dead"))
}

/// A kernel whose messages a test writes.
#[cfg(test)]
pub(crate) struct ScriptedKernel {
    requests: mpsc::Receiver<Outgoing>,
    pub(crate) shell: mpsc::Sender<Received>,
    pub(crate) iopub: mpsc::Sender<Received>,
}

#[cfg(test)]
impl ScriptedKernel {
    pub(crate) fn connected() -> (KernelChannels, Self) {
        let (requests_sender, requests) = mpsc::channel(MAX_WAITING);
        let ((shell_sender, shell), (iopub_sender, iopub)) = (mpsc::channel(16), mpsc::channel(16));
        let sender = SocketSender { requests: requests_sender, session: "client".to_owned() };
        let state = ChannelState::new(Arc::default());
        let channels = KernelChannels::new((shell, iopub), state, MessageSender::Socket(sender), "client".to_owned());
        (channels, Self { requests, shell: shell_sender, iopub: iopub_sender })
    }

    /// The type and the id of the next request; `None` if there are no more.
    pub(crate) async fn request(&mut self) -> Option<(String, String)> {
        let request = self.requests.recv().await?;
        let text = |name: &str| request.header.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some((text("msg_type"), text("msg_id")))
    }
}
