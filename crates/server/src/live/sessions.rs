//! The sessions that are in memory: opened when somebody needs them, and gone when nobody does.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bcc_engine::clock::{now, stamp};
use bcc_engine::engine::{Engine, OpenedSession, ResumeRequest, RunRequest};
use bcc_engine::error::EngineError;
use bcc_engine::left_kernel::left_kernel;
use bcc_lang::message::msg;
use bcc_runtime::program::event::Observer;
use bcc_store::contract::{LockRequest, Store};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot, watch};

use crate::live::actor::{Actor, ActorContext};
use crate::live::command::{CausedCommand, EndedTurn, SessionCommand};
use crate::live::feed::EventFeed;
use crate::live::hand_over::{HandOverError, HandedOver};
use crate::live::turn_signals::{TurnEnd, TurnSignals};
use crate::metrics::Metrics;
use crate::problem::{Problem, ProblemKind};

/// How many commands wait for one session. Whoever sends more waits.
const MAX_QUEUED: usize = 64;

/// How often due requests are looked for.
const TICK: Duration = Duration::from_secs(1);

/// The maximum number of due sessions that are continued at a time. The next ones follow.
const MAX_DUE: usize = 200;

/// How often a command is sent again if the session has just left memory.
const MAX_ATTEMPTS: usize = 8;

/// A session in memory.
#[derive(Clone)]
pub(super) struct LiveSession {
    pub(super) commands: mpsc::Sender<CausedCommand>,
    /// Closed when the task has ended and the session can be opened again.
    pub(super) ended: watch::Receiver<()>,
    /// Whether a turn runs.
    pub(super) is_busy: Arc<AtomicBool>,
    /// End the turn that runs.
    pub(super) signals: Arc<TurnSignals>,
}

/// How a session is opened that is not in memory.
#[derive(Clone, Copy, Default)]
pub(super) struct SessionOpening<'a> {
    /// The model that it goes on with; its own if not set.
    pub(super) model: Option<&'a str>,
    /// What a process that has the session is asked for; nothing if not set.
    pub(super) lock: Option<LockRequest>,
    /// Whether it does nothing before it is sent something, even if a turn of it did not end.
    pub(super) rests: bool,
}

/// A session that was just started.
pub(crate) struct LaunchedSession {
    /// What its script only appends to ([`bcc_runtime::program::program::Program::growing_lists`]).
    pub(crate) growing_lists: BTreeSet<String>,
    end: oneshot::Receiver<Result<EndedTurn, Problem>>,
}

impl LaunchedSession {
    /// Waits until it rests.
    ///
    /// # Errors
    /// Its first turn failed.
    pub(crate) async fn end(self, id: &str) -> Result<EndedTurn, Problem> {
        let end = self.end.await.unwrap_or_else(|_| Err(Problem::ended_here(id)))?;
        Ok(EndedTurn { after: 0, ..end })
    }
}

/// The place of a session, which one caller at a time may fill.
pub(super) type Slot = Arc<AsyncMutex<Option<LiveSession>>>;

/// The sessions of a server.
pub struct LiveSessions {
    engine: Engine,
    metrics: Arc<Metrics>,
    idle_time: Duration,
    slots: Mutex<HashMap<String, Slot>>,
    /// The feeds that somebody reads or writes.
    feeds: Mutex<HashMap<String, Weak<EventFeed>>>,
    /// The sessions of which somebody here wants the turn to end that another process runs.
    interrupting: Mutex<Vec<String>>,
    /// The sessions of which another process has ended a turn here, with the time, until they are opened again, or nobody can wait for them
    /// any more.
    wanted_elsewhere: Mutex<HashMap<String, Instant>>,
    /// Becomes true when the server ends.
    ending: watch::Sender<bool>,
    /// Every task of a session has a receiver; there are none when all have ended.
    running: watch::Sender<()>,
}

impl LiveSessions {
    pub(crate) fn new(engine: Engine, metrics: Arc<Metrics>, idle_time: Duration) -> Arc<Self> {
        let (ending, running) = (watch::Sender::new(false), watch::Sender::new(()));
        let (slots, feeds, interrupting, wanted_elsewhere) = Default::default();
        Arc::new(Self { engine, metrics, idle_time, slots, feeds, interrupting, wanted_elsewhere, ending, running })
    }

    /// The engine that opens them.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Their store.
    pub fn store(&self) -> &Arc<dyn Store> {
        self.engine.store()
    }

