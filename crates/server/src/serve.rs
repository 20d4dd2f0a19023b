//! Accepts connections, and ends in order.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use bcc_engine::engine::Engine;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::ServiceExt;

use crate::api::gate::ClientAddress;
use crate::api::router::router;
use crate::client_limit::{FORGET, forget_clients};
use crate::settings::ServeSettings;
use crate::state::ServerState;
use crate::talk::withdrawal::finish_withdrawals;

/// How long the server waits after a connection could not be accepted, for example because no file may be opened any more.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    state: ServerState,
}

impl Server {
    /// Listens at the address of the settings.
    ///
    /// # Errors
    /// The address is in use, or may not be used.
    pub async fn bind(engine: Engine, settings: ServeSettings) -> io::Result<Self> {
        let listener = TcpListener::bind(settings.address).await?;
        Ok(Self { listener, state: ServerState::new(engine, settings) })
    }

    /// The address: with its port if the settings leave that to the system.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop`. Then no connection is accepted any more, turns may end, and their replies are sent. Returns whether all have
    /// ended in time; the others are resumed by the next process.
    pub async fn run(self, stop: impl Future<Output = ()>) -> bool {
        let Self { listener, state } = self;
        let limits = state.settings.limits;
        let sessions = Arc::clone(&state.sessions);
        let kernels = Arc::clone(&state.kernels);
        let ticks = tokio::spawn(Arc::clone(&sessions).tick());
        let withdrawals = tokio::spawn(finish_withdrawals(state.clone()));
        let limiter = Arc::clone(&state.limiter);
        let forgetting = tokio::spawn(async move { forget_clients(&limiter, FORGET).await });
        let app = router(state);
        let graceful = GracefulShutdown::new();
        let connections = Arc::new(Semaphore::new(limits.connections));
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = async {
                // No connection is accepted that is not served at once.
                let permit = Arc::clone(&connections).acquire_owned().await;
                (listener.accept().await, permit)
            };
            let (accepted, permit) = tokio::select! {
                biased;
                () = &mut stop => break,
                accepted = accepted => accepted,
            };
            let (stream, client) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let connection = connection(stream, client, app.clone(), limits.request_time);
            let watched = graceful.watch(connection);
            tokio::spawn(async move {
                // A client that goes away is no error of the server.
                let _ = watched.await;
                drop(permit);
            });
        }
        drop(listener);
        let (sessions_ended, ()) = tokio::join!(sessions.end(limits.end_time), async {
            let _ = tokio::time::timeout(limits.end_time, graceful.shutdown()).await;
        });
        ticks.abort();
        withdrawals.abort();
        forgetting.abort();
        kernels.stop().await;
        sessions_ended
    }
}

/// Serves one connection.
fn connection(
    stream: TcpStream,
    client: SocketAddr,
    app: axum::Router,
    header_time: Duration,
) -> impl hyper_util::server::graceful::GracefulConnection {
    // Small pieces of messages are sent at once.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ClientAddress(client.ip()));
        app.clone().oneshot(request)
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_time)
        .serve_connection(TokioIo::new(stream), service)
}
