//! Handles Ctrl-C, SIGTERM and SIGHUP on a thread of their own, so that no work and no blocked write delays them. The first signal ends
//! the program in order, or after `GRACE`; the second ends it at once. Committed data stays, and the session can be resumed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::cli::async_runtime::start_thread;
use crate::cli::exit::Exit;
use crate::cli::report;
use bcc_engine::error::EngineError;

/// How long the program may take to end after the first signal. A kernel is stopped in this time.
const GRACE: Duration = Duration::from_secs(4);

/// How long the notice may take to be written: standard error can be a full pipe.
const NOTICE_TIME: Duration = Duration::from_millis(200);

/// Reports the first signal.
pub struct Signals {
    received: watch::Receiver<bool>,
    announced: Arc<AtomicBool>,
}

impl Signals {
    /// [`listen`](Self::listen) for [`any`](Self::any).
    pub fn new(notice: Message) -> Result<Self, EngineError> {
        Self::listen(Some(notice), || {})
    }

    /// Installs the handlers; the signals no longer kill the process. The first one calls `on_first`. `notice` is written if the
    /// program has to be ended before it has written it itself.
    pub fn listen(notice: Option<Message>, on_first: impl FnOnce() + Send + 'static) -> Result<Self, EngineError> {
        let failed = |error: io::Error| EngineError::failed(msg!("cannot listen for signals: {error}"));
        let (send, received) = watch::channel(false);
        let announced = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&announced);
        let terminal = tcgetattr(io::stdin()).ok();
        let (installed, result) = mpsc::channel();
        start_thread("signals", move || {
            let listen = async {
                let mut handlers = match Handlers::install() {
                    Ok(handlers) => handlers,
                    Err(error) => return installed.send(Err(error)).is_ok(),
                };
                let _ = installed.send(Ok(()));
                handlers.any().await;
                let _ = send.send(true);
                on_first();
                let is_second = tokio::time::timeout(GRACE, handlers.any()).await.is_ok();
                if !is_second && !told.load(Ordering::Relaxed) {
                    write_notice(notice);
                }
                leave(terminal.as_ref())
            };
            match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => _ = runtime.block_on(listen),
                Err(error) => _ = installed.send(Err(error)),
            }
        })?;
        result.recv().unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into())).map_err(failed)?;
        Ok(Self { received, announced })
    }

    /// Waits for the first signal.
    pub async fn any(&mut self) {
        if self.received.wait_for(|received| *received).await.is_err() {
            std::future::pending().await
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
    hang_up: Signal,
}

impl Handlers {
    fn install() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn any(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
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

/// Ends the process, whatever its other threads are doing. A terminal that is editing a line is restored.
fn leave(terminal: Option<&Termios>) -> ! {
    if let Some(original) = terminal
        && tcgetattr(io::stdin()).is_ok_and(|now| !now.local_modes.contains(LocalModes::ICANON))
    {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, original);
    }
    std::process::exit(Exit::Interrupted.code().into())
}
