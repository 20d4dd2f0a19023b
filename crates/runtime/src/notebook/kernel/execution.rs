//! Runs code in a kernel: sends the request, collects the outputs, and ends the request whatever the kernel does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::effects::output::{LiveLines, OutputObserver, OutputStream};
use crate::notebook::cell::CellEnd;
use crate::notebook::kernel::channels::{KernelSign, RequestChannel};
use crate::notebook::kernel::contract::{Execution, KernelError, KernelLoss};
use crate::notebook::kernel::message::Received;
use crate::notebook::kernel::outputs::KernelOutputs;
use crate::notebook::kernel::running::Running;
use crate::notebook::kernel::variables;

/// The maximum time for interrupted code to end; then its kernel is killed.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// The interval at which the interrupt is repeated until then.
const INTERRUPT_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum silence of a kernel after its reply; then a missing idle status is considered lost. On a busy machine, the
/// kernel thread that publishes outputs may run seconds after the one that replies.
const IDLE_STATUS_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the outputs of code that has ended are waited for if not all of them may come.
const LAST_MESSAGES_TIMEOUT: Duration = Duration::from_millis(500);

/// A server does not always say when it starts a kernel again: after this long without a message, the kernel is asked.
const SILENCE: Duration = Duration::from_secs(5);

/// The maximum time to read the variables.
const VARIABLES_TIMEOUT: Duration = Duration::from_secs(2);

/// How often code is sent to a kernel that drops it.
const MAX_ATTEMPTS: u32 = 3;

/// Code is interrupted when more than this is omitted of its output.
const MAX_EXCESS_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct RequestResult {
    pub(crate) outputs: KernelOutputs,
    /// The content of the reply, if there is one.
    pub(crate) reply: Value,
    pub(crate) ended: CellEnd,
    pub(crate) is_interrupted_by_person: bool,
    /// Whether it went on when it was interrupted.
    pub(crate) ignored_interrupt: bool,
    /// Whether it has not started: other code of a shared kernel ran all the time.
    pub(crate) is_queued: bool,
    /// Whether the kernel can be used again.
    pub(crate) is_usable: bool,
}

/// Tells the code of one cell that a person asks it to end.
#[derive(Clone)]
pub(crate) struct CellInterrupts {
    /// The number of the cell that is asked.
    pub(crate) asked: watch::Receiver<u64>,
    /// The number of this cell.
    pub(crate) cell: u64,
}

async fn asked_to_end(interrupts: Option<&mut CellInterrupts>) {
    if let Some(CellInterrupts { asked, cell }) = interrupts
        && asked.wait_for(|asked| asked == cell).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

async fn reached(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// What happens outside while the code of a cell runs: people see what it prints, and may interrupt it.
pub(crate) struct CellWatch<'a> {
    interrupts: CellInterrupts,
    /// The number of the cell that can be interrupted; 0 if none can.
    running: &'a AtomicU64,
    stdout: LiveLines<'a>,
    stderr: LiveLines<'a>,
}

impl<'a> CellWatch<'a> {
    /// From now on, the cell can be interrupted.
    pub(crate) fn new(interrupts: CellInterrupts, running: &'a AtomicU64, observer: &'a dyn OutputObserver) -> Self {
        running.store(interrupts.cell, Ordering::Release);
        let lines = |stream| LiveLines::with_updates(stream, observer);
        Self { interrupts, running, stdout: lines(OutputStream::Stdout), stderr: lines(OutputStream::Stderr) }
    }

    /// Passes on what the code printed.
    fn show(&mut self, message: &Received) {
        let content = message.content.as_ref().filter(|_| message.kind == "stream");
        let Some(text) = content.and_then(|content| content.get("text")).and_then(Value::as_str) else { return };
        let lines = if has_value(message, "name", "stderr") { &mut self.stderr } else { &mut self.stdout };
        lines.push(text.as_bytes(), Instant::now());
    }

    /// When an unfinished line is to be passed on, if there is one.
    fn due(&self) -> Option<Instant> {
        self.stdout.due().into_iter().chain(self.stderr.due()).min()
    }

    /// Passes on the unfinished lines that are due.
    fn pass_on(&mut self) {
        let now = Instant::now();
        self.stdout.pass_on(now);
        self.stderr.pass_on(now);
    }

    /// What comes now cannot be interrupted.
    fn cell_ended(&self) {
        self.running.store(0, Ordering::Release);
    }

    /// Passes on the ends of the output, which are no complete lines.
    pub(crate) fn finish(self) {
        self.stdout.finish();
        self.stderr.finish();
    }
}

/// Who can interrupt a request, and sees what it prints.
struct RequestWatch<'w, 'o> {
    interrupts: Option<CellInterrupts>,
    watch: Option<&'w mut CellWatch<'o>>,
}

impl<'w, 'o> RequestWatch<'w, 'o> {
    fn of_cell(watch: &'w mut CellWatch<'o>) -> Self {
        Self { interrupts: Some(watch.interrupts.clone()), watch: Some(watch) }
    }
}

/// The receiver of the result; it is closed when the caller no longer waits.
pub(crate) type KernelAnswer = oneshot::Sender<Result<Execution, KernelError>>;

/// How long a request may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLimits {
    /// Until it starts, in a kernel that may run code of other programs first.
    pub(crate) start: Duration,
    /// From then on.
    pub(crate) run: Duration,
}

