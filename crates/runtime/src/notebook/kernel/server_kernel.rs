//! Kernels on a Jupyter server: uses one that runs there, or starts one for the session.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::notebook::kernel::attach::{busy, ready};
use crate::notebook::kernel::contract::{KernelError, KernelSettings, ServerKernel};
use crate::notebook::kernel::location::KernelLocation;
use crate::notebook::kernel::running::{KernelHost, Running};
use crate::notebook::kernel::server_client::{ServerClient, ServerProblem, within};
use crate::notebook::kernel::server_start::{ServerStarts, UnclaimedKernel};
use crate::notebook::kernel::variables::KnownVariables;
use crate::notebook::kernel::websocket::open;

/// A kernel on a server.
pub(crate) struct KernelOnServer {
    pub(crate) client: Arc<ServerClient>,
    pub(crate) id: String,
    /// Whether the session started it.
    pub(crate) is_own: bool,
    /// Set until the session knows a kernel that was just started.
    pub(crate) unclaimed: Option<UnclaimedKernel>,
}

/// Connects to the kernel of the settings, or to the one that the session `started` there, or starts one.
/// Errors: The server or the kernel cannot be reached, or does not answer in time.
pub(crate) async fn attach_server(
    server: &ServerKernel,
    started: Option<&str>,
    location: &KernelLocation,
    settings: &KernelSettings,
    starts: &ServerStarts,
) -> Result<Running, KernelError> {
    let client = Arc::new(ServerClient::new(server, location)?);
    let limit = settings.start_timeout;
    let unavailable = |problem: ServerProblem| client.error(&problem);
    let (id, unclaimed) = match (&server.kernel_id, started) {
        (Some(id), _) => {
            check_runs(&client, server, id, limit).await?;
            (id.clone(), None)
        }
        (None, Some(id)) if within(limit, client.runs(id)).await.map_err(unavailable)? => (id.to_owned(), None),
        (None, _) => {
            let started = timeout(limit, starts.start(&client, &settings.name)).await;
            let (id, unclaimed) = started.unwrap_or_else(|_| Err(unavailable(ServerProblem::TimedOut)))?;
            (id, Some(unclaimed))
        }
    };
    let limits = location.limits;
    let max_bytes = limits.max_message_bytes();
    let opened = timeout(limit, open(&client, &id, max_bytes)).await;
    let did_not_answer = || KernelError {
        code: "kernel-unreachable",
        message: msg!(
            "the kernel `{id}` of the Jupyter server {} did not answer within {}",
            server.url,
            humantime::format_duration(limit)
        ),
        help: Some(Message::word("restart it on the server; then resume the session")),
    };
    let mut channels = match opened {
        Ok(opened) => opened.map_err(|problem| client.error(&problem))?,
        Err(_) => return Err(did_not_answer()),
    };
    let info = match timeout(limit, ready(&mut channels)).await {
        Ok(Ok(info)) => info,
        Err(_) if channels.has_replied_on_control() => return Err(busy(limit)),
        Ok(Err(_)) | Err(_) => return Err(did_not_answer()),
    };
    let place = format!("server-{id}");
    let host = KernelHost::Server(KernelOnServer { client, id, is_own: server.kernel_id.is_none(), unclaimed });
    Ok(Running { channels, info, place, host, limits, variables: KnownVariables::default() })
}

/// Whether the server answers, and has what the session needs.
/// Errors: As [`attach_server`].
pub(crate) async fn check_server(
    server: &ServerKernel,
    location: &KernelLocation,
    settings: &KernelSettings,
) -> Result<(), KernelError> {
    let client = ServerClient::new(server, location)?;
    match &server.kernel_id {
        Some(id) => check_runs(&client, server, id, settings.start_timeout).await,
        None => {
            let checked = timeout(settings.start_timeout, client.check_name(&settings.name)).await;
            checked.unwrap_or_else(|_| Err(client.error(&ServerProblem::TimedOut)))
        }
    }
}

/// Ends a kernel that the session started there.
pub(crate) async fn end_on_server(server: &ServerKernel, started: &str, location: &KernelLocation) {
    match ServerClient::new(server, location) {
        Ok(client) => drop(client.delete(started).await),
        Err(error) => tracing::debug!(%error, "the kernel could not be ended"),
    }
}

async fn check_runs(
    client: &ServerClient,
    server: &ServerKernel,
    id: &str,
    limit: Duration,
) -> Result<(), KernelError> {
    if within(limit, client.runs(id)).await.map_err(|problem| client.error(&problem))? {
        return Ok(());
    }
    Err(KernelError {
        code: "no-kernel",
        message: msg!("the Jupyter server {} has no kernel with the id `{id}`", server.url),
        help: Some(Message::word(
            "write the id of a kernel that runs there, or `name` instead of `kernel_id` to start one for the session",
        )),
    })
}
