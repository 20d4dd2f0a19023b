//! A connection to a server: how it is established, over pipes or HTTP, for every version of the protocol, and how it ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bcc_engine::mcp_servers::McpConnection;
use bcc_lang::message::library::library;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_llm::http::client::plain_client;
use bcc_runtime::effects::server_process::{ProgramProbe, ServerCommand};
use rmcp::model::{
    ClientRequest, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerResult, SubscriptionFilter,
};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use secrecy::ExposeSecret;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::mcp::client_handler::{OpenCalls, ToolClient};
use crate::mcp::failures::{RequestFailure, may_be_legacy, start_failure};
use crate::mcp::lines::{LimitedLines, MAX_LINE, log_errors};
use crate::mcp::listing::ToolList;
use crate::mcp::program::WatchedProgram;
use crate::mcp::secrets::McpSecrets;

/// How many pages of tools are requested.
const MAX_PAGES: usize = 50;

/// The limit for connecting to an address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a stream of a server that was cut is requested again.
const MAX_RECONNECTS: usize = 2;

/// How long is waited for the reason why a connection was lost.
const END_REASON_TIMEOUT: Duration = Duration::from_millis(500);

/// How long the output of a program that ended is still read.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(200);

/// How long the connection may take to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) struct ServerConnection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) calls: Arc<OpenCalls>,
    service: tokio::sync::Mutex<RunningService<RoleClient, ToolClient>>,
    program: Mutex<Option<WatchedProgram>>,
    /// How the program ended by itself.
    ended: Option<watch::Receiver<Option<Message>>>,
    probe: Option<ProgramProbe>,
    is_line_too_long: Arc<AtomicBool>,
    /// The tools, as they were listed last.
    pub(crate) list: Mutex<Arc<ToolList>>,
    secrets: Arc<McpSecrets>,
    /// Whether something happened after which it is not certain that the server still answers.
    pub(crate) is_suspect: AtomicBool,
}

impl ServerConnection {
    /// Connects to a server. A program that ends because it does not know the newest version is started again for an older one.
    pub(crate) async fn establish(name: &str, to: &McpConnection, secrets: &Arc<McpSecrets>) -> Result<Self, Message> {
        let newest = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        match Self::attempt(name, to, secrets, newest).await? {
            Ok(connection) => Ok(connection),
            Err(error) if may_be_legacy(&error) => {
                let second = Self::attempt(name, to, secrets, ClientLifecycleMode::Initialize).await?;
                second.map_err(|error| start_failure(&error, secrets))
            }
            Err(error) => Err(start_failure(&error, secrets)),
        }
    }

    async fn attempt(
        name: &str,
        to: &McpConnection,
        secrets: &Arc<McpSecrets>,
        mode: ClientLifecycleMode,
    ) -> Result<Result<Self, ClientInitializeError>, Message> {
        let calls = Arc::new(OpenCalls::default());
        let client = ToolClient(Arc::clone(&calls));
        let is_line_too_long = Arc::new(AtomicBool::new(false));
        let (service, program) = match to {
            McpConnection::Program { command, directory, working_directory, variables, .. } => {
                let request = ServerCommand { command, directory, working_directory, variables };
                let (program, pipes) = WatchedProgram::start(&request)?;
                tokio::spawn(log_errors(name.to_owned(), pipes.errors, Arc::clone(secrets)));
                let output = LimitedLines::new(pipes.output, MAX_LINE, Arc::clone(&is_line_too_long));
                let transport = AsyncRwTransport::new_client(output, pipes.input).with_max_line_length(usize::MAX);
                match client.serve_with_lifecycle(transport, mode).await {
                    Ok(service) => (service, Some(program)),
                    Err(error) => {
                        program.stop().await;
                        return Ok(Err(error));
                    }
                }
            }
            McpConnection::Address { url, key } => {
                let endpoint = reqwest::Url::parse(url).map_err(|error| msg!("`url` is not a valid URL ({error})"))?;
                let http = plain_client(&endpoint, None, Some(CONNECT_TIMEOUT))?;
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                config.auth_header = key.as_ref().map(|key| key.expose_secret().to_owned());
                config.max_json_response_size = MAX_LINE;
                config.max_sse_event_size = MAX_LINE;
                let mut retries = ExponentialBackoff::default();
                retries.max_times = Some(MAX_RECONNECTS);
                config.retry_config = Arc::new(retries);
                let transport = StreamableHttpClientTransport::with_client(http, config);
                match client.serve_with_lifecycle(transport, mode).await {
                    Ok(service) => (service, None),
                    Err(error) => return Ok(Err(error)),
                }
            }
        };
        let peer = service.peer().clone();
        watch_list(&peer, &calls);
        Ok(Ok(Self {
            peer,
            calls,
            service: tokio::sync::Mutex::new(service),
            ended: program.as_ref().map(|program| program.ended.clone()),
            probe: program.as_ref().map(|program| program.probe),
            program: Mutex::new(program),
            is_line_too_long,
            list: Mutex::default(),
            secrets: Arc::clone(secrets),
            is_suspect: AtomicBool::new(false),
        }))
    }

