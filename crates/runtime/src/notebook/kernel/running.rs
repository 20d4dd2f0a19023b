//! A running kernel: connected, and used for one request at a time.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::io::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::notebook::kernel::contract::{KernelError, KernelSettings};
use crate::notebook::kernel::limits::OutputLimits;
use crate::notebook::kernel::location::KernelLocation;
use crate::notebook::kernel::message::{Identity, Received};
use crate::notebook::kernel::process::{Ports, Process};
use crate::notebook::kernel::specs::{KernelSpec, installed, missing};
use crate::notebook::kernel::zmtp::{Receiving, Sending, ZmtpRole, connect};

/// The maximum number of starts if another program took one of its ports.
const MAX_STARTS: u32 = 3;

/// The maximum size of what is stored about the language of a kernel, in bytes.
const MAX_LANGUAGE_BYTES: usize = 8 * 1024;

/// The maximum time for a requested shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(1_500);

/// The messages of the iopub channel that are delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageFilter {
    /// All messages, while the kernel starts.
    All,
    /// Only messages with this parent. All others are read and dropped, so that the kernel never blocks.
    Answers(String),
}

pub(crate) struct Running {
    pub(crate) process: Process,
    /// The replies.
    pub(crate) shell: mpsc::Receiver<Received>,
    /// The broadcast messages.
    pub(crate) iopub: mpsc::Receiver<Received>,
    /// Whether its language is Python.
    pub(crate) is_python: bool,
    /// What it says about its language (`language_info`); empty if that is unusually long.
    pub(crate) language: Map<String, Value>,
    /// How much of the outputs is kept.
    pub(crate) limits: OutputLimits,
    identity: Identity,
    filter: Arc<Mutex<MessageFilter>>,
    shell_sender: Sending,
    control_sender: Sending,
    /// Nothing more is sent on this half, but the kernel treats the connection as closed without it.
    _iopub_sender: Sending,
    received_bytes: Arc<AtomicU64>,
    interrupt_by_message: bool,
    sent: u64,
}

impl Running {
    /// Starts a kernel and waits until it replies.
    /// Errors: The kernel does not exist, or does not start in time.
    pub(crate) async fn start(
        location: &KernelLocation,
        settings: &KernelSettings,
        spec: &KernelSpec,
    ) -> std::result::Result<Self, KernelError> {
        let mut starts = 0;
        loop {
            starts += 1;
            let max_message_bytes = usize::try_from(location.limits.message_bytes()).unwrap_or(usize::MAX);
            let identity = Identity::new(max_message_bytes).map_err(|error| cannot_start(spec, &error.to_string()))?;
            let mut process =
                Process::start(spec, location, &identity).map_err(|error| start_error(spec, location, &error))?;
            let ports = process.ports;
            let channels = timeout(settings.start_timeout, async {
                tokio::select! {
                    biased;
                    ended = process.child.wait() => Err(ended.map_or_else(|error| error.to_string(), |status| status.to_string())),
                    channels = Channels::open(ports, &identity) => channels.map_err(|error| error.to_string()),
                }
            });
            match channels.await {
                Ok(Ok(channels)) => return Ok(channels.into_running(process, identity, spec, location.limits)),
                Ok(Err(reason)) => {
                    let stderr = process.last_stderr_line().await;
                    process.kill().await;
                    if stderr.contains("No module named") && stderr.contains("ipykernel") {
                        return Err(missing(&spec.name, &installed(&location.variables)));
                    }
                    if starts < MAX_STARTS && stderr.contains("ddress already in use") {
                        continue;
                    }
                    let stderr = if stderr.is_empty() { reason } else { format!("{reason}; {stderr}") };
                    return Err(cannot_start(spec, &stderr));
                }
                Err(_) => {
                    process.kill().await;
                    let reason = format!("it did not answer within {:?}", settings.start_timeout);
                    return Err(cannot_start(spec, &reason));
                }
            }
        }
    }

