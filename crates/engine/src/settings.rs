//! The settings that a session was started with. They are stored with it, and used again when it is resumed.

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::msg;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::project::absolute;
use crate::shell::quoted;
use bcc_llm::providers::replay::recording::ReplayMatching;

/// The options of `run` that are stored with the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSettings {
    pub project: Option<String>,
    /// The model that was set on the command line or in the environment.
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_by: Option<ReplayMatching>,
    pub scheme: Option<String>,
    pub seed: Option<u64>,
    /// The start of the clock, if it was set (RFC 3339).
    pub clock: Option<String>,
    /// Whether commands were allowed at the start. Only for earlier releases, which have no `allowed`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commands: bool,
    /// What was allowed at the start, which means that the pinned documents and kinds were trusted for it. Counts only with a
    /// valid `origin`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// The code by which the user who started the session recognizes it (`trust/own_sessions.rs`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// A random text that tells this session from those with the same id that were deleted before. Earlier releases did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// The session of which this one has a copy: as a fork, or because it repeats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<String>,
    /// The session that this one repeats from a step (`sessions retry`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// The last event of that session that this one has a copy of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_seq: Option<u64>,
    /// Whether the answers of that session are given again, at the times at which they were given.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats_answers: bool,
    /// How many of them every process gives that opens the session; none if only the one that created it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_answers: Option<u64>,
    /// Whether the replies that models gave in that session are not used: another model is asked for everything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_anew: bool,
    /// The state file that the session carries: relative to the project, if it is in there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_file: Option<String>,
    /// The key of the request that began it, so that it begins no other one when it is sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_by: Option<String>,
}

/// Where a stored session is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionPlace {
    /// In its own project, which may have been moved.
    Here,
    /// In another project, which the person named.
    Elsewhere,
}

/// What settings say of an earlier session, and of this one among those with the same id.
#[derive(Default, Deserialize)]
struct EarlierSession {
    copy_of: Option<String>,
    retry_of: Option<String>,
    replay: Option<String>,
    nonce: Option<String>,
    begun_by: Option<String>,
    #[serde(default)]
    repeats_answers: bool,
}

impl EarlierSession {
    /// Settings that cannot be read name none: whoever uses the session learns why.
    fn of(settings: &str) -> Self {
        serde_json::from_str(settings).unwrap_or_default()
    }
}

/// The session of which the one with these stored settings has a copy.
pub fn copied_session(settings: &str) -> Option<String> {
    let EarlierSession { copy_of, retry_of, .. } = EarlierSession::of(settings);
    copy_of.or(retry_of)
}

/// The text that tells the session with these stored settings from those with the same id that were deleted before; earlier releases did not
/// store it.
pub fn session_nonce(settings: &str) -> Option<String> {
    EarlierSession::of(settings).nonce
}

/// The key of the request that began the session with these stored settings. A copy was begun by another request than the session that it
/// was made of.
pub fn begun_by(settings: &str) -> Option<String> {
    let EarlierSession { copy_of, retry_of, begun_by, .. } = EarlierSession::of(settings);
    begun_by.filter(|_| copy_of.is_none() && retry_of.is_none())
}

/// The session of which the one with these stored settings is a fork: a copy that repeats nothing, with the same script.
pub(crate) fn forked_session(settings: &str) -> Option<String> {
    let EarlierSession { copy_of, retry_of, .. } = EarlierSession::of(settings);
    copy_of.filter(|_| retry_of.is_none())
}

/// Whether the session with these stored settings gives the answers of another one again.
pub(crate) fn repeats_answers(settings: &str) -> bool {
    EarlierSession::of(settings).repeats_answers
}

/// Whether the session with these stored settings has its replies from a recording.
pub(crate) fn replays_recording(settings: &str) -> bool {
    EarlierSession::of(settings).replay.is_some()
}

/// The session that the one with these stored settings continues from a step (`sessions retry --from`).
pub(crate) fn continued_session(settings: &str) -> Option<String> {
    let EarlierSession { retry_of, repeats_answers, .. } = EarlierSession::of(settings);
    retry_of.filter(|_| !repeats_answers)
}

impl RunSettings {
    pub fn to_json(&self) -> Result<String, EngineError> {
        serde_json::to_string(self).map_err(|error| EngineError::failed(error.to_message()))
    }

    /// The same settings of a session that repeats no other one.
    #[must_use]
    pub fn without_earlier_session(self) -> Self {
        Self { retry_of: None, retry_seq: None, repeats_answers: false, given_answers: None, asks_anew: false, ..self }
    }

    /// Compares the project in which the session `id` was started with the project `here`. The store does not decide which
    /// project a session is used in: it may come from somebody else.
    ///
    /// # Errors
    /// `Usage` if they differ, unless the person named the project (`any_project`).
    pub fn place(&self, id: &str, here: &Path, any_project: bool) -> Result<SessionPlace, EngineError> {
        // A project that was moved takes its store with it.
        let other =
            self.project.as_deref().map(Path::new).filter(|own| own.is_dir() && absolute(own) != absolute(here));
        let Some(own) = other else { return Ok(SessionPlace::Here) };
        if any_project {
            return Ok(SessionPlace::Elsewhere);
        }
        let message = msg!("session `{id}` belongs to the project {}, not to {}", own.display(), here.display());
        Err(EngineError::usage(message).with_help(msg!(
            "to use it in its own project, add `--project {}`; to use it in this one, add `--project {}`",
            quoted(own),
            quoted(here)
        )))
    }
}
