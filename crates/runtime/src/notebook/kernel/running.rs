//! A running kernel: connected, and used for one request at a time. It is a process of this program, or runs elsewhere and stays
//! there.

use std::io::Result;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::notebook::kernel::channels::{KernelChannels, KernelDescription, RequestChannel};
use crate::notebook::kernel::limits::OutputLimits;
use crate::notebook::kernel::process::Process;
use crate::notebook::kernel::server_kernel::KernelOnServer;
use crate::notebook::kernel::variables::KnownVariables;

/// The maximum time for a requested shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(1_500);

pub(crate) struct Running {
    pub(crate) channels: KernelChannels,
    pub(crate) info: KernelDescription,
    /// What stands for its memory if it does not say itself when it was started again.
    pub(crate) place: String,
    pub(crate) host: KernelHost,
    /// How much of the outputs is kept.
    pub(crate) limits: OutputLimits,
    pub(crate) variables: KnownVariables,
}

/// Where a kernel runs.
pub(crate) enum KernelHost {
    /// In a process of this program, which ends with it.
    Own {
        process: Box<Process>,
        /// Whether it is interrupted by a message instead of a signal.
        interrupt_by_message: bool,
    },
    /// In a process that somebody else started. It is never ended.
    Foreign,
    /// On a Jupyter server. One that the session started there is ended with the session, not with this program.
    Server(KernelOnServer),
}

impl KernelHost {
    /// Whether other programs may use the kernel at the same time.
    pub(crate) const fn is_shared(&self) -> bool {
        !matches!(self, Self::Own { .. })
    }

    pub(crate) const fn is_on_server(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    /// Waits until the process is known to have ended. A foreign one closes its channels.
    pub(crate) async fn ended(&mut self) {
        match self {
            Self::Own { process, .. } => drop(process.child.wait().await),
            Self::Foreign | Self::Server(_) => std::future::pending().await,
        }
    }

    /// Gives up a kernel that cannot be used any more: an own one is killed.
    pub(crate) async fn abandon(&mut self) {
        if let Self::Own { process, .. } = self {
            process.kill().await;
        }
    }
}

impl Running {
    /// Sends a request; its broadcast messages arrive on the iopub channel, its reply on the shell channel.
    pub(crate) async fn ask(&mut self, kind: &str, content: &Value) -> Result<String> {
        self.channels.ask(kind, content).await
    }

    pub(crate) async fn interrupt(&mut self) {
        match &self.host {
            KernelHost::Own { process, interrupt_by_message: false } => process.interrupt(),
            KernelHost::Server(KernelOnServer { client, id, .. }) => {
                // Meanwhile, messages of the kernel are received.
                let (client, id) = (Arc::clone(client), id.clone());
                tokio::spawn(async move { client.interrupt(&id).await });
            }
            KernelHost::Own { .. } | KernelHost::Foreign => {
                let sent = self.channels.send(RequestChannel::Control, "interrupt_request", &json!({})).await;
                if sent.is_err() {
                    tracing::debug!("the kernel could not be interrupted by a message");
                }
            }
        }
    }

    /// Which memory it has: another one if it was started again, as far as the kernel says so.
    pub(crate) fn memory(&self) -> String {
        self.info.session.clone().unwrap_or_else(|| self.place.clone())
    }

    /// Its id on its server, if the session started it there.
    pub(crate) fn started(&self) -> Option<String> {
        match &self.host {
            KernelHost::Server(KernelOnServer { id, is_own: true, .. }) => Some(id.clone()),
            _ => None,
        }
    }

    /// The session knows its kernel: one that was just started on a server does not end by itself any more.
    pub(crate) fn claim(&mut self) {
        if let KernelHost::Server(KernelOnServer { unclaimed, .. }) = &mut self.host
            && let Some(unclaimed) = unclaimed.take()
        {
            unclaimed.claim();
        }
    }

    /// Ends an own kernel, and leaves others alone. An idle kernel is asked to shut down, so that exit handlers of its code run.
    pub(crate) async fn end(mut self, is_busy: bool) {
        let KernelHost::Own { process, .. } = &mut self.host else { return };
        if !is_busy {
            let content = json!({ "restart": false });
            let sent = self.channels.send(RequestChannel::Control, "shutdown_request", &content).await;
            if sent.is_ok() {
                let _ = timeout(SHUTDOWN_TIMEOUT, process.child.wait()).await;
            }
        }
        process.kill().await;
    }
}