    /// Sends a request; its broadcast messages arrive on [`Running::iopub`], its reply on [`Running::shell`].
    pub(crate) async fn ask(&mut self, kind: &str, content: &Value) -> Result<String> {
        let id = self.next_id();
        *self.filter.lock().unwrap_or_else(PoisonError::into_inner) = MessageFilter::Answers(id.clone());
        self.identity.send(&mut self.shell_sender, &id, kind, content).await?;
        Ok(id)
    }

    /// The number of bytes received on the iopub channel; it grows while a long message is being received.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    pub(crate) async fn interrupt(&mut self) {
        if self.interrupt_by_message {
            let id = self.next_id();
            let sent = self.identity.send(&mut self.control_sender, &id, "interrupt_request", &json!({})).await;
            if sent.is_err() {
                tracing::debug!("the kernel could not be interrupted by a message");
            }
        } else {
            self.process.interrupt();
        }
    }

    /// Ends the kernel. An idle kernel is asked to shut down, so that exit handlers of its code run.
    pub(crate) async fn end(mut self, is_busy: bool) {
        if !is_busy {
            let id = self.next_id();
            let content = json!({ "restart": false });
            let sent = self.identity.send(&mut self.control_sender, &id, "shutdown_request", &content).await;
            if sent.is_ok() {
                let _ = timeout(SHUTDOWN_TIMEOUT, self.process.child.wait()).await;
            }
        }
        self.process.kill().await;
    }

    fn next_id(&mut self) -> String {
        self.sent += 1;
        format!("{}_{}", self.identity.session, self.sent)
    }
}

fn is_python(language: &Map<String, Value>) -> bool {
    language.get("name").and_then(Value::as_str).is_some_and(|name| name.eq_ignore_ascii_case("python"))
}

fn size(object: &Map<String, Value>) -> usize {
    object.iter().map(|(name, value)| name.len() + value.to_string().len()).sum()
}

/// The channels of a kernel that is starting.
struct Channels {
    shell_sender: Sending,
    control_sender: Sending,
    iopub_sender: Sending,
    received_bytes: Arc<AtomicU64>,
    shell: mpsc::Receiver<Received>,
    iopub: mpsc::Receiver<Received>,
    filter: Arc<Mutex<MessageFilter>>,
    language: Map<String, Value>,
    sent: u64,
}

impl Channels {
    async fn open(ports: Ports, identity: &Identity) -> Result<Self> {
        let filter = Arc::new(Mutex::new(MessageFilter::All));
        let (iopub_sender, iopub) = connect_with_retry(ports.iopub, ZmtpRole::Subscriber).await?;
        let (shell_sender, shell) = connect_with_retry(ports.shell, ZmtpRole::Dealer).await?;
        let (control_sender, control) = connect_with_retry(ports.control, ZmtpRole::Dealer).await?;
        let received_bytes = iopub.received_bytes();
        let iopub = spawn_reader(iopub, identity, Some(Arc::clone(&filter)));
        let shell = spawn_reader(shell, identity, None);
        // Replies on this channel are read and dropped.
        let mut control = spawn_reader(control, identity, None);
        tokio::spawn(async move { while control.recv().await.is_some() {} });
        let mut channels = Self {
            shell_sender,
            control_sender,
            iopub_sender,
            received_bytes,
            shell,
            iopub,
            filter,
            language: Map::new(),
            sent: 0,
        };
        channels.wait_until_ready(identity).await?;
        Ok(channels)
    }

