//! A call of a tool that a server works on. Dropping it tells the server to stop.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ServerResult};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use tokio::sync::mpsc;

use crate::mcp::client_handler::{CallEntry, ProgressSender, ServerQuestion};
use crate::mcp::connection::ServerConnection;

/// What the server is told about a call that nobody waits for.
const CANCEL_REASON: &str = "the caller no longer waits for the result";

pub(crate) struct CallInFlight {
    /// None when there is a result.
    handle: Option<RequestHandle<RoleClient>>,
    entry: CallEntry,
    questions: mpsc::Receiver<ServerQuestion>,
    pub(crate) connection: Arc<ServerConnection>,
}

/// What a call came to.
pub(crate) enum ServerCallStep {
    Result(Box<Result<ServerResult, ServiceError>>),
    Question(Box<ServerQuestion>),
    TimedOut,
}

impl ServerCallStep {
    fn closed() -> Self {
        Self::Result(Box::new(Err(ServiceError::TransportClosed)))
    }
}

impl CallInFlight {
    pub(crate) async fn send(
        connection: Arc<ServerConnection>,
        params: CallToolRequestParams,
        progress: ProgressSender,
    ) -> Result<Self, ServiceError> {
        let (entry, questions) = connection.calls.add(progress);
        let mut request = CallToolRequest::default();
        request.params = params;
        let request = ClientRequest::CallToolRequest(request);
        let handle = connection.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
        entry.set_token(handle.progress_token.clone());
        Ok(Self { handle: Some(handle), entry, questions, connection })
    }

    /// Progress goes to another caller from now on.
    pub(crate) fn set_progress(&self, progress: ProgressSender) {
        self.entry.set_progress(progress);
    }

    /// Waits for the result, or for a question to a person.
    pub(crate) async fn step(&mut self, limit: Duration) -> ServerCallStep {
        let Some(handle) = self.handle.as_mut() else { return ServerCallStep::closed() };
        tokio::select! {
            biased;
            result = &mut handle.rx => {
                self.handle = None;
                result.map_or_else(|_| ServerCallStep::closed(), |result| ServerCallStep::Result(Box::new(result)))
            }
            Some(question) = self.questions.recv() => ServerCallStep::Question(Box::new(question)),
            () = self.connection.program_ended() => {
                self.handle = None;
                ServerCallStep::closed()
            }
            () = tokio::time::sleep(limit) => ServerCallStep::TimedOut,
        }
    }
}

impl Drop for CallInFlight {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            // It may not answer any more.
            self.connection.is_suspect.store(true, Ordering::Relaxed);
            // At the end of the thread, the connection is closed instead.
            if let Ok(thread) = tokio::runtime::Handle::try_current() {
                thread.spawn(handle.cancel(Some(CANCEL_REASON.to_owned())));
            }
        }
    }
}
