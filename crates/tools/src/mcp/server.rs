//! One server: started on first use, started again after it ended, asked for its tools, and called. All of this runs in the thread of the
//! servers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bcc_engine::mcp_servers::McpSettings;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_runtime::effects::tools::{ToolDescription, ToolError, ToolInputRequest, ToolLimits, ToolOutput, matches};
use rmcp::model::{CallToolRequestParams, CallToolResult, ElicitResult, ServerResult};
use serde_json::{Map, Value};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::mcp::call::{CallInFlight, ServerCallStep};
use crate::mcp::client_handler::{ProgressSender, ServerQuestion};
use crate::mcp::connection::ServerConnection;
use crate::mcp::failures::RequestFailure;
use crate::mcp::input::{InputStep, InputToken, PendingInput, answer, question};
use crate::mcp::listing::ToolList;
use crate::mcp::names::{full_name, split};
use crate::mcp::results::output;
use crate::mcp::secrets::McpSecrets;

/// How many calls of one server stay open until a person answers. The oldest is given up for another one.
const MAX_WAITING: usize = 16;

pub(crate) struct ToolServer {
    name: String,
    settings: McpSettings,
    secrets: Arc<McpSecrets>,
    /// Identifies the process in tokens.
    process: String,
    connection: tokio::sync::Mutex<Option<Arc<ServerConnection>>>,
    /// Calls that wait for the answer of a person.
    waiting: Mutex<BTreeMap<u64, WaitingCall>>,
    next_waiting: AtomicU64,
    /// Whether it is being ended: a start is given up.
    stopping: watch::Sender<bool>,
}

struct WaitingCall {
    call: CallInFlight,
    answer: oneshot::Sender<ElicitResult>,
}

/// A call, as the thread of the servers needs it.
#[derive(Clone)]
pub(crate) struct ServerCall {
    /// The name that the server gives to the tool.
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) limits: ToolLimits,
    /// For a call that asked: where it goes on, and the answer of the person.
    pub(crate) input: Option<(Value, Option<Map<String, Value>>)>,
}

impl ToolServer {
    pub(crate) fn new(name: &str, settings: McpSettings, process: &str) -> Self {
        Self {
            name: name.to_owned(),
            secrets: Arc::new(McpSecrets::of(&settings.connection)),
            settings,
            process: process.to_owned(),
            connection: tokio::sync::Mutex::default(),
            waiting: Mutex::default(),
            next_waiting: AtomicU64::new(1),
            stopping: watch::Sender::new(false),
        }
    }

    /// The connection and the tools. A start goes on although nobody waits for it: the next call finds it.
    async fn connected(self: &Arc<Self>) -> Result<(Arc<ServerConnection>, Arc<ToolList>), Message> {
        let server = Arc::clone(self);
        let interrupted = || Err("the start of the server was interrupted".into());
        let connecting = tokio::spawn(async move {
            let mut stopping = server.stopping.subscribe();
            tokio::select! {
                connected = server.connect() => connected,
                _ = stopping.wait_for(|stopping| *stopping) => interrupted(),
            }
        });
        connecting.await.unwrap_or_else(|_| interrupted())
    }

    /// The connection and the tools, which are listed again if they may have changed.
    async fn connect(&self) -> Result<(Arc<ServerConnection>, Arc<ToolList>), Message> {
        let mut current = self.connection.lock().await;
        if let Some(connection) = current.as_ref().filter(|connection| !connection.is_closed()).cloned() {
            if !connection.is_list_old() {
                return Ok((Arc::clone(&connection), connection.tools()));
            }
            match timeout(self.settings.start_timeout, connection.read_list(&self.name)).await {
                Ok(Ok(())) => return Ok((Arc::clone(&connection), connection.tools())),
                Ok(Err(why)) => tracing::debug!(server = self.name, %why, "a server of tools is started again"),
                Err(_) => {
                    tracing::debug!(server = self.name, "a server of tools that does not answer is started again")
                }
            }
        }
        // One that ended, or no longer answers, is started once.
        if let Some(connection) = current.take() {
            connection.stop().await;
        }
        let start = async {
            let connection = ServerConnection::establish(&self.name, &self.settings.connection, &self.secrets).await?;
            match connection.read_list(&self.name).await {
                Ok(()) => Ok(Arc::new(connection)),
                Err(why) => {
                    connection.stop().await;
                    Err(why)
                }
            }
        };
        let limit = self.settings.start_timeout;
        let connection = timeout(limit, start).await.map_err(|_| {
            msg!(
                "the server did not list its tools within {} s; if it needs more time, increase `start_timeout`",
                limit.as_secs_f64()
            )
        })??;
        *current = Some(Arc::clone(&connection));
        let tools = connection.tools();
        Ok((connection, tools))
    }

