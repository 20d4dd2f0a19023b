//! Remembers which session was at which point of which conversation, so that a history is found without reading sessions.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sha2::{Digest, Sha256};
use tokio::sync::Mutex as AsyncMutex;

use crate::chat::request::SaidText;

/// How many points are remembered. What is forgotten is found in the store.
const CAPACITY: usize = 100_000;

/// How many sessions are remembered at a point: the newest ones.
pub(crate) const MAX_AT_POINT: usize = 32;

/// From how many conversations on those that nobody uses are looked for.
const MANY_CONVERSATIONS: usize = 1024;

/// The hash of a conversation up to a point.
pub(crate) type HistoryHash = [u8; 32];

/// A session that was at a point of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChatBranch {
    pub(crate) session: String,
    /// The number of answers that it had accepted there.
    pub(crate) answers: u64,
    /// The number of its last message that the client has got.
    pub(crate) shown: u64,
}

#[derive(Default)]
struct Known {
    /// The sessions of each point, oldest first.
    branches: HashMap<HistoryHash, Vec<ChatBranch>>,
    /// The hashes, oldest first.
    order: VecDeque<HistoryHash>,
    /// The sessions that are being answered, each with the key of its message.
    reserved: HashMap<String, String>,
    /// The conversations that are being continued, by their ids.
    conversations: HashMap<String, Weak<AsyncMutex<()>>>,
}

/// The points that this process has seen.
#[derive(Default)]
pub(crate) struct ChatBranches {
    known: Mutex<Known>,
}

/// A session that nobody else answers or begins while this exists.
pub(crate) struct Reservation {
    branches: Arc<ChatBranches>,
    session: String,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.branches.known().reserved.remove(&self.session);
    }
}

impl ChatBranches {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sessions that were at this point, the newest first.
    pub(crate) fn at(&self, hash: &HistoryHash) -> Vec<ChatBranch> {
        let known = self.known();
        known.branches.get(hash).map(|found| found.iter().rev().cloned().collect()).unwrap_or_default()
    }

    /// Remembers that a session is at this point.
    pub(crate) fn add(&self, hash: HistoryHash, branch: ChatBranch) {
        let mut known = self.known();
        let Known { branches, order, .. } = &mut *known;
        let found = match branches.entry(hash) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(new) => {
                order.push_back(hash);
                new.insert(vec![])
            }
        };
        let is_same = |other: &&mut ChatBranch| other.session == branch.session && other.answers == branch.answers;
        if let Some(same) = found.iter_mut().find(is_same) {
            same.shown = same.shown.max(branch.shown);
            return;
        }
        if found.len() >= MAX_AT_POINT {
            found.remove(0);
        }
        found.push(branch);
        while order.len() > CAPACITY {
            let Some(oldest) = order.pop_front() else { break };
            branches.remove(&oldest);
        }
    }

    /// Forgets sessions that are not at this point any more.
    pub(crate) fn forget(&self, hash: &HistoryHash, gone: &[ChatBranch]) {
        if let Some(found) = self.known().branches.get_mut(hash) {
            found.retain(|branch| !gone.contains(branch));
        }
    }

    /// Reserves a session for the message with this key. None if it is reserved already.
    pub(crate) fn reserve(self: &Arc<Self>, session: &str, key: &str) -> Option<Reservation> {
        match self.known().reserved.entry(session.to_owned()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(free) => {
                free.insert(key.to_owned());
                Some(Reservation { branches: Arc::clone(self), session: session.to_owned() })
            }
        }
    }

    /// Whether the session is reserved for the message with this key.
    pub(crate) fn is_reserved_for(&self, session: &str, key: &str) -> bool {
        self.known().reserved.get(session).is_some_and(|reserved| reserved == key)
    }

    /// What whoever continues a conversation holds, so that its requests are placed one after the other.
    pub(crate) fn conversation(&self, id: &str) -> Arc<AsyncMutex<()>> {
        let conversations = &mut self.known().conversations;
        if let Some(found) = conversations.get(id).and_then(Weak::upgrade) {
            return found;
        }
        if conversations.len() >= MANY_CONVERSATIONS && conversations.len().is_power_of_two() {
            conversations.retain(|_, used| used.strong_count() > 0);
        }
        let new = Arc::new(AsyncMutex::new(()));
        conversations.insert(id.to_owned(), Arc::downgrade(&new));
        new
    }
}

/// The hash of a history within `scope`, which tells apart whose conversation it is.
pub(crate) fn history_hash(scope: &[&str], history: &[SaidText]) -> HistoryHash {
    let mut hash = Sha256::new();
    let mut add = |mark: u8, text: &str| {
        hash.update([mark]);
        // With its length, so that no two lists of texts give the same bytes.
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    scope.iter().for_each(|part| add(0, part));
    history.iter().for_each(|said| add(if said.is_person { 1 } else { 2 }, &said.text));
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_has_the_sessions_that_were_there() {
        let branches = ChatBranches::default();
        let said = |texts: &[&str]| -> Vec<SaidText> {
            texts.iter().enumerate().map(|(index, text)| SaidText::new(index % 2 == 0, text)).collect()
        };
        let hash = history_hash(&["a"], &said(&["hello", "Hi."]));
        let branch = |session: &str, shown| ChatBranch { session: session.into(), answers: 0, shown };
        for (session, shown) in [("s", 1), ("t", 1), ("s", 2)] {
            branches.add(hash, branch(session, shown));
        }
        assert_eq!(branches.at(&hash), [branch("t", 1), branch("s", 2)]);
        branches.forget(&hash, &[branch("t", 1)]);
        assert_eq!(branches.at(&hash), [branch("s", 2)]);
        for other in [
            history_hash(&["b"], &said(&["hello", "Hi."])),
            history_hash(&["a"], &said(&["hello"])),
            history_hash(&["a"], &said(&["helloHi", "."])),
            history_hash(&["ahello"], &said(&["", "Hi."])),
        ] {
            assert!(branches.at(&other).is_empty());
        }
    }

    #[test]
    fn the_oldest_points_are_forgotten() {
        let branches = ChatBranches::default();
        let hash = |number: usize| history_hash(&[], &[SaidText::new(true, &number.to_string())]);
        for number in 0..=CAPACITY {
            branches.add(hash(number), ChatBranch { session: "s".into(), answers: 0, shown: 0 });
        }
        assert!(branches.at(&hash(0)).is_empty());
        assert!(!branches.at(&hash(1)).is_empty() && !branches.at(&hash(CAPACITY)).is_empty());
    }

    #[test]
    fn a_point_has_its_newest_sessions_only() {
        let branches = ChatBranches::default();
        let hash = history_hash(&[], &[]);
        for number in 0..=MAX_AT_POINT {
            branches.add(hash, ChatBranch { session: number.to_string(), answers: 0, shown: 0 });
        }
        let sessions: Vec<String> = branches.at(&hash).into_iter().map(|branch| branch.session).collect();
        assert_eq!(sessions.len(), MAX_AT_POINT);
        assert_eq!(sessions.first(), Some(&MAX_AT_POINT.to_string()));
    }

    #[test]
    fn a_session_is_reserved_once() {
        let branches = Arc::new(ChatBranches::default());
        let reserved = branches.reserve("s", "k");
        assert!(reserved.is_some() && branches.reserve("s", "l").is_none() && branches.reserve("t", "k").is_some());
        assert!(branches.is_reserved_for("s", "k") && !branches.is_reserved_for("s", "l"));
        drop(reserved);
        assert!(branches.reserve("s", "l").is_some());
    }
}
