//! A kernel that runs: connected, and asked one thing at a time.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::io::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::notebook::kernel::contract::{KernelError, KernelSettings};
use crate::notebook::kernel::location::KernelLocation;
use crate::notebook::kernel::message::{Identity, Received};
use crate::notebook::kernel::process::{Ports, Process};
use crate::notebook::kernel::specs::{KernelSpec, installed, missing};
use crate::notebook::kernel::zmtp::{Receiving, Sending, ZmtpRole, connect};

/// How often it is started anew when another program took one of its ports.
const MOST_STARTS: u32 = 3;

/// How long a kernel may take to end politely.
const FAREWELL: Duration = Duration::from_millis(1_500);

/// Which messages of the iopub channel are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of them, while it starts.
    All,
    /// Those that answer this message; everything else is read and dropped, so that the kernel never waits for us.
    Answers(String),
}

pub(crate) struct Running {
    pub(crate) process: Process,
    /// What it answers.
    pub(crate) shell: mpsc::Receiver<Received>,
    /// What it tells to all.
    pub(crate) iopub: mpsc::Receiver<Received>,
    /// Whether its language is Python.
    pub(crate) is_python: bool,
    identity: Identity,
    wanted: Arc<Mutex<Wanted>>,
    asks: Sending,
    controls: Sending,
    /// Nothing more is sent there, but without this half the kernel takes the other one for closed.
    _hears: Sending,
    heard: Arc<AtomicU64>,
    by_message: bool,
    sent: u64,
}

impl Running {
    /// Starts a kernel and waits until it answers.
    /// Errors: When there is no such kernel, or it does not start in time.
    pub(crate) async fn start(
        place: &KernelLocation,
        settings: &KernelSettings,
        spec: &KernelSpec,
    ) -> std::result::Result<Self, KernelError> {
        let mut starts = 0;
        loop {
            starts += 1;
            let identity = Identity::new().map_err(|error| cannot_start(spec, &error.to_string()))?;
            let mut process =
                Process::start(spec, place, &identity).map_err(|error| unstartable(spec, place, &error))?;
            let ports = process.ports;
            let began = timeout(settings.start_timeout, async {
                tokio::select! {
                    biased;
                    ended = process.child.wait() => Err(ended.map_or_else(|error| error.to_string(), |status| status.to_string())),
                    channels = Channels::open(ports, &identity) => channels.map_err(|error| error.to_string()),
                }
            });
            match began.await {
                Ok(Ok(channels)) => return Ok(channels.into_running(process, identity, spec)),
                Ok(Err(why)) => {
                    let said = process.last_words().await;
                    process.kill().await;
                    if said.contains("No module named") && said.contains("ipykernel") {
                        return Err(missing(&spec.name, &installed(&place.variables)));
                    }
                    if starts < MOST_STARTS && said.contains("ddress already in use") {
                        continue;
                    }
                    let said = if said.is_empty() { why } else { format!("{why}; {said}") };
                    return Err(cannot_start(spec, &said));
                }
                Err(_) => {
                    process.kill().await;
                    let why = format!("it did not answer within {:?}", settings.start_timeout);
                    return Err(cannot_start(spec, &why));
                }
            }
        }
    }

    /// Sends a question; what is told about it comes on [`Running::iopub`], its answer on [`Running::shell`].
    pub(crate) async fn ask(&mut self, kind: &str, content: &Value) -> Result<String> {
        let id = self.next_id();
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = Wanted::Answers(id.clone());
        self.identity.send(&mut self.asks, &id, kind, content).await?;
        Ok(id)
    }

    /// How many bytes it told to all so far: they grow while a long message is under way.
    pub(crate) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    pub(crate) async fn interrupt(&mut self) {
        if self.by_message {
            let id = self.next_id();
            let sent = self.identity.send(&mut self.controls, &id, "interrupt_request", &json!({})).await;
            if sent.is_err() {
                tracing::debug!("the kernel could not be told to interrupt");
            }
        } else {
            self.process.interrupt();
        }
    }

    /// Ends it: politely when it does nothing, so that what its code wants to do at its end is done.
    pub(crate) async fn end(mut self, is_busy: bool) {
        if !is_busy {
            let id = self.next_id();
            let content = json!({ "restart": false });
            let sent = self.identity.send(&mut self.controls, &id, "shutdown_request", &content).await;
            if sent.is_ok() {
                let _ = timeout(FAREWELL, self.process.child.wait()).await;
            }
        }
        self.process.kill().await;
    }

    fn next_id(&mut self) -> String {
        self.sent += 1;
        format!("{}_{}", self.identity.session, self.sent)
    }
}

