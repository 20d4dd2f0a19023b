//! The tools of all servers of a project.

use std::sync::{Arc, OnceLock, PoisonError};

use async_trait::async_trait;
use bcc_engine::environment::Environment;
use bcc_engine::mcp_servers::mcp_settings;
use bcc_engine::project::Project;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_runtime::effects::tools::{
    ToolCall, ToolDescription, ToolError, ToolInputRequest, ToolOutput, ToolProgress, Tools,
};
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::mcp::client_handler::progress_channel;
use crate::mcp::names::{concerned_servers, full_name, split};
use crate::mcp::server::{ServerCall, ToolServer};
use crate::mcp::thread::{ServerThread, UsedServers};

/// The servers of tools of a project. They are started on first use, and end when this is dropped.
pub struct McpServers {
    project: Project,
    environment: Environment,
    /// Identifies this value in the tokens of calls that wait for a person.
    process: String,
    used: UsedServers,
    thread: OnceLock<Result<ServerThread, Message>>,
}

impl McpServers {
    pub fn new(project: &Project, environment: &Environment) -> Self {
        Self {
            project: project.clone(),
            environment: environment.clone(),
            process: Uuid::now_v7().to_string(),
            used: UsedServers::default(),
            thread: OnceLock::new(),
        }
    }

    fn thread(&self) -> Result<&ServerThread, Message> {
        let start = || {
            ServerThread::start(Arc::clone(&self.used))
                .map_err(|error| msg!("the thread of the servers of tools cannot be started: {error}"))
        };
        self.thread.get_or_init(start).as_ref().map_err(Clone::clone)
    }

    /// The server with this name, which is not started yet if it was not used.
    fn server(&self, name: &str) -> Result<Arc<ToolServer>, Message> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = used.get(name) {
            return Ok(Arc::clone(server));
        }
        let settings = mcp_settings(&self.project, &self.environment, name)?;
        let server = Arc::new(ToolServer::new(name, settings, &self.process));
        used.insert(name.to_owned(), Arc::clone(&server));
        Ok(server)
    }

    async fn perform(
        &self,
        call: &ToolCall<'_>,
        input: Option<(Value, Option<Map<String, Value>>)>,
        progress: &dyn ToolProgress,
    ) -> Result<ToolOutput, ToolError> {
        let Some((name, tool)) = split(call.tool) else {
            return Err(ToolError::Unknown { name: call.tool.to_owned() });
        };
        let unavailable = |why| ToolError::Unavailable { tool: call.tool.to_owned(), why };
        let server = self.server(name).map_err(unavailable)?;
        let thread = self.thread().map_err(unavailable)?;
        let request =
            ServerCall { tool: tool.to_owned(), arguments: call.arguments.clone(), limits: call.limits, input };
        let (sender, mut updates) = progress_channel();
        let (mut reply, mut result) = oneshot::channel();
        thread.handle.spawn(async move {
            tokio::select! {
                // The caller was dropped, and so is the call.
                () = reply.closed() => {}
                result = server.call(&request, sender) => drop(reply.send(result)),
            }
        });
        loop {
            tokio::select! {
                biased;
                Some(update) = updates.recv() => progress.progress(update.done, update.total),
                result = &mut result => {
                    return result.unwrap_or_else(|_| Err(unavailable("the thread of the servers of tools has ended".into())));
                }
            }
        }
    }
}

#[async_trait]
impl Tools for McpServers {
    async fn describe(&self, patterns: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>) {
        let configured = self.project.config.mcp_servers.keys().map(String::as_str);
        let (mut found, mut errors) = (Vec::new(), Vec::new());
        let mut described = JoinSet::new();
        for name in concerned_servers(patterns, configured) {
            let ready = self.server(name).and_then(|server| Ok((server, self.thread()?)));
            match ready {
                Ok((server, thread)) => {
                    let patterns = patterns.to_vec();
                    described.spawn_on(async move { server.describe(&patterns).await }, &thread.handle);
                }
                Err(why) => errors.push(ToolError::Unavailable { tool: full_name(name, "*"), why }),
            }
        }
        while let Some(described) = described.join_next().await {
            let Ok((tools, problems)) = described else { continue };
            found.extend(tools);
            errors.extend(problems);
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        errors.sort_by_key(ToString::to_string);
        (found, errors)
    }

    async fn call(&self, call: &ToolCall<'_>, progress: &dyn ToolProgress) -> Result<ToolOutput, ToolError> {
        self.perform(call, None, progress).await
    }

    async fn call_with_input(
        &self,
        call: &ToolCall<'_>,
        request: &ToolInputRequest,
        input: Option<&Map<String, Value>>,
        progress: &dyn ToolProgress,
    ) -> Result<ToolOutput, ToolError> {
        self.perform(call, Some((request.token.clone(), input.cloned())), progress).await
    }
}
