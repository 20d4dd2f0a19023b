//! Sessions that a turn or another process on the same store keeps busy: waiting for them, refusing to, and ending their turns.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bcc_engine::engine::{OpenedSession, ResumeRequest};
use bcc_engine::error::EngineError;
use bcc_runtime::program::event::Observer;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::take_back::TakenBack;
use bcc_store::contract::{LockReply, LockRequest};
use bcc_store::error::StoreError;

use crate::live::command::SessionCommand;
use crate::live::interrupted_turn::take_back;
use crate::live::sessions::{LiveSession, LiveSessions, SessionOpening, Slot};
use crate::problem::{Problem, ProblemKind};

/// How long a session is waited for that another process on the same store runs: it releases the session after its turn.
pub(super) const HAND_OVER: Duration = Duration::from_secs(60);

/// How often a process is asked to release a session.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The pauses between two attempts to open a session that another process has.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const MAX_PAUSE: Duration = Duration::from_millis(100);

/// A message that takes the place of the one that a turn is about.
pub(crate) struct ReplacingMessage {
    pub(crate) command: SessionCommand,
    /// The number of answers before the one that it replaces.
    pub(crate) answers: u64,
}

/// Why a session was not handed over.
pub(super) enum HandOverError {
    Engine(EngineError),
    /// Another process runs a turn, and the session is wanted only without one.
    Busy,
}

impl From<HandOverError> for Problem {
    fn from(error: HandOverError) -> Self {
        match error {
            HandOverError::Engine(error) => error.into(),
            HandOverError::Busy => Problem::busy(),
        }
    }
}

impl From<EngineError> for HandOverError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<StoreError> for HandOverError {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}

/// What was done with a session that another process may have had.
pub(super) struct HandedOver<T> {
    pub(super) result: T,
    /// Whether another process had it.
    was_held: bool,
}

impl<T> From<T> for HandedOver<T> {
    /// Of a session that no other process had.
    fn from(result: T) -> Self {
        Self { result, was_held: false }
    }
}

/// That the turn of a session is to end which another process runs, and for whose session somebody here waits.
struct PendingInterrupt<'s> {
    sessions: &'s LiveSessions,
    id: &'s str,
}

impl<'s> PendingInterrupt<'s> {
    fn of(sessions: &'s LiveSessions, id: &'s str) -> Self {
        sessions.interrupting().push(id.to_owned());
        Self { sessions, id }
    }
}

impl PendingInterrupt<'_> {
    /// Whether the turn was ended by whoever got the session.
    fn is_done(&self) -> bool {
        !self.sessions.interrupting().iter().any(|id| id == self.id)
    }
}

impl Drop for PendingInterrupt<'_> {
    fn drop(&mut self) {
        let mut interrupting = self.sessions.interrupting();
        if let Some(at) = interrupting.iter().position(|id| id == self.id) {
            interrupting.swap_remove(at);
        }
    }
}

impl HandedOver<OpenedSession> {
    /// Whether another process ran a turn of the session that has not ended.
    fn is_in_turn(&self) -> bool {
        self.was_held && self.result.session.status() == SessionStatus::Running
    }
}

impl LiveSession {
    /// Whether a turn runs.
    fn runs_turn(&self) -> bool {
        !self.commands.is_closed() && self.is_busy.load(Ordering::Acquire)
    }

    /// Waits until its task has ended. A closed channel is what is waited for.
    pub(super) async fn wait_for_end(&self) {
        let mut ended = self.ended.clone();
        while ended.changed().await.is_ok() {}
    }
}

