//! Finds the session that a conversation is with: the one that said its history, or a fork of it.

use std::collections::BTreeSet;

use bcc_engine::fork::{ForkPoint, ForkRequest};
use bcc_engine::session_ids::secret_id;
use bcc_lang::message::msg;
use bcc_runtime::program::event::Speaker;
use bcc_runtime::run::head::SessionStatus;
use bcc_store::contract::Store;
use bcc_store::rows::{SessionFilter, SessionRow};
use sha2::{Digest, Sha256};

use crate::access::hex;
use crate::api::catalog::ScriptEntry;
use crate::chat::branches::{ChatBranch, HistoryHash, history_hash};
use crate::chat::request::{ChatHistory, SaidText};
use crate::problem::Problem;
use crate::state::ServerState;

/// How many sessions a conversation may have begun: each regeneration of its first reply begins one.
const MAX_BEGINNINGS: usize = 1000;

/// How many of the newest sessions are searched for a history that this process does not remember.
const MAX_SEARCHED: usize = 1000;

/// The number of messages that are read at a time.
const PAGE: usize = 256;

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

/// What is done with the message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChatPlace {
    /// A session begins with it.
    Begin(String),
    /// It answers the question of this session.
    Answer(String),
    /// It has begun this session before, whose opening is the reply.
    Opened(String),
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

    /// The part of the ids of the sessions of this conversation that tells them apart from those of others.
    fn id_prefix(&self) -> String {
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

    /// Finds the session, or makes it by a fork.
    ///
    /// # Errors
    /// `NotFound` if no session said the history; those of a fork.
    pub(crate) async fn place(&self, state: &ServerState) -> Result<ChatPlace, Problem> {
        if self.history.is_beginning() {
            return self.beginning(state).await;
        }
        let store = state.sessions.store().as_ref();
        let mut branches = state.branches.at(&self.hash(&self.history.before));
        if branches.is_empty() {
            branches = self.branches_in_store(store).await?;
        }
        let key = self.message_key();
        let mut passed = Vec::new();
        for branch in branches {
            let Some(row) = store.session(&branch.session).await? else { continue };
            if row.answers == branch.answers {
                return Ok(ChatPlace::Answer(row.id));
            }
            let was_accepted = store.answer_accepted(&row.id, &key).await?;
            if was_accepted && (self.is_repeated || state.sessions.is_busy(&row.id).await) {
                return Ok(ChatPlace::Answer(row.id));
            }
            passed.push((branch, row.user));
        }
        // Another answer to a question that was answered before, or another reply to the same answer.
        let users: BTreeSet<&str> = passed.iter().map(|(_, user)| user.as_str()).collect();
        if let Some((branch, _)) = passed.last() {
            let new = self.free_id(store).await?;
            // Several persons said the same up to here: the variables of one of them are not for the others.
            let user = (users.len() > 1).then(|| new.clone());
            let at = ForkPoint::AfterAnswers(branch.answers);
            state.sessions.fork(ForkRequest { id: &branch.session, at, new: &new, user }).await?;
            return Ok(ChatPlace::Answer(new));
        }
        Err(Problem::not_found(msg!("no session of the script `{}` has said this", self.script.session_id))
            .with_help("begin a new conversation: the first request has one message"))
    }

    async fn beginning(&self, state: &ServerState) -> Result<ChatPlace, Problem> {
        let store = state.sessions.store().as_ref();
        let begun = state.branches.at(&self.hash(&self.history.with_message()));
        if self.is_repeated
            && let Some(branch) = begun.last()
        {
            return Ok(ChatPlace::Opened(branch.session.clone()));
        }
        let session = self.free_id(store).await?;
        let branch = ChatBranch { session: session.clone(), answers: 0 };
        state.branches.add(self.hash(&self.history.with_message()), branch);
        Ok(ChatPlace::Begin(session))
    }

    /// An id that no session has.
    async fn free_id(&self, store: &dyn Store) -> Result<String, Problem> {
        for number in 0..MAX_BEGINNINGS {
            let id = self.new_id(number);
            if store.session(&id).await?.is_none() {
                return Ok(id);
            }
        }
        Err(Problem::invalid(msg!("the conversation has too many branches")).with_help("begin a new conversation"))
    }

    /// The sessions that said the history, from the store: after a restart of the server, or when another one began the conversation.
    async fn branches_in_store(&self, store: &dyn Store) -> Result<Vec<ChatBranch>, Problem> {
        let mut found = Vec::new();
        let mut newest: Option<SessionRow> = None;
        for row in self.rows(store).await? {
            let transcript = transcript(store, &row.id).await?;
            if let Some(answers) = answers_at(&transcript, &self.history.before) {
                found.push(ChatBranch { session: row.id.clone(), answers });
            }
            if newest.as_ref().is_none_or(|newest| newest.updated_at < row.updated_at) {
                newest = Some(row);
            }
        }
        // Clients that send an id may shorten the history.
        if found.is_empty()
            && self.conversation.is_some()
            && let Some(row) = newest
            && row.status == SessionStatus::WaitingInput.name()
        {
            found.push(ChatBranch { session: row.id, answers: row.answers });
        }
        Ok(found)
    }

    /// The sessions that may belong to the conversation.
    async fn rows(&self, store: &dyn Store) -> Result<Vec<SessionRow>, Problem> {
        if self.conversation.is_none() {
            let filter = SessionFilter {
                id: Some(format!("{}-", self.id_prefix())),
                script: Some(self.script.session_id.clone()),
                ..SessionFilter::default()
            };
            return Ok(store.sessions_page(&filter, None, MAX_SEARCHED).await?);
        }
        let mut rows = Vec::new();
        for number in 0..MAX_BEGINNINGS {
            match store.session(&self.new_id(number)).await? {
                Some(row) => rows.push(row),
                None => break,
            }
        }
        Ok(rows)
    }
}

