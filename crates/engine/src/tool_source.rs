//! Where an engine gets the tools of its sessions from. The tools themselves are in a crate of their own.

use std::sync::Arc;

use async_trait::async_trait;
use bcc_lang::message::msg;
use bcc_runtime::effects::tools::{ToolCall, ToolDescription, ToolError, ToolOutput, ToolProgress, Tools};
use bcc_runtime::program::host_services::HostServices;

use crate::engine::Engine;
use crate::environment::Environment;
use crate::host_services::SessionOrigin;
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

    /// The services of a stored session, with the tools of the project unless the session may come from somebody else: its script could
    /// send what the tools find to others, or change something with them.
    pub(crate) fn added_to_stored(
        &self,
        host: HostServices,
        engine: &Engine,
        origin: &SessionOrigin<'_>,
    ) -> HostServices {
        if origin.allowed.is_some() || engine.project().trust_all {
            return self.added_to(host, engine);
        }
        HostServices { tools: Arc::new(WithheldTools { session: origin.id.to_owned() }), ..host }
    }
}

/// The tools of a session that may come from somebody else: none can be called.
struct WithheldTools {
    session: String,
}

impl WithheldTools {
    fn error(&self, tool: &str) -> ToolError {
        let why = msg!(
            "the session `{id}` may come from somebody else; if you know where its store comes from, add `--trust`",
            id = self.session
        );
        ToolError::Unavailable { tool: tool.to_owned(), why }
    }
}

#[async_trait]
impl Tools for WithheldTools {
    async fn describe(&self, patterns: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>) {
        (vec![], patterns.iter().map(|pattern| self.error(pattern)).collect())
    }

    async fn call(&self, call: &ToolCall<'_>, _: &dyn ToolProgress) -> Result<ToolOutput, ToolError> {
        Err(self.error(call.tool))
    }
}
