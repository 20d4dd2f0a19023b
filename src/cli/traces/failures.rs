//! Reports once that traces cannot be exported: at once in a server, and at the end in a terminal, where a person reads something else.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

use crate::cli::report;

#[derive(Debug)]
pub(super) struct ExportFailures {
    /// The address of the collector, without what may be secret.
    address: String,
    warns_at_once: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Why the last request failed.
    reason: Option<Message>,
    /// What is to be reported.
    warning: Option<Message>,
    is_reported: bool,
}

impl ExportFailures {
    pub(super) fn new(address: String, warns_at_once: bool) -> Self {
        Self { address, warns_at_once, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why a request failed; it may be sent again.
    pub(super) fn request_failed(&self, reason: Message) {
        self.state().reason = Some(reason);
    }

    /// Spans are lost, because of the last failed request.
    pub(super) fn export_failed(&self) {
        let reason = self.state().reason.take();
        let reason = reason.unwrap_or_else(|| Message::word("it does not take them"));
        self.warn(msg!("traces are not exported to {address}: {reason}", address = self.address));
    }

    /// The last spans were not exported in time.
    pub(super) fn late(&self) {
        let reason = Message::word("it does not answer in time");
        self.warn(msg!("traces are not exported to {address}: {reason}", address = self.address));
    }

    fn warn(&self, warning: Message) {
        self.state().warning.get_or_insert(warning);
        if self.warns_at_once {
            self.report();
        }
    }

    /// Writes the first warning, unless it was written before.
    pub(super) fn report(&self) {
        let mut state = self.state();
        if let Some(warning) = state.warning.clone().filter(|_| !state.is_reported) {
            state.is_reported = true;
            drop(state);
            report::note(&warning);
        }
    }
}
