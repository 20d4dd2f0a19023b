//! The bench on which the tests of a kernel stand: a kernel in a temporary directory, and how to run code in it.

use std::path::Path;
use std::time::Duration;

use bcc_runtime::notebook::cell::CellEnd;
use bcc_runtime::notebook::kernel::contract::{Execution, Kernel, KernelSettings};
use bcc_runtime::notebook::kernel::jupyter::JupyterKernel;
use bcc_runtime::notebook::kernel::location::KernelLocation;
use serde_json::Value;

use crate::test_kernel::{kernel_python, kernel_variables};

/// Long enough for whatever should come to an end by itself.
pub const LONG: Duration = Duration::from_secs(120);

/// Short enough for whatever should not.
pub const SHORT: Duration = Duration::from_millis(500);

/// A kernel and its directory.
pub struct Bench {
    pub kernel: JupyterKernel,
    pub directory: tempfile::TempDir,
    pub settings: KernelSettings,
}

impl Bench {
    /// One that has not started; none where there is no kernel.
    pub fn new() -> Option<Self> {
        let python = kernel_python()?;
        let directory = tempfile::tempdir().unwrap();
        let kernel = JupyterKernel::new(place(&python, directory.path()));
        let settings = KernelSettings { start_timeout: LONG, idle_timeout: LONG, ..KernelSettings::default() };
        Some(Self { kernel, directory, settings })
    }

    /// Runs code for as long as it takes.
    pub async fn run(&self, code: &str) -> Execution {
        self.run_for(code, LONG).await
    }

    /// Runs code for a time.
    pub async fn run_for(&self, code: &str, timeout: Duration) -> Execution {
        self.kernel.execute(code, timeout, &self.settings).await.unwrap()
    }

    /// What code wrote to its standard output.
    pub async fn said(&self, code: &str) -> String {
        let ran = self.run(code).await;
        assert_eq!(ran.ended, CellEnd::Ok, "{ran:?}");
        text(&ran.outputs)
    }
}

/// Where a kernel of `python` lives.
pub fn place(python: &Path, directory: &Path) -> KernelLocation {
    let home = ("HOME", directory.display().to_string());
    let variables = kernel_variables(python).into_iter().chain([home]);
    let variables = variables.map(|(name, value)| (name.to_owned(), value)).collect();
    KernelLocation { directory: directory.to_path_buf(), variables, refused: None }
}

/// The standard output among the outputs.
pub fn text(outputs: &[Value]) -> String {
    outputs.iter().filter(|output| output["name"] == "stdout").filter_map(|output| output["text"].as_str()).collect()
}

/// Waits until `holds`, and gives up after a long time.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(LONG, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what} does not come to be");
}

/// Whether there is a process that is not dead.
pub fn lives(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z')
}
