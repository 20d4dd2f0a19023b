//! Sessions that are made from other ones.

use bcc_engine::again::restart::AgainRequest;
use bcc_engine::fork::ForkRequest;
use bcc_engine::session_ids::valid_session_id;

use crate::live::sessions::{LiveSessions, exists};
use crate::problem::Problem;

impl LiveSessions {
    /// Makes a session from another one ([`Engine::fork`]).
    ///
    /// # Errors
    /// As [`Engine::fork`]; `Conflict` if there is already a session with the new id.
    pub(crate) async fn fork(&self, request: ForkRequest<'_>) -> Result<(), Problem> {
        self.refuse_at_end()?;
        let new = request.new;
        if self.store().session(new).await?.is_some() {
            return Err(exists(new));
        }
        match self.engine().fork(request).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.not_created(new, error).await),
        }
    }

    /// The same with another script ([`Engine::prepare_again`]).
    ///
    /// # Errors
    /// As [`Engine::prepare_again`]; `Conflict` if there is already a session with the new id.
    pub(crate) async fn fork_with_script(&self, request: &AgainRequest, new: &str) -> Result<(), Problem> {
        self.refuse_at_end()?;
        valid_session_id(new)?;
        if self.store().session(new).await?.is_some() {
            return Err(exists(new));
        }
        let prepared = self.engine().prepare_again(request).await?;
        match self.engine().create_again(&prepared).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.not_created(new, error).await),
        }
    }
}
