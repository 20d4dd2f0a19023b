//! Makes the tools of the servers that a project configures.

use std::sync::Arc;

use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_runtime::effects::tools::Tools;

/// The tools of all servers. None is started yet. In an untrusted project, every server is an error that says so.
pub fn server_tools(project: &Project, environment: &Environment) -> Arc<dyn Tools> {
    #[cfg(feature = "mcp")]
    let tools = crate::mcp::servers::McpServers::new(project, environment);
    #[cfg(not(feature = "mcp"))]
    let tools = crate::mcp::without_mcp::ServersWithoutClient::new(project, environment);
    Arc::new(tools)
}
