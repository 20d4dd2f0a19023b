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
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::effects::output::{NoOutputObserver, OutputObserver, OutputStream};
use crate::notebook::kernel::attach::{attach_file, busy, check_file};
use crate::notebook::kernel::contract::{
    AttachedKernel, ExecPolicy, Execution, Kernel, KernelError, KernelSettings, KernelSource,
};
use crate::notebook::kernel::execution::{CellInterrupts, CellWatch, KernelAnswer, RequestLimits, run_cell};
use crate::notebook::kernel::limits::OutputLimits;
use crate::notebook::kernel::location::KernelLocation;
use crate::notebook::kernel::running::Running;
use crate::notebook::kernel::server_kernel::{attach_server, check_server, end_on_server};
use crate::notebook::kernel::server_start::ServerStarts;
use crate::notebook::kernel::specs::{check_installed, find};
use crate::notebook::kernel::start::start;

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

enum Request {
    Run(Box<CodeRequest>),
    Attach {
        settings: KernelSettings,
        /// The kernel that the session started on a server before.
        started: Option<String>,
        answer: oneshot::Sender<Result<AttachedKernel, KernelError>>,
    },
    Prepare {
        settings: KernelSettings,
        answer: oneshot::Sender<Result<(), KernelError>>,
    },
}

impl Request {
    const fn settings(&self) -> &KernelSettings {
        match self {
            Self::Run(request) => &request.settings,
            Self::Attach { settings, .. } | Self::Prepare { settings, .. } => settings,
        }
    }
}

struct CodeRequest {
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

/// The error of a kernel that got another memory after the session had been told about the one before.
fn restarted_error() -> KernelError {
    KernelError {
        code: "kernel-unreachable",
        message: Message::word("the kernel was started again before the code could run"),
        help: Some(Message::word("resume the session: the code runs in the kernel that is there now")),
    }
}

#[async_trait]
impl Kernel for JupyterKernel {
    fn check_permission(&self) -> Result<(), KernelError> {
        self.location.permission_error.clone().map_or(Ok(()), Err)
    }

    async fn check_available(&self, settings: &KernelSettings) -> Result<(), KernelError> {
        match &settings.source {
            KernelSource::Installed => {
                // It may start Python.
                let (name, location) = (settings.name.clone(), Arc::clone(&self.location));
                let check = spawn_blocking(move || check_installed(&name, &location));
                check.await.unwrap_or_else(|_| Err(stopped_error()))
            }
            KernelSource::ConnectionFile(file) => check_file(file, &self.location, settings).await,
            KernelSource::Server(server) => check_server(server, &self.location, settings).await,
        }
    }

    async fn attach(
        &self,
        settings: &KernelSettings,
        started: Option<&str>,
    ) -> Result<Option<AttachedKernel>, KernelError> {
        if !settings.source.is_foreign() {
            return Ok(None);
        }
        self.check_permission()?;
        let (answer, result) = oneshot::channel();
        let started = started.map(str::to_owned);
        self.ask(Request::Attach { settings: settings.clone(), started, answer })?;
        result.await.unwrap_or_else(|_| Err(stopped_error())).map(Some)
    }

    fn needs_start(&self, settings: &KernelSettings) -> bool {
        !settings.source.is_foreign() && self.executed_cells() == 0
    }

    async fn prepare(&self, settings: &KernelSettings) -> Result<(), KernelError> {
        if !self.needs_start(settings) {
            return Ok(());
        }
        self.check_permission()?;
        let (answer, result) = oneshot::channel();
        self.ask(Request::Prepare { settings: settings.clone(), answer })?;
        result.await.unwrap_or_else(|_| Err(stopped_error()))
    }

    async fn end_started(&self, settings: &KernelSettings, started: &str) {
        if let (KernelSource::Server(server), Ok(())) = (&settings.source, self.check_permission()) {
            end_on_server(server, started, &self.location).await;
        }
    }

    fn withholds(&self, name: &str) -> bool {
        self.location.withheld.contains(name)
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
        let request = CodeRequest { code: code.to_owned(), timeout, settings, answer, pieces: pieces_sender };
        self.ask(Request::Run(Box::new(request)))?;
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
        let mut kernel =
            KernelSlot { running: None, started: None, told: None, starts: ServerStarts::default(), is_busy: false };
        tokio::select! {
            biased;
            _ = ended => {}
            () = serve(location, ran, interrupts, requests, &mut kernel) => {}
        }
        kernel.end(ran).await;
        kernel.starts.finish().await;
    });
}

/// The kernel, if it is running.
struct KernelSlot {
    running: Option<Running>,
    /// The id of the kernel that the session started on a server.
    started: Option<String>,
    /// The memory of which the session was told.
    told: Option<String>,
    starts: ServerStarts,
    is_busy: bool,
}