/// Runs a cell and then reads the variables. Also returns whether the kernel can be used again.
pub(crate) async fn run_cell(
    kernel: &mut Running,
    code: &str,
    limits: RequestLimits,
    result_sender: &mut KernelAnswer,
    watch: &mut CellWatch<'_>,
) -> (Execution, bool) {
    let start = Instant::now();
    // A request of its own for the variables takes as long as a short cell.
    let expressions = if kernel.info.is_python {
        let known = Some(&kernel.variables).filter(|_| !kernel.host.is_shared());
        json!({ "variables": variables::quick_expression(known) })
    } else {
        json!({})
    };
    let content = json!({
        "code": code,
        "silent": false,
        "store_history": true,
        "user_expressions": expressions,
        "allow_stdin": false,
        "stop_on_error": true,
    });
    let mut result = send_request(kernel, &content, limits, result_sender, RequestWatch::of_cell(watch)).await;
    for _ in 1..MAX_ATTEMPTS {
        // Code of another program raised an error, and the kernel dropped the requests that waited behind it.
        let is_dropped = result.is_usable && result.reply.get("status").and_then(Value::as_str) == Some("aborted");
        if !is_dropped || result.ended != CellEnd::Error || !kernel.host.is_shared() {
            break;
        }
        result = send_request(kernel, &content, limits, result_sender, RequestWatch::of_cell(watch)).await;
    }
    let RequestResult { outputs, reply, ended, is_interrupted_by_person, ignored_interrupt, is_queued, mut is_usable } =
        result;
    let ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut variables = kernel.variables.after(variables_in(&reply));
    let mut lost_with_variables = None;
    if variables.is_none() && is_usable && !is_queued && kernel.info.is_python && !result_sender.is_closed() {
        // A person who interrupts this has the result of the code.
        let interrupts = (!is_interrupted_by_person).then(|| watch.interrupts.clone());
        let request_watch = RequestWatch { interrupts, watch: None };
        (variables, lost_with_variables) = read_variables(kernel, result_sender, request_watch).await;
        is_usable = lost_with_variables.is_none();
    }
    watch.cell_ended();
    let variables = variables.unwrap_or_default();
    let (outputs, left_out) = outputs.finish();
    let execution_count = reply.get("execution_count").and_then(Value::as_u64);
    let language = kernel.info.language.clone();
    let execution = Execution {
        language,
        outputs,
        execution_count,
        ended,
        ms,
        is_interrupted_by_person,
        ignored_interrupt,
        lost_with_variables,
        is_queued,
        omitted_bytes: left_out,
        variables,
    };
    (execution, is_usable)
}

/// The result of the expression that lists the variables; null if the reply has none.
fn variables_in(reply: &Value) -> &Value {
    reply.pointer("/user_expressions/variables").unwrap_or(&Value::Null)
}

