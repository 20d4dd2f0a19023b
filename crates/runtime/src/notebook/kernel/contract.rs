//! The interface between a session and its kernel.

use bcc_lang::message::message::Message;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::effects::output::OutputObserver;
use crate::notebook::cell::CellEnd;
use crate::notebook::kernel::limits::OutputLimits;

/// How a session handles a kernel that lost its memory: after a resume, or when it died.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnResume {
    /// It continues with empty memory and reports a warning.
    #[default]
    Fresh,
    /// The code cells that ran before run again, in order, before the next cell.
    Rerun,
}

/// Whether code that a model or a server wants to run waits for a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecPolicy {
    /// It runs.
    #[default]
    Run,
    /// It runs when a person has approved it.
    Approve,
}

/// Which kernel a session uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KernelSource {
    /// A process that is started for the session, from an installed kernel spec.
    #[default]
    Installed,
    /// One that runs already and has this connection file, as written.
    ConnectionFile(String),
    /// One on a Jupyter server.
    Server(ServerKernel),
}

/// A kernel on a Jupyter server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerKernel {
    /// The address of the server, without a slash at its end.
    pub url: String,
    /// The environment variable with the token of the server.
    pub token_env: Option<String>,
    /// A kernel that runs there already. Without it, the session starts one.
    pub kernel_id: Option<String>,
}

impl KernelSource {
    /// Whether the kernel goes on without the process that drives the session.
    pub const fn is_foreign(&self) -> bool {
        !matches!(self, Self::Installed)
    }

    /// The address of its Jupyter server.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Server(server) => Some(&server.url),
            Self::Installed | Self::ConnectionFile(_) => None,
        }
    }
}

/// A kernel that goes on without the process that drives the session, as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedKernel {
    /// Its own id of its memory: another one if it was started again.
    pub memory: String,
    /// Its id on its server, if the session started it there.
    pub started: Option<String>,
}

/// The kernel settings of a session, as chosen by its script (`session.kernel`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSettings {
    /// The name of the kernel spec.
    pub name: String,
    pub source: KernelSource,
    pub on_resume: OnResume,
    pub exec: ExecPolicy,
    /// The maximum run time of one cell.
    pub timeout: Duration,
    pub start_timeout: Duration,
    pub idle_timeout: Duration,
}

impl Default for KernelSettings {
    fn default() -> Self {
        Self {
            name: "python3".to_owned(),
            source: KernelSource::Installed,
            on_resume: OnResume::Fresh,
            exec: ExecPolicy::Run,
            timeout: Duration::from_secs(60),
            start_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(600),
        }
    }
}

/// How a kernel was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelLoss {
    /// What it ran went on when it was interrupted. The session's own kernel was killed; one that others started may still run it.
    IgnoredInterrupt,
    /// It died, or the connection was lost.
    Died,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// The outputs in the format of nbformat 4.5; consecutive streams with the same name are merged.
    pub outputs: Vec<Value>,
    /// The execution count of the kernel.
    pub execution_count: Option<u64>,
    pub ended: CellEnd,
    pub ms: u64,
    /// What the kernel says about its language (`language_info`); empty if it is not known.
    pub language: Map<String, Value>,
    /// Whether a person interrupted it ([`Kernel::interrupt`]).
    pub is_interrupted_by_person: bool,
    /// Whether it went on when it was interrupted. The session's own kernel was killed with it; in a kernel that others started, it may
    /// still run.
    pub ignored_interrupt: bool,
    /// How the kernel was lost while its variables were read, after the code had ended.
    pub lost_with_variables: Option<KernelLoss>,
    /// Whether it has not started, because the kernel ran code of another program all the time. The kernel still runs it later.
    pub is_queued: bool,
    /// The number of bytes of output that were omitted because of the limits.
    pub omitted_bytes: u64,
    /// The variables of the kernel after the run, as they can be shown, up to a size limit.
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