impl KernelSlot {
    /// Starts the kernel, or connects to it.
    async fn connected(&self, location: &KernelLocation, settings: &KernelSettings) -> Result<Running, KernelError> {
        match &settings.source {
            KernelSource::Installed => {
                let spec = find(&settings.name, &location.variables)?;
                tracing::debug!(kernel = spec.name, "a kernel starts");
                start(location, settings, &spec).await
            }
            KernelSource::ConnectionFile(file) => attach_file(file, location, settings).await,
            KernelSource::Server(server) => {
                attach_server(server, self.started.as_deref(), location, settings, &self.starts).await
            }
        }
    }

    /// Connects to a kernel that runs already, or asks the connected one whether it is still the same, and waits until it is free.
    async fn attach(
        &mut self,
        location: &KernelLocation,
        settings: &KernelSettings,
    ) -> Result<AttachedKernel, KernelError> {
        // If this is dropped while the kernel is busy, the next request connects again.
        if let Some(mut running) = self.running.take() {
            match timeout(settings.start_timeout, running.channels.info()).await {
                Ok(Ok(info)) if info.session == running.info.session => self.running = Some(running),
                Ok(Ok(_)) => tracing::debug!("the kernel was started again"),
                Ok(Err(error)) => tracing::debug!(%error, "the connection to the kernel was lost"),
                Err(_) => return Err(busy(settings.start_timeout)),
            }
        }
        let running = match self.running.take() {
            Some(running) => running,
            None => self.connected(location, settings).await?,
        };
        let attached = AttachedKernel { memory: running.memory(), started: running.started() };
        self.running = Some(running);
        Ok(attached)
    }

    /// Makes the kernel ready to run code at once. One that goes on without this process must be free, and must have the memory that
    /// the session knows.
    async fn make_free(&mut self, location: &KernelLocation, settings: &KernelSettings) -> Result<(), KernelError> {
        if settings.source.is_foreign() {
            let attached = self.attach(location, settings).await?;
            if self.told.as_ref().is_some_and(|told| *told != attached.memory) {
                self.running = None;
                return Err(restarted_error());
            }
        } else if self.running.is_none() {
            self.running = Some(self.connected(location, settings).await?);
        }
        Ok(())
    }

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
                    () = running.host.ended() => {
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
        let Some(request) = request else { return };
        timeout = request.settings().idle_timeout;
        match request {
            Request::Run(mut request) => {
                let answer = run(location, ran, interrupts, kernel, &mut request).await;
                let _ = request.answer.send(answer);
            }
            Request::Prepare { settings, mut answer } => {
                let prepared = tokio::select! {
                    prepared = kernel.make_free(location, &settings) => prepared,
                    () = answer.closed() => continue,
                };
                let _ = answer.send(prepared);
            }
            Request::Attach { settings, started, mut answer } => {
                kernel.started = started.or(kernel.started.take());
                let attached = tokio::select! {
                    attached = kernel.attach(location, &settings) => attached,
                    () = answer.closed() => continue,
                };
                let found = attached.as_ref().ok().cloned();
                if answer.send(attached).is_err() {
                    // Nobody knows a kernel that was just started.
                    kernel.running = None;
                } else if let (Some(found), Some(running)) = (found, &mut kernel.running) {
                    running.claim();
                    (kernel.started, kernel.told) = (found.started, Some(found.memory));
                }
            }
        }
    }
}

async fn run(
    location: &KernelLocation,
    ran: &AtomicU64,
    interrupts: &Interrupts,
    kernel: &mut KernelSlot,
    request: &mut CodeRequest,
) -> Result<Execution, KernelError> {
    let CodeRequest { code, timeout, settings, answer, pieces } = request;
    if answer.is_closed() {
        return Err(stopped_error());
    }
    tokio::select! {
        made_free = kernel.make_free(location, settings) => made_free?,
        () = answer.closed() => return Err(stopped_error()),
    }
    let Some(running) = &mut kernel.running else { return Err(stopped_error()) };
    ran.fetch_add(1, Ordering::AcqRel);
    let cell = interrupts.cells.fetch_add(1, Ordering::AcqRel) + 1;
    kernel.is_busy = true;
    let interrupted = CellInterrupts { asked: interrupts.asked.subscribe(), cell };
    let mut watch = CellWatch::new(interrupted, &interrupts.running, pieces);
    let limits = RequestLimits { start: settings.start_timeout, run: *timeout };
    let (execution, is_usable) = run_cell(running, code, limits, answer, &mut watch).await;
    watch.finish();
    kernel.is_busy = !is_usable;
    if !is_usable {
        kernel.end(ran).await;
    }
    Ok(execution)
}
