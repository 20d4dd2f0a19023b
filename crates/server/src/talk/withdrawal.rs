//! How a consent is withdrawn: the conversation is erased.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use bcc_engine::clock::{now, stamp};
use bcc_store::link_rows::LinkTalkRow;
use serde_json::json;

use crate::state::ServerState;
use crate::talk::error::TalkErrorKind;
use crate::talk::terms::LinkTerms;
use crate::talk::visit::TalkVisit;

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
    erase(&state, &visit.terms, &talk).await?;
    Ok(Json(json!({ "erased": true })).into_response())
}

/// Deletes the session of a conversation, and what is kept of a user who has no other one.
pub(crate) async fn erase(state: &ServerState, terms: &LinkTerms, talk: &LinkTalkRow) -> Result<(), TalkErrorKind> {
    let store = state.sessions.store();
    if store.session(&talk.session).await?.is_some() {
        state.sessions.delete(&talk.session).await?;
    }
    let is_own_user = terms.user.is_none() && state.settings.talk_request.is_none();
    if is_own_user {
        let user = talk.session.as_str();
        for plan in store.plans(user).await? {
            store.delete_plan(plan.id, &format!("withdrawn {} {}", talk.session, plan.id), "{}").await?;
        }
        // Also when somebody comes back later: only what is there is a reason to write.
        if !store.user_variables(user).await?.is_empty() {
            store.forget_user(user).await?;
        }
    }
    Ok(())
}

/// Erases what a server that ended has left of conversations whose consent was withdrawn.
pub(crate) async fn finish_withdrawals(state: ServerState) {
    let erased = async {
        for link in state.sessions.store().links().await? {
            let terms = LinkTerms::of(&link)?;
            for talk in state.sessions.store().talks(&link.id).await? {
                if talk.withdrawn_at.is_some() {
                    erase(&state, &terms, &talk).await?;
                }
            }
        }
        Ok::<_, TalkErrorKind>(())
    };
    if let Err(error) = erased.await {
        tracing::warn!(?error, "conversations whose consent was withdrawn are not erased yet");
    }
}
