//! Forks of sessions: a new session with everything that another one was at one of its questions (docs/server.md).

use std::collections::BTreeMap;

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::msg;
use bcc_runtime::run::head::{Head, SessionStatus};
use bcc_runtime::run::retry::{CopiedRows, CopyTarget, copy_of, state_at};
use bcc_store::contract::Store;
use bcc_store::rows::{Commit, EarlierState, NewSessionRow, SessionRow, SharedTexts};
use serde_json::Value;

use crate::clock::{now, stamp};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::export::stored_session;
use crate::pin::sha256;
use crate::session_ids::valid_session_id;
use crate::settings::{RunSettings, SessionPlace, copied_session, forked_session};
use crate::stored_programs::StoredProgram;
use crate::trust::own_sessions::is_own;

/// How often a copy is made again because the session went on in the meantime.
pub(crate) const MAX_ATTEMPTS: usize = 16;

/// How many forks of forks are followed to the session that has a state.
const MAX_FORKS: usize = 64;

/// Where a session is forked. It must have been waiting there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkPoint {
    /// As it is now.
    Now,
    /// As it was after this event.
    AfterEvent(u64),
    /// As it was when it waited for the answer that follows this number of answers.
    AfterAnswers(u64),
}

/// A fork to make.
#[derive(Clone, Debug)]
pub struct ForkRequest<'r> {
    /// The session that is forked.
    pub id: &'r str,
    pub at: ForkPoint,
    /// The id of the new session.
    pub new: &'r str,
    /// Another user for it.
    pub user: Option<String>,
}

/// A copy of a session at a point.
struct ForkedState {
    row: SessionRow,
    earlier: EarlierState,
    first: Commit,
    texts: SharedTexts,
}

/// When an event of a session was; none if there is no such session or event. A copy has the same times.
async fn event_time(store: &dyn Store, id: &str, seq: u64) -> Result<Option<String>, EngineError> {
    if store.session(id).await?.is_none() {
        return Ok(None);
    }
    let events = store.journal(id, seq.saturating_sub(1), 1).await?;
    Ok(events.into_iter().next().map(|event| event.at))
}

impl Engine {
    /// Creates a session as a copy of another one, which does not change and may be running. No model is called, and no
    /// reply of the earlier session is used again.
    ///
    /// # Errors
    /// `Usage` if there is no such session, it was not waiting at this point, or the store does not keep it; `Failed` if the store cannot
    /// be used, or there is already a session with the new id.
    pub async fn fork(&self, request: ForkRequest<'_>) -> Result<(), EngineError> {
        let ForkRequest { id, at, new, user } = request;
        valid_session_id(new)?;
        let (id, user) = self.fork_source(id, at, user).await?;
        let id = id.as_str();
        let time = stamp(now());
        let ForkedState { row, earlier, mut first, texts } = self.forked_state(id, at, new, &time).await?;
        let settings: RunSettings = serde_json::from_str(&row.settings)
            .map_err(|error| EngineError::failed(msg!("the settings of session `{id}` cannot be read: {error}")))?;
        let place = settings.place(id, &self.project().directory, false)?;
        let StoredProgram { pinned, program } = self.stored_programs.get(self.store().as_ref(), &row.manifest).await?;
        // What the earlier session may do counts for the copy only if it was this user who allowed it.
        let is_own = place == SessionPlace::Here && is_own(self.environment(), id, &settings, &row.manifest);
        let allowed = if is_own { settings.allowed.clone() } else { vec![] };
        let copy_of = Some(id.to_owned());
        let settings =
            RunSettings { allowed, origin: None, state_file: None, copy_of, ..settings }.without_earlier_session();
        let settings = self.with_origin(new, &program, &settings, &row.manifest);
        if let Some(started) = first.journal.first_mut() {
            let of = format!(",\"fork_of\":{},\"fork_seq\":{},\"location\":", Value::from(id), earlier.last_seq);
            started.body = started.body.replacen(",\"location\":", &of, 1);
        }
        let (manifest, documents) = pinned.documents()?;
        let session = NewSessionRow {
            id: new.to_owned(),
            user: user.unwrap_or(row.user),
            script: row.script,
            script_name: row.script_name,
            script_sha256: sha256(pinned.script.text().as_bytes()),
            started_at: time,
            settings: serde_json::to_string(&settings).map_err(|error| EngineError::failed(error.to_message()))?,
            manifest,
            texts: Some(texts),
        };
        Ok(self.store().create(&session, &documents, &first).await?)
    }

    /// The session that has the state at a point, and the user of the new session. A fork has the events from before it began, but not the
    /// states: those are in the session that it was made of.
    async fn fork_source(
        &self,
        id: &str,
        at: ForkPoint,
        user: Option<String>,
    ) -> Result<(String, Option<String>), EngineError> {
        let (store, mut id, mut user) = (self.store().as_ref(), id.to_owned(), user);
        let ForkPoint::AfterEvent(seq) = at else { return Ok((id, user)) };
        for _ in 0..MAX_FORKS {
            let row = stored_session(store, &id).await?;
            let Some(earlier) = forked_session(&row.settings) else { break };
            if self.copied_until(&row).await?.is_none_or(|until| seq >= until) {
                break;
            }
            // Another session may have its id by now.
            let event = event_time(store, &id, seq.max(1)).await?;
            if event.is_none() || event != event_time(store, &earlier, seq.max(1)).await? {
                break;
            }
            user.get_or_insert(row.user);
            id = earlier;
        }
        Ok((id, user))
    }

