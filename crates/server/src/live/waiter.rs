//! Who waits for the end of a turn.

use bcc_runtime::run::session::Session;
use tokio::sync::oneshot;

use crate::live::command::{AnsweredTurn, EndedTurn};
use crate::problem::Problem;

/// Who waits for the end of the turn.
pub(super) enum Waiter {
    Answer { after: u64, ended: oneshot::Sender<Result<AnsweredTurn, Problem>> },
    Repeated { ended: oneshot::Sender<Result<AnsweredTurn, Problem>> },
    Turn { after: u64, ended: oneshot::Sender<Result<EndedTurn, Problem>> },
}

impl Waiter {
    pub(super) fn end(self, session: &Session) {
        let turn = |after| EndedTurn { after, until: session.stored_seq(), status: session.status() };
        // Whoever left in the middle of a turn gets no answer; the turn is kept.
        match self {
            Self::Answer { after, ended } => drop(ended.send(Ok(AnsweredTurn::Ended(turn(after))))),
            Self::Repeated { ended } => drop(ended.send(Ok(AnsweredTurn::Repeated))),
            Self::Turn { after, ended } => drop(ended.send(Ok(turn(after)))),
        }
    }

    pub(super) fn fail(self, problem: Problem) {
        match self {
            Self::Answer { ended, .. } | Self::Repeated { ended } => drop(ended.send(Err(problem))),
            Self::Turn { ended, .. } => drop(ended.send(Err(problem))),
        }
    }
}
