//! Servers of tools in a program that was built without the feature `mcp`: each of them is an error that says so.

use async_trait::async_trait;
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_lang::message::msg;
use bcc_runtime::effects::tools::{ToolCall, ToolDescription, ToolError, ToolOutput, ToolProgress, Tools};

use crate::mcp::names::{concerned_servers, split};

pub struct ServersWithoutClient {
    configured: Vec<String>,
}

impl ServersWithoutClient {
    pub fn new(project: &Project, _: &Environment) -> Self {
        Self { configured: project.config.mcp_servers.keys().cloned().collect() }
    }
}

fn unavailable(tool: &str) -> ToolError {
    ToolError::Unavailable {
        tool: tool.to_owned(),
        why: msg!("this program was built without servers of tools; build it with the feature `mcp`"),
    }
}

#[async_trait]
impl Tools for ServersWithoutClient {
    async fn describe(&self, patterns: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>) {
        let names = concerned_servers(patterns, self.configured.iter().map(String::as_str));
        (vec![], names.iter().map(|name| unavailable(&format!("mcp.{name}"))).collect())
    }

    async fn call(&self, call: &ToolCall<'_>, _: &dyn ToolProgress) -> Result<ToolOutput, ToolError> {
        match split(call.tool) {
            Some(_) => Err(unavailable(call.tool)),
            None => Err(ToolError::Unknown { name: call.tool.to_owned() }),
        }
    }
}
