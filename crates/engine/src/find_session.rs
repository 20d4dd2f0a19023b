//! Finds stored sessions: by id or its beginning, and the newest one that can be resumed.

use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;

use crate::engine::holder;
use crate::error::EngineError;
use bcc_runtime::run::head::SessionStatus;
use bcc_store::contract::Store;
use bcc_store::error::StoreError;
use bcc_store::rows::{SessionFilter, SessionRow};
use bcc_store::session_pages::SessionPages;

/// The maximum number of ids in the error for an ambiguous prefix.
const MAX_LISTED: usize = 10;

/// The id of the session that `given` identifies: the same id, or the only one that starts with it.
///
/// # Errors
/// `Usage` if there is no such session, or more than one.
pub async fn find_session(store: &dyn Store, given: &str) -> Result<String, EngineError> {
    if store.session(given).await?.is_some() {
        return Ok(given.to_owned());
    }
    let mut ids = Vec::new();
    if !given.is_empty() {
        let filter = SessionFilter { id: Some(given.to_owned()), ..SessionFilter::default() };
        let mut sessions = SessionPages::new(store, filter);
        while let Some(row) = sessions.next().await? {
            ids.push(row.id);
        }
    }
    let found: Vec<&str> = ids.iter().map(String::as_str).collect();
    match found.as_slice() {
        [] => Err(EngineError::usage(msg!("there is no session `{id}` in this store", id = given))
            .with_help("run `bcc-script sessions list` to list the sessions")),
        [id] => Ok((*id).to_owned()),
        found => {
            let ids = found.iter().take(MAX_LISTED).map(|id| Message::text(format!("`{id}`")));
            let ids = Message::list(Joint::Comma, ids);
            let count = found.len();
            let message = match found.len() > MAX_LISTED {
                true => msg!("`{given}` is the beginning of {count} session ids, among them {ids}"),
                false => msg!("`{given}` is the beginning of {count} session ids: {ids}"),
            };
            Err(EngineError::usage(message).with_help("write more of the id"))
        }
    }
}

/// The id of the session that was used last and has not ended.
///
/// # Errors
/// `Usage` if there is none.
pub async fn newest_unfinished(store: &dyn Store) -> Result<String, EngineError> {
    let mut sessions = SessionPages::new(store, SessionFilter::default());
    while let Some(row) = sessions.next().await? {
        if is_unfinished(&row) {
            return Ok(row.id);
        }
    }
    Err(EngineError::usage("there is no unfinished session in this store")
        .with_help("run `bcc-script sessions list` to list the sessions"))
}

/// The session of this script and user that was used last, has not ended, and is run by no process.
pub async fn left_unfinished(store: &dyn Store, script: &str, user: &str) -> Result<Option<SessionRow>, EngineError> {
    let filter =
        SessionFilter { script: Some(script.to_owned()), user: Some(user.to_owned()), ..SessionFilter::default() };
    let mut sessions = SessionPages::new(store, filter);
    while let Some(row) = sessions.next().await? {
        if !is_unfinished(&row) {
            continue;
        }
        match store.lock(&row.id, &holder()).await {
            Ok(_) => return Ok(Some(row)),
            Err(StoreError::Held { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Whether a session can be resumed. A status of a later release counts as one that can.
fn is_unfinished(row: &SessionRow) -> bool {
    !SessionStatus::parse(&row.status).is_some_and(SessionStatus::is_final)
}