    /// Requests the kernel info until the reply was received and at least one message arrived on the iopub channel, for example
    /// the welcome message of kernels that support JEP 65. Before that, messages may be published before the subscription is
    /// active. One message is enough proof, because all of them use the same connection. Messages that arrive later belong to
    /// these requests and not to later ones.
    async fn wait_until_ready(&mut self, identity: &Identity) -> Result<()> {
        let closed = || Error::new(ErrorKind::UnexpectedEof, "it closed the connection");
        let (mut has_message, mut has_info) = (false, false);
        while !(has_message && has_info) {
            self.sent += 1;
            let id = format!("{}_{}", identity.session, self.sent);
            identity.send(&mut self.shell_sender, &id, "kernel_info_request", &json!({})).await?;
            let retry_at = Instant::now() + Duration::from_millis(if has_info { 100 } else { 2_000 });
            while !(has_message && has_info) {
                tokio::select! {
                    message = self.iopub.recv() => {
                        message.ok_or_else(closed)?;
                        has_message = true;
                    }
                    reply = self.shell.recv() => {
                        let mut content = reply.ok_or_else(closed)?.content.unwrap_or_default();
                        if let Some(Value::Object(language)) = content.get_mut("language_info").map(Value::take) {
                            self.language = language;
                        }
                        has_info = true;
                    }
                    () = tokio::time::sleep_until(retry_at) => break,
                }
            }
        }
        Ok(())
    }

    fn into_running(self, process: Process, identity: Identity, spec: &KernelSpec, limits: OutputLimits) -> Running {
        Running {
            process,
            shell: self.shell,
            iopub: self.iopub,
            is_python: is_python(&self.language),
            language: if size(&self.language) <= MAX_LANGUAGE_BYTES { self.language } else { Map::new() },
            limits,
            identity,
            filter: self.filter,
            shell_sender: self.shell_sender,
            control_sender: self.control_sender,
            _iopub_sender: self.iopub_sender,
            received_bytes: self.received_bytes,
            interrupt_by_message: spec.interrupt_by_message,
            sent: self.sent,
        }
    }
}

/// Connects as soon as the port is open. The caller limits the time. Until the kernel listens, the port is closed or still reserved by
/// the listener of this process, which resets a connection when it is closed.
async fn connect_with_retry(port: u16, role: ZmtpRole) -> Result<(Sending, Receiving)> {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, NotConnected};
    loop {
        match connect(port, role).await {
            Err(error)
                if matches!(
                    error.kind(),
                    ConnectionRefused | ConnectionReset | ConnectionAborted | NotConnected | BrokenPipe
                ) =>
            {
                sleep(Duration::from_millis(10)).await;
            }
            connected => return connected,
        }
    }
}

/// Reads a channel in a separate task, so that reading is never canceled in the middle of a message. At most one message is
/// queued, so memory use is bounded.
fn spawn_reader(
    mut from: Receiving,
    identity: &Identity,
    filter: Option<Arc<Mutex<MessageFilter>>>,
) -> mpsc::Receiver<Received> {
    let (sender, receiver) = mpsc::channel(1);
    let identity = identity.clone();
    tokio::spawn(async move {
        loop {
            let received = tokio::select! {
                received = identity.read(&mut from) => received,
                () = sender.closed() => break,
            };
            let received = match received {
                Ok(received) => received,
                Err(error) => {
                    tracing::debug!(%error, "a channel of the kernel ended");
                    break;
                }
            };
            let is_delivered =
                filter.as_ref().is_none_or(|filter| match &*filter.lock().unwrap_or_else(PoisonError::into_inner) {
                    MessageFilter::All => true,
                    MessageFilter::Answers(id) => received.parent.as_ref() == Some(id),
                });
            if is_delivered && sender.send(received).await.is_err() {
                break;
            }
        }
    });
    receiver
}

fn cannot_start(spec: &KernelSpec, why: &str) -> KernelError {
    KernelError {
        code: "kernel-did-not-start",
        message: msg!("the kernel `{}` did not start: {why}", spec.name),
        help: Some(Message::word(
            "`bcc-script doctor` lists the installed kernels; `python3 -m pip install ipykernel` installs one for the first `python3` that is found",
        )),
    }
}

/// The error if not even its program can be started.
fn start_error(spec: &KernelSpec, location: &KernelLocation, error: &Error) -> KernelError {
    if error.kind() == ErrorKind::NotFound && location.directory.is_dir() {
        return missing(&spec.name, &installed(&location.variables));
    }
    cannot_start(spec, &error.to_string())
}
