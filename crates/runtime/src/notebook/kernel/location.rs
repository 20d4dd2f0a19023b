//! Where the kernels of a session live: the directory, the environment, and whether code may run there at all.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::notebook::kernel::contract::KernelError;

/// What a kernel is given.
#[derive(Clone, Default)]
pub struct KernelLocation {
    /// The directory of the project: code runs there.
    pub directory: PathBuf,
    /// The environment, without what must stay secret.
    pub variables: BTreeMap<String, String>,
    /// Why code may not run here, when it may not.
    pub refused: Option<KernelError>,
}
