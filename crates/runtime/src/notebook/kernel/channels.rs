//! The channels of a running kernel, whatever carries them: sends requests, and delivers the replies and the broadcast messages
//! that belong to them.

use std::io::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::notebook::json_size::json_size;
use crate::notebook::kernel::message::Received;
use crate::notebook::kernel::websocket::SocketSender;
use crate::notebook::kernel::zmq_channels::ZmqSender;

/// The maximum size of what is stored about the language of a kernel, in bytes.
const MAX_LANGUAGE_BYTES: usize = 8 * 1024;

/// The channel on which a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestChannel {
    /// For code; requests wait there for each other.
    Shell,
    /// For what must not wait for code.
    Control,
}

/// The messages of the iopub channel that are delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageFilter {
    /// All messages, until the kernel has replied for the first time.
    All,
    /// Only messages with this parent. All others are read and dropped, so that the kernel never blocks: those of earlier requests, and
    /// those of other clients of the same kernel.
    Answers(String),
}

/// What the readers of the channels and this side share.
#[derive(Clone)]
pub(crate) struct ChannelState {
    filter: Arc<Mutex<MessageFilter>>,
    /// Bytes received on the iopub channel.
    pub(crate) received_bytes: Arc<AtomicU64>,
    /// The session in the last reply on the control channel, empty if it has none. These replies are not delivered.
    control_reply: watch::Sender<Option<String>>,
    /// How often the connection was lost and opened again.
    reopened: watch::Sender<u64>,
}

impl ChannelState {
    pub(crate) fn new(received_bytes: Arc<AtomicU64>) -> Self {
        let filter = Arc::new(Mutex::new(MessageFilter::All));
        Self { filter, received_bytes, control_reply: watch::Sender::default(), reopened: watch::Sender::default() }
    }

    /// Whether a broadcast message is delivered.
    pub(crate) fn is_delivered(&self, received: &Received) -> bool {
        match &*self.filter.lock().unwrap_or_else(PoisonError::into_inner) {
            MessageFilter::All => true,
            MessageFilter::Answers(id) => received.parent.as_ref() == Some(id),
        }
    }

    /// An output of the current request that was too large to be received, of at least this many bytes.
    pub(crate) fn too_large(&self, bytes: u64) -> Received {
        Received { kind: "display_data".to_owned(), parent: self.request(), session: None, content: None, bytes }
    }

    /// A note in the outputs of the current request, at the place where others may be missing.
    pub(crate) fn gap(&self) -> Received {
        let note = "[bcc-script lost the connection to the kernel and opened it again: outputs may be missing here]\n";
        let content = Some(json!({ "name": "stderr", "text": note }));
        Received { kind: "stream".to_owned(), parent: self.request(), session: None, content, bytes: note.len() as u64 }
    }

    /// The id of the current request.
    fn request(&self) -> Option<String> {
        match &*self.filter.lock().unwrap_or_else(PoisonError::into_inner) {
            MessageFilter::All => None,
            MessageFilter::Answers(id) => Some(id.clone()),
        }
    }

    pub(crate) fn control_replied(&self, reply: &Received) {
        self.control_reply.send_replace(Some(reply.session.clone().unwrap_or_default()));
    }

    /// The connection was lost and is open again: what was sent in between may be lost.
    pub(crate) fn reopened(&self) {
        self.reopened.send_modify(|count| *count += 1);
    }
}

/// What can be learned about the kernel while code runs.
pub(crate) struct KernelSigns {
    control_reply: watch::Receiver<Option<String>>,
    /// The session of the kernel on the control channel, as far as it is known.
    known: Option<String>,
    reopened: watch::Receiver<u64>,
}

/// A sign that a request may never be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KernelSign {
    /// Another kernel replied on the control channel: it was started again.
    Restarted,
    /// The connection was lost and is open again.
    Reopened,
}

impl KernelSigns {
    pub(crate) async fn next(&mut self) -> KernelSign {
        loop {
            tokio::select! {
                Ok(()) = self.control_reply.changed() => {
                    let session = self.control_reply.borrow_and_update().clone().filter(|session| !session.is_empty());
                    if self.known.is_some() && session.is_some() && session != self.known {
                        return KernelSign::Restarted;
                    }
                    self.known = self.known.take().or(session);
                }
                Ok(()) = self.reopened.changed() => return KernelSign::Reopened,
                else => std::future::pending().await,
            }
        }
    }
}

/// What carries the requests to the kernel.
pub(crate) enum MessageSender {
    Zmq(Box<ZmqSender>),
    Socket(SocketSender),
}

impl MessageSender {
    async fn send(&mut self, channel: RequestChannel, id: &str, kind: &str, content: &Value) -> Result<()> {
        match self {
            Self::Zmq(sender) => sender.send(channel, id, kind, content).await,
            Self::Socket(sender) => sender.send(channel, id, kind, content).await,
        }
    }
}

/// What a kernel says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KernelDescription {
    /// `language_info`; empty if that is unusually long.
    pub(crate) language: Map<String, Value>,
    /// Whether its language is Python.
    pub(crate) is_python: bool,
    /// Its own session: another one if it was started again, and its memory is lost. None if it has none: some kernels, such as those
    /// of R and Julia, repeat the session of the client in their replies.
    pub(crate) session: Option<String>,
}

