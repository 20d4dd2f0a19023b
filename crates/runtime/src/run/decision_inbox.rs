//! Decisions that arrive while a session runs: they are taken between two turns of its branches (docs/requests.md).

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use crate::program::decision::RequestKind;
use crate::run::decisions::{ApprovalDecision, DecisionError};
use crate::run::error::RunError;
use crate::run::session::Session;

/// Where decisions about requests of branches wait while other branches run.
#[derive(Default)]
pub struct DecisionInbox {
    waiting: Mutex<VecDeque<ArrivedDecision>>,
    arrived: Notify,
}

/// What became of a decision: the number of the last event before it, or why it was refused.
pub type TakenDecision = Result<u64, DecisionError>;

struct ArrivedDecision {
    decision: ApprovalDecision,
    taken: oneshot::Sender<TakenDecision>,
}

impl DecisionInbox {
    /// Leaves a decision for the session, which takes it before it looks for times that are over. The receiver learns what became of it. If
    /// it is closed, the decision was not taken: no branches run (then it waits until [`DecisionInbox::clear`]), or the store failed.
    pub fn put(&self, decision: ApprovalDecision) -> oneshot::Receiver<TakenDecision> {
        let (taken, result) = oneshot::channel();
        self.waiting().push_back(ArrivedDecision { decision, taken });
        self.arrived.notify_one();
        result
    }

    /// Removes what was not taken. Whoever waits for it learns so.
    pub fn clear(&self) {
        self.waiting().clear();
    }

    /// Waits until there may be a decision.
    pub(crate) async fn arrival(&self) {
        self.arrived.notified().await;
    }

    /// Removes the first decision that `is_meant` accepts.
    fn take(&self, is_meant: impl Fn(&ApprovalDecision) -> bool) -> Option<ArrivedDecision> {
        let mut waiting = self.waiting();
        let found = waiting.iter().position(|arrived| is_meant(&arrived.decision))?;
        waiting.remove(found)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<ArrivedDecision>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Takes the decisions that have arrived. Returns whether there were any.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) async fn take_arrived(&mut self) -> Result<bool, RunError> {
        let mut any = false;
        // One that names no request may mean the one that is opened next.
        while let Some(arrived) = self.inbox.take(|decision| decision.request.is_some() || self.awaits_decision()) {
            any = true;
            let after = self.last_seq();
            let taken = match self.decide_in_time(arrived.decision).await {
                Ok(()) => Ok(after),
                Err(DecisionError::Run(error)) => return Err(error),
                Err(refused) => Err(refused),
            };
            // Whoever left does not change what was decided.
            let _ = arrived.taken.send(taken);
        }
        Ok(any)
    }

    fn awaits_decision(&self) -> bool {
        self.requests().iter().any(|(_, request)| request.kind == RequestKind::Approval.name())
    }
}
