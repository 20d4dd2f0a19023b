//! Test setup for a kernel: a kernel in a temporary directory, and functions to run code in it.

use std::path::Path;
use std::time::Duration;

use bcc_runtime::notebook::cell::CellEnd;
use bcc_runtime::notebook::kernel::contract::{Execution, Kernel, KernelSettings};
use bcc_runtime::notebook::kernel::jupyter::JupyterKernel;
use bcc_runtime::notebook::kernel::location::KernelLocation;
use serde_json::Value;

use crate::test_kernel::{kernel_python, kernel_variables};

/// A timeout for what should end on its own.
pub const LONG_TIMEOUT: Duration = Duration::from_secs(120);

/// A timeout for what should not end on its own.
pub const SHORT_TIMEOUT: Duration = Duration::from_millis(500);

/// A kernel and its directory.
pub struct Bench {
    pub kernel: JupyterKernel,
    pub directory: tempfile::TempDir,
    pub settings: KernelSettings,
}

impl Bench {
    /// A kernel that is not started yet; `None` where no kernel is installed.
    pub fn new() -> Option<Self> {
        let python = kernel_python()?;
        let directory = tempfile::tempdir().unwrap();
        let kernel = JupyterKernel::new(kernel_location(&python, directory.path()));
        let settings =
            KernelSettings { start_timeout: LONG_TIMEOUT, idle_timeout: LONG_TIMEOUT, ..KernelSettings::default() };
        Some(Self { kernel, directory, settings })
    }

    /// Runs code with a long timeout.
    pub async fn run(&self, code: &str) -> Execution {
        self.run_for(code, LONG_TIMEOUT).await
    }

    /// Runs code with this timeout.
    pub async fn run_for(&self, code: &str, timeout: Duration) -> Execution {
        self.kernel.execute(code, timeout, &self.settings).await.unwrap()
    }

    /// The standard output of the code.
    pub async fn stdout_of(&self, code: &str) -> String {
        let execution = self.run(code).await;
        assert_eq!(execution.ended, CellEnd::Ok, "{execution:?}");
        text(&execution.outputs)
    }
}

/// The location of a kernel that uses `python`.
pub fn kernel_location(python: &Path, directory: &Path) -> KernelLocation {
    let home = ("HOME", directory.display().to_string());
    let variables = kernel_variables(python).into_iter().chain([home]);
    let variables = variables.map(|(name, value)| (name.to_owned(), value)).collect();
    KernelLocation { directory: directory.to_path_buf(), variables, ..KernelLocation::default() }
}

/// The text of the standard output among the outputs.
pub fn text(outputs: &[Value]) -> String {
    outputs.iter().filter(|output| output["name"] == "stdout").filter_map(|output| output["text"].as_str()).collect()
}

/// Waits until `is_met` returns true, up to [`LONG_TIMEOUT`].
pub async fn wait_until(condition: &str, mut is_met: impl FnMut() -> bool) {
    let result = tokio::time::timeout(LONG_TIMEOUT, async {
        while !is_met() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(result.await.is_ok(), "{condition} does not come to be");
}

/// Whether a process with this id is running.
pub fn is_running(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z')
}
