//! The location of kernels: directory, environment, and whether code may run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::notebook::kernel::contract::{ExecPolicy, KernelError};
use crate::notebook::kernel::limits::OutputLimits;

/// The location of a kernel.
#[derive(Clone, Default)]
pub struct KernelLocation {
    /// The directory of the project, in which code runs.
    pub directory: PathBuf,
    /// All of its environment variables, except those of the kernel spec.
    pub variables: BTreeMap<String, String>,
    /// Why code may not run, if it may not.
    pub permission_error: Option<KernelError>,
    /// How much of the outputs is kept.
    pub limits: OutputLimits,
    /// Whether people approve code of models and servers.
    pub exec: ExecPolicy,
}
