//! The tools of a project, as its configuration names them: every call is checked, and bounded in time and size.

use std::sync::Arc;

use async_trait::async_trait;
use bcc_engine::environment::Environment;
use bcc_engine::project::{CONFIG_FILE, Project};
use bcc_engine::shell::quoted;
use bcc_engine::tool_source::ToolSource;
use bcc_lang::message::msg;
use bcc_runtime::effects::tools::{
    ToolCall, ToolDescription, ToolError, ToolInputRequest, ToolOutput, ToolProgress, Tools, matches,
};
use serde_json::{Map, Value};

use crate::arguments::ArgumentChecks;
use crate::graph::tool::{GRAPH_RAG, GraphRag};
use crate::mcp::source::server_tools;
use crate::result_cache::ResultCache;
use crate::truncation::{json_size, truncated};
use crate::unconfigured::Unconfigured;
use crate::web_search::tool::{WEB_SEARCH, WebSearch};

/// Makes the tools of projects.
pub struct ConfiguredTools;

impl ToolSource for ConfiguredTools {
    fn tools(&self, project: &Project, environment: &Environment) -> Arc<dyn Tools> {
        let sources: Vec<Arc<dyn Tools>> =
            vec![web_search(project, environment), graph_rag(project), server_tools(project, environment)];
        Arc::new(ProjectTools::new(sources))
    }
}

/// `web_search`, if the project configures it and is trusted.
fn web_search(project: &Project, environment: &Environment) -> Arc<dyn Tools> {
    let missing = |why| Arc::new(Unconfigured { name: WEB_SEARCH, why });
    match &project.config.tools.web_search {
        Some(table) if project.trusted => Arc::new(WebSearch::new(project, environment, table)),
        Some(_) => missing(msg!(
            "`[tools.web_search]` in {CONFIG_FILE} would send searches to a server, but {directory} is not trusted; read the file; if it does what you want, run `bcc-script trust {quoted}` once, or use `--trust` for this run",
            directory = project.directory.display(),
            quoted = quoted(&project.directory)
        )),
        None => missing(msg!("add `[tools.web_search]` with a `provider` to {CONFIG_FILE}")),
    }
}

/// `graph_rag`, if the project configures it. It only reads files of the project, so that it needs no trust.
fn graph_rag(project: &Project) -> Arc<dyn Tools> {
    match &project.config.tools.graph_rag {
        Some(table) => Arc::new(GraphRag::new(project, table)),
        None => {
            let why = msg!("add `[tools.graph_rag]` with `sources` to {CONFIG_FILE}");
            Arc::new(Unconfigured { name: GRAPH_RAG, why })
        }
    }
}

/// The tools of several sources, each with names of its own.
pub(crate) struct ProjectTools {
    sources: Vec<Arc<dyn Tools>>,
    checks: ArgumentChecks,
    cache: ResultCache,
}

impl ProjectTools {
    pub(crate) fn new(sources: Vec<Arc<dyn Tools>>) -> Self {
        Self { sources, checks: ArgumentChecks::default(), cache: ResultCache::default() }
    }

    /// The source that has a tool, and its description.
    async fn find(&self, name: &str) -> Result<(&dyn Tools, ToolDescription), ToolError> {
        let patterns = [name.to_owned()];
        let mut problem = None;
        for source in &self.sources {
            let (tools, errors) = source.describe(&patterns).await;
            if let Some(tool) = tools.into_iter().find(|tool| tool.name == name) {
                return Ok((source.as_ref(), tool));
            }
            problem = problem.or_else(|| errors.into_iter().next());
        }
        Err(problem.unwrap_or_else(|| ToolError::Unknown { name: name.to_owned() }))
    }

    async fn run(
        &self,
        call: &ToolCall<'_>,
        answer: Option<(&ToolInputRequest, Option<&Map<String, Value>>)>,
        progress: &dyn ToolProgress,
    ) -> Result<ToolOutput, ToolError> {
        let (source, tool) = self.find(call.tool).await?;
        self.checks.check(&tool, call.arguments)?;
        let may_cache = tool.is_read_only && answer.is_none();
        if let Some(earlier) = self.cache.get(call).filter(|_| may_cache) {
            return Ok(earlier);
        }
        let output = match answer {
            None => source.call(call, progress).await?,
            Some((request, input)) => source.call_with_input(call, request, input, progress).await?,
        };
        let (value, is_truncated) = match json_size(&output.value) <= call.limits.max_bytes {
            true => (output.value, false),
            false => {
                let (value, is_truncated) = truncated(output.value.into_value(), call.limits.max_bytes);
                (value.into(), is_truncated)
            }
        };
        let output = ToolOutput { value, is_truncated: is_truncated || output.is_truncated, ..output };
        if may_cache {
            self.cache.put(call, &output);
        }
        Ok(output)
    }

