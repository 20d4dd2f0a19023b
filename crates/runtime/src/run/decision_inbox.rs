//! Decisions that arrive while a session runs: they are taken between two turns of its branches (docs/requests.md).

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use crate::run::approval_decision::{ApprovalDecision, DecisionError};

/// Where decisions about requests of branches wait while other branches run.
#[derive(Default)]
pub struct DecisionInbox {
    waiting: Mutex<VecDeque<ArrivedDecision>>,
    arrived: Notify,
}

/// What became of a decision: the number of the last event before it, or why it was refused.
pub type TakenDecision = Result<u64, DecisionError>;

pub(crate) struct ArrivedDecision {
    pub decision: ApprovalDecision,
    pub taken: oneshot::Sender<TakenDecision>,
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
    pub(crate) fn take(&self, is_meant: impl Fn(&ApprovalDecision) -> bool) -> Option<ArrivedDecision> {
        let mut waiting = self.waiting();
        let found = waiting.iter().position(|arrived| is_meant(&arrived.decision))?;
        waiting.remove(found)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<ArrivedDecision>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