/// Reads the variables of the kernel. Also returns how the kernel was lost by that, if it was: what is read can be code of a class. If code of another program runs first, nobody
/// waits for them, and that code is not interrupted.
async fn read_variables(
    kernel: &mut Running,
    result_sender: &mut KernelAnswer,
    request_watch: RequestWatch<'_, '_>,
) -> (Option<Map<String, Value>>, Option<KernelLoss>) {
    let content = json!({
        "code": "",
        "silent": true,
        "store_history": false,
        "user_expressions": { "variables": variables::expression() },
        "allow_stdin": false,
        "stop_on_error": false,
    });
    let limits = RequestLimits { start: VARIABLES_TIMEOUT, run: VARIABLES_TIMEOUT };
    let result = send_request(kernel, &content, limits, result_sender, request_watch).await;
    let variables = variables::from_reply(variables_in(&result.reply));
    if variables.is_none() {
        tracing::debug!(ended = ?result.ended, "the variables of the kernel cannot be had");
    }
    let loss = match result.ignored_interrupt {
        true => KernelLoss::IgnoredInterrupt,
        false => KernelLoss::Died,
    };
    (variables, (!result.is_usable).then_some(loss))
}

/// Why code was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InterruptReason {
    TooLong,
    TooMuch,
    Abandoned,
    /// A person asked for it.
    Asked,
}

/// Sends a request and collects outputs until the reply was received and the kernel is idle, or the kernel is gone.
///
/// In a shared kernel, the request may wait for code of other programs. Until the kernel reports that it has started, its time does not
/// count and nothing is interrupted: an interrupt would end that other code.
async fn send_request(
    kernel: &mut Running,
    content: &Value,
    limits: RequestLimits,
    result_sender: &mut KernelAnswer,
    RequestWatch { mut interrupts, mut watch }: RequestWatch<'_, '_>,
) -> RequestResult {
    let mut outputs = KernelOutputs::new(kernel.limits);
    let Ok(id) = kernel.ask("execute_request", content).await else {
        return RequestResult { ended: CellEnd::Died, ..finish(outputs, None, None, false) };
    };
    let (mut reply, mut is_idle) = (None, false);
    let mut has_started = !kernel.host.is_shared();
    let mut wake = Instant::now() + if has_started { limits.run } else { limits.start };
    let (mut reason, mut give_up) = (None, None);
    let mut received_bytes = kernel.channels.received_bytes();
    let (mut signs, mut next_question) = (kernel.channels.signs(), Instant::now() + SILENCE);
    let (mut question_after_loss, mut is_last) = (None, false);
    while !(is_idle && reply.is_some()) {
        let mut interrupted = None;
        let had_started = has_started;
        // Conditions that end the request are checked before the messages of the kernel, which may never stop.
        tokio::select! {
            biased;
            () = result_sender.closed(), if reason.is_none() => interrupted = Some(InterruptReason::Abandoned),
            () = asked_to_end(interrupts.as_mut()), if reason.is_none() && reply.is_none() => interrupted = Some(InterruptReason::Asked),
            () = sleep_until(wake) => match reason {
                // The reply was received and nothing follows: only the idle status was lost.
                _ if reply.is_some() && (is_last || received_bytes == kernel.channels.received_bytes()) => break,
                _ if reply.is_some() => {
                    received_bytes = kernel.channels.received_bytes();
                    wake = Instant::now() + IDLE_STATUS_TIMEOUT;
                }
                _ if !has_started => return queued(outputs, reason),
                None => interrupted = Some(InterruptReason::TooLong),
                Some(reason) if give_up.is_some_and(|give_up| Instant::now() >= give_up) => {
                    kernel.host.abandon().await;
                    outputs.add_note(ignored_interrupt_note(kernel.host.is_shared()));
                    return RequestResult { ignored_interrupt: true, ..finish(outputs, reply, Some(reason), false) };
                }
                // An interrupt that arrives before the code has started has no effect.
                previous => interrupted = previous,
            },
            () = reached(watch.as_ref().and_then(|watch| watch.due())) => {
                if let Some(watch) = &mut watch {
                    watch.pass_on();
                }
            }
            reply_message = kernel.channels.shell.recv() => match reply_message {
                Some(reply_message) if reply_message.parent.as_ref() == Some(&id) => {
                    has_started = true;
                    reply = Some(reply_message.content.unwrap_or_default());
                    received_bytes = kernel.channels.received_bytes();
                    wake = Instant::now() + IDLE_STATUS_TIMEOUT;
                }
                // Requests are answered in order: what did not come before this was lost with the connection.
                Some(other) if other.parent.is_some() && other.parent == question_after_loss => {
                    if reply.is_none() {
                        return died(kernel, &id, outputs, reply, reason).await;
                    }
                    (is_last, wake) = (true, Instant::now() + LAST_MESSAGES_TIMEOUT);
                }
                Some(_) => {}
                None => return died(kernel, &id, outputs, reply, reason).await,
            },
            message = kernel.channels.iopub.recv() => match message {
                // The idle status of another request, which may have been queued before this one was sent.
                Some(message) if message.parent.as_ref() != Some(&id) => {}
                Some(message) => {
                    has_started |= !message.is_note();
                    next_question = Instant::now() + SILENCE;
                    is_idle |= message.kind == "status" && has_value(&message, "execution_state", "idle");
                    if let Some(watch) = &mut watch {
                        watch.show(&message);
                    }
                    outputs.take(message);
                    if reason.is_none() && outputs.flood_bytes() > MAX_EXCESS_BYTES {
                        interrupted = Some(InterruptReason::TooMuch);
                    }
                }
                None => return died(kernel, &id, outputs, reply, reason).await,
            },
            () = kernel.host.ended() => return died(kernel, &id, outputs, reply, reason).await,
            sign = signs.next() => match sign {
                KernelSign::Restarted => return died(kernel, &id, outputs, reply, reason).await,
                KernelSign::Reopened => question_after_loss = kernel.channels.ask_info(RequestChannel::Shell).await.ok(),
            },
            () = sleep_until(next_question), if reply.is_none() && kernel.host.is_on_server() => {
                next_question = Instant::now() + SILENCE;
                if kernel.channels.ask_info(RequestChannel::Control).await.is_err() {
                    return died(kernel, &id, outputs, reply, reason).await;
                }
            }
        }
        if has_started && !had_started && reply.is_none() {
            wake = Instant::now() + limits.run;
            // It was asked to end while it was queued.
            interrupted = interrupted.or(reason);
        }
        if interrupted.is_some() {
            reason = interrupted;
            if !has_started && reason == Some(InterruptReason::Abandoned) {
                return queued(outputs, reason);
            }
            // Code with a reply has ended, and so has code after which the kernel was idle: the next code may be that of others.
            if has_started && reply.is_none() {
                let give_up = *give_up.get_or_insert_with(|| Instant::now() + GRACE_PERIOD);
                if !is_idle {
                    kernel.interrupt().await;
                }
                wake = give_up.min(Instant::now() + INTERRUPT_INTERVAL);
            }
        }
    }
    finish(outputs, reply, reason, true)
}

