//! The Jupyter kernel of a session. It is managed by a separate thread, so that it is monitored and its idle timeout works
//! independently of the session and its clock.

use bcc_lang::message::message::Message;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;

use crate::effects::output::{NoOutputObserver, OutputObserver, OutputStream};
use crate::notebook::kernel::contract::{ExecPolicy, Execution, Kernel, KernelError, KernelSettings};
use crate::notebook::kernel::execution::{CellInterrupts, CellWatch, KernelAnswer, run_cell};
use crate::notebook::kernel::limits::OutputLimits;
use crate::notebook::kernel::location::KernelLocation;
use crate::notebook::kernel::running::Running;
use crate::notebook::kernel::specs::{check_installed, find};

/// The kernel of a session. It starts when code first runs.
pub struct JupyterKernel {
    location: Arc<KernelLocation>,
    ran: Arc<AtomicU64>,
    interrupts: Arc<Interrupts>,
    thread: Mutex<Option<Thread>>,
}

/// Requests of a person to interrupt the code that runs. Cells have numbers here, so that a request that comes too late for one never
/// interrupts the next.
#[derive(Default)]
struct Interrupts {
    /// How many cells ran.
    cells: AtomicU64,
    /// The cell that runs; 0 if none does.
    running: AtomicU64,
    /// The cell that was asked to end.
    asked: watch::Sender<u64>,
}

/// Sends what code prints to whoever waits for it.
struct PieceSender(mpsc::UnboundedSender<OutputText>);

type OutputText = (OutputStream, String, u64);

impl OutputObserver for PieceSender {
    fn output(&self, stream: OutputStream, text: &str, left_out: u64) {
        // Nobody may wait any more.
        let _ = self.0.send((stream, text.to_owned(), left_out));
    }
}

struct Thread {
    requests: mpsc::UnboundedSender<Request>,
    /// Dropped to stop the kernel, even if it is busy.
    alive: oneshot::Sender<()>,
    /// Ends when the thread does.
    ended: oneshot::Receiver<()>,
    handle: JoinHandle<()>,
}

struct Request {
    code: String,
    timeout: Duration,
    settings: KernelSettings,
    answer: KernelAnswer,
    /// For what the code prints.
    pieces: PieceSender,
}

impl JupyterKernel {
    /// A kernel with this location.
    pub fn new(location: KernelLocation) -> Self {
        Self { location: Arc::new(location), ran: Arc::default(), interrupts: Arc::default(), thread: Mutex::default() }
    }

    fn ask(&self, request: Request) -> Result<(), KernelError> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let request = match &*thread {
            Some(thread) => match thread.requests.send(request) {
                Ok(()) => return Ok(()),
                Err(mpsc::error::SendError(request)) => request,
            },
            None => request,
        };
        let (requests, receiver) = mpsc::unbounded_channel();
        let (alive, must_end) = oneshot::channel();
        let (running, ended) = oneshot::channel::<()>();
        let (location, ran) = (Arc::clone(&self.location), Arc::clone(&self.ran));
        let interrupts = Arc::clone(&self.interrupts);
        let body = move || {
            run_thread(&location, &ran, &interrupts, receiver, must_end);
            drop(running);
        };
        let handle = std::thread::Builder::new().name("kernel".to_owned()).spawn(body).map_err(|_| stopped_error())?;
        let _ = requests.send(request);
        *thread = Some(Thread { requests, alive, ended, handle });
        Ok(())
    }

    /// Starts to stop the thread.
    fn end(&self) -> Option<(oneshot::Receiver<()>, JoinHandle<()>)> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.ran.store(0, Ordering::Release);
        thread.map(|Thread { alive, ended, handle, .. }| {
            drop(alive);
            (ended, handle)
        })
    }
}

impl Drop for JupyterKernel {
    fn drop(&mut self) {
        // The process may exit right after this, so the kernel must be gone by then.
        if let Some((_, handle)) = self.end() {
            let _ = handle.join();
        }
    }
}

fn stopped_error() -> KernelError {
    KernelError {
        code: "kernel-did-not-start",
        message: Message::word("the kernel was stopped before the code could run"),
        help: Some(Message::word("run the code again: the kernel restarts")),
    }
}

#[async_trait]
impl Kernel for JupyterKernel {
    fn check_permission(&self) -> Result<(), KernelError> {
        self.location.permission_error.clone().map_or(Ok(()), Err)
    }

    fn check_installed(&self, settings: &KernelSettings) -> Result<(), KernelError> {
        check_installed(&settings.name, &self.location)
    }

    fn exec_policy(&self) -> ExecPolicy {
        self.location.exec
    }

    fn limits(&self) -> OutputLimits {
        self.location.limits
    }