    /// Whether the connection is lost. A program that has just ended is asked for, as the tasks that wait for it may not have noticed yet: what is
    /// sent now would count as lost.
    pub(crate) fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
            || self.ended.as_ref().is_some_and(|ended| ended.borrow().is_some())
            || self.probe.is_some_and(ProgramProbe::has_ended)
    }

    /// Waits until the program has ended by itself, and its last output was read. What still holds its pipes does not count.
    pub(crate) async fn program_ended(&self) {
        let Some(mut ended) = self.ended.clone() else { return std::future::pending().await };
        if ended.wait_for(Option::is_some).await.is_ok() {
            tokio::time::sleep(LAST_OUTPUT_TIMEOUT).await;
        }
    }

    /// Why the connection was lost, if that is known better than `otherwise`.
    pub(crate) async fn end_reason(&self, otherwise: Message) -> Message {
        if self.is_line_too_long.load(Ordering::Relaxed) {
            return msg!("the server sent a message of more than {MAX_LINE} bytes, so that the connection was closed");
        }
        let Some(mut ended) = self.ended.clone() else { return otherwise };
        let reason = timeout(END_REASON_TIMEOUT, ended.wait_for(Option::is_some)).await;
        match reason {
            Ok(Ok(reason)) => reason.clone().unwrap_or(otherwise),
            _ => otherwise,
        }
    }

    pub(crate) fn tools(&self) -> Arc<ToolList> {
        Arc::clone(&self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the tools have to be listed again before they are used.
    pub(crate) fn is_list_old(&self) -> bool {
        self.calls.has_list_changed.load(Ordering::Relaxed) || self.is_suspect.load(Ordering::Relaxed)
    }

    /// Lists the tools.
    pub(crate) async fn read_list(&self, server: &str) -> Result<(), Message> {
        self.calls.has_list_changed.store(false, Ordering::Relaxed);
        let mut list = ToolList::default();
        let (mut cursor, mut has_more) = (None, false);
        for _ in 0..MAX_PAGES {
            let (mut tools, next) = match self.request_page(cursor).await {
                Ok(page) => page,
                Err(RequestFailure::Lost(why)) => return Err(self.end_reason(why).await),
                Err(failure) => return Err(failure.into_message()),
            };
            tools.iter_mut().for_each(|tool| self.secrets.mask_keys(tool));
            let left = tools.iter().skip_while(|tool| list.add(server, tool)).count();
            cursor = next;
            if cursor.is_none() || left > 0 {
                has_more = left > 0;
                break;
            }
        }
        if cursor.is_some() || has_more {
            list.report_excess(server);
        }
        *self.list.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(list);
        self.is_suspect.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// A page of tools, and the cursor of the next one. What the library cannot read as a list is read as JSON.
    async fn request_page(&self, cursor: Option<String>) -> Result<(Vec<Value>, Option<String>), RequestFailure> {
        let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = ListToolsRequest { params, ..ListToolsRequest::default() };
        let result = self.peer.send_request(ClientRequest::ListToolsRequest(request)).await;
        match result.map_err(|error| RequestFailure::of(&error, &self.secrets))? {
            ServerResult::ListToolsResult(page) => {
                let tools = page.tools.iter().filter_map(|tool| serde_json::to_value(tool).ok());
                Ok((tools.collect(), page.next_cursor))
            }
            ServerResult::CustomResult(page) => match page.0.get("tools") {
                Some(Value::Array(tools)) => {
                    let next = page.0.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
                    Ok((tools.clone(), next))
                }
                _ => Err(RequestFailure::Answered("the server does not list its tools".into())),
            },
            _ => Err(RequestFailure::Answered("the server does not list its tools".into())),
        }
    }

    /// Closes the connection and ends the program.
    pub(crate) async fn stop(&self) {
        let _ = self.service.lock().await.close_with_timeout(CLOSE_TIMEOUT).await;
        let program = self.program.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(program) = program {
            program.stop().await;
        }
    }
}

/// Servers of the newest protocol announce changes of their tools only to those who ask for it.
fn watch_list(peer: &Peer<RoleClient>, calls: &Arc<OpenCalls>) {
    let Some(info) = peer.peer_info() else { return };
    let announces = info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed).unwrap_or(false);
    if info.protocol_version.has_initialize() || !announces {
        return;
    }
    let (peer, calls) = (peer.clone(), Arc::clone(calls));
    tokio::spawn(async move {
        match peer.listen(SubscriptionFilter::builder().tools_list_changed().build()).await {
            Ok(mut subscription) => {
                while let Ok(Some(_)) = subscription.next().await {
                    calls.has_list_changed.store(true, Ordering::Relaxed);
                }
            }
            Err(error) => tracing::debug!(error = %library(&error.to_string()), "changes of tools are not announced"),
        }
    });
}
