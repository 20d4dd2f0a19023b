//! Starts kernels on a Jupyter server, and ends those that do not become the kernel of a session.

use std::cell::RefCell;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::notebook::kernel::contract::KernelError;
use crate::notebook::kernel::server_client::{END_TIMEOUT, ServerClient, ServerProblem};

/// The kernels that are being started on servers. A request that starts one is never given up halfway: its kernel would stay there, and
/// nobody would know its id.
#[derive(Default)]
pub(crate) struct ServerStarts(RefCell<JoinSet<()>>);

/// A kernel on a server that no session knows yet. It is ended when this is dropped.
pub(crate) struct UnclaimedKernel(oneshot::Sender<()>);

impl UnclaimedKernel {
    /// The session knows its id, and ends it.
    pub(crate) fn claim(self) {
        let _ = self.0.send(());
    }
}

impl ServerStarts {
    /// Starts a kernel of this name. Returns its id.
    pub(crate) async fn start(
        &self,
        client: &Arc<ServerClient>,
        name: &str,
    ) -> Result<(String, UnclaimedKernel), KernelError> {
        client.check_name(name).await?;
        let (sender, started) = oneshot::channel();
        let (claim, claimed) = oneshot::channel();
        let (server, name) = (Arc::clone(client), name.to_owned());
        self.0.borrow_mut().spawn(async move {
            let started = server.start(&name).await;
            let id = started.as_ref().ok().cloned();
            let _ = sender.send(started);
            if let (Some(id), Err(_)) = (id, claimed.await) {
                tracing::debug!("a kernel that was just started on a server is not used, and is ended");
                server.delete(&id).await;
            }
        });
        let id = started.await.unwrap_or(Err(ServerProblem::TimedOut)).map_err(|problem| client.error(&problem))?;
        Ok((id, UnclaimedKernel(claim)))
    }

    /// Waits until all kernels that nobody claimed have ended, if the servers answer in time.
    pub(crate) async fn finish(self) {
        let mut starts = self.0.into_inner();
        if timeout(END_TIMEOUT, async { while starts.join_next().await.is_some() {} }).await.is_err() {
            tracing::warn!("a Jupyter server does not answer: a kernel that was just started there may stay");
        }
    }
}