    /// The last event that a copy of a session began with; none for other sessions.
    async fn copied_until(&self, row: &SessionRow) -> Result<Option<u64>, EngineError> {
        if copied_session(&row.settings).is_none() {
            return Ok(None);
        }
        if row.revision <= 1 {
            return Ok(Some(row.last_seq));
        }
        // It is not kept in stores that have a layout from before what commits replace was kept.
        Ok(self.store().earlier_state(&row.id, 1).await?.map(|first| first.last_seq))
    }

    /// Copies the session without locking it: if it went on in the meantime, the copy is made again.
    async fn forked_state(&self, id: &str, at: ForkPoint, new: &str, time: &str) -> Result<ForkedState, EngineError> {
        let store = self.store().as_ref();
        for _ in 0..MAX_ATTEMPTS {
            let row = stored_session(store, id).await?;
            let earlier = self.state_at_point(&row, at).await?;
            let status = SessionStatus::parse(&earlier.status).filter(|status| status.is_waiting());
            let Some(status) = status else {
                let message = msg!("session `{id}` was not waiting there: its status was `{}`", earlier.status);
                return Err(EngineError::usage(message).with_help("name the last event before it waited"));
            };
            let target = CopyTarget {
                id: new,
                at: time,
                status,
                edited: None,
                renews_declared: false,
                is_separate: true,
                earlier_effects: BTreeMap::new(),
            };
            let CopiedRows { first, texts } = copy_of(store, &row, earlier.clone(), &target).await?;
            if stored_session(store, id).await?.revision == row.revision {
                return Ok(ForkedState { row, earlier, first, texts });
            }
        }
        Err(EngineError::failed(msg!("session `{id}` goes on all the time; try again")))
    }

    /// The state of a session at a point at which a copy of it can go on.
    pub(crate) async fn state_at_point(&self, row: &SessionRow, at: ForkPoint) -> Result<EarlierState, EngineError> {
        let id = row.id.as_str();
        let earlier = self.any_state_at_point(row, at).await?;
        let head: Head = serde_json::from_str(&earlier.head)
            .map_err(|error| EngineError::failed(msg!("the state of session `{id}` cannot be read: {error}")))?;
        if head.ending.is_some() {
            // The copy would have the same end, and clean up a second time.
            let message = msg!("session `{id}` was about to end there, and a copy of it cannot go on");
            return Err(EngineError::Ended { message, help: Some("name an event before that".into()) });
        }
        Ok(earlier)
    }

    async fn any_state_at_point(&self, row: &SessionRow, at: ForkPoint) -> Result<EarlierState, EngineError> {
        let store = self.store().as_ref();
        let id = row.id.as_str();
        let current = || EarlierState {
            revision: row.revision,
            status: row.status.clone(),
            location: row.location.clone(),
            head: row.head.clone(),
            answers: row.answers,
            last_seq: row.last_seq,
            changes: Commit::default(),
        };
        if let ForkPoint::AfterEvent(seq) = at
            && let Some(first) = self.copied_until(row).await?.filter(|first| seq < *first)
        {
            let earlier = copied_session(&row.settings).unwrap_or_default();
            let message = msg!("session `{id}` began as a copy with event {first}, and has no state from before it");
            return Err(EngineError::usage(message).with_help(msg!(
                "name event {first} or a later one; the session of which it is a copy is `{earlier}`"
            )));
        }
        let not_kept = || EngineError::usage(msg!("the store does not keep that state of session `{id}`"));
        match at {
            ForkPoint::Now => Ok(current()),
            ForkPoint::AfterEvent(seq) if seq > row.last_seq => {
                Err(EngineError::usage(msg!("session `{id}` has no event {seq}: its last one is {}", row.last_seq)))
            }
            ForkPoint::AfterEvent(seq) => match state_at(store, row, seq).await? {
                Some(earlier) => Ok(earlier),
                None => {
                    let before = store.earlier_state(id, row.revision.saturating_sub(1)).await?;
                    // The last commit has this event.
                    let is_newest = row.revision <= 1 || before.is_some_and(|before| before.last_seq < seq);
                    if is_newest { Ok(current()) } else { Err(not_kept()) }
                }
            },
            ForkPoint::AfterAnswers(answers) => {
                let waiting = SessionStatus::WaitingInput.name();
                if row.status == waiting && row.answers == answers {
                    return Ok(current());
                }
                let revision = store.revision_with(id, waiting, answers).await?.ok_or_else(not_kept)?;
                store.earlier_state(id, revision).await?.ok_or_else(not_kept)
            }
        }
    }
}
