//! What is asked of a session while it runs: decisions are for its branches, everything else waits for the end of the turn.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bcc_engine::error::EngineError;
use bcc_runtime::run::approval_decision::{ApprovalDecision, DecisionError};
use bcc_runtime::run::decision_inbox::{DecisionInbox, TakenDecision};
use tokio::sync::{mpsc, oneshot};
use tracing::Span;

use crate::live::command::{CausedCommand, EndedTurn, SessionCommand};
use crate::live::waiter::Waiter;
use crate::problem::{Problem, ProblemKind};

/// How many commands are received in a turn. The others wait where they were sent.
const MAX_RECEIVED: usize = 1024;

/// A decision that the session may take while it runs.
struct OfferedDecision {
    decision: Box<ApprovalDecision>,
    cause: Span,
    taken: oneshot::Receiver<TakenDecision>,
    ended: oneshot::Sender<Result<EndedTurn, Problem>>,
}

/// A command that was received while a session ran.
enum ReceivedCommand {
    Waiting(CausedCommand),
    Offered(OfferedDecision),
}

/// The commands that were received while a session ran and are not carried out, in the order in which they came.
#[derive(Default)]
pub(super) struct TurnCommands {
    received: VecDeque<ReceivedCommand>,
    /// Whether the session has taken one of the decisions in this turn.
    has_decided: bool,
}

impl TurnCommands {
    /// A turn begins.
    pub(super) fn start(&mut self) {
        self.has_decided = false;
    }

    /// Whether somebody has decided in this turn, so that it is not only about an answer.
    pub(super) fn has_decided(&self) -> bool {
        self.has_decided
    }

    /// Receives what has arrived, offers decisions to the session, and answers those that it refused. `waiters` are completed by those whose
    /// decision it took.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        commands: &mut mpsc::Receiver<CausedCommand>,
        inbox: &Arc<DecisionInbox>,
        waiters: &mut Vec<Waiter>,
    ) {
        while self.received.len() < MAX_RECEIVED
            && let Poll::Ready(Some(CausedCommand { command, cause })) = commands.poll_recv(context)
        {
            self.received.push_back(match command {
                // Not before a command that may leave nothing to decide.
                SessionCommand::Decide { decision, ended } if !self.is_about_to_leave() => {
                    let taken = inbox.put((*decision).clone());
                    ReceivedCommand::Offered(OfferedDecision { decision, cause, taken, ended })
                }
                command => ReceivedCommand::Waiting(CausedCommand { command, cause }),
            });
        }
        self.settle(waiters, |taken| match Pin::new(taken).poll(context) {
            Poll::Pending => None,
            Poll::Ready(result) => Some(result.ok()),
        });
    }

    /// Takes back what the session did not take, once it does not run any more.
    pub(super) fn end(&mut self, inbox: &DecisionInbox, waiters: &mut Vec<Waiter>) {
        inbox.clear();
        self.settle(waiters, |taken| Some(taken.try_recv().ok()));
    }

    /// Whether a command waits after which the session may be another one, or none.
    fn is_about_to_leave(&self) -> bool {
        self.received.iter().any(|received| match received {
            ReceivedCommand::Waiting(CausedCommand { command, .. }) => command.needs_no_turn(),
            ReceivedCommand::Offered(_) => false,
        })
    }

    /// Looks what became of the decisions: `result` says so, with none inside if a decision was not taken and waits as before.
    fn settle(
        &mut self,
        waiters: &mut Vec<Waiter>,
        mut result: impl FnMut(&mut oneshot::Receiver<TakenDecision>) -> Option<Option<TakenDecision>>,
    ) {
        for received in std::mem::take(&mut self.received) {
            let mut offered = match received {
                ReceivedCommand::Offered(offered) => offered,
                waiting @ ReceivedCommand::Waiting(_) => {
                    self.received.push_back(waiting);
                    continue;
                }
            };
            match result(&mut offered.taken) {
                None => self.received.push_back(ReceivedCommand::Offered(offered)),
                Some(Some(Ok(after))) => {
                    self.has_decided = true;
                    waiters.push(Waiter::Turn { after, ended: offered.ended });
                }
                Some(Some(Err(error))) => {
                    let _ = offered.ended.send(Err(rejected_decision(error)));
                }
                Some(None) => {
                    let OfferedDecision { decision, cause, ended, .. } = offered;
                    let command = SessionCommand::Decide { decision, ended };
                    self.received.push_back(ReceivedCommand::Waiting(CausedCommand { command, cause }));
                }
            }
        }
    }

    /// Puts a command back that was received too early: it is the next one.
    pub(super) fn put_back(&mut self, command: CausedCommand) {
        self.received.push_front(ReceivedCommand::Waiting(command));
    }

    /// The next command for the session at rest.
    pub(super) fn next(&mut self) -> Option<CausedCommand> {
        match self.received.pop_front()? {
            ReceivedCommand::Waiting(command) => Some(command),
            // After a turn, nothing is offered any more.
            ReceivedCommand::Offered(OfferedDecision { decision, cause, ended, .. }) => {
                Some(CausedCommand { command: SessionCommand::Decide { decision, ended }, cause })
            }
        }
    }

    /// The next command, also of those that have not been received. None if no other arrives.
    pub(super) async fn receive(&mut self, commands: &mut mpsc::Receiver<CausedCommand>) -> Option<CausedCommand> {
        match self.next() {
            Some(command) => Some(command),
            None => commands.recv().await,
        }
    }
}

/// The answer to a decision that was not taken. Nothing changed.
pub(super) fn rejected_decision(error: DecisionError) -> Problem {
    match error {
        DecisionError::Refused { code, message, help } => {
            let kind = match code {
                "not-an-approver" => ProblemKind::Forbidden,
                "decision-not-permitted" | "decision-too-long" | "not-a-name" => ProblemKind::InvalidRequest,
                code if code.starts_with("form-") => ProblemKind::InvalidRequest,
                _ => ProblemKind::Conflict,
            };
            help.into_iter().fold(Problem::new(kind, message), Problem::with_help)
        }
        DecisionError::Run(error) => Problem::from(EngineError::from(error)),
    }
}
