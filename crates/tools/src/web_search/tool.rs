//! The tool `web_search`: its parameters, and a call with the provider that it names.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bcc_engine::api_key::api_key;
use bcc_engine::config::tool_tables::{MAX_RESULTS, SearchProvider, SearchServerTable, WebSearchTable};
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_runtime::effects::tools::{ToolCall, ToolDescription, ToolError, ToolOutput, ToolProgress, Tools};
use serde_json::{Value, json};

use crate::truncation::json_size;
use crate::web_search::answer::search_value;
use crate::web_search::request::{SearchQuery, TimeRange};
use crate::web_search::server::SearchServer;

/// The name of the tool.
pub const WEB_SEARCH: &str = "web_search";

const DEFAULT_RESULTS: u32 = 5;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

/// The maximum length of a query, in characters.
const MAX_QUERY: usize = 2_000;

/// `web_search` with the providers of a trusted project.
pub struct WebSearch {
    project: Project,
    environment: Environment,
    table: WebSearchTable,
    /// The clients, from the first search on.
    clients: Mutex<BTreeMap<SearchProvider, Arc<SearchServer>>>,
}

impl WebSearch {
    pub fn new(project: &Project, environment: &Environment, table: &WebSearchTable) -> Self {
        Self {
            project: project.clone(),
            environment: environment.clone(),
            table: table.clone(),
            clients: Mutex::default(),
        }
    }

    fn description(&self) -> ToolDescription {
        let servers = self.table.servers();
        let providers: Vec<&str> = servers.iter().map(|server| server.provider.name()).collect();
        let ranges: Vec<&str> = TimeRange::ALL.into_iter().map(TimeRange::name).collect();
        let max_results = self.table.max_results.unwrap_or(DEFAULT_RESULTS);
        ToolDescription {
            name: WEB_SEARCH.to_owned(),
            description: "Searches the web. Returns titles, addresses and snippets of the results.".to_owned(),
            parameters: json!({
                "type": "object",
                "additionalProperties": false,
                "required": ["query"],
                "properties": {
                    "query": { "type": "string", "minLength": 1, "maxLength": MAX_QUERY, "description": "What to search for." },
                    "max_results": { "type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "default": max_results,
                                     "description": "The maximum number of results." },
                    "locale": { "type": "string", "pattern": "^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$",
                                "description": "The language of the results, such as \"en\" or \"zh-CN\"." },
                    "time_range": { "enum": ranges, "description": "The maximum age of the results." },
                    "provider": { "enum": providers, "default": self.table.provider.name(),
                                  "description": "The search service." },
                },
            }),
            is_read_only: true,
        }
    }

    /// The client of a provider; its key is read when it is used for the first time.
    fn client(&self, server: &SearchServerTable) -> Result<Arc<SearchServer>, ToolError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&server.provider) {
            return Ok(Arc::clone(client));
        }
        let unavailable = |why: Message| ToolError::Unavailable { tool: WEB_SEARCH.to_owned(), why };
        let (variable, file) = (server.api_key_env.as_deref(), server.api_key_file.as_deref());
        let key = api_key(&self.project.directory, &self.environment, "[tools.web_search]", variable, file)
            .map_err(|error| unavailable(error.to_message()))?;
        let url = server
            .server()
            .ok_or_else(|| unavailable(msg!("the provider `{}` needs `url`", server.provider.name())))?;
        let client = Arc::new(SearchServer::new(server.provider, url, key.as_ref()).map_err(unavailable)?);
        clients.insert(server.provider, Arc::clone(&client));
        Ok(client)
    }
}

#[async_trait]
impl Tools for WebSearch {
    async fn describe(&self, _: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>) {
        (vec![self.description()], vec![])
    }

    async fn call(&self, call: &ToolCall<'_>, _: &dyn ToolProgress) -> Result<ToolOutput, ToolError> {
        if call.tool != WEB_SEARCH {
            return Err(ToolError::Unknown { name: call.tool.to_owned() });
        }
        let text = |name: &str| call.arguments.get(name).and_then(Value::as_str);
        let servers = self.table.servers();
        let wanted = text("provider").unwrap_or(self.table.provider.name());
        let server = servers.iter().find(|server| server.provider.name() == wanted).ok_or_else(|| {
            let known = Message::names(servers.iter().map(|server| server.provider.name()));
            let why = msg!("the provider `{wanted}` is not configured; available: {known}");
            ToolError::InvalidArguments { tool: WEB_SEARCH.to_owned(), why }
        })?;
        let max_results = call.arguments.get("max_results").and_then(Value::as_u64);
        let max_results = max_results.and_then(|number| u32::try_from(number).ok()).or(self.table.max_results);
        let search = SearchQuery {
            query: text("query").unwrap_or_default().to_owned(),
            max_results: max_results.unwrap_or(DEFAULT_RESULTS).min(MAX_RESULTS),
            locale: text("locale").map(str::to_owned).or_else(|| self.table.locale.clone()),
            time_range: text("time_range").and_then(TimeRange::parse),
        };
        let timeout = server.timeout.unwrap_or(DEFAULT_TIMEOUT).min(call.limits.timeout);
        let found = self.client(server)?.search(&search, timeout).await;
        let mut results = found.map_err(|error| error.to_tool_error(server.provider))?;
        let count = results.len();
        let mut value = search_value(server.provider, &search.query, &results);
        // A result and its link are dropped together.
        while json_size(&value) > call.limits.max_bytes && results.pop().is_some() {
            value = search_value(server.provider, &search.query, &results);
        }
        Ok(ToolOutput { value: value.into(), is_truncated: results.len() < count, is_cached: false })
    }
}
