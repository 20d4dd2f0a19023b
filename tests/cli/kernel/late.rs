//! Tests that a late message of a kernel is assigned to the request that it answers.

use bcc_runtime::notebook::kernel::contract::KernelSettings;
use bcc_runtime::notebook::kernel::jupyter::JupyterKernel;

use crate::kernel::bench::{Bench, LONG_TIMEOUT, kernel_location};
use crate::test_kernel::kernel_python;

/// The number of kernels to start; the order in which messages are read is random.
const KERNELS: usize = 8;

#[tokio::test]
async fn the_end_of_an_earlier_request_is_not_taken_for_the_end_of_the_first_cell() {
    let Some(python) = kernel_python() else { return };
    let directory = tempfile::tempdir().unwrap();
    let kernels = directory.path().join("kernels/late");
    std::fs::create_dir_all(&kernels).unwrap();
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernel/late_kernel.py");
    let spec = serde_json::json!({ "argv": [python, program, "{connection_file}"] });
    std::fs::write(kernels.join("kernel.json"), spec.to_string()).unwrap();
    let mut location = kernel_location(&python, directory.path());
    location.variables.insert("JUPYTER_PATH".to_owned(), directory.path().display().to_string());
    let settings = KernelSettings { name: "late".to_owned(), start_timeout: LONG_TIMEOUT, ..KernelSettings::default() };
    for _ in 0..KERNELS {
        let bench = Bench {
            kernel: JupyterKernel::new(location.clone()),
            directory: tempfile::tempdir().unwrap(),
            settings: settings.clone(),
        };
        assert_eq!(bench.stdout_of("anything").await, "late\n");
    }
}
