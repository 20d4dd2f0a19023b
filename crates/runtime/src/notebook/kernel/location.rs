//! The location of kernels: directory, environment, and whether code may run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use secrecy::SecretString;

use crate::notebook::kernel::contract::{ExecPolicy, KernelError, ServerKernel};
use crate::notebook::kernel::limits::OutputLimits;

/// The location of a kernel.
#[derive(Clone, Default)]
pub struct KernelLocation {
    /// The directory of the project, in which code runs.
    pub directory: PathBuf,
    /// All of its environment variables, except those of the kernel spec.
    pub variables: BTreeMap<String, String>,
    /// The names of variables of this process that code does not get.
    pub withheld: BTreeSet<String>,
    /// Why code may not run, if it may not.
    pub permission_error: Option<KernelError>,
    /// How much of the outputs is kept.
    pub limits: OutputLimits,
    /// Whether people approve code of models and servers.
    pub exec: ExecPolicy,
    /// The Jupyter servers whose kernels may be used.
    pub servers: Option<Arc<dyn KernelServers>>,
}

/// The Jupyter servers that a project names.
pub trait KernelServers: Send + Sync {
    /// The token for a server, read when it is needed; `None` if the server needs none.
    ///
    /// # Errors
    /// The project does not name the server, or names another variable for its token, or the variable is not set.
    fn token(&self, server: &ServerKernel) -> Result<Option<SecretString>, KernelError>;
}
