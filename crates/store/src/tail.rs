//! Checks that the rows of a commit continue the numbering of a session.

use crate::error::StoreError;
use crate::rows::Commit;

/// The last numbers of a session, which a commit must continue. All are 0 before the first commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) revision: u64,
    pub(crate) last_seq: u64,
    pub(crate) last_message: u64,
}

impl Tail {
    /// The tail after `commit`, or an error if the commit does not continue this tail.
    pub(crate) fn after(self, store: &str, id: &str, commit: &Commit) -> Result<Self, StoreError> {
        if commit.revision != self.revision {
            return Err(StoreError::Conflict {
                store: store.to_owned(),
                id: id.to_owned(),
                expected: commit.revision,
                found: self.revision,
            });
        }
        let gap = |what, expected, found| StoreError::Gap {
            store: store.to_owned(),
            id: id.to_owned(),
            what,
            expected,
            found,
        };
        let mut next = Self { revision: self.revision.saturating_add(1), ..self };
        for row in &commit.journal {
            let expected = next.last_seq.saturating_add(1);
            if row.seq != expected {
                return Err(gap("event", expected, row.seq));
            }
            next.last_seq = expected;
        }
        if let Some(kept) = commit.messages_kept {
            next.last_message = next.last_message.min(kept);
        }
        for row in &commit.messages {
            let expected = next.last_message.saturating_add(1);
            if row.number != expected {
                return Err(gap("message", expected, row.number));
            }
            next.last_message = expected;
        }
        Ok(next)
    }
}

/// Checks that each cell of a commit is one of the `last` existing cells of the session that are kept, or the next one.
pub(crate) fn check_cell_numbers(store: &str, id: &str, last: u64, commit: &Commit) -> Result<(), StoreError> {
    let last = commit.cells_kept.map_or(last, |kept| last.min(kept));
    let mut next = last.saturating_add(1);
    for row in &commit.cells_put {
        if row.number == next {
            next = next.saturating_add(1);
        } else if row.number == 0 || row.number > next {
            let (store, id) = (store.to_owned(), id.to_owned());
            return Err(StoreError::Gap { store, id, what: "cell", expected: next, found: row.number });
        }
    }
    Ok(())
}
