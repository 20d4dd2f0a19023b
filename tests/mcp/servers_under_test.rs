//! A project with servers of tools, and calls of their tools.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bcc_engine::config::config::parse;
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_runtime::effects::tools::{
    ToolCall, ToolDescription, ToolError, ToolInputRequest, ToolLimits, ToolOutput, ToolProgress, Tools,
};
use bcc_tools::mcp::servers::McpServers;
use serde_json::{Map, Value};
use tempfile::TempDir;

/// The longest time of a call in these tests, except for those of timeouts.
const LIMIT: Duration = Duration::from_secs(60);

/// Only a broken program comes near it.
const PATIENCE: Duration = Duration::from_secs(30);

const POLL_INTERVAL: Duration = Duration::from_millis(5);

pub struct TestServers {
    pub servers: McpServers,
    pub directory: TempDir,
}

/// What a call came to, as text.
pub type ToolOutcome = Result<Value, String>;

#[derive(Default)]
pub struct SeenProgress(pub Mutex<Vec<(f64, Option<f64>)>>);

impl ToolProgress for SeenProgress {
    fn progress(&self, done: f64, total: Option<f64>) {
        self.0.lock().unwrap().push((done, total));
    }
}

impl TestServers {
    /// A trusted project with this configuration.
    pub fn configured(configuration: &str) -> Self {
        Self::of(configuration, true)
    }

    pub fn of(configuration: &str, trusted: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = parse("bcc-script.toml", configuration).unwrap();
        let project =
            Project { config, trusted, has_config: true, ..Project::unconfigured(directory.path().to_path_buf()) };
        let path = ("PATH", std::env::var("PATH").unwrap());
        let environment = Environment::of([path, ("SECRET_KEY", "secret".to_owned())]);
        Self { servers: McpServers::new(&project, &environment), directory }
    }

    /// The server `s` of ours, which misbehaves in this way.
    pub fn misbehaving(mode: &str, more: &str) -> Self {
        Self::misbehaving_with("", mode, more)
    }

    /// The same with more environment variables, each with a comma behind it.
    pub fn misbehaving_with(variables: &str, mode: &str, more: &str) -> Self {
        let program = std::env::current_exe().unwrap();
        let server = "misbehaving_server::serve";
        let configuration = format!(
            "[mcp_servers.s]\ncommand = [{program:?}, {server:?}, \"--exact\", \"--nocapture\"]\n\
             env = {{ {variables} BCC_TEST_MCP = \"{mode}\" }}\n{more}"
        );
        Self::configured(&configuration)
    }

    /// What the server of ours noted.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Waits until the server of ours has noted this.
    pub async fn wait_for(&self, note: &str) {
        wait_until(note, || self.log().contains(note)).await;
    }

    pub async fn describe(&self, pattern: &str) -> (Vec<ToolDescription>, Vec<String>) {
        let (tools, errors) = self.servers.describe(&[pattern.to_owned()]).await;
        (tools, errors.iter().map(ToString::to_string).collect())
    }

    pub async fn names(&self) -> Vec<String> {
        self.describe("mcp.*").await.0.into_iter().map(|tool| tool.name).collect()
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> ToolOutcome {
        self.call_limited(tool, arguments, ToolLimits { timeout: LIMIT, ..ToolLimits::default() }).await
    }

    pub async fn call_limited(&self, tool: &str, arguments: Value, limits: ToolLimits) -> ToolOutcome {
        outcome(self.try_call(tool, &arguments, limits, &SeenProgress::default()).await)
    }

    pub async fn try_call(
        &self,
        tool: &str,
        arguments: &Value,
        limits: ToolLimits,
        progress: &dyn ToolProgress,
    ) -> Result<ToolOutput, ToolError> {
        let arguments = arguments.as_object().unwrap();
        self.servers.call(&ToolCall { tool, arguments, action: "a", limits }, progress).await
    }

    /// A call that asks a person.
    pub async fn question(&self, tool: &str, arguments: &Value) -> ToolInputRequest {
        match self.try_call(tool, arguments, ToolLimits::default(), &SeenProgress::default()).await {
            Err(ToolError::NeedsInput { request, .. }) => *request,
            other => panic!("{other:?}"),
        }
    }

    pub async fn answer(
        &self,
        tool: &str,
        arguments: &Value,
        request: &ToolInputRequest,
        input: Option<&Map<String, Value>>,
    ) -> Result<ToolOutput, ToolError> {
        let call = ToolCall {
            tool,
            arguments: arguments.as_object().unwrap(),
            action: "a",
            limits: ToolLimits { timeout: LIMIT, ..ToolLimits::default() },
        };
        self.servers.call_with_input(&call, request, input, &SeenProgress::default()).await
    }
}

pub fn outcome(result: Result<ToolOutput, ToolError>) -> ToolOutcome {
    result.map(|output| output.value.into_value()).map_err(|error| error.to_string())
}

pub async fn wait_until(what: &str, is_reached: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_reached() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Whether a process runs. One whose first thread has ended has others, until it can be waited for.
pub fn is_running(pid: &Value) -> bool {
    let process = PathBuf::from(format!("/proc/{}", pid.as_str().unwrap()));
    let threads = || std::fs::read_dir(process.join("task")).map_or(0, |tasks| tasks.flatten().count());
    let is_dead = |stat: String| stat.rsplit_once(')').unwrap().1.starts_with(" Z");
    std::fs::read_to_string(process.join("stat")).is_ok_and(|stat| !is_dead(stat) || threads() > 1)
}
