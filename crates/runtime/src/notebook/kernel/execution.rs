//! Runs code in a kernel: sends the request, collects the outputs, and ends the request whatever the kernel does.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use crate::notebook::cell::CellEnd;
use crate::notebook::kernel::contract::{Execution, KernelError};
use crate::notebook::kernel::message::Received;
use crate::notebook::kernel::outputs::{KernelOutputs, MAX_OUTPUT_BYTES};
use crate::notebook::kernel::running::Running;
use crate::notebook::kernel::variables;

/// The maximum time for interrupted code to end; then its kernel is killed.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// The interval at which the interrupt is repeated until then.
const INTERRUPT_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum silence of a kernel after its reply; then a missing idle status is considered lost. On a busy machine, the
/// kernel thread that publishes outputs may run seconds after the one that replies.
const IDLE_STATUS_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum time to read the variables.
const VARIABLES_TIMEOUT: Duration = Duration::from_secs(2);

/// Code whose output exceeds the stored size by more than this is interrupted.
const MAX_EXCESS_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct RequestResult {
    pub(crate) outputs: KernelOutputs,
    /// The content of the reply, if there is one.
    pub(crate) reply: Value,
    pub(crate) ended: CellEnd,
    /// Whether the kernel can be used again.
    pub(crate) is_usable: bool,
}

/// The receiver of the result; it is closed when the caller no longer waits.
pub(crate) type KernelAnswer = oneshot::Sender<Result<Execution, KernelError>>;

/// Runs a cell and then reads the variables. Also returns whether the kernel can be used again.
pub(crate) async fn run_cell(
    kernel: &mut Running,
    code: &str,
    limit: Duration,
    result_sender: &mut KernelAnswer,
) -> (Execution, bool) {
    let start = Instant::now();
    let content = json!({
        "code": code,
        "silent": false,
        "store_history": true,
        "user_expressions": {},
        "allow_stdin": false,
        "stop_on_error": true,
    });
    let RequestResult { outputs, reply, ended, mut is_usable } =
        send_request(kernel, &content, limit, result_sender).await;
    let ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut variables = Map::new();
    if is_usable && kernel.is_python && !result_sender.is_closed() {
        (variables, is_usable) = read_variables(kernel, result_sender).await;
    }
    let (outputs, left_out) = outputs.finish();
    let execution_count = reply.get("execution_count").and_then(Value::as_u64);
    (Execution { outputs, execution_count, ended, ms, omitted_bytes: left_out, variables }, is_usable)
}

/// Reads the variables of the kernel; empty if they are not available.
async fn read_variables(kernel: &mut Running, result_sender: &mut KernelAnswer) -> (Map<String, Value>, bool) {
    let content = json!({
        "code": "",
        "silent": true,
        "store_history": false,
        "user_expressions": { "variables": variables::expression() },
        "allow_stdin": false,
        "stop_on_error": false,
    });
    let result = send_request(kernel, &content, VARIABLES_TIMEOUT, result_sender).await;
    let variables = result.reply.pointer("/user_expressions/variables").and_then(variables::from_reply);
    if variables.is_none() {
        tracing::debug!(ended = ?result.ended, "the variables of the kernel cannot be had");
    }
    (variables.unwrap_or_default(), result.is_usable)
}

/// Why code was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InterruptReason {
    TooLong,
    TooMuch,
    Abandoned,
}

