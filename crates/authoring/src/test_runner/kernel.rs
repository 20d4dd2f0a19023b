//! The kernel of conversation tests: it runs no code, whatever the project allows. Every cell succeeds without output.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Map;

use bcc_runtime::notebook::cell::CellEnd;
use bcc_runtime::notebook::kernel::contract::{Execution, Kernel, KernelError, KernelSettings};

/// A kernel that accepts code and runs none of it.
#[derive(Debug, Default)]
pub(crate) struct TestKernel {
    count: AtomicU64,
}

#[async_trait]
impl Kernel for TestKernel {
    fn check_permission(&self) -> Result<(), KernelError> {
        Ok(())
    }

    fn executed_cells(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    async fn execute(&self, _: &str, _: Duration, _: &KernelSettings) -> Result<Execution, KernelError> {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Execution {
            outputs: vec![],
            execution_count: Some(count),
            ended: CellEnd::Ok,
            ms: 0,
            language: serde_json::Map::new(),
            is_interrupted_by_person: false,
            ignored_interrupt: false,
            lost_with_variables: None,
            is_queued: false,
            omitted_bytes: 0,
            variables: Map::new(),
        })
    }

    async fn stop(&self) {
        self.count.store(0, Ordering::Relaxed);
    }
}