    fn executed_cells(&self) -> u64 {
        self.ran.load(Ordering::Acquire)
    }

    async fn execute(
        &self,
        code: &str,
        timeout: Duration,
        settings: &KernelSettings,
    ) -> Result<Execution, KernelError> {
        self.execute_shown(code, timeout, settings, &NoOutputObserver).await
    }

    async fn execute_shown(
        &self,
        code: &str,
        timeout: Duration,
        settings: &KernelSettings,
        observer: &dyn OutputObserver,
    ) -> Result<Execution, KernelError> {
        self.check_permission()?;
        let (answer, mut result) = oneshot::channel();
        let (sender, mut pieces) = mpsc::unbounded_channel::<OutputText>();
        let (settings, pieces_sender) = (settings.clone(), PieceSender(sender));
        self.ask(Request { code: code.to_owned(), timeout, settings, answer, pieces: pieces_sender })?;
        loop {
            tokio::select! {
                biased;
                Some((stream, text, left_out)) = pieces.recv() => observer.output(stream, &text, left_out),
                answer = &mut result => return answer.unwrap_or_else(|_| Err(stopped_error())),
            }
        }
    }

    fn interrupt(&self) -> bool {
        let running = self.interrupts.running.load(Ordering::Acquire);
        running != 0 && self.interrupts.asked.send_replace(running) != running
    }

    async fn stop(&self) {
        if let Some((ended, handle)) = self.end() {
            // The sender is dropped, so this is an error in any case.
            let _ = ended.await;
            let _ = handle.join();
        }
    }
}

/// The main function of the thread: runs until the session no longer needs a kernel.
fn run_thread(
    location: &KernelLocation,
    ran: &AtomicU64,
    interrupts: &Interrupts,
    requests: mpsc::UnboundedReceiver<Request>,
    ended: oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let mut kernel = KernelSlot { running: None, is_busy: false };
        tokio::select! {
            biased;
            _ = ended => {}
            () = serve(location, ran, interrupts, requests, &mut kernel) => {}
        }
        kernel.end(ran).await;
    });
}

/// The kernel, if it is running.
struct KernelSlot {
    running: Option<Running>,
    is_busy: bool,
}

impl KernelSlot {
    async fn end(&mut self, ran: &AtomicU64) {
        ran.store(0, Ordering::Release);
        if let Some(running) = self.running.take() {
            running.end(self.is_busy).await;
        }
        self.is_busy = false;
    }
}

async fn serve(
    location: &KernelLocation,
    ran: &AtomicU64,
    interrupts: &Interrupts,
    mut requests: mpsc::UnboundedReceiver<Request>,
    kernel: &mut KernelSlot,
) {
    let mut timeout = Duration::MAX;
    loop {
        let request = match &mut kernel.running {
            None => requests.recv().await,
            Some(running) => {
                let idle_timeout = pin!(sleep(timeout));
                tokio::select! {
                    biased;
                    _ = running.process.child.wait() => {
                        tracing::debug!("the kernel ended by itself");
                        kernel.end(ran).await;
                        continue;
                    }
                    request = requests.recv() => request,
                    () = idle_timeout => {
                        tracing::debug!("the kernel had nothing to do and is stopped");
                        kernel.end(ran).await;
                        continue;
                    }
                }
            }
        };
        let Some(mut request) = request else { return };
        timeout = request.settings.idle_timeout;
        let answer = run(location, ran, interrupts, kernel, &mut request).await;
        let _ = request.answer.send(answer);
    }
}

async fn run(
    location: &KernelLocation,
    ran: &AtomicU64,
    interrupts: &Interrupts,
    kernel: &mut KernelSlot,
    request: &mut Request,
) -> Result<Execution, KernelError> {
    let Request { code, timeout, settings, answer, pieces } = request;
    if answer.is_closed() {
        return Err(stopped_error());
    }
    let running = match &mut kernel.running {
        Some(running) => running,
        None => {
            let spec = find(&settings.name, &location.variables)?;
            tracing::debug!(kernel = spec.name, "a kernel starts");
            kernel.running.insert(Running::start(location, settings, &spec).await?)
        }
    };
    if answer.is_closed() {
        return Err(stopped_error());
    }
    ran.fetch_add(1, Ordering::AcqRel);
    let cell = interrupts.cells.fetch_add(1, Ordering::AcqRel) + 1;
    kernel.is_busy = true;
    let interrupted = CellInterrupts { asked: interrupts.asked.subscribe(), cell };
    let mut watch = CellWatch::new(interrupted, &interrupts.running, pieces);
    let (execution, is_usable) = run_cell(running, code, *timeout, answer, &mut watch).await;
    watch.finish();
    kernel.is_busy = !is_usable;
    if !is_usable {
        kernel.end(ran).await;
    }
    Ok(execution)
}
