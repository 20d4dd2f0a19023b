//! In-process behavior servers and kernels for tests: a server whose response depends only on the request, so that it is the same when a
//! turn is repeated, and a kernel that records every run.

use bcc_lang::message::message::Message;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::{LiveObserver, Provider};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::ModelRequest;
use bcc_runtime::effects::behaviors::{BehaviorPiece, BehaviorServer, ResponseStream, ServerError};
use bcc_runtime::notebook::cell::CellEnd;
use bcc_runtime::notebook::kernel::contract::{Execution, Kernel, KernelError, KernelSettings};
use bcc_runtime::program::host_services::{BehaviorServers, HostServices};
use serde_json::{Map, Value, json};

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Whole(Value),
    /// Pieces in order; an error interrupts the stream.
    Stream(Vec<Result<BehaviorPiece, &'static str>>),
    Nothing(&'static str),
}

/// The requests and executions of a test, across all its processes.
#[derive(Default)]
pub(crate) struct Log {
    /// The requests for behaviors.
    pub(crate) behavior_requests: Vec<Value>,
    /// The requests for judgements.
    pub(crate) judgement_requests: Vec<Value>,
    pub(crate) executed: Vec<String>,
}

pub(crate) type Shared = Arc<Mutex<Log>>;

/// Host services with one server, `s`. Behaviors and judgements are looked up by step and iteration: `b#2`.
pub(crate) struct TestHost {
    pub(crate) log: Shared,
    pub(crate) behaviors: BTreeMap<String, Answer>,
    pub(crate) judgements: BTreeMap<String, Answer>,
    pub(crate) code_allowed: bool,
}

fn error(code: &'static str) -> ServerError {
    ServerError {
        code,
        message: bcc_lang::message::message::Message::text(format!("the test says {code}")),
        help: None,
    }
}

/// The step and the iteration of an observation.
fn key(observation: &Value) -> String {
    let location = &observation["observation"]["location"];
    format!("{}#{}", location["current_step_id"].as_str().unwrap_or("-"), location["behavior_iteration"])
}

struct Pieces(VecDeque<Result<BehaviorPiece, &'static str>>);

#[async_trait]
impl ResponseStream for Pieces {
    async fn next(&mut self) -> Result<Option<BehaviorPiece>, ServerError> {
        self.0.pop_front().transpose().map_err(error)
    }
}

#[async_trait]
impl BehaviorServer for TestHost {
    async fn actions(&self, observation: &Value) -> Result<Box<dyn ResponseStream>, ServerError> {
        self.log.lock().unwrap().behavior_requests.push(observation.clone());
        let found = self.behaviors.get(&key(observation)).or_else(|| self.behaviors.get("*"));
        let pieces = match found.unwrap_or_else(|| panic!("no behavior for {}", key(observation))).clone() {
            Answer::Whole(value) => vec![Ok(BehaviorPiece::Response(value))],
            Answer::Stream(pieces) => pieces,
            Answer::Nothing(code) => return Err(error(code)),
        };
        Ok(Box::new(Pieces(pieces.into())))
    }

    async fn reflection(&self, observation: &Value) -> Result<Value, ServerError> {
        self.log.lock().unwrap().judgement_requests.push(observation.clone());
        let found = self.judgements.get(&key(observation)).or_else(|| self.judgements.get("*"));
        match found
            .cloned()
            .unwrap_or_else(|| Answer::Whole(json!({ "reason": "", "metadata": { "target_achieved": true } })))
        {
            Answer::Whole(value) => Ok(value),
            Answer::Nothing(code) => Err(error(code)),
            Answer::Stream(_) => panic!("judgements are not streamed"),
        }
    }
}

struct Servers(Arc<TestHost>);

impl BehaviorServers for Servers {
    fn server(&self, name: &str) -> Result<Arc<dyn BehaviorServer>, ServerError> {
        if name == "s" { Ok(Arc::clone(&self.0) as Arc<dyn BehaviorServer>) } else { Err(error("server-unknown")) }
    }
}

/// A kernel that records the code that it runs.
struct RecordingKernel(Arc<TestHost>);

#[async_trait]
impl Kernel for RecordingKernel {
    fn check_permission(&self) -> Result<(), KernelError> {
        if self.0.code_allowed {
            return Ok(());
        }
        Err(KernelError { code: "exec-not-allowed", message: "the project does not allow `exec`".into(), help: None })
    }

    fn executed_cells(&self) -> u64 {
        1
    }

    async fn execute(&self, code: &str, _: Duration, _: &KernelSettings) -> Result<Execution, KernelError> {
        self.0.log.lock().unwrap().executed.push(code.to_owned());
        let ended = if code.contains("raise") { CellEnd::Error } else { CellEnd::Ok };
        let mut outputs = vec![json!({ "output_type": "stream", "name": "stdout", "text": format!("ran {code}\n") })];
        if let Some(line) = code.lines().position(|line| line.starts_with("raise")) {
            let raised =
                code.lines().nth(line).and_then(|line| line.strip_prefix("raise ")?.strip_suffix(')')?.split_once('('));
            let (ename, evalue) = raised.unwrap_or(("Error", ""));
            let traceback = [format!("\u{1b}[0;31m{ename}\u{1b}[0m"), format!("Cell In[1], line {}\n", line + 1)];
            outputs.push(json!({ "output_type": "error", "ename": ename, "evalue": evalue, "traceback": traceback }));
        }
        let (language, variables) = (Map::new(), Map::new());
        let execution = Execution {
            outputs,
            execution_count: Some(1),
            ended,
            ms: 7,
            language,
            is_interrupted_by_person: false,
            ignored_interrupt: false,
            lost_with_variables: None,
            is_queued: false,
            omitted_bytes: 0,
            variables,
        };
        Ok(execution)
    }

    async fn stop(&self) {}
}

impl TestHost {
    /// The host services for one process of a test.
    pub(crate) fn host_services(self: &Arc<Self>) -> HostServices {
        HostServices {
            kernel: Arc::new(RecordingKernel(Arc::clone(self))),
            servers: Arc::new(Servers(Arc::clone(self))),
            ..HostServices::default()
        }
    }
}

/// A model that returns these texts by the action's round and kind: `behavior 1`, `reflection 1`, …; `*` for any other.
pub(crate) struct KeyedReplies(pub(crate) BTreeMap<String, String>, pub(crate) Mutex<Vec<ModelRequest>>);

#[async_trait]
impl Provider for KeyedReplies {
    fn name(&self) -> &str {
        "said"
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        self.1.lock().unwrap().push(request.clone());
        let key = format!("{} {}", request.task.kind, request.task.round);
        let Some(text) = self.0.get(&key).or_else(|| self.0.get("*")) else {
            return Err(ModelError::NoReply { key: Message::text(key), help: "write one".into() });
        };
        live.text(text);
        Ok(ModelReply { text: text.clone(), model: "said".to_owned(), attempts: 1, ..ModelReply::default() })
    }
}
