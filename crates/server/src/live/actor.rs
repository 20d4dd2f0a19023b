//! The task of a session: it owns the session, runs its turns, and carries out one command after the other.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use bcc_engine::error::EngineError;
use bcc_engine::report::write::write_script_report;
use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::language::Language;
use bcc_lang::message::msg;
use bcc_runtime::run::approval_decision::DecisionError;
use bcc_runtime::run::error::RunError;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::{Session, SessionPause, TakenAnswer};
use bcc_runtime::run::take_back::TakenBack;
use bcc_store::contract::{LockNotice, SessionLock, Store};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::Span;

use crate::live::command::{Answer, AnsweredTurn, CausedCommand, EndedTurn, SessionCommand, is_outdated};
use crate::live::feed::EventFeed;
use crate::live::idle::unused;
use crate::live::interrupted_turn::InterruptedTurn;
use crate::live::turn_commands::{TurnCommands, rejected_decision};
use crate::live::turn_signals::{TurnEnd, TurnSignals};
use crate::live::waiter::Waiter;
use crate::metrics::Metrics;
use crate::problem::{Problem, ProblemKind};

/// What the task of a session needs besides the session.
pub(crate) struct ActorContext {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) metrics: Arc<Metrics>,
    /// The observer of the session.
    pub(crate) feed: Arc<EventFeed>,
    /// How long a session that rests stays in memory, unless its kernel needs it.
    pub(crate) idle_time: Duration,
    /// Becomes true when the server ends.
    pub(crate) ending: watch::Receiver<bool>,
    /// Whether a turn runs.
    pub(crate) is_busy: Arc<AtomicBool>,
    /// How others end the turn that runs.
    pub(crate) signals: Arc<TurnSignals>,
}

/// What a session that rests waits for.
enum Happened {
    /// The server ends.
    Ending,
    /// None if no command can arrive any more.
    Command(Option<Box<CausedCommand>>),
    /// Its time has come.
    Due,
    /// The session waits for an answer that it is given.
    Given,
    /// A monitor has a result.
    Analysis,
    /// Nobody has used it for a while.
    Idle,
    /// Another process wants the session.
    Wanted,
    /// Another process may have the session.
    Lost,
}

/// What follows from a command.
enum Next {
    /// The session goes on.
    Turn,
    Rest,
    /// The session leaves memory.
    Broken,
}

pub(crate) struct Actor {
    session: Session,
    /// That of the session, which other processes may ask for.
    lock: Arc<dyn SessionLock>,
    commands: mpsc::Receiver<CausedCommand>,
    /// Those that were received while it ran.
    received: TurnCommands,
    context: ActorContext,
    waiters: Vec<Waiter>,
    /// Answers that the session is given when it waits for one.
    given: VecDeque<String>,
    /// Whether it is given them yet: whoever opened the session to answer it comes first.
    gives: bool,
    /// What the next turn is run for: a request, or none.
    cause: Span,
    /// Whether the next turn may be about an answer, and not about what somebody has decided.
    is_about_answer: bool,
    /// Why the last turn could not end.
    failure: Option<Problem>,
    /// Who has ended the last turn before its end.
    ended_by: Option<TurnEnd>,
}

impl Actor {
    /// `given` are the answers that it is given ([`OpenedSession::answers`]).
    pub(crate) fn new(
        session: Session,
        given: Vec<String>,
        commands: mpsc::Receiver<CausedCommand>,
        context: ActorContext,
    ) -> Self {
        Self {
            lock: session.lock(),
            session,
            commands,
            received: TurnCommands::default(),
            context,
            waiters: vec![],
            given: given.into(),
            gives: false,
            cause: Span::current(),
            is_about_answer: true,
            failure: None,
            ended_by: None,
        }
    }

