//! How a consent is withdrawn: the conversation is erased.

use std::collections::HashMap;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use bcc_engine::clock::{now, stamp};
use bcc_engine::settings::copied_session;
use bcc_store::link_rows::LinkTalkRow;
use bcc_store::rows::SessionFilter;
use bcc_store::session_pages::SessionPages;
use serde_json::json;

use crate::state::ServerState;
use crate::talk::error::TalkErrorKind;
use crate::talk::terms::LinkTerms;
use crate::talk::visit::TalkVisit;

/// How long to wait until something is erased again that could not be erased.
const TRY_AGAIN: Duration = Duration::from_secs(60);

/// `POST /t/TOKEN/SECRET/withdraw`: withdraws the consent, and answers when the conversation is erased.
pub(crate) async fn withdraw(
    State(state): State<ServerState>,
    Path((token, secret)): Path<(String, String)>,
) -> Result<Response, TalkErrorKind> {
    let visit = match TalkVisit::of(&state, &token, &secret).await {
        // Sent again because the response was lost.
        Err(TalkErrorKind::Withdrawn) => return Ok(Json(json!({ "erased": true })).into_response()),
        visit => visit?,
    };
    if visit.talk.consent.is_none() {
        return Err(TalkErrorKind::NotPossible);
    }
    // Kept first: from now on nobody continues or shows it, whatever happens to this server.
    let talk = LinkTalkRow { withdrawn_at: Some(stamp(now())), ..visit.talk };
    state.sessions.store().update_talk(&talk).await?;
    if state.sessions.store().session(&talk.session).await?.is_none() {
        // Somebody has deleted it, but perhaps not its copies.
        erase_copies(&state, &talk.session).await?;
    }
    erase(&state, &visit.terms, &talk).await?;
    Ok(Json(json!({ "erased": true })).into_response())
}

/// Deletes the session of a conversation and all copies of it, and what is kept of a user who has no other one.
///
/// # Errors
/// The store cannot be used, or another process has one of the sessions. What is left is erased when this is done again.
pub(crate) async fn erase(state: &ServerState, terms: &LinkTerms, talk: &LinkTalkRow) -> Result<(), TalkErrorKind> {
    let id = talk.session.as_str();
    // Before the session itself, so that those that are left are found as long as it is there.
    if state.sessions.store().session(id).await?.is_some() {
        erase_copies(state, id).await?;
    }
    // Also a session that is about to start.
    erase_session(state, id).await?;
    let is_own_user = terms.user.is_none() && state.settings.talk_request.is_none();
    if is_own_user { erase_user(state, id).await } else { Ok(()) }
}

/// Deletes the sessions that have a copy of this one: forks, and those in which it began again.
async fn erase_copies(state: &ServerState, id: &str) -> Result<(), TalkErrorKind> {
    let store = state.sessions.store();
    let mut copies: HashMap<String, Vec<(String, String)>> = HashMap::new();
    let mut pages = SessionPages::new(store.as_ref(), SessionFilter::default());
    while let Some(row) = pages.next().await? {
        if let Some(of) = copied_session(&row.settings) {
            copies.entry(of).or_default().push((row.id, row.user));
        }
    }
    let (mut found, mut origins) = (Vec::new(), vec![id.to_owned()]);
    while let Some(origin) = origins.pop() {
        for (copy, user) in copies.remove(&origin).unwrap_or_default() {
            origins.push(copy.clone());
            found.push((copy, user));
        }
    }
    // The last ones first: a copy of a copy is found by it.
    for (copy, user) in found.into_iter().rev() {
        erase_session(state, &copy).await?;
        if user == copy {
            erase_user(state, &copy).await?;
        }
    }
    Ok(())
}

async fn erase_session(state: &ServerState, id: &str) -> Result<(), TalkErrorKind> {
    // A turn that runs may go on for long, and do something.
    state.sessions.erase(id).await?;
    Ok(())
}

/// Deletes the plans and the variables of a user.
async fn erase_user(state: &ServerState, user: &str) -> Result<(), TalkErrorKind> {
    let store = state.sessions.store();
    for plan in store.plans(user).await? {
        store.delete_plan(plan.id, &format!("withdrawn {user} {}", plan.id), "{}").await?;
    }
    // Also when somebody comes back later: only what is there is a reason to write.
    if !store.user_variables(user).await?.is_empty() {
        store.forget_user(user).await?;
    }
    Ok(())
}

/// Erases what a server that ended has left of conversations whose consent was withdrawn, until nothing is left or this server ends.
pub(crate) async fn finish_withdrawals(state: ServerState) {
    let mut ending = state.sessions.ending();
    while !finish_once(&state).await {
        tokio::select! {
            _ = ending.wait_for(|ends| *ends) => return,
            () = tokio::time::sleep(TRY_AGAIN) => {}
        }
    }
}

/// Returns whether nothing is left.
async fn finish_once(state: &ServerState) -> bool {
    let store = state.sessions.store();
    let failed = |link: &str, error: &TalkErrorKind| {
        tracing::warn!(link, ?error, "conversations whose consent was withdrawn are not erased yet");
    };
    let links = match store.links().await {
        Ok(links) => links,
        Err(error) => {
            failed("", &error.into());
            return false;
        }
    };
    let mut is_done = true;
    for link in links {
        let erased = async {
            let terms = LinkTerms::of(&link)?;
            let mut first = Ok(());
            for talk in store.talks(&link.id).await?.iter().filter(|talk| talk.withdrawn_at.is_some()) {
                // One that cannot be erased keeps none of the others.
                first = first.and(erase(state, &terms, talk).await);
            }
            first
        };
        if let Err(error) = erased.await {
            failed(&link.id, &error);
            is_done = false;
        }
    }
    is_done
}
