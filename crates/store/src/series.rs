//! Several commits of a session as one: what a store writes when it is given them together. Each keeps its revision.

use std::collections::{BTreeMap, BTreeSet};

use crate::replaced::{ReplacedHead, ReplacedRow, RowKey, written_keys};
use crate::rows::Commit;

/// Commits that are written together.
pub(crate) struct MergedCommits {
    /// The rows as the last commit leaves them, with the revision that the first one expects.
    pub(crate) commit: Commit,
    /// When the requests are answered.
    pub(crate) answered_at: String,
    /// What each commit after the first found: the head as the one before had left it.
    pub(crate) heads: Vec<ReplacedHead>,
    /// The rows that a commit replaced and an earlier one of them had written, with the number of the commit; the first one is 0.
    pub(crate) replaced: Vec<(usize, RowKey, Option<ReplacedRow>)>,
    /// Which commit writes a row first, if it is not the first one.
    pub(crate) first_written: BTreeMap<RowKey, usize>,
}

/// The rows as some of the commits leave them.
#[derive(Default)]
struct MergedRows {
    /// None for a row that is removed.
    rows: BTreeMap<RowKey, Option<ReplacedRow>>,
    /// Those of which only the store knows what they are: requests that are answered.
    unknown: BTreeSet<RowKey>,
}

/// Merges commits of a session that has `last_seq` events; none if one of them depends on what the store has after another one.
pub(crate) fn merged(commits: &[Commit], last_seq: u64) -> Option<MergedCommits> {
    let (first, last) = (commits.first()?, commits.last()?);
    let is_simple = |commit: &Commit| commit.messages_kept.is_none() && commit.cells_kept.is_none();
    let mut answering = commits.iter().filter(|commit| !commit.requests_answered.is_empty());
    let answered_at = answering.next().unwrap_or(last).updated_at.clone();
    if !commits.iter().all(is_simple) || answering.next().is_some() {
        return None;
    }
    let mut merged = MergedRows::default();
    let (mut heads, mut replaced, mut first_written) = (vec![], vec![], BTreeMap::new());
    let mut seq = last_seq;
    let mut cells = BTreeSet::new();
    for (number, commit) in commits.iter().enumerate() {
        // A replaced cell is kept in the form in which it is stored, which is not known here.
        if commit.cells_put.iter().any(|row| cells.contains(&row.number)) {
            return None;
        }
        cells.extend(commit.cells_put.iter().map(|row| row.number));
        for key in written_keys(commit) {
            if merged.unknown.contains(&key) {
                return None;
            }
            match merged.rows.get(&key) {
                Some(row) => replaced.push((number, key, row.clone())),
                None if number > 0 => _ = first_written.insert(key, number),
                None => {}
            }
        }
        merged.add(commit);
        seq = commit.journal.last().map_or(seq, |event| event.seq);
        heads.push(ReplacedHead {
            status: commit.status.clone(),
            location: commit.location.clone(),
            head: commit.head.clone(),
            answers: commit.answers,
            last_seq: seq,
        });
    }
    // That of the last commit is the head of the session.
    heads.pop();
    let mut commit = Commit {
        revision: first.revision,
        status: last.status.clone(),
        updated_at: last.updated_at.clone(),
        location: last.location.clone(),
        head: last.head.clone(),
        answers: last.answers,
        ..Commit::default()
    };
    let mut user_variables = BTreeMap::new();
    for part in commits {
        user_variables.extend(part.user_variables_put.iter().map(|row| (row.key(), row)));
        commit.journal.extend_from_slice(&part.journal);
        commit.messages.extend_from_slice(&part.messages);
        commit.cells_put.extend_from_slice(&part.cells_put);
        commit.answer_ids.extend_from_slice(&part.answer_ids);
        commit.texts.extend_from_slice(&part.texts);
    }
    commit.user_variables_put = user_variables.into_values().cloned().collect();
    let answered = merged.unknown.into_iter().filter_map(|key| match key {
        RowKey::Request(id) => Some(id),
        _ => None,
    });
    commit.requests_answered.extend(answered);
    for (key, row) in merged.rows {
        put(key, row, &mut commit);
    }
    Some(MergedCommits { commit, answered_at, heads, replaced, first_written })
}

impl MergedRows {
    /// Applies the rows of a commit.
    fn add(&mut self, commit: &Commit) {
        let frames = commit.frames_removed.iter().cloned().map(RowKey::Frame);
        let variables = commit.variables_removed.iter().cloned().map(RowKey::Variable);
        let counters = commit.counters_removed.iter().cloned().map(RowKey::Counter);
        let requests = commit.requests_removed.iter().cloned().map(RowKey::Request);
        let removed = frames.chain(variables).chain(counters).chain(requests);
        let frames = commit.frames_put.iter().cloned().map(ReplacedRow::Frame);
        let variables = commit.variables_put.iter().cloned().map(ReplacedRow::Variable);
        let counters = commit.counters_put.iter().cloned().map(ReplacedRow::Counter);
        let messages = commit.messages.iter().cloned().map(ReplacedRow::Message);
        let requests = commit.requests_put.iter().cloned().map(ReplacedRow::Request);
        let stored = frames.chain(variables).chain(counters).chain(messages).chain(requests);
        let rows = removed.map(|key| (key, None)).chain(stored.map(|row| (row.key(), Some(row))));
        for key in commit.requests_answered.iter().cloned().map(RowKey::Request) {
            match self.rows.get_mut(&key) {
                Some(Some(ReplacedRow::Request(row))) if row.answered_at.is_none() => {
                    row.answered_at = Some(commit.updated_at.clone());
                }
                // It is answered already, or removed.
                Some(_) => {}
                None => _ = self.unknown.insert(key),
            }
        }
        // What is removed or put as well is known.
        for (key, row) in rows {
            self.unknown.remove(&key);
            self.rows.insert(key, row);
        }
    }
}

/// Adds a row to the commit that leaves it so.
fn put(key: RowKey, row: Option<ReplacedRow>, commit: &mut Commit) {
    match (key, row) {
        (_, Some(ReplacedRow::Frame(row))) => commit.frames_put.push(row),
        (_, Some(ReplacedRow::Variable(row))) => commit.variables_put.push(row),
        (_, Some(ReplacedRow::Counter(row))) => commit.counters_put.push(row),
        (_, Some(ReplacedRow::Request(row))) => commit.requests_put.push(row),
        (RowKey::Frame(key), None) => commit.frames_removed.push(key),
        (RowKey::Variable(key), None) => commit.variables_removed.push(key),
        (RowKey::Counter(name), None) => commit.counters_removed.push(name),
        (RowKey::Request(id), None) => commit.requests_removed.push(id),
        // Messages and cells are added in their order.
        _ => {}
    }
}