    /// Runs the session until it ends, nobody has used it for a while, or the server ends. Commands that arrive later are for the next
    /// task ([`Problem::is_outdated`]). `rests` says that it waits already. Returns a turn whose answer is to be taken back, and for whom.
    pub(crate) async fn run(mut self, rests: bool) -> Option<(TurnEnd, InterruptedTurn)> {
        let id = self.session.id.clone();
        if rests {
            self.cause = Span::none();
        }
        self.set_busy(!rests);
        if !rests || self.rest().await {
            let before = self.session.last_seq();
            let mut goes_on = self.turn().await;
            // It was not opened in order to be answered.
            self.gives |= self.session.last_seq() > before;
            while goes_on && self.rest().await {
                goes_on = self.turn().await;
            }
        }
        self.commands.close();
        let waiters = std::mem::take(&mut self.waiters);
        let interrupted_turn = match self.ended_by {
            Some(by @ (TurnEnd::Message | TurnEnd::OtherProcess)) => {
                Some((by, InterruptedTurn { lock: Arc::clone(&self.lock), waiters }))
            }
            ended_by => {
                let problem = if ended_by.is_some() { Problem::interrupted() } else { Problem::ended_here(&id) };
                waiters.into_iter().for_each(|waiter| waiter.fail(problem.clone()));
                None
            }
        };
        while let Some(CausedCommand { command, .. }) = self.received.next().or_else(|| self.commands.try_recv().ok()) {
            match command {
                SessionCommand::Rest { ended } if self.failure.is_none() && self.ended_by.is_none() => {
                    Waiter::Turn { after: self.session.last_seq(), ended }.end(&self.session);
                }
                command => command.fail(self.ended().unwrap_or_else(|| Problem::ended_here(&id).outdated())),
            }
        }
        interrupted_turn
    }

    /// Says here and to other processes whether a turn runs.
    fn set_busy(&self, is_busy: bool) {
        self.context.is_busy.store(is_busy, Ordering::Release);
        self.lock.set_busy(is_busy);
    }

    /// Why a command was not carried out after the end of the session; none if it is for the next task.
    fn ended(&self) -> Option<Problem> {
        let id = &self.session.id;
        match self.session.status() {
            _ if self.failure.is_some() => self.failure.clone(),
            status if status.is_final() => {
                let status = status.name();
                let why = msg!("session `{id}` cannot continue: its status is `{status}`");
                Some(Problem::new(ProblemKind::Conflict, why))
            }
            SessionStatus::Stopped => Some(Problem::stopped(id)),
            _ => None,
        }
    }

    /// Runs turns until the session rests. Returns whether it waits for something.
    async fn turn(&mut self) -> bool {
        let began = Instant::now();
        let signals = Arc::clone(&self.context.signals);
        // An interruption that came too late is not for this turn.
        tokio::select! {
            biased;
            () = signals.interrupt.notified() => {}
            () = std::future::ready(()) => {}
        }
        self.set_busy(true);
        self.received.start();
        let cause = std::mem::replace(&mut self.cause, Span::none());
        let is_about_answer = std::mem::replace(&mut self.is_about_answer, true);
        let (writing, inbox) = (self.session.writing(), self.session.inbox());
        let advanced = {
            let mut advance = pin!(self.session.advance_for(&cause));
            let lock = &self.lock;
            let mut interrupted = pin!(async {
                tokio::select! {
                    () = signals.interrupt.notified() => TurnEnd::Message,
                    () = lock.interrupted() => TurnEnd::OtherProcess,
                }
            });
            let mut erased = pin!(signals.erase.notified());
            let (mut is_wanted, mut is_erased) = (None, false);
            poll_fn(|context| {
                if let Poll::Ready(advanced) = advance.as_mut().poll(context) {
                    return Poll::Ready(Ok(advanced));
                }
                self.received.poll(context, &mut self.commands, &inbox, &mut self.waiters);
                if is_wanted.is_none()
                    && let Poll::Ready(by) = interrupted.as_mut().poll(context)
                {
                    is_wanted = Some(by);
                }
                is_erased = is_erased || erased.as_mut().poll(context).is_ready();
                let wanted = is_wanted.filter(|_| is_about_answer && !self.received.has_decided());
                match wanted.or(is_erased.then_some(TurnEnd::Erasure)) {
                    // A turn that is being written ends first: nobody could say whether it is stored.
                    Some(by) if !writing.load(Ordering::Acquire) => Poll::Ready(Err(by)),
                    _ => Poll::Pending,
                }
            })
            .await
        };
        self.received.end(&inbox, &mut self.waiters);
        signals.is_interrupted.store(advanced.is_err(), Ordering::Release);
        self.set_busy(false);
        let metrics = &self.context.metrics;
        metrics.turn_seconds.observe(began.elapsed().as_secs_f64());
        metrics.turns.inc();
        let advanced = match advanced {
            Ok(advanced) => advanced,
            // What was not committed is gone, and so is the session in memory: it is read again.
            Err(by) => {
                self.ended_by = Some(by);
                return false;
            }
        };
        let waiters = std::mem::take(&mut self.waiters);
        match advanced {
            Ok(pause) => {
                if matches!(pause, SessionPause::Completed | SessionPause::Failed | SessionPause::Cancelled) {
                    self.write_report().await;
                }
                waiters.into_iter().for_each(|waiter| waiter.end(&self.session));
                pause == SessionPause::Waiting
            }
            Err(error) => {
                metrics.failed_turns.inc();
                let is_outdated = is_outdated(&error);
                let problem = Problem::from(error);
                let stored = self.session.stored_seq();
                for waiter in waiters {
                    // An answer that was to be stored with its turn is not: it is for the next task.
                    let is_stored = !matches!(&waiter, Waiter::Answer { after, .. } if *after >= stored);
                    let problem = problem.clone();
                    waiter.fail(if is_outdated && !is_stored { problem.outdated() } else { problem });
                }
                // What waits is not carried out here, but may be elsewhere.
                self.failure = Some(if is_outdated { problem.outdated() } else { problem });
                false
            }
        }
    }

