//! Where an engine gets the tools of its sessions from. The tools themselves are in a crate of their own.

use std::sync::Arc;

use bcc_runtime::effects::tools::Tools;

use crate::environment::Environment;
use crate::project::Project;

/// Makes the tools of a session. What connects to others is started on first use only.
pub trait ToolSource: Send + Sync {
    /// The tools that the configuration of this project names; of an untrusted project, only those that neither reach the network nor
    /// start programs.
    fn tools(&self, project: &Project, environment: &Environment) -> Arc<dyn Tools>;
}
