//! What stands for a kernel in a build without the feature `jupyter`.

use std::time::Duration;

use async_trait::async_trait;

use crate::notebook::kernel::contract::{Execution, Kernel, KernelError, KernelSettings};
use crate::notebook::kernel::place::Place;

/// A kernel that says that this build has none.
pub struct AbsentKernel {
    refused: KernelError,
}

impl AbsentKernel {
    /// One that would live there. Where code is not allowed anyway, that is what it says.
    pub fn new(place: Place) -> Self {
        Self { refused: place.refused.unwrap_or_else(absent) }
    }
}

/// What is said where this build has no kernels.
fn absent() -> KernelError {
    KernelError {
        code: "no-kernels-built-in",
        message: "this bcc-script was built without kernels: it can run no code".to_owned(),
        help: Some("install it with its default features, or build it with `--features jupyter`".to_owned()),
    }
}

#[async_trait]
impl Kernel for AbsentKernel {
    fn permitted(&self) -> Result<(), KernelError> {
        Err(self.refused.clone())
    }

    fn ran(&self) -> u64 {
        0
    }

    async fn execute(&self, _: &str, _: Duration, _: &KernelSettings) -> Result<Execution, KernelError> {
        Err(self.refused.clone())
    }

    async fn stop(&self) {}
}
