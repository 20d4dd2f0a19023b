//! How a conversation begins: once for each secret, and only after the consent.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use bcc_engine::clock::{now, stamp};
use bcc_engine::engine::RunRequest;
use bcc_engine::session_ids::secret_id;
use bcc_store::link_rows::{LinkTalkRow, TalkOutcome};
use serde::Deserialize;
use serde_json::json;

use crate::problem::ProblemKind;
use crate::state::ServerState;
use crate::talk::error::TalkErrorKind;
use crate::talk::terms::LinkTerms;
use crate::talk::visit::{TalkVisit, Visit, body_of, secret_hash};
use crate::talk::withdrawal::erase;

/// `GET /t/TOKEN/link`: what a visitor sees before a conversation begins.
pub(crate) async fn link_view(
    State(state): State<ServerState>,
    Path(token): Path<String>,
) -> Result<Response, TalkErrorKind> {
    let visit = Visit::of(&state, &token).await?;
    if let Some(closed) = visit.closed() {
        return Err(closed);
    }
    let consent = visit.terms.consent.as_ref();
    let consent = consent
        .map(|consent| json!({ "text": consent.text, "language": consent.language, "sha256": consent.sha256() }));
    Ok(Json(json!({ "title": visit.terms.title, "consent": consent })).into_response())
}

/// The consent of a person: the hash of the text that was shown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BeginBody {
    #[serde(default)]
    consent: Option<String>,
}

/// `POST /t/TOKEN/SECRET/begin`: begins the conversation of this secret. Sent again, it has no effect.
pub(crate) async fn start_talk(
    State(state): State<ServerState>,
    Path((token, secret)): Path<(String, String)>,
    request: Request,
) -> Result<Response, TalkErrorKind> {
    let body: BeginBody = body_of(&state, &token, request).await?;
    let visit = Visit::of(&state, &token).await?;
    if visit.talk(&state, &secret).await?.is_none() {
        if let Some(closed) = visit.closed() {
            return Err(closed);
        }
        let consent = match &visit.terms.consent {
            Some(consent) if body.consent.as_deref() != Some(consent.sha256().as_str()) => {
                return Err(TalkErrorKind::ConsentNeeded);
            }
            Some(consent) => {
                let kept = json!({ "sha256": consent.sha256(), "language": consent.language, "at": stamp(now()) });
                Some(kept.to_string())
            }
            None => None,
        };
        let talk = LinkTalkRow {
            link: visit.link.id.clone(),
            secret_sha256: secret_hash(&secret)?,
            session: secret_id(script_name(&visit.terms)),
            began_at: stamp(now()),
            consent,
            ..LinkTalkRow::default()
        };
        match state.sessions.store().start_talk(&talk, visit.terms.kind.limit()).await? {
            TalkOutcome::Begun | TalkOutcome::Repeated(_) => {}
            TalkOutcome::UsedUp => return Err(TalkErrorKind::UsedUp),
            TalkOutcome::Closed => return Err(TalkErrorKind::Revoked),
        }
    }
    let visit = TalkVisit::of(&state, &token, &secret).await?;
    ensure_started(&state, &visit).await?;
    Ok(Json(json!({ "begun": true })).into_response())
}

/// The beginning of the id of a session: the name of the file of its script.
fn script_name(terms: &LinkTerms) -> &str {
    let file = terms.script.rsplit('/').next().unwrap_or_default();
    let name = file.split('.').next().unwrap_or_default();
    if name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) { name } else { "talk" }
}

/// Starts the session of a conversation, unless that was done. The server may have ended between the two.
///
/// # Errors
/// `Deleted` if it was started and is gone.
pub(crate) async fn ensure_started(state: &ServerState, visit: &TalkVisit) -> Result<(), TalkErrorKind> {
    let TalkVisit { terms, talk, .. } = visit;
    let store = state.sessions.store();
    if talk.is_started {
        return match store.session(&talk.session).await? {
            Some(_) => Ok(()),
            None => Err(TalkErrorKind::Deleted),
        };
    }
    visit.require_valid()?;
    let request = request(state, terms, &talk.session).await?;
    match state.sessions.launch(request, &talk.session).await {
        Ok(_) => {}
        // Another tab, or the server before this one, has started it.
        Err(problem) if problem.kind() == ProblemKind::Conflict => {}
        Err(problem) => return Err(problem.into()),
    }
    store.update_talk(&LinkTalkRow { is_started: true, ..talk.clone() }).await?;
    // The consent may have been withdrawn in the meantime, by another tab.
    let now = store.talk(&visit.link.id, &talk.secret_sha256).await?;
    if let Some(talk) = now.filter(|talk| talk.withdrawn_at.is_some()) {
        erase(state, terms, &talk).await?;
        return Err(TalkErrorKind::Withdrawn);
    }
    Ok(())
}

/// How the session is started.
async fn request(state: &ServerState, terms: &LinkTerms, session: &str) -> Result<RunRequest, TalkErrorKind> {
    if let Some(request) = &state.settings.talk_request {
        let user = request.user.clone().or_else(|| Some(session.to_owned()));
        return Ok(RunRequest { user, ..request.clone() });
    }
    // That the script is gone is nothing that the person can do something about.
    let script = state.catalog.find(&terms.script).await.map_err(|problem| {
        tracing::error!(error = %problem.detail(), "the conversation of a link cannot begin");
        TalkErrorKind::Failed
    })?;
    Ok(RunRequest {
        file: script.file,
        // Without a user, two persons must not share the variables of a common one.
        user: Some(terms.user.clone().unwrap_or_else(|| session.to_owned())),
        values: terms.variables.clone(),
        model: state.settings.model.clone(),
        ..RunRequest::default()
    })
}