    /// The report that the script names. That it cannot be written does not change the session.
    async fn write_report(&self) {
        let written = write_script_report(&self.session, self.context.store.as_ref(), Language::default()).await;
        if let Err(error) = written {
            tracing::warn!(session = %self.session.id, error = %error.to_message(), "the report was not written");
        }
    }

    /// Waits until the session is to go on. Returns whether it does.
    async fn rest(&mut self) -> bool {
        loop {
            let next = match self.happens().await {
                Happened::Ending | Happened::Command(None) => return false,
                // It was opened to be taken back or cancelled, and goes on before anything else.
                Happened::Command(Some(caused))
                    if !caused.command.needs_no_turn() && !self.session.status().is_waiting() =>
                {
                    self.received.put_back(*caused);
                    Next::Turn
                }
                Happened::Command(Some(caused)) => {
                    let CausedCommand { command, cause } = *caused;
                    self.cause = cause;
                    self.gives = true;
                    self.carry_out(command).await
                }
                Happened::Due => Next::Turn,
                Happened::Given => self.give().await,
                Happened::Analysis => self.store_analysis().await,
                // No command arrives any more after this: whoever sends one begins the next task.
                Happened::Idle | Happened::Wanted => {
                    self.commands.close();
                    Next::Rest
                }
                // What is in memory is no longer certain to be what is stored.
                Happened::Lost => Next::Broken,
            };
            match next {
                Next::Turn => return true,
                Next::Rest => self.cause = Span::none(),
                Next::Broken => return false,
            }
        }
    }

    async fn happens(&mut self) -> Happened {
        let due = self.session.time_left();
        tokio::select! {
            biased;
            _ = self.context.ending.wait_for(|is_ending| *is_ending) => Happened::Ending,
            // Before the commands, so that one after the other does not keep the session here.
            notice = self.lock.notice(), if !self.commands.is_closed() => match notice {
                LockNotice::Lost => Happened::Lost,
                LockNotice::Wanted | LockNotice::None => Happened::Wanted,
            },
            command = self.received.receive(&mut self.commands) => Happened::Command(command.map(Box::new)),
            () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => Happened::Due,
            // Before an answer that is given, as a person reads first.
            () = self.session.wait_for_result() => Happened::Analysis,
            () = std::future::ready(()), if self.is_given() => Happened::Given,
            () = unused(&self.session, self.context.idle_time) => Happened::Idle,
        }
    }

    /// Stores the results of monitors that have ended while the session rests.
    async fn store_analysis(&mut self) -> Next {
        match self.session.commit_results().await {
            Ok(()) => Next::Rest,
            Err(error) => {
                tracing::warn!(session = %self.session.id, error = %error.to_message(), "an analysis was not stored");
                Next::Broken
            }
        }
    }

    async fn carry_out(&mut self, command: SessionCommand) -> Next {
        match command {
            SessionCommand::Answer(answer) => {
                // Whoever answers the script takes over; a decision about an effect is none.
                if self.session.awaits_answer() {
                    self.given.clear();
                }
                self.answer(answer).await
            }
            SessionCommand::Decide { decision, ended } => {
                let after = self.session.last_seq();
                match self.session.decide(*decision).await {
                    Ok(()) => self.go_on_as_decided(after, ended),
                    Err(DecisionError::Run(error)) => broken(error, |problem| drop(ended.send(Err(problem)))),
                    Err(error) => {
                        let _ = ended.send(Err(rejected_decision(error)));
                        Next::Rest
                    }
                }
            }
            SessionCommand::Cancel { reason, compensate, ended } => {
                let after = self.session.last_seq();
                match self.session.cancel(reason, compensate).await {
                    Ok(()) => self.go_on_as_decided(after, ended),
                    Err(error) => broken(error, |problem| drop(ended.send(Err(problem)))),
                }
            }
            SessionCommand::TakeBack { answer_id, done }
                if answer_id.is_some() && answer_id.as_deref() != self.session.awaited() =>
            {
                let why = msg!("the session does not wait for this answer any more");
                let _ = done.send(Err(Problem::new(ProblemKind::Conflict, why)));
                Next::Rest
            }
            SessionCommand::TakeBack { done, .. } => match self.session.take_back().await {
                Ok(taken) => {
                    // Whoever takes an answer back gives the next one.
                    if taken == TakenBack::Yes {
                        self.given.clear();
                    }
                    let _ = done.send(Ok(taken));
                    Next::Rest
                }
                Err(error) => broken(error, |problem| drop(done.send(Err(problem)))),
            },
            SessionCommand::Close { closed } => {
                let _ = closed.send(());
                Next::Broken
            }
            SessionCommand::Rest { ended } => {
                Waiter::Turn { after: self.session.last_seq(), ended }.end(&self.session);
                Next::Rest
            }
        }
    }

