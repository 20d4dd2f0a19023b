//! Where an engine gets the tools of its sessions from. The tools themselves are in a crate of their own.

use std::sync::Arc;

use bcc_runtime::effects::tools::Tools;
use bcc_runtime::program::host_services::HostServices;

use crate::engine::Engine;
use crate::environment::Environment;
use crate::project::Project;

/// Makes the tools of a session. What connects to others is started on first use only.
pub trait ToolSource: Send + Sync {
    /// The tools that the configuration of this project names; of an untrusted project, only those that neither reach the network nor
    /// start programs.
    fn tools(&self, project: &Project, environment: &Environment) -> Arc<dyn Tools>;
}

/// The source of the tools of an engine; without one, its sessions have none.
#[derive(Clone, Default)]
pub(crate) struct ToolChoice(pub(crate) Option<Arc<dyn ToolSource>>);

impl ToolChoice {
    /// The services with the tools of the project.
    pub(crate) fn added_to(&self, host: HostServices, engine: &Engine) -> HostServices {
        match &self.0 {
            Some(source) => HostServices { tools: source.tools(engine.project(), engine.environment()), ..host },
            None => host,
        }
    }
}
