//! What a server is started with.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use bcc_engine::engine::RunRequest;
use bcc_runtime::notebook::kernel::contract::KernelSettings;

use crate::access::AccessRules;
use crate::api::request_span::ContinueTrace;
use crate::behavior::plan_format::WorkflowPlanFormat;

/// The maximum size of the body of a request, in bytes.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The maximum size of the body of a request with a state, which has the outputs of a notebook, in bytes.
pub const MAX_STATE_BODY_BYTES: usize = 16 * 1024 * 1024;

/// The settings of a server (docs/server.md).
#[derive(Clone, Debug)]
pub struct ServeSettings {
    pub address: SocketAddr,
    pub access: AccessRules,
    pub limits: ServerLimits,
    pub chat: ChatSettings,
    pub behavior: BehaviorSettings,
    /// The model of all sessions, as `--model`; the scripts decide if there is none.
    pub model: Option<String>,
    /// How the conversations of links begin, whatever the links say, if the server has nothing but the page for one script.
    pub talk_request: Option<RunRequest>,
    /// Continues the traces of clients, if traces are exported.
    pub continue_trace: Option<ContinueTrace>,
}

/// What chat clients send in addition to the chat completions.
#[derive(Clone, Debug)]
pub struct ChatSettings {
    /// The header with the id of the conversation.
    pub conversation_header: String,
    /// The header that says that a request is a task of the client.
    pub task_header: String,
}

/// Who answers clients of the behavior protocol.
#[derive(Clone, Debug, Default)]
pub struct BehaviorSettings {
    /// The model that is asked, unless [`ServeSettings::model`] names one; without both, that of the project.
    pub model: Option<String>,
    /// The script that is run instead: its `session_id`, or its path in the project.
    pub script: Option<String>,
    /// The format of plans for clients that accept any.
    pub plan_format: WorkflowPlanFormat,
    /// The kernels for code of clients.
    pub kernel: KernelSettings,
}

/// How long a cell of a client may run, if nothing is configured.
const CELL_TIME: Duration = Duration::from_secs(300);

impl BehaviorSettings {
    /// The kernels with this kernel spec and time for a cell.
    pub fn kernel_settings(name: Option<&str>, timeout: Option<Duration>) -> KernelSettings {
        let name = name.map_or_else(|| KernelSettings::default().name, str::to_owned);
        KernelSettings { name, timeout: timeout.unwrap_or(CELL_TIME), ..KernelSettings::default() }
    }
}

/// The headers of Open WebUI.
impl Default for ChatSettings {
    fn default() -> Self {
        Self { conversation_header: "X-OpenWebUI-Chat-Id".to_owned(), task_header: "X-OpenWebUI-Task".to_owned() }
    }
}

/// How much one client, or all of them, may use.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// How long the headers of a request may take, and its body.
    pub request_time: Duration,
    /// The maximum number of connections. Others wait to be accepted.
    pub connections: usize,
    /// The maximum number of requests of one client in a minute.
    pub requests_per_minute: NonZeroU32,
    /// How long a session without a turn stays in memory, unless a kernel of its own has run code: then it stays until that ends.
    pub idle_time: Duration,
    /// How long turns may take to end when the server ends. What has not ended then is resumed by the next process.
    pub end_time: Duration,
}

impl ServerLimits {
    /// How much longer than [`ServerLimits::end_time`] the process may take.
    pub const END_MARGIN: Duration = Duration::from_secs(3);
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            request_time: Duration::from_secs(30),
            connections: 10_000,
            requests_per_minute: NonZeroU32::new(600).unwrap_or(NonZeroU32::MIN),
            idle_time: Duration::from_secs(60),
            end_time: Duration::from_secs(20),
        }
    }
}
