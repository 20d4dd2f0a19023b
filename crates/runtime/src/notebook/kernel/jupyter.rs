//! A Jupyter kernel for a session: it lives in a thread of its own, so that it is watched, and idles out, whatever the session
//! waits for, and whatever clock the session has.

use bcc_lang::message::message::Message;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use crate::notebook::kernel::contract::{Execution, Kernel, KernelError, KernelSettings};
use crate::notebook::kernel::execution::{KernelAnswer, cell};
use crate::notebook::kernel::location::KernelLocation;
use crate::notebook::kernel::running::Running;
use crate::notebook::kernel::specs::find;

/// The kernel of a session. Nothing starts before code runs.
pub struct JupyterKernel {
    place: Arc<KernelLocation>,
    ran: Arc<AtomicU64>,
    thread: Mutex<Option<Thread>>,
}

struct Thread {
    asks: mpsc::UnboundedSender<Asked>,
    /// Dropped when the kernel is to end, whatever it does.
    lives: oneshot::Sender<()>,
    handle: JoinHandle<()>,
}

struct Asked {
    code: String,
    timeout: Duration,
    settings: KernelSettings,
    answer: KernelAnswer,
}

impl JupyterKernel {
    /// A kernel that is to live there.
    pub fn new(place: KernelLocation) -> Self {
        Self { place: Arc::new(place), ran: Arc::default(), thread: Mutex::default() }
    }

    fn ask(&self, asked: Asked) -> Result<(), KernelError> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = match &*thread {
            Some(thread) => match thread.asks.send(asked) {
                Ok(()) => return Ok(()),
                Err(mpsc::error::SendError(asked)) => asked,
            },
            None => asked,
        };
        let (asks, receiver) = mpsc::unbounded_channel();
        let (lives, ended) = oneshot::channel();
        let (place, ran) = (Arc::clone(&self.place), Arc::clone(&self.ran));
        let body = move || live(&place, &ran, receiver, ended);
        let handle = std::thread::Builder::new().name("kernel".to_owned()).spawn(body).map_err(|_| gone())?;
        let _ = asks.send(asked);
        *thread = Some(Thread { asks, lives, handle });
        Ok(())
    }

    fn end(&self) -> Option<JoinHandle<()>> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.ran.store(0, Ordering::Release);
        thread.map(|Thread { lives, handle, .. }| {
            drop(lives);
            handle
        })
    }
}

impl Drop for JupyterKernel {
    fn drop(&mut self) {
        // The process may end right after this: nothing of the kernel is to be left then.
        if let Some(handle) = self.end() {
            let _ = handle.join();
        }
    }
}

fn gone() -> KernelError {
    KernelError {
        code: "kernel-did-not-start",
        message: Message::word("the kernel was stopped before the code could run"),
        help: Some(Message::word("run the code again: the kernel restarts")),
    }
}

#[async_trait]
impl Kernel for JupyterKernel {
    fn permitted(&self) -> Result<(), KernelError> {
        self.place.refused.clone().map_or(Ok(()), Err)
    }

    fn ran(&self) -> u64 {
        self.ran.load(Ordering::Acquire)
    }

    async fn execute(
        &self,
        code: &str,
        timeout: Duration,
        settings: &KernelSettings,
    ) -> Result<Execution, KernelError> {
        self.permitted()?;
        let (answer, answered) = oneshot::channel();
        self.ask(Asked { code: code.to_owned(), timeout, settings: settings.clone(), answer })?;
        answered.await.unwrap_or_else(|_| Err(gone()))
    }

    async fn stop(&self) {
        if let Some(handle) = self.end() {
            let _ = tokio::task::spawn_blocking(move || handle.join()).await;
        }
    }
}

/// The life of the thread: until the session needs no kernel any more.
fn live(place: &KernelLocation, ran: &AtomicU64, asks: mpsc::UnboundedReceiver<Asked>, ended: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let mut kernel = Held { running: None, is_busy: false };
        tokio::select! {
            biased;
            _ = ended => {}
            () = serve(place, ran, asks, &mut kernel) => {}
        }
        kernel.end(ran).await;
    });
}

/// The kernel, while there is one.
struct Held {
    running: Option<Running>,
    is_busy: bool,
}

impl Held {
    async fn end(&mut self, ran: &AtomicU64) {
        ran.store(0, Ordering::Release);
        if let Some(running) = self.running.take() {
            running.end(self.is_busy).await;
        }
        self.is_busy = false;
    }
}

async fn serve(place: &KernelLocation, ran: &AtomicU64, mut asks: mpsc::UnboundedReceiver<Asked>, kernel: &mut Held) {
    let mut idle = Duration::MAX;
    loop {
        let asked = match &mut kernel.running {
            None => asks.recv().await,
            Some(running) => {
                let idled = pin!(sleep(idle));
                tokio::select! {
                    biased;
                    _ = running.process.child.wait() => {
                        tracing::debug!("the kernel ended by itself");
                        kernel.end(ran).await;
                        continue;
                    }
                    asked = asks.recv() => asked,
                    () = idled => {
                        tracing::debug!("the kernel had nothing to do and is stopped");
                        kernel.end(ran).await;
                        continue;
                    }
                }
            }
        };
        let Some(mut asked) = asked else { return };
        idle = asked.settings.idle_timeout;
        let answer = run(place, ran, kernel, &mut asked).await;
        let _ = asked.answer.send(answer);
    }
}

async fn run(
    place: &KernelLocation,
    ran: &AtomicU64,
    kernel: &mut Held,
    asked: &mut Asked,
) -> Result<Execution, KernelError> {
    let Asked { code, timeout, settings, answer } = asked;
    if answer.is_closed() {
        return Err(gone());
    }
    let running = match &mut kernel.running {
        Some(running) => running,
        None => {
            let spec = find(&settings.name, &place.variables)?;
            tracing::debug!(kernel = spec.name, "a kernel starts");
            kernel.running.insert(Running::start(place, settings, &spec).await?)
        }
    };
    if answer.is_closed() {
        return Err(gone());
    }
    ran.fetch_add(1, Ordering::AcqRel);
    kernel.is_busy = true;
    let (execution, is_usable) = cell(running, code, *timeout, answer).await;
    kernel.is_busy = !is_usable;
    if !is_usable {
        kernel.end(ran).await;
    }
    Ok(execution)
}