    /// The tools that match one of `patterns`, and what is wrong with those that would.
    pub(crate) async fn describe(self: &Arc<Self>, patterns: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>) {
        match self.connected().await {
            Ok((_, tools)) => {
                let is_meant = |name: &str| patterns.iter().any(|pattern| matches(pattern, name));
                let found = tools.descriptions().filter(|tool| is_meant(&tool.name)).cloned().collect();
                let is_known = |name: &str| tools.problems.iter().any(|problem| problem.0 == name);
                let named = patterns.iter().filter_map(|pattern| Some((split(pattern)?, pattern)));
                let missing = named.filter(|((server, tool), pattern)| {
                    *server == self.name && !tool.ends_with('*') && tools.get(tool).is_none() && !is_known(pattern)
                });
                let missing: Vec<ToolError> = missing.map(|(_, name)| self.missing(name)).collect();
                let problems = tools.problems.iter().filter(|(name, _)| is_meant(name));
                let problems =
                    problems.map(|(tool, why)| ToolError::Unavailable { tool: tool.clone(), why: why.clone() });
                (found, problems.chain(missing).collect())
            }
            Err(why) => (vec![], vec![ToolError::Unavailable { tool: full_name(&self.name, "*"), why }]),
        }
    }

    fn limit(&self, call: &ServerCall) -> Duration {
        self.settings.timeout.map_or(call.limits.timeout, |limit| limit.min(call.limits.timeout))
    }

    pub(crate) async fn call(
        self: &Arc<Self>,
        call: &ServerCall,
        progress: ProgressSender,
    ) -> Result<ToolOutput, ToolError> {
        let name = full_name(&self.name, &call.tool);
        let pending = match &call.input {
            None => None,
            Some((token, input)) => match InputToken::read(token) {
                Some(InputToken::Open { process, call: number }) => {
                    return self.resume(call, &process, number, input.as_ref(), progress).await;
                }
                Some(InputToken::Again(pending)) => Some(pending.answered(input.as_ref())),
                None => {
                    let why = "the state of the call that asked cannot be read; call the tool again".into();
                    return Err(ToolError::Failed { tool: name, why });
                }
            },
        };
        let (connection, tools) = match self.connected().await {
            Ok(connected) => connected,
            Err(why) => return Err(ToolError::Unavailable { tool: name, why }),
        };
        let Some(listed) = tools.get(&call.tool) else { return Err(self.missing(&name)) };
        listed.check(&call.arguments)?;
        let mut params = CallToolRequestParams::new(call.tool.clone());
        params.arguments = Some(call.arguments.clone());
        let mut rounds = 0;
        if let Some(pending) = pending {
            match pending.next().map_err(|why| ToolError::Failed { tool: name.clone(), why })? {
                InputStep::Ask(request) => return Err(self.needs_input(call, request)),
                InputStep::CallAgain(pending) => rounds = pending.add_to(&mut params),
            }
        }
        loop {
            let sent = CallInFlight::send(Arc::clone(&connection), params.clone(), progress.clone()).await;
            let in_flight = sent.map_err(|_| ToolError::Unavailable {
                tool: name.clone(),
                why: "the connection to the server was closed; call it again".into(),
            })?;
            let result = self.finish(call, in_flight).await?;
            let result = match result {
                ServerResult::InputRequiredResult(result) => result,
                result => return self.output(call, result),
            };
            let failed = |why| ToolError::Failed { tool: name.clone(), why };
            match PendingInput::of(result, rounds).and_then(PendingInput::next).map_err(failed)? {
                InputStep::Ask(request) => return Err(self.needs_input(call, request)),
                InputStep::CallAgain(pending) => rounds = pending.add_to(&mut params),
            }
        }
    }