/// The channels of a kernel that is starting.
struct Channels {
    asks: Sending,
    controls: Sending,
    hears: Sending,
    heard: Arc<AtomicU64>,
    shell: mpsc::Receiver<Received>,
    iopub: mpsc::Receiver<Received>,
    wanted: Arc<Mutex<Wanted>>,
    language: String,
    sent: u64,
}

impl Channels {
    async fn open(ports: Ports, identity: &Identity) -> Result<Self> {
        let wanted = Arc::new(Mutex::new(Wanted::All));
        let (hears, iopub) = patiently(ports.iopub, ZmtpRole::Subscriber).await?;
        let (asks, shell) = patiently(ports.shell, ZmtpRole::Dealer).await?;
        let (controls, control) = patiently(ports.control, ZmtpRole::Dealer).await?;
        let heard = iopub.heard();
        let iopub = pump(iopub, identity, Some(Arc::clone(&wanted)));
        let shell = pump(shell, identity, None);
        // What is answered there is read and forgotten.
        let mut control = pump(control, identity, None);
        tokio::spawn(async move { while control.recv().await.is_some() {} });
        let mut channels =
            Self { asks, controls, hears, heard, shell, iopub, wanted, language: String::new(), sent: 0 };
        channels.greet(identity).await?;
        Ok(channels)
    }

    /// Asks who it is until the answer is there, and something was heard on the other channel, be it the welcome of kernels that
    /// greet whoever subscribes (JEP 65): before that, what is told may be told before anybody listens. One message is proof
    /// enough, because all of them go one way. What is still under way afterwards answers these questions, and no later one.
    async fn greet(&mut self, identity: &Identity) -> Result<()> {
        let closed = || Error::new(ErrorKind::UnexpectedEof, "it closed the connection");
        let (mut is_heard, mut is_known) = (false, false);
        while !(is_heard && is_known) {
            self.sent += 1;
            let id = format!("{}_{}", identity.session, self.sent);
            identity.send(&mut self.asks, &id, "kernel_info_request", &json!({})).await?;
            let again = Instant::now() + Duration::from_millis(if is_known { 100 } else { 2_000 });
            while !(is_heard && is_known) {
                tokio::select! {
                    told = self.iopub.recv() => {
                        told.ok_or_else(closed)?;
                        is_heard = true;
                    }
                    answer = self.shell.recv() => {
                        let content = answer.ok_or_else(closed)?.content.unwrap_or_default();
                        let language = content.pointer("/language_info/name").and_then(Value::as_str);
                        self.language = language.unwrap_or_default().to_lowercase();
                        is_known = true;
                    }
                    () = tokio::time::sleep_until(again) => break,
                }
            }
        }
        Ok(())
    }

    fn into_running(self, process: Process, identity: Identity, spec: &KernelSpec) -> Running {
        Running {
            process,
            shell: self.shell,
            iopub: self.iopub,
            is_python: self.language == "python",
            identity,
            wanted: self.wanted,
            asks: self.asks,
            controls: self.controls,
            _hears: self.hears,
            heard: self.heard,
            by_message: spec.by_message,
            sent: self.sent,
        }
    }
}

/// Connects as soon as somebody listens there. Whoever calls bounds the time.
async fn patiently(port: u16, role: ZmtpRole) -> Result<(Sending, Receiving)> {
    loop {
        match connect(port, role).await {
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset) => {
                sleep(Duration::from_millis(10)).await;
            }
            connected => return connected,
        }
    }
}

/// Reads a channel in a task of its own: reading is never given up in the middle of a message. One message waits at most, so
/// that memory is bounded.
fn pump(mut from: Receiving, identity: &Identity, wanted: Option<Arc<Mutex<Wanted>>>) -> mpsc::Receiver<Received> {
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
            let is_wanted =
                wanted.as_ref().is_none_or(|wanted| match &*wanted.lock().unwrap_or_else(PoisonError::into_inner) {
                    Wanted::All => true,
                    Wanted::Answers(id) => received.parent.as_ref() == Some(id),
                });
            if is_wanted && sender.send(received).await.is_err() {
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
        help: Some(Message::word("`bcc-script doctor` lists the installed kernels; choose one with `session.kernel`")),
    }
}

/// What is said when not even its program can be started.
fn unstartable(spec: &KernelSpec, place: &KernelLocation, error: &Error) -> KernelError {
    if error.kind() == ErrorKind::NotFound && place.directory.is_dir() {
        return missing(&spec.name, &installed(&place.variables));
    }
    cannot_start(spec, &error.to_string())
}
