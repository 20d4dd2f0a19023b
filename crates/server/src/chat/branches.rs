//! Remembers which session was at which point of which conversation, so that a history is found without reading sessions.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::chat::request::SaidText;

/// How many points are remembered. What is forgotten is found in the store.
const CAPACITY: usize = 100_000;

/// The hash of a conversation up to a point.
pub(crate) type HistoryHash = [u8; 32];

/// A session that was at a point of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChatBranch {
    pub(crate) session: String,
    /// The number of answers that it had accepted there.
    pub(crate) answers: u64,
}

#[derive(Default)]
struct Known {
    branches: HashMap<HistoryHash, Vec<ChatBranch>>,
    /// The hashes, oldest first.
    order: VecDeque<HistoryHash>,
}

/// The points that this process has seen.
#[derive(Default)]
pub(crate) struct ChatBranches {
    known: Mutex<Known>,
}

impl ChatBranches {
    /// The sessions that were at this point, the oldest first.
    pub(crate) fn at(&self, hash: &HistoryHash) -> Vec<ChatBranch> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.branches.get(hash).cloned().unwrap_or_default()
    }

    /// Remembers that a session is at this point.
    pub(crate) fn add(&self, hash: HistoryHash, branch: ChatBranch) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { branches, order } = &mut *known;
        let found = branches.entry(hash).or_default();
        if found.contains(&branch) {
            return;
        }
        if found.is_empty() {
            order.push_back(hash);
        }
        found.push(branch);
        while order.len() > CAPACITY {
            let Some(oldest) = order.pop_front() else { break };
            branches.remove(&oldest);
        }
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
        let branch = |session: &str| ChatBranch { session: session.into(), answers: 0 };
        for session in ["s", "t", "s"] {
            branches.add(hash, branch(session));
        }
        assert_eq!(branches.at(&hash), [branch("s"), branch("t")]);
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
            branches.add(hash(number), ChatBranch { session: "s".into(), answers: 0 });
        }
        assert!(branches.at(&hash(0)).is_empty());
        assert!(!branches.at(&hash(1)).is_empty() && !branches.at(&hash(CAPACITY)).is_empty());
    }
}
