//! Handles Ctrl-C, SIGTERM and SIGHUP on a thread of their own, so that no work and no blocked write delays them. The first signal ends
//! the program at once, or, while a session is driven, in order, but within `GRACE`; the second ends it at once. Committed data
//! stays, and the session can be resumed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use nix::sys::signal::{SigSet, Signal as Number};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tempfile::TempDir;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::cli::async_runtime::start_thread;
use crate::cli::exit::Exit;
use crate::cli::report;
use bcc_engine::error::EngineError;

/// How long the program may take to end after the first signal. A kernel is stopped in this time.
const GRACE: Duration = Duration::from_secs(4);

/// How long the notice may take to be written: standard error can be a full pipe.
const NOTICE_TIME: Duration = Duration::from_millis(200);

/// How often the removal of a directory is tried in which the program may still create files.
const REMOVALS: usize = 5;

static STATE: Mutex<State> = Mutex::new(State { listener: None, ending: None, directories: Vec::new() });

/// What Ctrl-C interrupts before it ends the program: true if it interrupted something.
static INTERRUPTIBLE: Mutex<Option<Interruptible>> = Mutex::new(None);

type Interruptible = Arc<dyn Fn() -> bool + Send + Sync>;

/// Which signal came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Received {
    Interrupt,
    Other,
}

/// From now on, Ctrl-C calls `interrupt` first, and ends the program only if that returns false.
pub fn interrupt_first(interrupt: impl Fn() -> bool + Send + Sync + 'static) {
    *INTERRUPTIBLE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(interrupt));
}

fn interrupts_something() -> bool {
    let interrupt = INTERRUPTIBLE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    interrupt.is_some_and(|interrupt| interrupt())
}

/// What a signal does now. Whoever holds it delays the first signal, and then the end of the program.
struct State {
    /// Makes the thread that listens listen for SIGHUP as well; none if there is no such thread.
    listener: Option<UnboundedSender<mpsc::Sender<io::Result<()>>>>,
    /// How the program ends in order. Without it, the first signal ends it at once.
    ending: Option<Ending>,
    /// Temporary directories, which are removed before the end.
    directories: Vec<PathBuf>,
}

struct Ending {
    /// How long the program may take.
    grace: Duration,
    received: watch::Sender<bool>,
    on_first: Box<dyn FnOnce() + Send>,
    /// Written if the program has to be ended before it has written it itself.
    notice: Option<Message>,
    announced: Arc<AtomicBool>,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the handlers of Ctrl-C and SIGTERM; these signals no longer kill the process, and one that comes in between waits. SIGHUP does,
/// or is ignored, as the caller of the program chose, until a session is driven.
///
/// # Errors
/// When the system starts no further thread; the signals then still kill the process.
pub fn start() -> Result<(), EngineError> {
    let terminal = tcgetattr(io::stdin()).ok();
    // The system knows a handler before the library that dispatches signals knows what it is for.
    let held = HeldSignals::hold();
    let (requests, received) = unbounded_channel();
    let (installed, result) = mpsc::channel();
    start_thread("signals", move || {
        let listen = async {
            let handlers = Handlers::install(received);
            // Programs that this thread starts would hold them as well.
            HeldSignals::release();
            let mut handlers = match handlers {
                Ok(handlers) => handlers,
                Err(error) => return installed.send(Err(error)).is_ok(),
            };
            let _ = installed.send(Ok(()));
            while handlers.any().await == Received::Interrupt && interrupts_something() {}
            let for_first = terminal.clone();
            // A second signal counts even if the first one has to wait for the state.
            if start_thread("ending", move || end(for_first.as_ref())).is_ok() {
                handlers.any().await;
            }
            leave(terminal.as_ref())
        };
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => _ = runtime.block_on(listen),
            Err(error) => _ = installed.send(Err(error)),
        }
    })?;
    let installed = outcome(&result);
    drop(held);
    installed?;
    state().listener = Some(requests);
    Ok(())
}

/// As long as it lives, Ctrl-C and SIGTERM wait: for this thread, and for those that it starts.
struct HeldSignals;

impl HeldSignals {
    fn hold() -> Self {
        let _ = Self::signals().thread_block();
        Self
    }

    fn release() {
        let _ = Self::signals().thread_unblock();
    }

    fn signals() -> SigSet {
        SigSet::from_iter([Number::SIGINT, Number::SIGTERM])
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        Self::release();
    }
}

/// What the thread reports.
fn outcome(result: &mpsc::Receiver<io::Result<()>>) -> Result<(), EngineError> {
    let result = result.recv().unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()));
    result.map_err(|error| EngineError::failed(msg!("cannot listen for signals: {error}")))
}

