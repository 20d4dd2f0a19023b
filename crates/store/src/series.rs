//! Several commits of a session as one: what a store writes when it is given them together. Each keeps its revision.

use std::collections::BTreeMap;

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

/// What is known of a row after some of the commits.
#[allow(clippy::large_enum_variant, reason = "nearly all of them are stored")]
enum Row {
    Stored(ReplacedRow),
    Removed,
    /// It is changed where only the store knows it.
    Unknown,
}

/// Merges commits of a session that has `last_seq` events; none if one of them depends on what the store has after another one.
pub(crate) fn merged(commits: &[Commit], last_seq: u64) -> Option<MergedCommits> {
    let (first, last) = (commits.first()?, commits.last()?);
    let is_simple =
        |commit: &Commit| commit.messages_kept.is_none() && commit.cells_kept.is_none() && commit.cells_put.is_empty();
    let mut answering = commits.iter().filter(|commit| !commit.requests_answered.is_empty());
    let answered_at = answering.next().unwrap_or(last).updated_at.clone();
    if !commits.iter().all(is_simple) || answering.next().is_some() {
        return None;
    }
    let mut rows: BTreeMap<RowKey, Row> = BTreeMap::new();
    let (mut heads, mut replaced, mut first_written) = (vec![], vec![], BTreeMap::new());
    let mut seq = last_seq;
    for (number, commit) in commits.iter().enumerate() {
        for key in written_keys(commit) {
            match rows.get(&key) {
                Some(Row::Unknown) => return None,
                Some(Row::Stored(row)) => replaced.push((number, key, Some(row.clone()))),
                Some(Row::Removed) => replaced.push((number, key, None)),
                None if number > 0 => _ = first_written.insert(key, number),
                None => {}
            }
        }
        write(commit, &mut rows);
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
        commit.answer_ids.extend_from_slice(&part.answer_ids);
        commit.requests_answered.extend_from_slice(&part.requests_answered);
        commit.texts.extend_from_slice(&part.texts);
    }
    commit.user_variables_put = user_variables.into_values().cloned().collect();
    for (key, row) in rows {
        put(key, row, &mut commit);
    }
    Some(MergedCommits { commit, answered_at, heads, replaced, first_written })
}

/// Applies the rows of a commit.
fn write(commit: &Commit, rows: &mut BTreeMap<RowKey, Row>) {
    // What is removed as well is gone, and what is put as well is known.
    rows.extend(commit.requests_answered.iter().map(|id| (RowKey::Request(id.clone()), Row::Unknown)));
    rows.extend(commit.frames_removed.iter().map(|key| (RowKey::Frame(key.clone()), Row::Removed)));
    rows.extend(commit.variables_removed.iter().map(|key| (RowKey::Variable(key.clone()), Row::Removed)));
    rows.extend(commit.counters_removed.iter().map(|name| (RowKey::Counter(name.clone()), Row::Removed)));
    rows.extend(commit.requests_removed.iter().map(|id| (RowKey::Request(id.clone()), Row::Removed)));
    let frames = commit.frames_put.iter().cloned().map(ReplacedRow::Frame);
    let variables = commit.variables_put.iter().cloned().map(ReplacedRow::Variable);
    let counters = commit.counters_put.iter().cloned().map(ReplacedRow::Counter);
    let messages = commit.messages.iter().cloned().map(ReplacedRow::Message);
    let requests = commit.requests_put.iter().cloned().map(ReplacedRow::Request);
    let stored = frames.chain(variables).chain(counters).chain(messages).chain(requests);
    rows.extend(stored.map(|row| (row.key(), Row::Stored(row))));
}

/// Adds a row to the commit that leaves it so.
fn put(key: RowKey, row: Row, commit: &mut Commit) {
    match (key, row) {
        (_, Row::Stored(ReplacedRow::Frame(row))) => commit.frames_put.push(row),
        (_, Row::Stored(ReplacedRow::Variable(row))) => commit.variables_put.push(row),
        (_, Row::Stored(ReplacedRow::Counter(row))) => commit.counters_put.push(row),
        (_, Row::Stored(ReplacedRow::Request(row))) => commit.requests_put.push(row),
        (RowKey::Frame(key), Row::Removed) => commit.frames_removed.push(key),
        (RowKey::Variable(key), Row::Removed) => commit.variables_removed.push(key),
        (RowKey::Counter(name), Row::Removed) => commit.counters_removed.push(name),
        (RowKey::Request(id), Row::Removed) => commit.requests_removed.push(id),
        // Messages are added in their order; answered requests are listed.
        _ => {}
    }
}
