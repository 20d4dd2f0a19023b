//! `/back`: takes the last answer back. The front end shows the event, and the question again.

use crate::cli::language::translated;
use bcc_engine::error::EngineError;
use bcc_runtime::run::session::Session;
use bcc_runtime::run::take_back::TakenBack;

/// Why nothing was taken back, if so.
pub async fn back(session: &mut Session) -> Result<Option<String>, EngineError> {
    let why = match session.take_back().await? {
        TakenBack::Yes => return Ok(None),
        TakenBack::NoAnswer => "there is no answer to take back",
        TakenBack::NotKept => {
            "this answer cannot be taken back: it was given in an earlier version, which did not keep what is needed for this"
        }
        TakenBack::Decided => "this answer cannot be taken back: somebody has decided about an approval since then",
        TakenBack::Final => "the session is over; no answer can be taken back",
    };
    Ok(Some(translated(why).into_owned()))
}