/// Ends the program after the first signal.
fn end(terminal: Option<&Termios>) -> ! {
    let mut held = state();
    if let Some(Ending { grace, received, on_first, notice, announced }) = held.ending.take() {
        drop(held);
        let _ = received.send(true);
        on_first();
        std::thread::sleep(grace);
        if !announced.load(Ordering::Relaxed) {
            write_notice(notice);
        }
        held = state();
    }
    // The state is held until the process ends, so that the rest of the program reports nothing about the missing directories.
    for directory in &held.directories {
        for _ in 0..REMOVALS {
            if std::fs::remove_dir_all(directory).is_ok() || !directory.exists() {
                break;
            }
        }
    }
    leave(terminal)
}

/// Waits for the end of the program if a signal is ending it.
pub fn wait_for_end() {
    drop(state());
}

/// Does `work`, which is short and which a signal must not interrupt.
pub fn without_interruption<T>(work: impl FnOnce() -> T) -> T {
    let _held = state();
    work()
}

/// A new temporary directory in `parent`, or in that of the system, which is also removed if a signal ends the program.
pub fn temporary_directory(parent: Option<&Path>) -> io::Result<TempDir> {
    let mut held = state();
    let directory = match parent {
        Some(parent) => tempfile::tempdir_in(parent),
        None => tempfile::tempdir(),
    }?;
    held.directories.push(directory.path().to_path_buf());
    Ok(directory)
}

/// Reports the first signal, which no longer ends the program at once.
pub struct Signals {
    received: watch::Receiver<bool>,
    announced: Arc<AtomicBool>,
}

impl Signals {
    /// [`listen`](Self::listen) for [`any`](Self::any).
    pub fn new(notice: Message) -> Result<Self, EngineError> {
        Self::listen(Some(notice), || {})
    }

    /// From now on, the first signal calls `on_first`, and the program has to end itself. `notice` is written if it does not.
    pub fn listen(notice: Option<Message>, on_first: impl FnOnce() + Send + 'static) -> Result<Self, EngineError> {
        if state().listener.is_none() {
            start()?;
        }
        let (reply, result) = mpsc::channel();
        let requested = state().listener.as_ref().is_some_and(|listener| listener.send(reply).is_ok());
        if requested {
            outcome(&result)?;
        }
        let (send, received) = watch::channel(false);
        let announced = Arc::new(AtomicBool::new(false));
        let on_first = Box::new(on_first);
        let announced_by_end = Arc::clone(&announced);
        state().ending = Some(Ending { grace: GRACE, received: send, on_first, notice, announced: announced_by_end });
        Ok(Self { received, announced })
    }

    /// Waits for the first signal.
    pub async fn any(&mut self) {
        if self.received.wait_for(|received| *received).await.is_err() {
            std::future::pending().await
        }
    }

    /// Does `work` until the first signal; `None` if it came.
    pub async fn unless_received<T>(
        &mut self,
        work: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<Option<T>, EngineError> {
        tokio::select! {
            biased;
            () = self.any() => Ok(None),
            done = work => done.map(Some),
        }
    }

    /// Sets how long the program may take to end after the first signal.
    pub fn set_grace(&self, grace: Duration) {
        if let Some(ending) = &mut state().ending {
            ending.grace = grace;
        }
    }

    /// Replaces the notice.
    pub fn set_notice(&self, notice: Message) {
        if let Some(ending) = &mut state().ending {
            ending.notice = Some(notice);
        }
    }

    /// The notice is being written, so it need not be written again.
    pub fn announce(&self) {
        self.announced.store(true, Ordering::Relaxed);
    }
}

struct Handlers {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Option<Signal>,
    /// Requests to listen for SIGHUP.
    requests: UnboundedReceiver<mpsc::Sender<io::Result<()>>>,
}

impl Handlers {
    fn install(requests: UnboundedReceiver<mpsc::Sender<io::Result<()>>>) -> io::Result<Self> {
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hang_up: None, requests })
    }

    async fn any(&mut self) -> Received {
        loop {
            let hang_up = async {
                match &mut self.hang_up {
                    Some(hang_up) => _ = hang_up.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.interrupt.recv() => return Received::Interrupt,
                _ = self.terminate.recv() => return Received::Other,
                () = hang_up => return Received::Other,
                Some(reply) = self.requests.recv() => {
                    let listening = signal(SignalKind::hangup()).map(|signal| self.hang_up = Some(signal));
                    let _ = reply.send(listening);
                }
            }
        }
    }
}

fn write_notice(notice: Option<Message>) {
    let Some(notice) = notice else { return };
    let (done, written) = mpsc::channel();
    // Without a thread, the notice is not worth blocking for.
    let started = start_thread("notice", move || {
        report::note(&notice);
        let _ = done.send(());
    });
    if started.is_err() {
        return;
    }
    let _ = written.recv_timeout(NOTICE_TIME);
}

/// Ends the process, whatever its other threads are doing. A terminal that is editing a line, or echoes no keys, is restored.
fn leave(terminal: Option<&Termios>) -> ! {
    if let Some(original) = terminal
        && tcgetattr(io::stdin()).is_ok_and(|now| !now.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO))
    {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, original);
    }
    std::process::exit(Exit::Interrupted.code().into())
}
