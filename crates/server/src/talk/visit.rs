//! Who visits: the link of a token, and the conversation of a secret.

use axum::extract::{FromRequest, Request};
use bcc_engine::clock::{now, stamp};
use bcc_store::link_rows::{LinkRow, LinkTalkRow};
use serde::de::DeserializeOwned;

use crate::access::{hex, token_hash};
use crate::api::body::JsonBody;
use crate::state::ServerState;
use crate::talk::error::TalkErrorKind;
use crate::talk::terms::LinkTerms;
use crate::talk::withdrawal;

/// The length of a secret, in hexadecimal digits. The page makes it, so that a beginning whose response is lost can be sent again.
const SECRET_DIGITS: usize = 64;

/// A link that somebody follows.
pub(crate) struct Visit {
    pub(crate) link: LinkRow,
    pub(crate) terms: LinkTerms,
}

/// The conversation of somebody who comes back.
pub(crate) struct TalkVisit {
    pub(crate) link: LinkRow,
    pub(crate) terms: LinkTerms,
    pub(crate) talk: LinkTalkRow,
}

impl Visit {
    pub(crate) async fn of(state: &ServerState, token: &str) -> Result<Self, TalkErrorKind> {
        let found = state.sessions.store().link_of_token(&hex(&token_hash(token))).await?;
        let link = found.ok_or(TalkErrorKind::NotFound)?;
        let terms = LinkTerms::of(&link)?;
        Ok(Self { link, terms })
    }

    /// Why no conversation begins by the link; none if one may.
    pub(crate) fn closed(&self) -> Option<TalkErrorKind> {
        if self.link.revoked_at.is_some() {
            return Some(TalkErrorKind::Revoked);
        }
        if self.link.expires_at.as_ref().is_some_and(|end| *end <= stamp(now())) {
            return Some(TalkErrorKind::Expired);
        }
        self.terms.kind.limit().filter(|limit| self.link.talks >= *limit).map(|_| TalkErrorKind::UsedUp)
    }

    /// The conversation with this secret; none if it has not begun.
    pub(crate) async fn talk(&self, state: &ServerState, secret: &str) -> Result<Option<LinkTalkRow>, TalkErrorKind> {
        Ok(state.sessions.store().talk(&self.link.id, &secret_hash(secret)?).await?)
    }
}

/// The body of a request for a link, which is read only if there is such a link: without one, nobody holds a connection with it.
///
/// # Errors
/// `NotFound`, and those of [`JsonBody`].
pub(crate) async fn body_of<T: DeserializeOwned>(
    state: &ServerState,
    token: &str,
    request: Request,
) -> Result<T, TalkErrorKind> {
    Visit::of(state, token).await?;
    let JsonBody(body) = JsonBody::from_request(request, state).await?;
    Ok(body)
}

impl TalkVisit {
    /// The conversation at `/t/TOKEN/SECRET`.
    ///
    /// # Errors
    /// `NotFound`; `Withdrawn`; `Deleted`.
    pub(crate) async fn of(state: &ServerState, token: &str, secret: &str) -> Result<Self, TalkErrorKind> {
        let visit = Visit::of(state, token).await?;
        let talk = visit.talk(state, secret).await?.ok_or(TalkErrorKind::NotFound)?;
        if talk.withdrawn_at.is_some() {
            // The server may have ended before everything was erased.
            withdrawal::erase(state, &visit.terms, &talk).await?;
            return Err(TalkErrorKind::Withdrawn);
        }
        Ok(Self { link: visit.link, terms: visit.terms, talk })
    }

    /// Refuses what goes on with the conversation if the link is revoked.
    pub(crate) fn require_valid(&self) -> Result<(), TalkErrorKind> {
        if self.link.revoked_at.is_some() { Err(TalkErrorKind::Revoked) } else { Ok(()) }
    }
}

/// The hash of a secret, as it is stored.
pub(crate) fn secret_hash(secret: &str) -> Result<String, TalkErrorKind> {
    let is_secret = secret.len() == SECRET_DIGITS && secret.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if is_secret { Ok(hex(&token_hash(secret))) } else { Err(TalkErrorKind::NotFound) }
}
