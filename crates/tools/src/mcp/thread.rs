//! The thread in which the connections to servers live: what a server sends keeps only this thread busy, and calls that wait for a person
//! stay open while the session does something else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::mcp::server::ToolServer;

/// The servers that were used, by name.
pub(crate) type UsedServers = Arc<Mutex<BTreeMap<String, Arc<ToolServer>>>>;

/// Dropping it ends all servers, and waits until they have ended: a process that ends must leave none behind.
pub(crate) struct ServerThread {
    pub(crate) handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ServerThread {
    pub(crate) fn start(servers: UsedServers) -> std::io::Result<Self> {
        let (started, result) = std::sync::mpsc::channel();
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("mcp".to_owned()).spawn(move || {
            // After each step, it is checked what came from the callers.
            match Builder::new_current_thread().enable_all().event_interval(1).global_queue_interval(1).build() {
                Ok(runtime) => {
                    let _ = started.send(Ok(runtime.handle().clone()));
                    runtime.block_on(async {
                        let _ = ended.await;
                        stop_all(&servers).await;
                    });
                }
                Err(error) => drop(started.send(Err(error))),
            }
        })?;
        let handle = result.recv().unwrap_or_else(|_| Err(std::io::ErrorKind::Interrupted.into()))?;
        Ok(Self { handle, end: Some(end), thread: Some(thread) })
    }
}

async fn stop_all(servers: &UsedServers) {
    let servers = std::mem::take(&mut *servers.lock().unwrap_or_else(PoisonError::into_inner));
    let mut stopping = JoinSet::new();
    for server in servers.into_values() {
        stopping.spawn(async move { server.stop().await });
    }
    while stopping.join_next().await.is_some() {}
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended, too.
            let _ = thread.join();
        }
    }
}