    /// Waits for the result of a call.
    async fn finish(
        self: &Arc<Self>,
        call: &ServerCall,
        mut in_flight: CallInFlight,
    ) -> Result<ServerResult, ToolError> {
        let name = full_name(&self.name, &call.tool);
        loop {
            match in_flight.step(self.limit(call)).await {
                ServerCallStep::Result(result) => match *result {
                    Ok(result) => return Ok(result),
                    Err(error) => {
                        let failure = RequestFailure::of(&error, &self.secrets);
                        return Err(self.failed(call, &in_flight.connection, failure).await);
                    }
                },
                ServerCallStep::TimedOut => return Err(ToolError::TimedOut { tool: name }),
                ServerCallStep::Question(asked) => {
                    let ServerQuestion { request, answer: sender } = *asked;
                    let number = self.next_waiting.fetch_add(1, Ordering::Relaxed);
                    let token = InputToken::Open { process: self.process.clone(), call: number };
                    let Some(request) = question(&request, &token) else {
                        let _ = sender.send(answer(None));
                        continue;
                    };
                    let mut waiting = self.waiting();
                    while waiting.len() >= MAX_WAITING {
                        waiting.pop_first();
                    }
                    waiting.insert(number, WaitingCall { call: in_flight, answer: sender });
                    return Err(self.needs_input(call, Box::new(request)));
                }
            }
        }
    }

    /// Goes on with a call that is open.
    async fn resume(
        self: &Arc<Self>,
        call: &ServerCall,
        process: &str,
        number: u64,
        input: Option<&Map<String, Value>>,
        progress: ProgressSender,
    ) -> Result<ToolOutput, ToolError> {
        let found = if process == self.process { self.waiting().remove(&number) } else { None };
        let Some(waiting) = found else {
            let why = msg!("the call that asked is no longer open, and what it did is not known");
            return Err(ToolError::Lost { tool: full_name(&self.name, &call.tool), why });
        };
        waiting.call.set_progress(progress);
        // A connection that was lost is noticed while the result is waited for.
        let _ = waiting.answer.send(answer(input));
        let result = self.finish(call, waiting.call).await?;
        self.output(call, result)
    }

    fn needs_input(&self, call: &ServerCall, mut request: Box<ToolInputRequest>) -> ToolError {
        self.secrets.mask_question(&mut request);
        ToolError::NeedsInput { tool: full_name(&self.name, &call.tool), request }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, WaitingCall>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn output(&self, call: &ServerCall, result: ServerResult) -> Result<ToolOutput, ToolError> {
        let result = match result {
            ServerResult::CallToolResult(result) => Some(result),
            // Only a result without anything in it.
            ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_) => Some(CallToolResult::default()),
            ServerResult::CustomResult(result) => serde_json::from_value(result.0).ok(),
            _ => None,
        };
        let failed = |why| ToolError::Failed { tool: full_name(&self.name, &call.tool), why };
        let result = result.ok_or_else(|| failed("the server answered with something that is not a result".into()))?;
        output(result, call.limits.max_bytes, &self.secrets).map_err(failed)
    }

    /// The error for a call without a result.
    async fn failed(
        self: &Arc<Self>,
        call: &ServerCall,
        connection: &ServerConnection,
        failure: RequestFailure,
    ) -> ToolError {
        let tool = full_name(&self.name, &call.tool);
        match failure {
            RequestFailure::Answered(why) => {
                // The tool may have vanished without an announcement.
                connection.is_suspect.store(true, Ordering::Relaxed);
                match self.connected().await {
                    Ok((_, tools)) if tools.get(&call.tool).is_none() => self.missing(&tool),
                    _ => ToolError::Failed { tool, why },
                }
            }
            RequestFailure::Unreachable(why) => {
                connection.is_suspect.store(true, Ordering::Relaxed);
                ToolError::Unavailable { tool, why }
            }
            RequestFailure::Lost(why) => {
                connection.is_suspect.store(true, Ordering::Relaxed);
                let why = connection.end_reason(why).await;
                ToolError::Lost { tool, why: msg!("{why}; the call was not repeated, and what it did is not known") }
            }
        }
    }

    fn missing(&self, tool: &str) -> ToolError {
        let server = &self.name;
        ToolError::Unavailable {
            tool: tool.to_owned(),
            why: msg!("the server `{server}` does not have this tool, or no longer"),
        }
    }

    /// Gives up all calls and ends the server.
    pub(crate) async fn stop(&self) {
        self.stopping.send_replace(true);
        std::mem::take(&mut *self.waiting()).clear();
        if let Some(connection) = self.connection.lock().await.take() {
            connection.stop().await;
        }
    }
}
