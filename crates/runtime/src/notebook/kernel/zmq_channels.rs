//! The channels of a kernel over ZeroMQ, as its connection file describes them.

use std::io::{ErrorKind, Result};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::notebook::kernel::channels::{ChannelState, KernelChannels, MessageSender, RequestChannel};
use crate::notebook::kernel::message::{Identity, Received};
use crate::notebook::kernel::zmtp::{Receiving, Sending, ZmtpRole, connect};

/// Where a kernel listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    /// The channel for code requests.
    pub(crate) shell: SocketAddr,
    /// The channel for broadcast messages.
    pub(crate) iopub: SocketAddr,
    /// The channel for interrupts.
    pub(crate) control: SocketAddr,
}

/// Whether a kernel listens already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortState {
    Open,
    /// It starts: until it listens, connections are refused.
    Opening,
}

pub(crate) struct ZmqSender {
    identity: Identity,
    shell: Sending,
    control: Sending,
    /// Nothing more is sent on this half, but the kernel treats the connection as closed without it.
    _iopub: Sending,
}

impl ZmqSender {
    pub(crate) async fn send(&mut self, channel: RequestChannel, id: &str, kind: &str, content: &Value) -> Result<()> {
        let to = match channel {
            RequestChannel::Shell => &mut self.shell,
            RequestChannel::Control => &mut self.control,
        };
        self.identity.send(to, id, kind, content).await
    }
}

/// Connects to a kernel. The caller limits the time.
pub(crate) async fn open(addresses: Addresses, identity: &Identity, port: PortState) -> Result<KernelChannels> {
    let (iopub_sender, iopub) = connect_to(addresses.iopub, ZmtpRole::Subscriber, port).await?;
    let (shell_sender, shell) = connect_to(addresses.shell, ZmtpRole::Dealer, port).await?;
    let (control_sender, control) = connect_to(addresses.control, ZmtpRole::Dealer, port).await?;
    let state = ChannelState::new(iopub.received_bytes());
    let iopub = spawn_reader(iopub, identity, Some(state.clone()));
    let shell = spawn_reader(shell, identity, None);
    let mut control = spawn_reader(control, identity, None);
    let counter = state.clone();
    tokio::spawn(async move {
        while let Some(reply) = control.recv().await {
            counter.control_replied(&reply);
        }
    });
    let session = identity.session.clone();
    let sender =
        ZmqSender { identity: identity.clone(), shell: shell_sender, control: control_sender, _iopub: iopub_sender };
    Ok(KernelChannels::new((shell, iopub), state, MessageSender::Zmq(Box::new(sender)), session))
}

/// Connects, for a kernel that starts as soon as the port is open. Until it listens, the port is closed or still reserved by the
/// listener of this process, which resets a connection when it is closed.
async fn connect_to(address: SocketAddr, role: ZmtpRole, port: PortState) -> Result<(Sending, Receiving)> {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, NotConnected};
    loop {
        match connect(address, role).await {
            Err(error)
                if port == PortState::Opening
                    && matches!(
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
/// queued, so memory use is bounded. With a state, only what it delivers is passed on.
fn spawn_reader(mut from: Receiving, identity: &Identity, state: Option<ChannelState>) -> mpsc::Receiver<Received> {
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
            let is_delivered = state.as_ref().is_none_or(|state| state.is_delivered(&received));
            if is_delivered && sender.send(received).await.is_err() {
                break;
            }
        }
    });
    receiver
}