/// What was said in a session: messages of the same side in a row are one, as the client got them.
async fn transcript(store: &dyn Store, id: &str) -> Result<Vec<SaidText>, Problem> {
    let mut said: Vec<SaidText> = Vec::new();
    let mut after = 0;
    loop {
        let rows = store.messages(id, after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(said) };
        after = last.number;
        for row in rows {
            let next = SaidText::new(row.role == Speaker::User.name(), &row.text);
            match said.last_mut().filter(|last| last.is_person == next.is_person) {
                Some(last) => last.text = format!("{}\n\n{}", last.text, next.text),
                None => said.push(next),
            }
        }
    }
}

/// The number of answers after which a session had said exactly this; none if it did not.
fn answers_at(transcript: &[SaidText], history: &[SaidText]) -> Option<u64> {
    let opens = transcript.first().is_some_and(|first| !first.is_person);
    // The first message of a conversation is no answer, if the session speaks first.
    let history = match history.split_first() {
        Some((first, rest)) if first.is_person && opens => rest,
        _ => history,
    };
    let is_prefix = !history.is_empty() && transcript.get(..history.len()) == Some(history);
    is_prefix.then(|| history.iter().filter(|said| said.is_person).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(texts: &[&str]) -> Vec<SaidText> {
        texts.iter().map(|text| SaidText::new(text.starts_with('<'), text.trim_start_matches('<'))).collect()
    }

    #[test]
    fn a_history_is_found_in_a_transcript() {
        let opening = said(&["Who?", "<Ann", "Hi Ann. How?", "<well", "Bye."]);
        assert_eq!(answers_at(&opening, &said(&["<hello", "Who?"])), Some(0));
        assert_eq!(answers_at(&opening, &said(&["<hello", "Who?", "<Ann", "Hi Ann. How?"])), Some(1));
        assert_eq!(answers_at(&opening, &said(&["<hello", "Who?", "<Bob", "Hi Bob. How?"])), None);
        assert_eq!(answers_at(&opening, &said(&["<hello"])), None);
        let listening = said(&["<question", "answer"]);
        assert_eq!(answers_at(&listening, &said(&["<question", "answer"])), Some(1));
        assert_eq!(answers_at(&listening, &said(&["<question", "answer", "<more", "yes"])), None);
    }
}