    /// How many sessions are in memory.
    pub fn count(&self) -> usize {
        self.slots().len()
    }

    /// The events of a session, which need not be in memory.
    pub fn feed(&self, id: &str) -> Arc<EventFeed> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(id).and_then(Weak::upgrade) {
            return feed;
        }
        // Feeds that nobody uses any more take little memory, and go when there are many.
        if feeds.len() >= 1024 && feeds.len().is_power_of_two() {
            feeds.retain(|_, feed| feed.strong_count() > 0);
        }
        let feed = Arc::new(EventFeed::new(id));
        feeds.insert(id.to_owned(), Arc::downgrade(&feed));
        feed
    }

    /// Ends the feed of a session that was deleted. A session that gets its id has another one.
    fn end_feed(&self, id: &str) {
        let feed = self.feeds.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        if let Some(feed) = feed.and_then(|feed| feed.upgrade()) {
            feed.deleted();
        }
    }

    /// Deletes a session, which leaves memory first: after the turn that runs. Returns whether it existed.
    ///
    /// # Errors
    /// `Held` if another process runs it.
    pub(crate) async fn delete(&self, id: &str) -> Result<bool, Problem> {
        self.remove(id, false).await
    }

    /// The same, but a turn that runs, here or in another process, ends at once.
    ///
    /// # Errors
    /// As [`LiveSessions::delete`].
    pub(crate) async fn erase(&self, id: &str) -> Result<bool, Problem> {
        self.remove(id, true).await
    }

    async fn remove(&self, id: &str, ends_turn: bool) -> Result<bool, Problem> {
        let slot = self.slot(id);
        let mut place = slot.lock().await;
        if let Some(live) = place.take() {
            if ends_turn {
                live.signals.erase.notify_one();
            }
            let (closed, result) = oneshot::channel();
            // Without a task there is nothing to close.
            if live.commands.send(SessionCommand::Close { closed }.caused()).await.is_ok() {
                let _ = result.await;
            }
            live.wait_for_end().await;
        }
        let request = if ends_turn { LockRequest::Interrupt } else { LockRequest::Release };
        let deleted = self.handed_over(id, request, async || {
                let kernel = left_kernel(self.store().as_ref(), id).await;
                let is_deleted = self.store().delete(id).await?;
                if let (true, Some(kernel)) = (is_deleted, kernel) {
                    tracing::warn!(session = %id, kernel = %kernel.kernel_id, server = %kernel.server, "a kernel of a deleted session is left on its Jupyter server");
                }
                Ok(is_deleted)
            }).await;
        // Before somebody else may use the id.
        if deleted.as_ref().is_ok_and(|deleted| deleted.result) {
            self.end_feed(id);
        }
        self.forget(id, &slot);
        deleted.map(|deleted| deleted.result).map_err(Problem::from)
    }

    /// Starts a session, and runs it until it rests.
    ///
    /// # Errors
    /// As `Engine::run`; `Conflict` if there is already a session with the id.
    pub(crate) async fn start(self: &Arc<Self>, request: RunRequest, id: &str) -> Result<EndedTurn, Problem> {
        self.launch(request, id).await?.end(id).await
    }

    /// Starts a session.
    ///
    /// # Errors
    /// As [`LiveSessions::start`].
    pub(crate) async fn launch(self: &Arc<Self>, request: RunRequest, id: &str) -> Result<LaunchedSession, Problem> {
        self.refuse_at_end()?;
        let slot = self.slot(id);
        let mut place = slot.lock().await;
        if place.is_some() || self.store().session(id).await?.is_some() {
            self.forget(id, &slot);
            return Err(exists(id));
        }
        let feed = self.feed(id);
        let named_from = Some(self.engine.project().directory.clone());
        let request = RunRequest { session: Some(id.to_owned()), named_from, ..request };
        let opened = self.engine.run(&request, Arc::clone(&feed) as Arc<dyn Observer>).await;
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.forget(id, &slot);
                return Err(self.not_created(id, error).await);
            }
        };
        let (ended, end) = oneshot::channel();
        let growing_lists = opened.session.program().growing_lists.clone();
        *place = Some(self.spawn(id, opened, feed, false, Some(SessionCommand::Rest { ended })));
        Ok(LaunchedSession { growing_lists, end })
    }

    /// Why a session was not created. Another process may have created one with the same id at this moment.
    pub(super) async fn not_created(&self, id: &str, error: EngineError) -> Problem {
        let is_certain = !matches!(error, EngineError::Failed { .. } | EngineError::Held { .. });
        match is_certain || !matches!(self.store().session(id).await, Ok(Some(_))) {
            true => error.into(),
            false => exists(id),
        }
    }

    /// Sends a command to a session, which is opened if no process runs it.
    ///
    /// # Errors
    /// `NotFound`, `Conflict` if it is over, `Held` if another process runs it.
    pub(crate) async fn send<T>(
        self: &Arc<Self>,
        id: &str,
        model: Option<&str>,
        command: impl FnMut(oneshot::Sender<Result<T, Problem>>) -> SessionCommand,
    ) -> Result<T, Problem> {
        self.send_to(id, SessionOpening { model, lock: Some(LockRequest::Release), rests: false }, command).await
    }

    /// The same, but a turn that did not end, because the server ended or the model could not be reached, does not go on before: perhaps it
    /// cannot.
    pub(crate) async fn send_first<T>(
        self: &Arc<Self>,
        id: &str,
        command: impl FnMut(oneshot::Sender<Result<T, Problem>>) -> SessionCommand,
    ) -> Result<T, Problem> {
        self.send_to(id, SessionOpening { model: None, lock: Some(LockRequest::Release), rests: true }, command).await
    }

    async fn send_to<T>(
        self: &Arc<Self>,
        id: &str,
        opening: SessionOpening<'_>,
        mut command: impl FnMut(oneshot::Sender<Result<T, Problem>>) -> SessionCommand,
    ) -> Result<T, Problem> {
        for _ in 0..MAX_ATTEMPTS {
            let live = self.open(id, opening).await?;
            let (done, result) = oneshot::channel();
            if live.commands.send(command(done).caused()).await.is_err() {
                // It leaves memory at this moment.
                continue;
            }
            match result.await {
                Ok(Err(problem)) if problem.is_outdated() => {}
                Ok(result) => return result,
                Err(_) => return Err(Problem::ended_here(id)),
            }
        }
        Err(Problem::ended_here(id))
    }

    /// The session in memory. If another process has it, that process is asked with `request`; without one, it is not waited for.
    pub(super) async fn open(self: &Arc<Self>, id: &str, opening: SessionOpening<'_>) -> Result<LiveSession, Problem> {
        let slot = self.slot(id);
        let mut place = slot.lock().await;
        self.open_at(id, opening, (&slot, &mut *place)).await
    }

    /// The same in its place.
    pub(super) async fn open_at(
        self: &Arc<Self>,
        id: &str,
        opening: SessionOpening<'_>,
        (slot, place): (&Slot, &mut Option<LiveSession>),
    ) -> Result<LiveSession, Problem> {
        if let Err(problem) = self.refuse_at_end() {
            self.forget(id, slot);
            return Err(problem);
        }
        if let Some(live) = place.as_ref() {
            if !live.commands.is_closed() {
                return Ok(live.clone());
            }
            // Until its task has ended, its lock is held.
            live.wait_for_end().await;
            *place = None;
        }
        self.let_others_come_first(id).await;
        let feed = self.feed(id);
        let resumed = ResumeRequest { model: opening.model.map(str::to_owned), ..ResumeRequest::default() };
        let resume = async || self.engine.resume_as(id, &resumed, Arc::clone(&feed) as Arc<dyn Observer>).await;
        let opened = match opening.lock {
            Some(request) => self.handed_over(id, request, resume).await,
            None => resume().await.map(HandedOver::from).map_err(HandOverError::from),
        };
        match opened {
            Ok(opened) => {
                let live = self.run_handed_over(id, slot, opened, opening.rests).await?;
                *place = Some(live.clone());
                Ok(live)
            }
            Err(error) => {
                let is_known = self.store().session(id).await?.is_some();
                self.forget(id, slot);
                if is_known { Err(error.into()) } else { Err(Problem::no_session(id)) }
            }
        }
    }

    /// Runs an opened session in a task of its own. `rests` says that it waits already. `first` is queued before the task starts, so that
    /// it is answered after the first turn, even by a session that leaves memory as soon as it rests.
    pub(super) fn spawn(
        self: &Arc<Self>,
        id: &str,
        opened: OpenedSession,
        feed: Arc<EventFeed>,
        rests: bool,
        first: Option<SessionCommand>,
    ) -> LiveSession {
        let (commands, mailbox) = mpsc::channel(MAX_QUEUED);
        if let Some(first) = first {
            // The queue is new: there is room.
            let _ = commands.try_send(first.caused());
        }
        let (end, ended) = watch::channel(());
        let context = ActorContext {
            store: Arc::clone(self.store()),
            metrics: Arc::clone(&self.metrics),
            feed: Arc::clone(&feed),
            idle_time: self.idle_time,
            ending: self.ending.subscribe(),
            is_busy: Arc::new(AtomicBool::new(!rests)),
            signals: Arc::default(),
        };
        let (is_busy, signals) = (Arc::clone(&context.is_busy), Arc::clone(&context.signals));
        let actor = Actor::new(opened.session, opened.answers, mailbox, context);
        let (sessions, id, running) = (Arc::clone(self), id.to_owned(), self.running.subscribe());
        let ended_by = Arc::clone(&signals);
        tokio::spawn(async move {
            sessions.metrics.live_sessions.inc();
            let interrupted_turn = actor.run(rests).await;
            sessions.metrics.live_sessions.dec();
            match interrupted_turn {
                Some((TurnEnd::OtherProcess, turn)) => sessions.give_up_interrupted(&id, turn).await,
                // The lock is kept until whoever ended the turn has taken the answer back.
                Some((_, turn)) => *ended_by.interrupted_turn() = Some(turn),
                None => {}
            }
            // The session is closed, and its lock released.
            drop(end);
            let slot = sessions.slots().get(&id).map(Arc::clone);
            if let Some(slot) = slot {
                sessions.forget(&id, &slot);
            }
            drop((feed, running));
        });
        LiveSession { commands, ended, is_busy, signals }
    }

    pub(super) fn slots(&self) -> MutexGuard<'_, HashMap<String, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wanted_elsewhere(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.wanted_elsewhere.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn interrupting(&self) -> MutexGuard<'_, Vec<String>> {
        self.interrupting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn slot(&self, id: &str) -> Slot {
        Arc::clone(self.slots().entry(id.to_owned()).or_default())
    }

    /// Removes the place of a session that is not in memory, unless somebody is about to fill it.
    pub(super) fn forget(&self, id: &str, own: &Slot) {
        let mut slots = self.slots();
        // The map and the caller have it; whoever else gets it does so while the map is locked.
        let is_unused = slots.get(id).is_some_and(|slot| Arc::ptr_eq(slot, own)) && Arc::strong_count(own) <= 2;
        let is_empty = || match own.try_lock() {
            Ok(place) => place.as_ref().is_none_or(|live| live.commands.is_closed()),
            // The caller holds it.
            Err(_) => true,
        };
        if is_unused && is_empty() {
            slots.remove(id);
        }
    }

    pub(super) fn refuse_at_end(&self) -> Result<(), Problem> {
        match *self.ending.borrow() {
            true => Err(Problem::new(ProblemKind::Unavailable, msg!("the server ends; try again")).retry_after(1)),
            false => Ok(()),
        }
    }

    /// Whether the server ends.
    pub fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }

    /// Becomes true when the server ends.
    pub fn ending(&self) -> watch::Receiver<bool> {
        self.ending.subscribe()
    }

    /// Ends all sessions in memory after their current turns. Returns whether all have ended in this time; the others are resumed by
    /// the next process.
    pub async fn end(&self, time: Duration) -> bool {
        self.ending.send_replace(true);
        tokio::time::timeout(time, self.running.closed()).await.is_ok()
    }

    /// Continues the sessions whose time has come, until the server ends.
    pub async fn tick(self: Arc<Self>) {
        let mut ending = self.ending.subscribe();
        loop {
            tokio::select! {
                _ = ending.wait_for(|is_ending| *is_ending) => return,
                () = tokio::time::sleep(TICK) => {}
            }
            match self.store().claim_due(&stamp(now()), MAX_DUE).await {
                Ok(due) => {
                    for id in due {
                        // One that another process runs is left to it.
                        if let Err(problem) = self.open(&id, SessionOpening::default()).await
                            && problem.kind() != ProblemKind::Held
                        {
                            tracing::warn!(session = %id, error = %problem.detail(), "a due session was not continued");
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, "due sessions cannot be found"),
            }
        }
    }
}

pub(super) fn exists(id: &str) -> Problem {
    Problem::new(ProblemKind::Conflict, msg!("there is already a session `{id}`"))
}