impl KernelDescription {
    /// What the reply to a client with this session says.
    fn of(reply: Received, client: &str) -> Self {
        let session = reply.own_session(client);
        let mut content = reply.content.unwrap_or_default();
        let language = match content.get_mut("language_info").map(Value::take) {
            Some(Value::Object(language)) => language,
            _ => Map::new(),
        };
        let is_python =
            language.get("name").and_then(Value::as_str).is_some_and(|name| name.eq_ignore_ascii_case("python"));
        let language = if size(&language) <= MAX_LANGUAGE_BYTES { language } else { Map::new() };
        Self { language, is_python, session }
    }
}

fn size(object: &Map<String, Value>) -> usize {
    object.iter().map(|(name, value)| name.len() + json_size(value)).sum()
}

pub(crate) struct KernelChannels {
    /// The replies.
    pub(crate) shell: mpsc::Receiver<Received>,
    /// The broadcast messages.
    pub(crate) iopub: mpsc::Receiver<Received>,
    pub(crate) state: ChannelState,
    sender: MessageSender,
    /// The session of this client.
    session: String,
    sent: u64,
}

impl KernelChannels {
    pub(crate) fn new(
        (shell, iopub): (mpsc::Receiver<Received>, mpsc::Receiver<Received>),
        state: ChannelState,
        sender: MessageSender,
        session: String,
    ) -> Self {
        Self { shell, iopub, state, sender, session, sent: 0 }
    }

    /// Sends a request whose broadcast messages are delivered from now on. Returns its id.
    pub(crate) async fn ask(&mut self, kind: &str, content: &Value) -> Result<String> {
        let id = self.next_id();
        *self.state.filter.lock().unwrap_or_else(PoisonError::into_inner) = MessageFilter::Answers(id.clone());
        self.sender.send(RequestChannel::Shell, &id, kind, content).await?;
        Ok(id)
    }

    /// Sends a request without waiting for anything.
    pub(crate) async fn send(&mut self, channel: RequestChannel, kind: &str, content: &Value) -> Result<String> {
        let id = self.next_id();
        self.sender.send(channel, &id, kind, content).await?;
        Ok(id)
    }

    /// Asks the kernel about itself, without waiting for the reply.
    pub(crate) async fn ask_info(&mut self, channel: RequestChannel) -> Result<String> {
        self.send(channel, "kernel_info_request", &json!({})).await
    }

    /// The number of bytes received on the iopub channel; it grows while a long message is being received.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.state.received_bytes.load(Ordering::Relaxed)
    }

    /// Whether the kernel has replied on the control channel, which it also does while code runs.
    pub(crate) fn has_replied_on_control(&self) -> bool {
        self.state.control_reply.borrow().is_some()
    }

    /// The signs from now on.
    pub(crate) fn signs(&self) -> KernelSigns {
        let (control_reply, reopened) = (self.state.control_reply.subscribe(), self.state.reopened.subscribe());
        let known = control_reply.borrow().clone().filter(|session| !session.is_empty());
        KernelSigns { control_reply, known, reopened }
    }

    /// Requests the kernel info until the reply was received and at least one message arrived on the iopub channel, for example
    /// the welcome message of kernels that support JEP 65. Before that, messages may be published before the subscription is
    /// active. One message is enough proof, because all of them use the same connection. Messages that arrive later belong to
    /// these requests and not to later ones.
    pub(crate) async fn wait_until_ready(&mut self) -> Result<KernelDescription> {
        let (mut has_message, mut info) = (false, None);
        loop {
            self.ask_info(RequestChannel::Shell).await?;
            let retry_at = Instant::now() + Duration::from_millis(if info.is_some() { 100 } else { 2_000 });
            loop {
                if let (true, Some(info)) = (has_message, &mut info) {
                    return Ok(std::mem::take(info));
                }
                tokio::select! {
                    message = self.iopub.recv() => {
                        message.ok_or_else(closed)?;
                        has_message = true;
                    }
                    reply = self.shell.recv() => info = Some(KernelDescription::of(reply.ok_or_else(closed)?, &self.session)),
                    () = sleep_until(retry_at) => break,
                }
            }
        }
    }

    /// Waits for any reply of the kernel. While its code runs, it replies on the control channel.
    pub(crate) async fn wait_until_it_replies(&mut self) -> Result<()> {
        for channel in [RequestChannel::Shell, RequestChannel::Control] {
            self.ask_info(channel).await?;
        }
        let mut replied = self.state.control_reply.subscribe();
        if replied.borrow_and_update().is_some() {
            return Ok(());
        }
        loop {
            tokio::select! {
                reply = self.shell.recv() => return reply.map(drop).ok_or_else(closed),
                Ok(()) = replied.changed() => return Ok(()),
                message = self.iopub.recv() => drop(message.ok_or_else(closed)?),
            }
        }
    }

    /// What the kernel says about itself now. It replies when all code that runs has ended, also that of other clients.
    pub(crate) async fn info(&mut self) -> Result<KernelDescription> {
        let mut id = self.ask_info(RequestChannel::Shell).await?;
        let mut reopened = self.state.reopened.subscribe();
        loop {
            tokio::select! {
                // The reply may be lost.
                Ok(()) = reopened.changed() => {
                    id = self.ask_info(RequestChannel::Shell).await?;
                }
                reply = self.shell.recv() => {
                    let reply = reply.ok_or_else(closed)?;
                    if reply.parent.as_ref() == Some(&id) {
                        return Ok(KernelDescription::of(reply, &self.session));
                    }
                }
                // Messages of earlier requests must not fill the queue.
                message = self.iopub.recv() => drop(message.ok_or_else(closed)?),
            }
        }
    }

    fn next_id(&mut self) -> String {
        self.sent += 1;
        format!("{}_{}", self.session, self.sent)
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "it closed the connection")
}
