//! Turns that another process has ended because somebody there replaces the message that they were about.

use std::sync::Arc;
use std::time::Instant;

use bcc_engine::engine::ResumeRequest;
use bcc_engine::error::EngineError;
use bcc_lang::message::argument::ToMessage;
use bcc_runtime::program::event::Observer;
use bcc_runtime::run::take_back::TakenBack;
use bcc_store::contract::SessionLock;

use crate::live::hand_over::HAND_OVER;
use crate::live::sessions::LiveSessions;
use crate::live::waiter::Waiter;
use crate::problem::Problem;

/// A turn that another process has ended. What it had not committed is gone.
pub(crate) struct BrokenOffTurn {
    /// That of the session: nobody else opens the session as long as this exists.
    pub(super) lock: Arc<dyn SessionLock>,
    /// Who waits for the end of the turn.
    pub(super) waiters: Vec<Waiter>,
}

impl LiveSessions {
    /// Takes the answer back that the turn was about, before any process can have the session: whoever opens it next, also here, might run
    /// the turn again otherwise, although those who waited for it were told that it does not count.
    pub(super) async fn take_back_broken_off(&self, id: &str, turn: BrokenOffTurn) {
        let BrokenOffTurn { lock, waiters } = turn;
        let taken = async {
            let (request, observer) = (ResumeRequest::default(), self.feed(id) as Arc<dyn Observer>);
            let mut opened = self.engine().resume_with(id, &request, observer, Some(lock)).await?;
            Ok::<_, EngineError>(opened.session.take_back().await?)
        };
        let problem = match taken.await {
            Ok(TakenBack::Yes) => Problem::interrupted(),
            // The answer stays, and whoever opens the session runs the turn again.
            Ok(_) => Problem::ended_here(id),
            Err(error) => {
                tracing::warn!(session = %id, error = %error.to_message(), "the answer of an interrupted turn was not taken back");
                Problem::ended_here(id)
            }
        };
        waiters.into_iter().for_each(|waiter| waiter.fail(problem.clone()));
        let mut wanted = self.wanted_elsewhere();
        // Whoever waits for a session here has given up since then.
        wanted.retain(|_, at| at.elapsed() < HAND_OVER);
        wanted.insert(id.to_owned(), Instant::now());
    }
}
