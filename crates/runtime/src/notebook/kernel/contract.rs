//! What a session asks of its kernel, whatever the kernel is.

use bcc_lang::message::message::Message;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::notebook::cell::CellEnd;

/// What a session does when its kernel has lost its memory: after a resume, or when it died.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnResume {
    /// It goes on with an empty memory, and says so.
    #[default]
    Fresh,
    /// The code cells that ran before run again, in order, before the next one does.
    Rerun,
}

/// The kernel of a session, as its script chose it (`session.kernel`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSettings {
    /// The name of the kernel spec.
    pub name: String,
    pub on_resume: OnResume,
    /// How long one cell may run.
    pub timeout: Duration,
    pub start_timeout: Duration,
    pub idle_timeout: Duration,
}

impl Default for KernelSettings {
    fn default() -> Self {
        Self {
            name: "python3".to_owned(),
            on_resume: OnResume::Fresh,
            timeout: Duration::from_secs(60),
            start_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(600),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// KernelOutputs as nbformat 4.5 has them; streams of one name that follow each other are one.
    pub outputs: Vec<Value>,
    /// The kernel's count.
    pub execution_count: Option<u64>,
    pub ended: CellEnd,
    pub ms: u64,
    /// How many bytes of output were left out because there were too many.
    pub left_out: u64,
    /// The variables of the kernel after it, as they can be shown, within a bound of bytes.
    pub variables: Map<String, Value>,
}

/// Why code could not run at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct KernelError {
    /// A stable slug: `exec-not-allowed`, `no-kernel`, `kernel-did-not-start`, …
    pub code: &'static str,
    pub message: Message,
    pub help: Option<Message>,
}

/// The kernel of one session. It starts when code first runs, and ends with the session, with the process, or when it idles.
#[async_trait]
pub trait Kernel: Send + Sync {
    /// Whether code may run at all.
    /// Errors: The refusal: the project does not allow it, is not trusted, or this build has no kernels.
    fn permitted(&self) -> Result<(), KernelError>;

    /// How many cells ran in the memory that it has now; 0 before it starts, and once it has died or was stopped.
    fn ran(&self) -> u64;

    /// Runs `code`, for `timeout` at most; then it is interrupted, and the kernel stays usable. When this future is dropped, the
    /// code is interrupted before anything else runs.
    /// Errors: When no kernel can be had. What the code does wrong is no error: see [`Execution::ended`].
    async fn execute(&self, code: &str, timeout: Duration, settings: &KernelSettings)
    -> Result<Execution, KernelError>;

    /// Ends it; the next code starts it anew.
    async fn stop(&self);
}

/// A kernel that runs nothing, for this reason: where no project allows it, in a build without kernels, and in tests of other things.
#[derive(Clone, Debug)]
pub struct NoKernel(pub KernelError);

impl Default for NoKernel {
    fn default() -> Self {
        Self(KernelError {
            code: "exec-not-allowed",
            message: Message::word("running code is not allowed here"),
            help: Some(Message::word("allow it in bcc-script.toml: `allow = [\"exec\"]` in `[project]`")),
        })
    }
}

#[async_trait]
impl Kernel for NoKernel {
    fn permitted(&self) -> Result<(), KernelError> {
        Err(self.0.clone())
    }

    fn ran(&self) -> u64 {
        0
    }

    async fn execute(&self, _: &str, _: Duration, _: &KernelSettings) -> Result<Execution, KernelError> {
        Err(self.0.clone())
    }

    async fn stop(&self) {}
}
