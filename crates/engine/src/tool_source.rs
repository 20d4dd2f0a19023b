//! Where an engine gets the tools of its sessions from. The tools themselves are in a crate of their own.

use std::sync::Arc;

use async_trait::async_trait;
use bcc_lang::message::msg;
use bcc_runtime::effects::tools::{
    ToolCall, ToolDescription, ToolError, ToolInputRequest, ToolOutput, ToolProgress, Tools,
};
use bcc_runtime::program::host_services::HostServices;
use serde_json::{Map, Value};

use crate::engine::Engine;
use crate::environment::Environment;
use crate::host_services::{SessionOrigin, untrusted_document};
use crate::pin::Pinned;
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
    /// The services of a new session of these documents, with the tools of the project. If the trust of the project does not cover
    /// them, only those that an untrusted project has.
    pub(crate) fn added_to(&self, host: HostServices, engine: &Engine, pinned: &Pinned) -> HostServices {
        match (&self.0, untrusted_document(engine.project(), pinned)) {
            (None, _) => without_tools(host),
            (Some(_), None) => self.all_added_to(host, engine),
            (Some(source), Some(document)) => {
                let untrusted = Project { trusted: false, ..engine.project().clone() };
                let tools = source.tools(&untrusted, engine.environment());
                HostServices { tools: Arc::new(ToolsOfUntrusted { tools, document }), ..host }
            }
        }
    }

    /// The services with all tools of the project.
    fn all_added_to(&self, host: HostServices, engine: &Engine) -> HostServices {
        match &self.0 {
            Some(source) => HostServices { tools: source.tools(engine.project(), engine.environment()), ..host },
            None => without_tools(host),
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
            return self.all_added_to(host, engine);
        }
        HostServices { tools: Arc::new(WithheldTools { session: origin.id.to_owned() }), ..host }
    }
}

/// The services of an engine that was made without tools.
fn without_tools(host: HostServices) -> HostServices {
    HostServices { tools: Arc::new(MissingTools), ..host }
}

/// The tools of an engine that was made without tools: none can be called.
struct MissingTools;

impl MissingTools {
    fn error(tool: &str) -> ToolError {
        let why = msg!("the program that runs the session made its engine without tools; see `Engine::with_tools`");
        ToolError::Unavailable { tool: tool.to_owned(), why }
    }
}

#[async_trait]
impl Tools for MissingTools {
    async fn describe(&self, patterns: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>) {
        (vec![], patterns.iter().map(|pattern| Self::error(pattern)).collect())
    }

    async fn call(&self, call: &ToolCall<'_>, _: &dyn ToolProgress) -> Result<ToolOutput, ToolError> {
        Err(Self::error(call.tool))
    }
}

/// The tools of an untrusted project, for a script that the trust of its project does not cover.
struct ToolsOfUntrusted {
    tools: Arc<dyn Tools>,
    document: String,
}

impl ToolsOfUntrusted {
    /// Says why the tool is treated as that of an untrusted project.
    fn explained(&self, error: ToolError) -> ToolError {
        match error {
            ToolError::Unavailable { tool, why } => {
                let document = &self.document;
                let why = msg!("{document} is not one of the files that you trusted with the project: {why}");
                ToolError::Unavailable { tool, why }
            }
            other => other,
        }
    }
}

#[async_trait]
impl Tools for ToolsOfUntrusted {
    async fn describe(&self, patterns: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>) {
        let (tools, errors) = self.tools.describe(patterns).await;
        (tools, errors.into_iter().map(|error| self.explained(error)).collect())
    }

    async fn call(&self, call: &ToolCall<'_>, progress: &dyn ToolProgress) -> Result<ToolOutput, ToolError> {
        self.tools.call(call, progress).await.map_err(|error| self.explained(error))
    }

    async fn call_with_input(
        &self,
        call: &ToolCall<'_>,
        request: &ToolInputRequest,
        input: Option<&Map<String, Value>>,
        progress: &dyn ToolProgress,
    ) -> Result<ToolOutput, ToolError> {
        self.tools.call_with_input(call, request, input, progress).await.map_err(|error| self.explained(error))
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
