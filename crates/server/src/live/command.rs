//! What is asked of a session that runs.

use bcc_lang::message::msg;
use bcc_runtime::run::approval_decision::ApprovalDecision;
use bcc_runtime::run::error::RunError;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::Session;
use bcc_runtime::run::take_back::TakenBack;
use bcc_store::error::StoreError;
use tokio::sync::{mpsc, oneshot};
use tracing::Span;

use crate::problem::{Problem, ProblemKind};

/// The prefix of the keys of answers in the store, so that no key is taken for an `answer_id` of the session itself.
const KEY_PREFIX: &str = "key:";

/// The stored form of an idempotency key.
pub(crate) fn stored_key(key: &str) -> String {
    format!("{KEY_PREFIX}{key}")
}

/// The turns that followed a command, until the session rests again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedTurn {
    /// The number of the last event before it.
    pub(crate) after: u64,
    /// The number of its last event.
    pub(crate) until: u64,
    pub(crate) status: SessionStatus,
}

/// What became of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnsweredTurn {
    Ended(EndedTurn),
    /// Its key was accepted before. Nothing changed; all turns that followed from it have ended.
    Repeated,
    /// The session has another number of answers than expected. Nothing changed.
    MovedOn,
}

/// Tells the number of the last event before a turn, once its answer is stored. Cloned for each attempt to answer.
pub(crate) type AcceptedSender = mpsc::Sender<u64>;

/// An answer of a person.
pub(crate) struct Answer {
    pub(crate) text: String,
    /// In the form of [`stored_key`].
    pub(crate) key: Option<String>,
    /// The question that it answers; the current one if not set.
    pub(crate) answer_id: Option<String>,
    /// How many answers the session must have: whoever sends this one has seen what followed from them. Any number if not set.
    pub(crate) expected_answers: Option<u64>,
    /// Whether it may also be the decision about an effect that was interrupted.
    pub(crate) may_decide: bool,
    /// Learns the number of the last event before the turn, as soon as the answer is stored.
    pub(crate) accepted: Option<AcceptedSender>,
    pub(crate) ended: oneshot::Sender<Result<AnsweredTurn, Problem>>,
}

impl Answer {
    /// Why a session that rests does not accept it, unless it was accepted before.
    pub(crate) fn problem_in(&self, session: &Session) -> Option<Problem> {
        if session.awaits_effect_answer() && !self.may_decide {
            let why = msg!("the session waits for a decision about an action that was interrupted");
            let help = "somebody whose token has the role `decide` answers the request of the session; then it goes on";
            return Some(Problem::new(ProblemKind::Conflict, why).with_help(help));
        }
        let awaited = session.awaited().filter(|_| session.request().is_none());
        let given = self.answer_id.as_deref().filter(|given| Some(*given) != awaited)?;
        let problem = Problem::new(ProblemKind::Conflict, msg!("the session does not wait for the answer `{given}`"));
        Some(match awaited {
            Some(awaited) => problem.with_help(msg!("the expected answer is `{awaited}`")),
            None => problem,
        })
    }
}

pub(crate) enum SessionCommand {
    Answer(Answer),
    Decide {
        decision: Box<ApprovalDecision>,
        ended: oneshot::Sender<Result<EndedTurn, Problem>>,
    },
    Cancel {
        reason: Option<String>,
        compensate: bool,
        ended: oneshot::Sender<Result<EndedTurn, Problem>>,
    },
    TakeBack {
        /// The question that the session must wait for; any one if not set.
        answer_id: Option<String>,
        done: oneshot::Sender<Result<TakenBack, Problem>>,
    },
    /// Leaves memory as soon as the session rests.
    Close {
        closed: oneshot::Sender<()>,
    },
    /// Nothing: whoever sends it only wants to know when the session rests.
    Rest {
        ended: oneshot::Sender<Result<EndedTurn, Problem>>,
    },
}

/// A command, and the span that waits for its turn.
pub(crate) struct CausedCommand {
    pub(crate) command: SessionCommand,
    pub(crate) cause: Span,
}

impl SessionCommand {
    /// The command because of what is done now.
    pub(crate) fn caused(self) -> CausedCommand {
        CausedCommand { command: self, cause: Span::current() }
    }

    /// Whether it is carried out without a turn of a session that has not rested before it, perhaps because it cannot take one.
    pub(super) fn needs_no_turn(&self) -> bool {
        matches!(self, Self::TakeBack { .. } | Self::Cancel { .. } | Self::Close { .. })
    }

    /// Answers that the command was not carried out.
    pub(crate) fn fail(self, problem: Problem) {
        // Nobody waits for it any more if a send fails.
        match self {
            Self::Answer(answer) => drop(answer.ended.send(Err(problem))),
            Self::Decide { ended, .. } | Self::Cancel { ended, .. } | Self::Rest { ended } => {
                drop(ended.send(Err(problem)));
            }
            Self::TakeBack { done, .. } => drop(done.send(Err(problem))),
            Self::Close { closed } => drop(closed),
        }
    }
}

/// Whether another process has gone on with the session.
pub(super) fn is_outdated(error: &RunError) -> bool {
    matches!(error, RunError::Store(StoreError::LeaseLost { .. } | StoreError::Conflict { .. }))
}
