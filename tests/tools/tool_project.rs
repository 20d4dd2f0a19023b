//! A project in a temporary folder, and calls of its tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_engine::tool_source::ToolSource;
use bcc_runtime::effects::tools::{NoToolProgress, ToolCall, ToolError, ToolLimits, ToolOutput, Tools};
use bcc_tools::project_tools::ConfiguredTools;
use serde_json::{Map, Value};

pub struct ToolProject {
    folder: tempfile::TempDir,
}

impl ToolProject {
    pub fn new(config: &str) -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap() };
        project.write("bcc-script.toml", config);
        project
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The tools of the project, as a new process makes them.
    pub fn tools(&self, is_trusted: bool, variables: &[(&'static str, &str)]) -> Arc<dyn Tools> {
        let environment = Environment::of(variables.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let project = Project::in_directory(self.path().to_path_buf(), is_trusted, &environment).unwrap();
        ConfiguredTools.tools(&project, &environment)
    }
}

fn fields(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else { panic!("{value}") };
    fields
}

pub async fn call_with(
    tools: &dyn Tools,
    tool: &str,
    arguments: Value,
    limits: ToolLimits,
) -> Result<ToolOutput, ToolError> {
    let arguments = fields(arguments);
    tools.call(&ToolCall { tool, arguments: &arguments, action: "a", limits }, &NoToolProgress).await
}

pub async fn call(tools: &dyn Tools, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
    call_with(tools, tool, arguments, ToolLimits::default()).await
}
