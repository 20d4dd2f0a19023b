//! What the client does with requests and notifications of a server: progress, questions to a person, and changes of its tools.
//! Everything else is refused.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ClientHandler;
use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    FormElicitationCapability, Implementation, ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::{mpsc, oneshot};

/// How many progress notifications of a call wait for its caller. Others are dropped.
const PROGRESS_BUFFER: usize = 64;

/// `done` of `total`, for the caller of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ProgressUpdate {
    pub(crate) done: f64,
    pub(crate) total: Option<f64>,
}

pub(crate) type ProgressSender = mpsc::Sender<ProgressUpdate>;

pub(crate) fn progress_channel() -> (ProgressSender, mpsc::Receiver<ProgressUpdate>) {
    mpsc::channel(PROGRESS_BUFFER)
}

/// A question to a person that arrived while a call runs.
pub(crate) struct ServerQuestion {
    pub(crate) request: ElicitRequestParams,
    pub(crate) answer: oneshot::Sender<ElicitResult>,
}

/// What is known of the calls of one connection.
#[derive(Default)]
pub(crate) struct OpenCalls {
    calls: Mutex<BTreeMap<u64, OpenCall>>,
    next: AtomicU64,
    /// Whether the server said that its tools changed since they were listed.
    pub(crate) has_list_changed: AtomicBool,
}

struct OpenCall {
    token: Option<ProgressToken>,
    progress: ProgressSender,
    questions: mpsc::Sender<ServerQuestion>,
}

/// The entry of a call, until it is dropped.
pub(crate) struct CallEntry {
    number: u64,
    calls: Arc<OpenCalls>,
}

impl OpenCalls {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, OpenCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(self: &Arc<Self>, progress: ProgressSender) -> (CallEntry, mpsc::Receiver<ServerQuestion>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (questions, receiver) = mpsc::channel(1);
        self.lock().insert(number, OpenCall { token: None, progress, questions });
        (CallEntry { number, calls: Arc::clone(self) }, receiver)
    }

    /// Gives a question to the oldest call that can take it: a server does not say to which call it belongs.
    fn ask(&self, mut question: ServerQuestion) -> bool {
        for call in self.lock().values() {
            match call.questions.try_send(question) {
                Ok(()) => return true,
                Err(mpsc::error::TrySendError::Full(back) | mpsc::error::TrySendError::Closed(back)) => question = back,
            }
        }
        false
    }
}

impl CallEntry {
    pub(crate) fn set_token(&self, token: ProgressToken) {
        if let Some(call) = self.calls.lock().get_mut(&self.number) {
            call.token = Some(token);
        }
    }

    pub(crate) fn set_progress(&self, progress: ProgressSender) {
        if let Some(call) = self.calls.lock().get_mut(&self.number) {
            call.progress = progress;
        }
    }
}

impl Drop for CallEntry {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.number);
    }
}

pub(crate) struct ToolClient(pub(crate) Arc<OpenCalls>);

impl ClientHandler for ToolClient {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        // A person answers fields; nothing opens addresses.
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(FormElicitationCapability::default()));
        // The version of the handshake; newer ones have none.
        ClientConfig::new(capabilities, Implementation::new("bcc-script", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let (answer, receiver) = oneshot::channel();
        let is_form = matches!(request, ElicitRequestParams::FormElicitationParams { .. });
        if !is_form || !self.0.ask(ServerQuestion { request, answer }) {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        }
        Ok(receiver.await.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel)))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let calls = self.0.lock();
        if let Some(call) = calls.values().find(|call| call.token.as_ref() == Some(&params.progress_token)) {
            // A caller that is behind misses some.
            let _ = call.progress.try_send(ProgressUpdate { done: params.progress, total: params.total });
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.has_list_changed.store(true, Ordering::Relaxed);
    }
}