    /// [`Self::run`] within the time of the call, which includes finding the tool.
    async fn run_in_time(
        &self,
        call: &ToolCall<'_>,
        answer: Option<(&ToolInputRequest, Option<&Map<String, Value>>)>,
        progress: &dyn ToolProgress,
    ) -> Result<ToolOutput, ToolError> {
        tokio::time::timeout(call.limits.timeout, self.run(call, answer, progress))
            .await
            .unwrap_or_else(|_| Err(ToolError::TimedOut { tool: call.tool.to_owned() }))
    }
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
        self.run_in_time(call, None, progress).await
    }

    async fn call_with_input(
        &self,
        call: &ToolCall<'_>,
        request: &ToolInputRequest,
        input: Option<&Map<String, Value>>,
        progress: &dyn ToolProgress,
    ) -> Result<ToolOutput, ToolError> {
        self.run_in_time(call, Some((request, input)), progress).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use bcc_lang::message::message::Message;
    use bcc_runtime::effects::tools::{NoToolProgress, ToolLimits};
    use serde_json::json;

    /// Answers with the number of its calls; `hangs` never answers.
    #[derive(Default)]
    struct CountingTools {
        calls: AtomicUsize,
        dropped: Arc<AtomicUsize>,
    }

    struct CountsDrops(Arc<AtomicUsize>);

    impl Drop for CountsDrops {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[async_trait]
    impl Tools for CountingTools {
        async fn describe(&self, patterns: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>) {
            let tool = |name: &str, is_read_only| ToolDescription {
                name: name.to_owned(),
                description: String::new(),
                parameters: json!({ "type": "object", "properties": { "n": { "type": "integer" } } }),
                is_read_only,
            };
            let tools = [tool("writes", false), tool("reads", true), tool("large", true), tool("hangs", true)];
            let problem = ToolError::Unavailable { tool: "mcp.down.*".into(), why: Message::word("it is down") };
            let is_asked = patterns.iter().any(|pattern| pattern.starts_with("mcp."));
            (tools.into(), if is_asked { vec![problem] } else { vec![] })
        }

        async fn call(&self, call: &ToolCall<'_>, _: &dyn ToolProgress) -> Result<ToolOutput, ToolError> {
            let _drops = CountsDrops(Arc::clone(&self.dropped));
            let count = self.calls.fetch_add(1, Ordering::SeqCst);
            let value = match call.tool {
                "hangs" => std::future::pending().await,
                "large" => json!({ "text": "x".repeat(1000) }),
                _ => json!(count),
            };
            Ok(ToolOutput { value: value.into(), ..ToolOutput::default() })
        }
    }

    async fn call(
        tools: &ProjectTools,
        tool: &str,
        arguments: Value,
        limits: ToolLimits,
    ) -> Result<ToolOutput, ToolError> {
        let Value::Object(arguments) = arguments else { panic!() };
        tools.call(&ToolCall { tool, arguments: &arguments, action: "a", limits }, &NoToolProgress).await
    }

    fn cached() -> ToolLimits {
        ToolLimits { cache: Some(Duration::from_secs(60)), ..ToolLimits::default() }
    }

    #[tokio::test]
    async fn tools_are_described_in_the_order_of_their_names_and_only_those_that_were_asked_for() {
        let tools = ProjectTools::new(vec![Arc::new(CountingTools::default())]);
        let (found, errors) = tools.describe(&["reads".to_owned(), "h*".to_owned(), "mcp.down.*".to_owned()]).await;
        assert_eq!(found.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["hangs", "reads"]);
        assert_eq!(errors.len(), 1);
    }

    #[tokio::test]
    async fn only_results_of_tools_that_read_are_used_again() {
        let tools = ProjectTools::new(vec![Arc::new(CountingTools::default())]);
        let mut seen = Vec::new();
        for tool in ["reads", "reads", "writes", "writes"] {
            let output = call(&tools, tool, json!({ "n": 1 }), cached()).await.unwrap();
            seen.push((output.value.into_value(), output.is_cached));
        }
        assert_eq!(seen, [(json!(0), false), (json!(0), true), (json!(1), false), (json!(2), false)]);
        assert_eq!(call(&tools, "reads", json!({ "n": 1 }), ToolLimits::default()).await.unwrap().value, json!(3));
    }

    #[tokio::test]
    async fn a_call_is_refused_before_the_tool_runs() {
        let source = Arc::new(CountingTools::default());
        let tools = ProjectTools::new(vec![source.clone() as Arc<dyn Tools>]);
        let error = call(&tools, "reads", json!({ "n": "one" }), cached()).await.unwrap_err();
        assert!(matches!(&error, ToolError::InvalidArguments { .. }) && error.to_string().contains("`n`"), "{error}");
        let error = call(&tools, "nothing", json!({}), cached()).await.unwrap_err();
        assert_eq!(error, ToolError::Unknown { name: "nothing".into() });
        let error = call(&tools, "mcp.down.read", json!({}), cached()).await.unwrap_err();
        assert!(matches!(error, ToolError::Unavailable { .. }));
        assert_eq!(source.calls.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_hangs_is_cancelled_when_its_time_is_over() {
        let source = Arc::new(CountingTools::default());
        let tools = ProjectTools::new(vec![source.clone() as Arc<dyn Tools>]);
        let error = call(&tools, "hangs", json!({}), ToolLimits::default()).await.unwrap_err();
        assert_eq!(error, ToolError::TimedOut { tool: "hangs".into() });
        assert_eq!(source.dropped.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_large_result_is_truncated_and_says_so() {
        let tools = ProjectTools::new(vec![Arc::new(CountingTools::default())]);
        let output = call(&tools, "large", json!({}), ToolLimits { max_bytes: 100, ..cached() }).await.unwrap();
        assert!(output.is_truncated && output.value.to_string().len() == 100, "{}", output.value);
    }
}
