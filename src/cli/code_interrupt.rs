//! The first Ctrl-C interrupts only the code of a cell that runs. What the code printed is then stored with its cell, and the session asks
//! what to do.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bcc_lang::message::message::Message;
use tokio::time::{Instant, sleep_until};

use crate::cli::async_runtime::start_thread;
use crate::cli::front_end::FrontEnd;
use crate::cli::report;
use crate::cli::signals::interrupt_first;
use bcc_runtime::notebook::kernel::contract::Kernel;
use bcc_runtime::run::session::Session;

/// How long interrupted code and the commit of its cell may take when nobody can see what follows: longer than a kernel has to end code.
const UNSEEN_TIME: Duration = Duration::from_secs(10);

/// The code of a session that can be interrupted.
pub struct CodeInterrupt {
    /// The kernel ends with its session.
    kernel: Weak<dyn Kernel>,
    /// Whether Ctrl-C interrupted code since the session waited the last time.
    by_person: Arc<AtomicBool>,
    /// Whether code was interrupted because standard output cannot be written. Its reader may have ended by the same Ctrl-C.
    by_lost_output: Arc<AtomicBool>,
    /// Until when the session may go on although standard output cannot be written.
    unseen_until: Option<Instant>,
    /// Whether code ran when a signal stopped the session.
    is_cut_off: bool,
}

impl CodeInterrupt {
    /// From now on, Ctrl-C interrupts the code of `session` first.
    pub fn listen(session: &Session) -> Self {
        let kernel = Arc::downgrade(&session.host().kernel);
        let [by_person, by_lost_output] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (of_signal, asked, lost) = (Weak::clone(&kernel), Arc::clone(&by_person), Arc::clone(&by_lost_output));
        interrupt_first(move || {
            let interrupts = of_signal.upgrade().is_some_and(|kernel| kernel.interrupt());
            let is_interrupted = interrupts || lost.swap(false, Ordering::AcqRel);
            if is_interrupted {
                asked.store(true, Ordering::Release);
                // On a thread of its own: a terminal that takes no output must not keep the next signal from being handled.
                let _ = start_thread("notice", || {
                    report::note(&Message::word(
                        "\nthe code is being interrupted; press Ctrl-C again to stop the session",
                    ));
                });
            }
            is_interrupted
        });
        Self { kernel, by_person, by_lost_output, unseen_until: None, is_cut_off: false }
    }

    /// Standard output cannot be written any more: interrupts code that runs. Returns whether the session must go on until its cell is
    /// stored, for which [`CodeInterrupt::unseen_too_long`] sets a limit.
    pub fn unseen(&mut self) -> bool {
        let interrupts = self.kernel.upgrade().is_some_and(|kernel| kernel.interrupt());
        self.by_lost_output.store(interrupts, Ordering::Release);
        let waits = interrupts || self.by_person.load(Ordering::Acquire);
        if waits {
            self.unseen_until = Some(Instant::now() + UNSEEN_TIME);
        }
        waits
    }

    /// A signal stops the session while it works: notes whether code runs, or was interrupted and has not ended.
    pub fn cut_off(&mut self) {
        let interrupts = self.kernel.upgrade().is_some_and(|kernel| kernel.interrupt());
        self.is_cut_off = interrupts || self.by_person.load(Ordering::Acquire);
    }

    /// Whether code ran when a signal stopped the session. What it printed is not stored.
    pub const fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Whether the session goes on although nobody sees it.
    pub const fn is_unseen(&self) -> bool {
        self.unseen_until.is_some()
    }

    /// Waits until the session has gone on unseen for too long.
    pub async fn unseen_too_long(&self) {
        match self.unseen_until {
            Some(until) => sleep_until(until).await,
            None => std::future::pending().await,
        }
    }

    /// Whether Ctrl-C interrupted code about which `session` now asks. The next call does not count it again.
    pub fn take_question(&self, session: &Session) -> bool {
        self.by_person.swap(false, Ordering::AcqRel) && session.awaits_effect_answer()
    }
}

/// Whether whoever pressed Ctrl-C can answer a question. Lines of a pipe were written before, for other questions; a program can send a line
/// at any time.
pub fn can_be_asked(front: FrontEnd) -> bool {
    match front {
        FrontEnd::Terminal | FrontEnd::Json { .. } => true,
        FrontEnd::Piped => std::io::stdin().is_terminal(),
    }
}
