//! The tools of a project, as its configuration names them.

use std::sync::Arc;

use async_trait::async_trait;
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_engine::tool_source::ToolSource;
use bcc_runtime::effects::tools::{
    ToolCall, ToolDescription, ToolError, ToolInputRequest, ToolOutput, ToolProgress, Tools, matches,
};
use serde_json::{Map, Value};

use crate::mcp::source::server_tools;

/// Makes the tools of projects.
pub struct ConfiguredTools;

impl ToolSource for ConfiguredTools {
    fn tools(&self, project: &Project, environment: &Environment) -> Arc<dyn Tools> {
        Arc::new(ProjectTools { sources: vec![server_tools(project, environment)] })
    }
}

/// The tools of several sources, each with names of its own.
pub(crate) struct ProjectTools {
    sources: Vec<Arc<dyn Tools>>,
}

#[async_trait]
impl Tools for ProjectTools {
    async fn describe(&self, patterns: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>) {
        let (mut found, mut errors) = (Vec::new(), Vec::new());
        for source in &self.sources {
            let (tools, problems) = source.describe(patterns).await;
            found.extend(tools.into_iter().filter(|tool| patterns.iter().any(|pattern| matches(pattern, &tool.name))));
            errors.extend(problems);
        }
        found.sort_by(|one: &ToolDescription, other| one.name.cmp(&other.name));
        (found, errors)
    }

    async fn call(&self, call: &ToolCall<'_>, progress: &dyn ToolProgress) -> Result<ToolOutput, ToolError> {
        for source in &self.sources {
            match source.call(call, progress).await {
                Err(ToolError::Unknown { .. }) => {}
                result => return result,
            }
        }
        Err(ToolError::Unknown { name: call.tool.to_owned() })
    }

    async fn call_with_input(
        &self,
        call: &ToolCall<'_>,
        request: &ToolInputRequest,
        input: Option<&Map<String, Value>>,
        progress: &dyn ToolProgress,
    ) -> Result<ToolOutput, ToolError> {
        for source in &self.sources {
            match source.call_with_input(call, request, input, progress).await {
                Err(ToolError::Unknown { .. }) => {}
                result => return result,
            }
        }
        Err(ToolError::Unknown { name: call.tool.to_owned() })
    }
}