/// The kernel of one session. It starts when code first runs, and ends with the session, with the process, or after its idle
/// timeout.
#[async_trait]
pub trait Kernel: Send + Sync {
    /// Whether code may run at all.
    /// Errors: The project does not allow it or is not trusted, or this build has no kernels.
    fn check_permission(&self) -> Result<(), KernelError>;

    /// Whether the kernel of these settings can be used, as far as that is known without starting it.
    ///
    /// # Errors
    /// It is not installed; nobody listens where it should run already.
    async fn check_available(&self, settings: &KernelSettings) -> Result<(), KernelError> {
        let _ = settings;
        Ok(())
    }

    /// Connects to a kernel that goes on without this process, waits until it is free, and says which one it is; `None` for a kernel
    /// that is a process of this program. `started` is the id of the kernel that the session started on a server before.
    ///
    /// # Errors
    /// It cannot be reached, or is not free in time.
    async fn attach(
        &self,
        settings: &KernelSettings,
        started: Option<&str>,
    ) -> Result<Option<AttachedKernel>, KernelError> {
        let _ = (settings, started);
        Ok(None)
    }

    /// Whether [`prepare`](Self::prepare) may have to start a kernel.
    fn needs_start(&self, settings: &KernelSettings) -> bool {
        let _ = settings;
        false
    }

    /// Starts a kernel that is a process of this program, if no code has run in it, so that code can begin at once. If this future is
    /// dropped, the start is given up.
    ///
    /// # Errors
    /// It is not installed, or does not start in time.
    async fn prepare(&self, settings: &KernelSettings) -> Result<(), KernelError> {
        let _ = settings;
        Ok(())
    }

    /// Ends the kernel `started` that the session started on a server.
    async fn end_started(&self, settings: &KernelSettings, started: &str) {
        let _ = (settings, started);
    }

    /// Whether the project wants people to approve code of models and servers, whatever its scripts say.
    fn exec_policy(&self) -> ExecPolicy {
        ExecPolicy::Run
    }

    /// How much of the outputs of code is kept.
    fn limits(&self) -> OutputLimits {
        OutputLimits::default()
    }

    /// Whether a variable of this process has this name, and code does not get it.
    fn withholds(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// The number of cells that ran since the kernel started; 0 before it starts and after it died or was stopped.
    fn executed_cells(&self) -> u64;

    /// Runs `code` for at most `timeout`, then interrupts it; the kernel stays usable. If this future is dropped, the code is
    /// interrupted before anything else runs.
    /// Errors: No kernel is available. Errors of the code are not returned as errors: see [`Execution::ended`].
    async fn execute(&self, code: &str, timeout: Duration, settings: &KernelSettings)
    -> Result<Execution, KernelError>;

    /// As [`Kernel::execute`], and passes on what the code prints while it runs.
    async fn execute_shown(
        &self,
        code: &str,
        timeout: Duration,
        settings: &KernelSettings,
        observer: &dyn OutputObserver,
    ) -> Result<Execution, KernelError> {
        let _ = observer;
        self.execute(code, timeout, settings).await
    }

    /// Interrupts the code that runs, for a person: the kernel keeps its memory, and the execution says so
    /// ([`Execution::is_interrupted_by_person`]). False if no code runs, or if it was already asked to end.
    fn interrupt(&self) -> bool {
        false
    }

    /// Stops it; the next code starts it again.
    async fn stop(&self);
}

/// A kernel that rejects all code for this reason: if no project allows it, in builds without kernels, and in unrelated tests.
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
    fn check_permission(&self) -> Result<(), KernelError> {
        Err(self.0.clone())
    }

    fn executed_cells(&self) -> u64 {
        0
    }

    async fn execute(&self, _: &str, _: Duration, _: &KernelSettings) -> Result<Execution, KernelError> {
        Err(self.0.clone())
    }

    async fn stop(&self) {}
}
