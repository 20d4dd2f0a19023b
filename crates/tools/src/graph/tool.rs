//! The tool `graph_rag`: its parameters, and a call on a thread of its own, because indexing takes time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use bcc_engine::config::tool_tables::{GraphTable, MAX_HOPS, MAX_TRIPLES};
use bcc_engine::project::Project;
use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_runtime::effects::tools::{ToolCall, ToolDescription, ToolError, ToolOutput, ToolProgress, Tools};
use serde_json::{Value, json};

use crate::graph::answer::graph_value;
use crate::graph::index::GraphIndex;
use crate::graph::search::{GraphQuery, search};

/// The name of the tool.
pub const GRAPH_RAG: &str = "graph_rag";

const DEFAULT_TOP_K: u32 = 12;

const DEFAULT_HOPS: u32 = 1;

/// The maximum length of a query, in characters, and the maximum number of entities.
const MAX_QUERY: usize = 4_000;
const MAX_FOCUS: usize = 20;

/// The project and its sources.
type GraphKey = (PathBuf, Vec<String>);

/// The indexes that are in use: the sessions of one project share one.
static INDEXES: Mutex<BTreeMap<GraphKey, Weak<GraphIndex>>> = Mutex::new(BTreeMap::new());

pub struct GraphRag {
    index: Arc<GraphIndex>,
    top_k: u32,
    hops: u32,
}

impl GraphRag {
    pub fn new(project: &Project, table: &GraphTable) -> Self {
        let key = (project.directory.clone(), table.sources.clone());
        let mut indexes = INDEXES.lock().unwrap_or_else(PoisonError::into_inner);
        indexes.retain(|_, index| index.strong_count() > 0);
        let index = indexes.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let index = Arc::new(GraphIndex::new(key.0.clone(), key.1.clone()));
            indexes.insert(key, Arc::downgrade(&index));
            index
        });
        Self { index, top_k: table.top_k.unwrap_or(DEFAULT_TOP_K), hops: table.hops.unwrap_or(DEFAULT_HOPS) }
    }

    fn description(&self) -> ToolDescription {
        ToolDescription {
            name: GRAPH_RAG.to_owned(),
            description: "Searches the knowledge graph of the project. Returns triples (subject, predicate, object), each with its \
                          source, and the same as text."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "additionalProperties": false,
                "required": ["query"],
                "properties": {
                    "query": { "type": "string", "minLength": 1, "maxLength": MAX_QUERY,
                               "description": "What to search for: a question, or words." },
                    "top_k": { "type": "integer", "minimum": 1, "maximum": MAX_TRIPLES, "default": self.top_k,
                               "description": "The maximum number of triples." },
                    "hops": { "type": "integer", "minimum": 0, "maximum": MAX_HOPS, "default": self.hops,
                              "description": "How many steps to follow from the triples that were found." },
                    "return_subgraph": { "type": "boolean", "default": false,
                                         "description": "Whether to return nodes and edges as well." },
                    "focus_entities": { "type": "array", "maxItems": MAX_FOCUS, "items": { "type": "string", "minLength": 1, "maxLength": 500 },
                                        "description": "Names of entities: only triples around them are found." },
                },
            }),
            is_read_only: true,
        }
    }

    fn query(&self, call: &ToolCall<'_>) -> GraphQuery {
        let number =
            |name: &str| call.arguments.get(name).and_then(Value::as_u64).and_then(|one| u32::try_from(one).ok());
        let focus = call.arguments.get("focus_entities").and_then(Value::as_array);
        GraphQuery {
            query: call.arguments.get("query").and_then(Value::as_str).unwrap_or_default().to_owned(),
            top_k: number("top_k").unwrap_or(self.top_k).min(MAX_TRIPLES) as usize,
            hops: number("hops").unwrap_or(self.hops).min(MAX_HOPS),
            focus: focus.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }
}

/// Ends the work of a call when the call is dropped.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[async_trait]
impl Tools for GraphRag {
    async fn describe(&self, _: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>) {
        (vec![self.description()], vec![])
    }

    async fn call(&self, call: &ToolCall<'_>, _: &dyn ToolProgress) -> Result<ToolOutput, ToolError> {
        if call.tool != GRAPH_RAG {
            return Err(ToolError::Unknown { name: call.tool.to_owned() });
        }
        let with_subgraph = call.arguments.get("return_subgraph").and_then(Value::as_bool).unwrap_or(false);
        let (query, max_bytes, index) = (self.query(call), call.limits.max_bytes, Arc::clone(&self.index));
        let cancelled = Arc::new(AtomicBool::new(false));
        let _cancel = CancelOnDrop(Arc::clone(&cancelled));
        let work = tokio::task::spawn_blocking(move || {
            let graph = index.refresh(&cancelled)?;
            Ok::<_, std::io::Error>(graph_value(&graph, &search(&graph, &query), with_subgraph, max_bytes))
        });
        let failed = |why: Message| ToolError::Failed { tool: GRAPH_RAG.to_owned(), why };
        let found = work.await.map_err(|_| failed(Message::word("the search ended unexpectedly")))?;
        let (value, is_truncated) =
            found.map_err(|error| failed(msg!("the sources cannot be read: {}", error.to_message())))?;
        Ok(ToolOutput { value: value.into(), is_truncated, is_cached: false })
    }
}