impl LiveSessions {
    /// The result of `attempt`, which is made again as long as another process has the session and can be asked for it.
    pub(super) async fn handed_over<T, F: Future<Output = Result<T, EngineError>>>(
        &self,
        id: &str,
        request: LockRequest,
        attempt: impl Fn() -> F,
    ) -> Result<HandedOver<T>, HandOverError> {
        let (end, mut pause, mut asked) = (Instant::now() + HAND_OVER, FIRST_PAUSE, None::<Instant>);
        loop {
            match attempt().await {
                Ok(result) => return Ok(HandedOver { result, was_held: asked.is_some() }),
                Err(error @ EngineError::Held { .. }) if Instant::now() > end => return Err(error.into()),
                Err(error @ EngineError::Held { .. }) => {
                    if asked.is_none_or(|asked| asked.elapsed() > ASK_AGAIN) {
                        match self.store().ask_for(id, request).await? {
                            LockReply::Impossible => return Err(error.into()),
                            LockReply::Busy => return Err(HandOverError::Busy),
                            LockReply::Asked => asked = Some(Instant::now()),
                        }
                    }
                }
                Err(error) => return Err(error.into()),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Whether a turn of the session runs in this process.
    pub(crate) async fn is_busy(&self, id: &str) -> bool {
        let slot = self.slots().get(id).map(Arc::clone);
        let Some(slot) = slot else { return false };
        let place = slot.lock().await;
        place.as_ref().is_some_and(LiveSession::runs_turn)
    }

    /// The same, for those who ask again: a session that somebody opens at this moment runs none.
    pub(crate) fn runs_turn(&self, id: &str) -> bool {
        let slot = self.slots().get(id).map(Arc::clone);
        slot.is_some_and(|slot| slot.try_lock().is_ok_and(|place| place.as_ref().is_some_and(LiveSession::runs_turn)))
    }

    /// Whether a turn may run or begin in this process: also while somebody opens the session.
    pub(crate) fn may_run_turn(&self, id: &str) -> bool {
        let slot = self.slots().get(id).map(Arc::clone);
        slot.is_some_and(|slot| {
            slot.try_lock().map_or(true, |place| place.as_ref().is_some_and(LiveSession::runs_turn))
        })
    }

    /// Whether another process runs a turn of a session that is not in memory here. If that process has it at rest, it gives it up.
    pub(crate) async fn runs_turn_elsewhere(&self, id: &str) -> Result<bool, Problem> {
        let slot = self.slots().get(id).map(Arc::clone);
        let is_here = slot.is_some_and(|slot| slot.try_lock().map_or(true, |place| place.is_some()));
        Ok(!is_here && self.store().ask_for(id, LockRequest::ReleaseIfIdle).await? == LockReply::Busy)
    }

    /// Brings a session into this process if no turn of it runs, here or in another process.
    ///
    /// # Errors
    /// `Busy`. That a session cannot be opened is no error here: whoever uses it next learns why.
    pub(crate) async fn claim_idle(self: &Arc<Self>, id: &str) -> Result<(), Problem> {
        let (slot, end) = (self.slot(id), Instant::now() + HAND_OVER);
        while Instant::now() < end {
            if let Ok(mut place) = slot.try_lock() {
                if place.as_ref().is_some_and(LiveSession::runs_turn) {
                    return Err(Problem::busy());
                }
                let opening = SessionOpening { lock: Some(LockRequest::ReleaseIfIdle), ..SessionOpening::default() };
                let opened = self.open_at(id, opening, (&slot, &mut *place)).await;
                return match opened {
                    Err(problem) if problem.kind() == ProblemKind::Busy => Err(problem),
                    Ok(_) | Err(_) => Ok(()),
                };
            }
            // Somebody else here waits for it, perhaps until the end of a turn in another process.
            match self.store().ask_for(id, LockRequest::ReleaseIfIdle).await? {
                LockReply::Busy => return Err(Problem::busy()),
                LockReply::Impossible => return Ok(()),
                LockReply::Asked => tokio::time::sleep(FIRST_PAUSE).await,
            }
        }
        Ok(())
    }

    /// Ends the turn of a session that runs, here or in another process, and takes the answer back that it was about, which the other
    /// process does before it gives the session up ([`LiveSessions::give_up_interrupted`]). Without a turn, nothing happens. Returns whether
    /// the session was opened again, and sent `first`: before what others have sent, who wait.
    ///
    /// Only for a session whose last answer can be taken back ([`answered_question`]); otherwise the turn would run again.
    ///
    /// # Errors
    /// Those of [`Session::take_back`](bcc_runtime::run::session::Session::take_back), and of opening the session.
    ///
    /// [`answered_question`]: bcc_runtime::run::take_back::answered_question
    pub(crate) async fn interrupt(self: &Arc<Self>, id: &str, first: ReplacingMessage) -> Result<bool, Problem> {
        let slot = self.slot(id);
        let (mut place, was_asked) = match slot.try_lock() {
            Ok(place) => (place, false),
            Err(_) => {
                // Whoever waits here for the turn of another process gets the session earlier, and takes the answer back.
                let pending = PendingInterrupt::of(self, id);
                self.store().ask_for(id, LockRequest::Interrupt).await?;
                let place = slot.lock().await;
                if pending.is_done() {
                    return Ok(false);
                }
                (place, true)
            }
        };
        let Some(live) = place.as_ref().filter(|live| live.runs_turn()) else {
            if place.as_ref().is_some_and(|live| !live.commands.is_closed()) {
                return Ok(false);
            }
            if let Some(left) = place.take() {
                left.wait_for_end().await;
            }
            let live = self.interrupt_elsewhere(id, &slot, was_asked, first).await?;
            let is_sent = live.is_some();
            if is_sent {
                *place = live;
            }
            return Ok(is_sent);
        };
        live.signals.interrupt.notify_one();
        let mut ended = live.ended.clone();
        // A turn that ends at this moment is not interrupted: then its session goes on, and the notice is for nobody.
        while live.is_busy.load(Ordering::Acquire) && ended.has_changed().is_ok() {
            tokio::select! {
                _ = ended.changed() => {}
                () = tokio::time::sleep(FIRST_PAUSE) => {}
            }
        }
        if !live.signals.is_interrupted.load(Ordering::Acquire) {
            return Ok(false);
        }
        live.wait_for_end().await;
        let interrupted_turn = live.signals.interrupted_turn().take();
        *place = None;
        let live = match interrupted_turn {
            Some(turn) => {
                let (opened, taken) = self.take_back_interrupted(id, turn).await.map_err(|error| {
                    self.forget(id, &slot);
                    Problem::from(error)
                })?;
                Some(self.run_taken_back(id, opened, taken, false, Some(first)))
            }
            // Another process has ended it at the same time.
            None => self.interrupt_elsewhere(id, &slot, false, first).await?,
        };
        let is_sent = live.is_some();
        *place = live;
        Ok(is_sent)
    }

    /// Opens a session that is not in memory; if another process runs a turn of it, that turn ends, and its answer is taken back. None if
    /// it cannot be opened for a reason that whoever uses it next learns. `was_asked` says that whoever had it was asked to end the turn.
    async fn interrupt_elsewhere(
        self: &Arc<Self>,
        id: &str,
        slot: &Slot,
        was_asked: bool,
        first: ReplacingMessage,
    ) -> Result<Option<LiveSession>, Problem> {
        self.refuse_at_end()?;
        let (feed, request) = (self.feed(id), ResumeRequest::default());
        let resume = async || self.engine().resume_as(id, &request, Arc::clone(&feed) as Arc<dyn Observer>).await;
        match self.handed_over(id, LockRequest::Interrupt, resume).await {
            Ok(mut opened) => {
                opened.was_held |= was_asked;
                // A turn that had ended is not taken back.
                let is_interrupted = opened.is_in_turn();
                self.taken_back(id, slot, opened.result, is_interrupted, false, Some(first)).await.map(Some)
            }
            Err(error) => {
                self.forget(id, slot);
                match Problem::from(error) {
                    problem if problem.kind() == ProblemKind::Held => Err(problem),
                    _ => Ok(None),
                }
            }
        }
    }

    /// Lets another process come first which has ended a turn of the session here, because it wants the session.
    pub(super) async fn let_others_come_first(&self, id: &str) {
        let wanted_at = self.wanted_elsewhere().remove(id);
        if wanted_at.is_some_and(|at| at.elapsed() < HAND_OVER) {
            tokio::time::sleep(2 * MAX_PAUSE).await;
        }
    }

    /// Runs a session that was handed over. If somebody here wants its turn to end, its last answer is taken back. `rests` is that of
    /// [`SessionOpening`].
    ///
    /// # Errors
    /// As [`LiveSessions::interrupt`].
    pub(super) async fn run_handed_over(
        self: &Arc<Self>,
        id: &str,
        slot: &Slot,
        opened: HandedOver<OpenedSession>,
        rests: bool,
    ) -> Result<LiveSession, Problem> {
        // Whoever wants the turn to end does not mean the next one.
        let is_wanted = opened.was_held && {
            let mut interrupting = self.interrupting();
            let pending = interrupting.len();
            interrupting.retain(|other| other != id);
            interrupting.len() < pending
        };
        let is_interrupted = is_wanted && opened.is_in_turn();
        self.taken_back(id, slot, opened.result, is_interrupted, rests, None).await
    }

    /// Runs a session that was opened, if its turn `is_interrupted` after its last answer was taken back. If it `rests`, it does nothing
    /// before it is sent something. `first` is what it is sent first.
    async fn taken_back(
        self: &Arc<Self>,
        id: &str,
        slot: &Slot,
        mut opened: OpenedSession,
        is_interrupted: bool,
        rests: bool,
        first: Option<ReplacingMessage>,
    ) -> Result<LiveSession, Problem> {
        let taken = match is_interrupted {
            true => take_back(&mut opened).await.map_err(|error| {
                self.forget(id, slot);
                Problem::from(error)
            })?,
            false => TakenBack::NoAnswer,
        };
        Ok(self.run_taken_back(id, opened, taken, rests, first))
    }

    /// Runs a session whose last answer may have been taken back.
    fn run_taken_back(
        self: &Arc<Self>,
        id: &str,
        opened: OpenedSession,
        taken: TakenBack,
        rests: bool,
        first: Option<ReplacingMessage>,
    ) -> LiveSession {
        let first = first.map(|ReplacingMessage { mut command, answers }| {
            // It knows the question by its id, and the question has a new one now. Perhaps the process that ran the turn did that.
            let is_asked_again = opened.session.awaits_answer() && opened.session.answers() == answers;
            if let SessionCommand::Answer(answer) = &mut command
                && (taken == TakenBack::Yes || is_asked_again)
            {
                answer.answer_id = None;
            }
            command
        });
        // Without an answer to take back, the turn goes on.
        self.spawn(id, opened, self.feed(id), rests || taken == TakenBack::Yes, first)
    }
}