    /// Whether the next turn is that of an answer which the session is given.
    fn is_given(&self) -> bool {
        self.gives && !self.given.is_empty() && self.session.awaits_answer() && !self.session.awaits_analysis()
    }

    async fn give(&mut self) -> Next {
        let Some(text) = self.given.pop_front() else { return Next::Rest };
        self.context.feed.start_turn(self.session.last_seq());
        match self.session.answer_with_turn(&text, None).await {
            Ok(_) => Next::Turn,
            Err(error) => {
                tracing::warn!(session = %self.session.id, error = %error.to_message(), "an answer was not given");
                Next::Broken
            }
        }
    }

    /// The session goes on because of a decision, which no other message takes back.
    fn go_on_as_decided(&mut self, after: u64, ended: oneshot::Sender<Result<EndedTurn, Problem>>) -> Next {
        self.is_about_answer = false;
        self.waiters.push(Waiter::Turn { after, ended });
        Next::Turn
    }

    async fn answer(&mut self, answer: Answer) -> Next {
        let problem = answer.problem_in(&self.session);
        let Answer { text, key, expected_answers, accepted, ended, .. } = answer;
        if let Some(key) = &key {
            match self.context.store.answer_accepted(&self.session.id, key).await {
                Ok(false) => {}
                // The session rests, so its turns have ended.
                Ok(true) => {
                    Waiter::Repeated { ended }.end(&self.session);
                    return Next::Rest;
                }
                Err(error) => {
                    let _ = ended.send(Err(error.into()));
                    return Next::Rest;
                }
            }
        }
        if expected_answers.is_some_and(|expected| expected != self.session.answers()) {
            let _ = ended.send(Ok(AnsweredTurn::MovedOn));
            return Next::Rest;
        }
        if let Some(problem) = problem {
            return rejected(ended, problem);
        }
        let after = self.session.last_seq();
        self.context.feed.start_turn(after);
        // Whoever wants to know when it is accepted does not wait for the turn.
        let taken = match &accepted {
            Some(_) => self.session.answer(&text, key.as_deref()).await,
            None => self.session.answer_with_turn(&text, key.as_deref()).await,
        };
        match taken {
            Ok(TakenAnswer::Yes) => {
                if let Some(accepted) = accepted {
                    // Whoever wants to know has room for it, or is gone.
                    let _ = accepted.try_send(after);
                }
                self.waiters.push(Waiter::Answer { after, ended });
                Next::Turn
            }
            Ok(TakenAnswer::AlreadyUsed) => {
                Waiter::Repeated { ended }.end(&self.session);
                Next::Rest
            }
            Ok(TakenAnswer::NotAwaited | TakenAnswer::Unknown) => {
                let status = self.session.status().name();
                let why = msg!("the session waits for no answer: its status is `{status}`");
                rejected(ended, Problem::new(ProblemKind::Conflict, why))
            }
            Ok(TakenAnswer::TooLong) => {
                let why = msg!("the answer is longer than a variable may be");
                rejected(ended, Problem::new(ProblemKind::TooLarge, why))
            }
            Err(error) => broken(error, |problem| drop(ended.send(Err(problem)))),
        }
    }
}

/// Answers that an answer was not accepted.
fn rejected(ended: oneshot::Sender<Result<AnsweredTurn, Problem>>, problem: Problem) -> Next {
    let _ = ended.send(Err(problem));
    Next::Rest
}

/// Answers a command after which the session must not be used any more. What was committed stays.
fn broken(error: RunError, send: impl FnOnce(Problem)) -> Next {
    let is_outdated = is_outdated(&error);
    let problem = Problem::from(EngineError::from(error));
    send(if is_outdated { problem.outdated() } else { problem });
    Next::Broken
}
