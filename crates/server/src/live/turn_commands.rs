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
const MAX_RECEIVED: usize = 64;

/// A decision that the session may take while it runs.
struct OfferedDecision {
    decision: Box<ApprovalDecision>,
    cause: Span,
    taken: oneshot::Receiver<TakenDecision>,
    ended: oneshot::Sender<Result<EndedTurn, Problem>>,
}

impl OfferedDecision {
    /// The command that it was.
    fn command(self) -> CausedCommand {
        let Self { decision, cause, ended, .. } = self;
        CausedCommand { command: SessionCommand::Decide { decision, ended }, cause }
    }
}

/// The commands that were received while a session ran.
#[derive(Default)]
pub(super) struct TurnCommands {
    /// What was not carried out, in the order in which it came.
    waiting: VecDeque<CausedCommand>,
    offered: Vec<OfferedDecision>,
}

impl TurnCommands {
    /// Receives what has arrived, offers decisions to the session, and answers those that it refused. `waiters` are completed by those whose
    /// decision it took.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        commands: &mut mpsc::Receiver<CausedCommand>,
        inbox: &Arc<DecisionInbox>,
        waiters: &mut Vec<Waiter>,
    ) {
        while self.waiting.len() + self.offered.len() < MAX_RECEIVED
            && let Poll::Ready(Some(CausedCommand { command, cause })) = commands.poll_recv(context)
        {
            match command {
                SessionCommand::Decide { decision, ended } => {
                    let taken = inbox.put((*decision).clone());
                    self.offered.push(OfferedDecision { decision, cause, taken, ended });
                }
                command => self.waiting.push_back(CausedCommand { command, cause }),
            }
        }
        for mut offered in std::mem::take(&mut self.offered) {
            match Pin::new(&mut offered.taken).poll(context) {
                Poll::Pending => self.offered.push(offered),
                Poll::Ready(Ok(Ok(after))) => waiters.push(Waiter::Turn { after, ended: offered.ended }),
                Poll::Ready(Ok(Err(error))) => {
                    let _ = offered.ended.send(Err(rejected_decision(error)));
                }
                Poll::Ready(Err(_)) => self.waiting.push_back(offered.command()),
            }
        }
    }

    /// Takes back what the session did not take, once it does not run any more.
    pub(super) fn end(&mut self, inbox: &DecisionInbox, waiters: &mut Vec<Waiter>) {
        inbox.clear();
        for mut offered in std::mem::take(&mut self.offered) {
            match offered.taken.try_recv() {
                Ok(Ok(after)) => waiters.push(Waiter::Turn { after, ended: offered.ended }),
                Ok(Err(error)) => {
                    let _ = offered.ended.send(Err(rejected_decision(error)));
                }
                Err(_) => self.waiting.push_back(offered.command()),
            }
        }
    }

    /// Puts a command back that was received too early: it is the next one.
    pub(super) fn put_back(&mut self, command: CausedCommand) {
        self.waiting.push_front(command);
    }

    /// The next command for the session at rest.
    pub(super) fn next(&mut self) -> Option<CausedCommand> {
        self.waiting.pop_front()
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