/// Code that has not started. The kernel cannot be asked to forget it.
fn queued(outputs: KernelOutputs, reason: Option<InterruptReason>) -> RequestResult {
    RequestResult { ended: CellEnd::Interrupted, is_queued: true, ..finish(outputs, None, reason, true) }
}

/// What the cell says of code that did not end when it was interrupted.
const fn ignored_interrupt_note(is_shared: bool) -> &'static str {
    match is_shared {
        false => "[bcc-script: the code ignored the interrupt, so its kernel was ended: all variables are lost]",
        true => "[bcc-script: the code ignored the interrupt and may still run in its kernel]",
    }
}

/// The kernel is gone: messages that it sent before can still be read.
async fn died(
    kernel: &mut Running,
    id: &str,
    mut outputs: KernelOutputs,
    reply: Option<Value>,
    reason: Option<InterruptReason>,
) -> RequestResult {
    let until = Instant::now() + LAST_MESSAGES_TIMEOUT;
    kernel.host.abandon().await;
    while let Ok(Some(message)) =
        timeout(until.saturating_duration_since(Instant::now()), kernel.channels.iopub.recv()).await
    {
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
        Some(InterruptReason::TooMuch | InterruptReason::Abandoned | InterruptReason::Asked) => CellEnd::Interrupted,
        None if reply.get("status").and_then(Value::as_str) == Some("ok") => CellEnd::Ok,
        None => CellEnd::Error,
    };
    let is_interrupted_by_person = reason == Some(InterruptReason::Asked);
    RequestResult {
        outputs,
        reply,
        ended,
        is_interrupted_by_person,
        ignored_interrupt: false,
        is_queued: false,
        is_usable,
    }
}

fn has_value(message: &Received, name: &str, value: &str) -> bool {
    message.content.as_ref().and_then(|content| content.get(name)).and_then(Value::as_str) == Some(value)
}
