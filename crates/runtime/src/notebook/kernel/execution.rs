//! One round of asking a kernel to run code: what it puts out is collected, and whatever it does, the round ends.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use crate::notebook::cell::CellEnd;
use crate::notebook::kernel::contract::{Execution, KernelError};
use crate::notebook::kernel::message::Received;
use crate::notebook::kernel::outputs::{KernelOutputs, MOST_OUTPUT_BYTES};
use crate::notebook::kernel::running::Running;
use crate::notebook::kernel::variables;

/// How long code that was interrupted may take to end; then its kernel is killed.
const GRACE: Duration = Duration::from_secs(5);

/// How often code that was interrupted is interrupted again meanwhile.
const AGAIN: Duration = Duration::from_secs(1);

/// How long a kernel whose answer is there may say nothing before its word that nothing follows counts as lost. On a busy machine
/// the thread of a kernel that tells what was put out may run seconds after the one that answers.
const SETTLING: Duration = Duration::from_secs(10);

/// How long the variables may take.
const LOOKING: Duration = Duration::from_secs(2);

/// Code that puts out this much more than is kept is interrupted.
const MOST_MORE_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) outputs: KernelOutputs,
    /// The content of the answer, when there is one.
    pub(crate) reply: Value,
    pub(crate) ended: CellEnd,
    /// Whether the kernel can be asked again.
    pub(crate) is_usable: bool,
}

/// Where what came of it goes; it is closed when nobody waits any more.
pub(crate) type KernelAnswer = oneshot::Sender<Result<Execution, KernelError>>;

/// Runs a cell, and looks at the variables afterwards. Gives whether the kernel can be asked again.
pub(crate) async fn cell(
    kernel: &mut Running,
    code: &str,
    most: Duration,
    answer: &mut KernelAnswer,
) -> (Execution, bool) {
    let began = Instant::now();
    let content = json!({
        "code": code,
        "silent": false,
        "store_history": true,
        "user_expressions": {},
        "allow_stdin": false,
        "stop_on_error": true,
    });
    let Round { outputs, reply, ended, mut is_usable } = round(kernel, &content, most, answer).await;
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut variables = Map::new();
    if is_usable && kernel.is_python && !answer.is_closed() {
        (variables, is_usable) = look(kernel, answer).await;
    }
    let (outputs, left_out) = outputs.finish();
    let execution_count = reply.get("execution_count").and_then(Value::as_u64);
    (Execution { outputs, execution_count, ended, ms, left_out, variables }, is_usable)
}

/// The variables of the kernel; none when they cannot be had.
async fn look(kernel: &mut Running, answer: &mut KernelAnswer) -> (Map<String, Value>, bool) {
    let content = json!({
        "code": "",
        "silent": true,
        "store_history": false,
        "user_expressions": { "variables": variables::expression() },
        "allow_stdin": false,
        "stop_on_error": false,
    });
    let round = round(kernel, &content, LOOKING, answer).await;
    let found = round.reply.pointer("/user_expressions/variables").and_then(variables::of_reply);
    if found.is_none() {
        tracing::debug!(ended = ?round.ended, "the variables of the kernel cannot be had");
    }
    (found.unwrap_or_default(), round.is_usable)
}

/// Why code was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    TooLong,
    TooMuch,
    Abandoned,
}

/// Asks, and collects until it is over: the answer is there and the kernel idles, or it is gone.
async fn round(kernel: &mut Running, content: &Value, most: Duration, answer: &mut KernelAnswer) -> Round {
    let mut outputs = KernelOutputs::default();
    let Ok(id) = kernel.ask("execute_request", content).await else {
        return Round { outputs, reply: Value::Null, ended: CellEnd::Died, is_usable: false };
    };
    let (mut reply, mut is_idle, mut bytes) = (None, false, 0_u64);
    let (mut why, mut wake) = (None, Instant::now() + most);
    let (mut give_up, mut heard) = (wake, kernel.heard());
    while !(is_idle && reply.is_some()) {
        let mut interrupted = None;
        // What ends a round is looked at before what a kernel says: it may never stop talking.
        tokio::select! {
            biased;
            () = answer.closed(), if why.is_none() => interrupted = Some(Why::Abandoned),
            () = sleep_until(wake) => match why {
                // The answer is there, and nothing is said any more: only the word that nothing follows was lost.
                _ if reply.is_some() && heard == kernel.heard() => break,
                _ if reply.is_some() => {
                    heard = kernel.heard();
                    wake = Instant::now() + SETTLING;
                }
                None => interrupted = Some(Why::TooLong),
                Some(why) if Instant::now() >= give_up => {
                    kernel.process.kill().await;
                    return over(outputs, reply, Some(why), false);
                }
                // An interrupt that comes before the code has begun is lost.
                again => interrupted = again,
            },
            answered = kernel.shell.recv() => match answered {
                Some(answered) if answered.parent.as_ref() == Some(&id) => {
                    reply = Some(answered.content.unwrap_or_default());
                    heard = kernel.heard();
                    wake = Instant::now() + SETTLING;
                }
                Some(_) => {}
                None => return died(kernel, &id, outputs, reply, why).await,
            },
            told = kernel.iopub.recv() => match told {
                // That nothing follows was said of another question, which may wait here since before this one was asked.
                Some(told) if told.parent.as_ref() != Some(&id) => {}
                Some(told) => {
                    bytes = bytes.saturating_add(told.bytes);
                    is_idle |= told.kind == "status" && is(&told, "execution_state", "idle");
                    outputs.take(told);
                    if why.is_none() && bytes > MOST_OUTPUT_BYTES as u64 + MOST_MORE_BYTES {
                        interrupted = Some(Why::TooMuch);
                    }
                }
                None => return died(kernel, &id, outputs, reply, why).await,
            },
            _ = kernel.process.child.wait() => return died(kernel, &id, outputs, reply, why).await,
        }
        if interrupted.is_some() {
            if why.is_none() {
                give_up = Instant::now() + GRACE;
            }
            why = interrupted;
            // What has answered runs no more.
            if reply.is_none() {
                kernel.interrupt().await;
                wake = give_up.min(Instant::now() + AGAIN);
            }
        }
    }
    over(outputs, reply, why, true)
}

/// The kernel is gone: what it said before is still there to be read.
async fn died(
    kernel: &mut Running,
    id: &str,
    mut outputs: KernelOutputs,
    reply: Option<Value>,
    why: Option<Why>,
) -> Round {
    let until = Instant::now() + Duration::from_millis(500);
    kernel.process.kill().await;
    while let Ok(Some(told)) = timeout(until.saturating_duration_since(Instant::now()), kernel.iopub.recv()).await {
        if told.parent.as_deref() == Some(id) {
            outputs.take(told);
        }
    }
    Round {
        ended: if why == Some(Why::TooLong) { CellEnd::TimedOut } else { CellEnd::Died },
        ..over(outputs, reply, why, false)
    }
}

fn over(outputs: KernelOutputs, reply: Option<Value>, why: Option<Why>, is_usable: bool) -> Round {
    let reply = reply.unwrap_or_default();
    let ended = match why {
        Some(Why::TooLong) => CellEnd::TimedOut,
        Some(Why::TooMuch | Why::Abandoned) => CellEnd::Interrupted,
        None if reply.get("status").and_then(Value::as_str) == Some("ok") => CellEnd::Ok,
        None => CellEnd::Error,
    };
    Round { outputs, reply, ended, is_usable }
}

fn is(told: &Received, name: &str, value: &str) -> bool {
    told.content.as_ref().and_then(|content| content.get(name)).and_then(Value::as_str) == Some(value)
}