/// Sends a request and collects outputs until the reply was received and the kernel is idle, or the kernel is gone.
async fn send_request(
    kernel: &mut Running,
    content: &Value,
    limit: Duration,
    result_sender: &mut KernelAnswer,
) -> RequestResult {
    let mut outputs = KernelOutputs::default();
    let Ok(id) = kernel.ask("execute_request", content).await else {
        return RequestResult { outputs, reply: Value::Null, ended: CellEnd::Died, is_usable: false };
    };
    let (mut reply, mut is_idle, mut bytes) = (None, false, 0_u64);
    let (mut reason, mut wake) = (None, Instant::now() + limit);
    let (mut give_up, mut received_bytes) = (wake, kernel.received_bytes());
    while !(is_idle && reply.is_some()) {
        let mut interrupted = None;
        // Conditions that end the request are checked before the messages of the kernel, which may never stop.
        tokio::select! {
            biased;
            () = result_sender.closed(), if reason.is_none() => interrupted = Some(InterruptReason::Abandoned),
            () = sleep_until(wake) => match reason {
                // The reply was received and nothing follows: only the idle status was lost.
                _ if reply.is_some() && received_bytes == kernel.received_bytes() => break,
                _ if reply.is_some() => {
                    received_bytes = kernel.received_bytes();
                    wake = Instant::now() + IDLE_STATUS_TIMEOUT;
                }
                None => interrupted = Some(InterruptReason::TooLong),
                Some(reason) if Instant::now() >= give_up => {
                    kernel.process.kill().await;
                    return finish(outputs, reply, Some(reason), false);
                }
                // An interrupt that arrives before the code has started has no effect.
                previous => interrupted = previous,
            },
            reply_message = kernel.shell.recv() => match reply_message {
                Some(reply_message) if reply_message.parent.as_ref() == Some(&id) => {
                    reply = Some(reply_message.content.unwrap_or_default());
                    received_bytes = kernel.received_bytes();
                    wake = Instant::now() + IDLE_STATUS_TIMEOUT;
                }
                Some(_) => {}
                None => return died(kernel, &id, outputs, reply, reason).await,
            },
            message = kernel.iopub.recv() => match message {
                // The idle status of another request, which may have been queued before this one was sent.
                Some(message) if message.parent.as_ref() != Some(&id) => {}
                Some(message) => {
                    bytes = bytes.saturating_add(message.bytes);
                    is_idle |= message.kind == "status" && has_value(&message, "execution_state", "idle");
                    outputs.take(message);
                    if reason.is_none() && bytes > MAX_OUTPUT_BYTES as u64 + MAX_EXCESS_BYTES {
                        interrupted = Some(InterruptReason::TooMuch);
                    }
                }
                None => return died(kernel, &id, outputs, reply, reason).await,
            },
            _ = kernel.process.child.wait() => return died(kernel, &id, outputs, reply, reason).await,
        }
        if interrupted.is_some() {
            if reason.is_none() {
                give_up = Instant::now() + GRACE_PERIOD;
            }
            reason = interrupted;
            // Code with a reply has ended.
            if reply.is_none() {
                kernel.interrupt().await;
                wake = give_up.min(Instant::now() + INTERRUPT_INTERVAL);
            }
        }
    }
    finish(outputs, reply, reason, true)
}

/// The kernel is gone: messages that it sent before can still be read.
async fn died(
    kernel: &mut Running,
    id: &str,
    mut outputs: KernelOutputs,
    reply: Option<Value>,
    reason: Option<InterruptReason>,
) -> RequestResult {
    let until = Instant::now() + Duration::from_millis(500);
    kernel.process.kill().await;
    while let Ok(Some(message)) = timeout(until.saturating_duration_since(Instant::now()), kernel.iopub.recv()).await {
        if message.parent.as_deref() == Some(id) {
            outputs.take(message);
        }
    }
    RequestResult {
        ended: if reason == Some(InterruptReason::TooLong) { CellEnd::TimedOut } else { CellEnd::Died },
        ..finish(outputs, reply, reason, false)
    }
}

fn finish(
    outputs: KernelOutputs,
    reply: Option<Value>,
    reason: Option<InterruptReason>,
    is_usable: bool,
) -> RequestResult {
    let reply = reply.unwrap_or_default();
    let ended = match reason {
        Some(InterruptReason::TooLong) => CellEnd::TimedOut,
        Some(InterruptReason::TooMuch | InterruptReason::Abandoned) => CellEnd::Interrupted,
        None if reply.get("status").and_then(Value::as_str) == Some("ok") => CellEnd::Ok,
        None => CellEnd::Error,
    };
    RequestResult { outputs, reply, ended, is_usable }
}

fn has_value(message: &Received, name: &str, value: &str) -> bool {
    message.content.as_ref().and_then(|content| content.get(name)).and_then(Value::as_str) == Some(value)
}
