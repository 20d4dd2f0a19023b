//! Turns that were ended because somebody replaces the message that they were about.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

use bcc_engine::engine::{OpenedSession, ResumeRequest};
use bcc_engine::error::EngineError;
use bcc_lang::message::argument::ToMessage;
use bcc_runtime::program::event::Observer;
use bcc_runtime::run::take_back::TakenBack;
use bcc_store::contract::SessionLock;

use crate::live::hand_over::HAND_OVER;
use crate::live::sessions::LiveSessions;
use crate::live::turn_signals::TurnSignals;
use crate::live::waiter::Waiter;
use crate::problem::Problem;

/// A turn that was ended for a message here or in another process. What it had not committed is gone.
pub(crate) struct InterruptedTurn {
    /// That of the session: nobody else opens the session as long as this exists.
    pub(super) lock: Arc<dyn SessionLock>,
    /// Who waits for the end of the turn.
    pub(super) waiters: Vec<Waiter>,
}

impl TurnSignals {
    pub(super) fn interrupted_turn(&self) -> MutexGuard<'_, Option<InterruptedTurn>> {
        self.interrupted_turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveSessions {
    /// Takes the answer back that the turn was about, before any process can have the session: whoever opened it next, also here, might run
    /// the turn again otherwise, although those who waited for it were told that it does not count.
    ///
    /// # Errors
    /// Those of [`Session::take_back`](bcc_runtime::run::session::Session::take_back), and of opening the session.
    pub(super) async fn take_back_interrupted(
        &self,
        id: &str,
        turn: InterruptedTurn,
    ) -> Result<(OpenedSession, TakenBack), EngineError> {
        let InterruptedTurn { lock, waiters } = turn;
        let taken = async {
            let (request, observer) = (ResumeRequest::default(), self.feed(id) as Arc<dyn Observer>);
            let mut opened = self.engine().resume_with(id, &request, observer, Some(lock)).await?;
            let taken = take_back(&mut opened).await?;
            Ok((opened, taken))
        };
        let taken = taken.await;
        let problem = match &taken {
            Ok((_, TakenBack::Yes)) => Problem::interrupted(),
            // The answer stays, and the turn is run again.
            Ok(_) | Err(_) => Problem::ended_here(id),
        };
        waiters.into_iter().for_each(|waiter| waiter.fail(problem.clone()));
        taken
    }

    /// The same for another process, which gets the session then.
    pub(super) async fn give_up_interrupted(&self, id: &str, turn: InterruptedTurn) {
        if let Err(error) = self.take_back_interrupted(id, turn).await {
            let error = error.to_message();
            tracing::warn!(session = %id, %error, "the answer of an interrupted turn was not taken back");
        }
        let mut wanted = self.wanted_elsewhere();
        // Whoever waits for a session here has given up since then.
        wanted.retain(|_, at| at.elapsed() < HAND_OVER);
        wanted.insert(id.to_owned(), Instant::now());
    }
}

/// Takes the last answer of an opened session back.
pub(super) async fn take_back(opened: &mut OpenedSession) -> Result<TakenBack, EngineError> {
    let taken = opened.session.take_back().await?;
    if taken == TakenBack::Yes {
        // Whoever interrupts gives the next answer.
        opened.answers.clear();
    }
    Ok(taken)
}
