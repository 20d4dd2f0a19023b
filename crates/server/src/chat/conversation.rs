//! A request for a completion, and the sessions that its conversation may be with.

use bcc_engine::session_ids::secret_id;
use bcc_lang::message::msg;
use bcc_runtime::run::head::SessionStatus;
use bcc_store::contract::Store;
use bcc_store::rows::{SessionFilter, SessionRow};
use sha2::{Digest, Sha256};

use crate::access::hex;
use crate::api::catalog::ScriptEntry;
use crate::chat::branches::{ChatBranch, HistoryHash, MAX_AT_POINT, Reservation, history_hash};
use crate::chat::request::{ChatHistory, SaidText};
use crate::chat::transcript::{point_at, transcript};
use crate::problem::Problem;
use crate::state::ServerState;

/// How many sessions a conversation may have begun: each regeneration of its first reply begins one.
const MAX_BEGINNINGS: usize = 1000;

/// How many of the newest sessions are searched for a history that this process does not remember.
const MAX_SEARCHED: usize = 1000;

/// How many of the sessions of a conversation may be missing in a row: those whose beginning failed while another one began.
const MAX_MISSING: usize = 8;

/// A request for a completion: whose it is, and what was said.
pub(crate) struct ChatTurn {
    pub(crate) script: ScriptEntry,
    /// The caller, as a hash that nobody else knows.
    pub(crate) caller: String,
    pub(crate) user: Option<String>,
    /// The id that the client has for the conversation.
    pub(crate) conversation: Option<String>,
    pub(crate) history: ChatHistory,
    /// Whether the client sends the same request again, because it got no response.
    pub(crate) is_repeated: bool,
}

impl ChatTurn {
    /// The hash of a history of this conversation.
    pub(crate) fn hash(&self, history: &[SaidText]) -> HistoryHash {
        let conversation = self.conversation.as_deref().unwrap_or_default();
        let user = self.user.as_deref().unwrap_or_default();
        history_hash(&[&self.caller, &self.script.session_id, user, conversation], history)
    }

    /// The idempotency key of the message, in the form of the store.
    pub(crate) fn message_key(&self) -> String {
        format!("chat:{}", hex(&self.hash(&self.history.with_message())))
    }

    /// The same for a message after a part of the history, which may be the same again later: after this number of answers.
    pub(crate) fn message_key_after(&self, answers: u64) -> String {
        format!("{}:{answers}", self.message_key())
    }

    /// The part of the ids of the sessions of this conversation that tells them apart from those of others.
    pub(crate) fn id_prefix(&self) -> String {
        let script: String = self.script.session_id.trim_start_matches('-').chars().take(100).collect();
        let mut hash = Sha256::new();
        for part in [Some(&self.caller), self.user.as_ref(), self.conversation.as_ref()] {
            let part = part.map(String::as_str).unwrap_or_default();
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let digits = hex(&hash.finalize());
        format!("{script}-{}", digits.get(..32).unwrap_or_default())
    }

    /// The id of a new session of this conversation: without an id of the client, one that cannot be guessed.
    fn new_id(&self, number: usize) -> String {
        match (&self.conversation, number) {
            (None, _) => secret_id(&self.id_prefix()),
            (Some(_), 0) => self.id_prefix(),
            (Some(_), number) => format!("{}-{number}", self.id_prefix()),
        }
    }

    /// Whether this conversation has begun a session.
    pub(crate) async fn has_begun(&self, store: &dyn Store) -> Result<bool, Problem> {
        Ok(self.conversation.is_some() && store.session(&self.new_id(0)).await?.is_some())
    }

    /// An id that no session has, and that nobody else gets meanwhile.
    pub(crate) async fn free_id(&self, state: &ServerState) -> Result<(String, Reservation), Problem> {
        let key = self.message_key();
        for number in 0..MAX_BEGINNINGS {
            let id = self.new_id(number);
            let Some(reservation) = state.branches.reserve(&id, &key) else { continue };
            if state.sessions.store().session(&id).await?.is_none() {
                return Ok((id, reservation));
            }
        }
        Err(Problem::invalid(msg!("the conversation has too many branches")).with_help("begin a new conversation"))
    }

    /// The sessions that said the history, the newest first, from the store: after a restart of the server, or when another one began the
    /// conversation. With a number, only those that have this number of answers now, and those of which the turn after the next one stopped.
    pub(crate) async fn branches_in_store(
        &self,
        store: &dyn Store,
        answers: Option<u64>,
    ) -> Result<Vec<ChatBranch>, Problem> {
        let (mut exact, mut loose) = (Vec::new(), Vec::new());
        let mut rows = self.rows(store).await?;
        let is_stopped_after =
            |row: &SessionRow, answers| row.answers == answers + 1 && row.status == SessionStatus::Stopped.name();
        rows.retain(|row| answers.is_none_or(|answers| row.answers == answers || is_stopped_after(row, answers)));
        for row in rows {
            let Some(point) = point_at(&transcript(store, &row.id).await?, &self.history.before) else { continue };
            let found = if point.is_loose { &mut loose } else { &mut exact };
            found.push(ChatBranch { session: row.id, answers: point.answers, shown: point.shown });
            if exact.len() >= MAX_AT_POINT {
                break;
            }
        }
        if exact.is_empty() {
            loose.truncate(MAX_AT_POINT);
            return Ok(loose);
        }
        Ok(exact)
    }

    /// The sessions that may belong to the conversation, the most recently updated first.
    pub(crate) async fn rows(&self, store: &dyn Store) -> Result<Vec<SessionRow>, Problem> {
        if self.conversation.is_none() {
            let filter = SessionFilter {
                id: Some(format!("{}-", self.id_prefix())),
                script: Some(self.script.session_id.clone()),
                ..SessionFilter::default()
            };
            return Ok(store.sessions_page(&filter, None, MAX_SEARCHED).await?);
        }
        let (mut rows, mut missing) = (Vec::new(), 0);
        for number in 0..MAX_BEGINNINGS {
            match store.session(&self.new_id(number)).await? {
                Some(row) => {
                    missing = 0;
                    rows.push(row);
                }
                None => missing += 1,
            }
            if missing >= MAX_MISSING {
                break;
            }
        }
        rows.sort_by(|one, other| other.updated_at.cmp(&one.updated_at));
        Ok(rows)
    }
}
