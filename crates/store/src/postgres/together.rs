//! Writes commits of a session that follow each other with one statement: what `functions_2.sql` takes.

use serde::Serialize;
use tokio_postgres::types::Type;

use crate::error::StoreError;
use crate::postgres::client::Database;
use crate::postgres::error::Concern;
use crate::postgres::schema::if_known;
use crate::postgres::write::{CommitColumns, before, check_numbering, json, random_number};
use crate::replaced::{ReplacedHead, ReplacedRow, RowKey, written_keys};
use crate::rows::Commit;
use crate::series::{MergedCommits, merged};

/// A row that the store may have, with the number of the commit that writes it first.
#[derive(Serialize)]
struct WrittenRow<K> {
    key: K,
    n: usize,
}

#[derive(Serialize)]
struct WrittenVariable<'k> {
    scope: &'k str,
    path: &'k str,
    name: &'k str,
    n: usize,
}

/// The keys of all rows that are written.
#[derive(Default, Serialize)]
struct WrittenRows<'k> {
    frames: Vec<WrittenRow<&'k str>>,
    variables: Vec<WrittenVariable<'k>>,
    counters: Vec<WrittenRow<&'k str>>,
    requests: Vec<WrittenRow<&'k str>>,
    messages: Vec<WrittenRow<u64>>,
}

impl<'k> WrittenRows<'k> {
    fn add(&mut self, key: &'k RowKey, n: usize) {
        match key {
            RowKey::Frame(key) => self.frames.push(WrittenRow { key, n }),
            RowKey::Variable(key) => {
                self.variables.push(WrittenVariable { scope: &key.scope, path: &key.path, name: &key.name, n });
            }
            RowKey::Counter(key) => self.counters.push(WrittenRow { key, n }),
            RowKey::Request(key) => self.requests.push(WrittenRow { key, n }),
            RowKey::Message(number) => self.messages.push(WrittenRow { key: *number, n }),
            // Commits with cells are not merged.
            RowKey::Cell(_) => {}
        }
    }
}

/// A head that a commit after the first one replaces.
#[derive(Serialize)]
struct HeadRow<'r> {
    n: usize,
    status: &'r str,
    answers: u64,
    /// None if the commits have no events.
    last_seq: Option<u64>,
    location: &'r str,
    head: &'r str,
}

impl<'r> HeadRow<'r> {
    fn new(n: usize, found: &'r ReplacedHead, has_events: bool) -> Self {
        let ReplacedHead { status, location, head, answers, last_seq } = found;
        Self { n, status, answers: *answers, last_seq: has_events.then_some(*last_seq), location, head }
    }
}

/// A row that a commit replaces and an earlier one has written.
#[derive(Serialize)]
struct ReplacedEntry<'r> {
    n: usize,
    key: &'r RowKey,
    row: &'r Option<ReplacedRow>,
}

/// Writes the commits; returns whether they could be merged. If not, nothing is written.
pub(crate) async fn commit(
    database: &Database,
    key: &[u8],
    id: &str,
    token: Option<i64>,
    commits: &[Commit],
) -> Result<bool, StoreError> {
    let store = database.name.as_str();
    let first_seq = commits.iter().find_map(|commit| commit.journal.first()).map(|event| event.seq);
    let last_seq = before(first_seq);
    // The function of the database writes no cells.
    if commits.iter().any(|commit| !commit.cells_put.is_empty()) {
        return Ok(false);
    }
    let Some(merged) = merged(commits, last_seq.unwrap_or(0).unsigned_abs()) else { return Ok(false) };
    for (number, commit) in commits.iter().enumerate() {
        let expected = merged.commit.revision.saturating_add(number as u64);
        if commit.revision != expected {
            let (store, id) = (store.to_owned(), id.to_owned());
            return Err(StoreError::Conflict { store, id, expected: commit.revision, found: expected });
        }
    }
    let MergedCommits { commit, answered_at, heads, replaced, first_written } = &merged;
    check_numbering(store, id, commit)?;
    let columns = CommitColumns::new(store, commit, Some(answered_at))?;
    let keys = written_keys(commit);
    let mut written = WrittenRows::default();
    for key in &keys {
        written.add(key, first_written.get(key).copied().unwrap_or(0));
    }
    let heads: Vec<HeadRow<'_>> =
        (1..).zip(heads).map(|(n, found)| HeadRow::new(n, found, last_seq.is_some())).collect();
    let replaced: Vec<ReplacedEntry<'_>> =
        replaced.iter().map(|(n, key, row)| ReplacedEntry { n: *n, key, row }).collect();
    let [written, heads, replaced] = [json(store, &written)?, json(store, &heads)?, json(store, &replaced)?];
    let (number, last_message) = (random_number(), before(commit.messages.first().map(|row| row.number)));
    let count = i64::try_from(commits.len()).unwrap_or(i64::MAX);
    let sql = &if_known(
        "SELECT bcc_script.commit_together($1, $2, $3, $4, $5, $6, $7::text::jsonb, $8::text::jsonb, $9::text::jsonb,
        $10::text::jsonb, $11, $12, $13, $14, $15)",
    );
    let parameters = &[
        (&key as _, Type::BYTEA),
        (&token as _, Type::INT8),
        (&number as _, Type::INT8),
        (&last_seq as _, Type::INT8),
        (&last_message as _, Type::INT8),
        (&count as _, Type::INT8),
        (&columns.rows as _, Type::TEXT),
        (&written as _, Type::TEXT),
        (&heads as _, Type::TEXT),
        (&replaced as _, Type::TEXT),
        (&columns.at as _, Type::TEXT_ARRAY),
        (&columns.kind as _, Type::TEXT_ARRAY),
        (&columns.body as _, Type::TEXT_ARRAY),
        (&columns.sha256 as _, Type::TEXT_ARRAY),
        (&columns.text as _, Type::TEXT_ARRAY),
    ];
    let concern = Concern { session: id, revision: commit.revision, ..Concern::default() };
    database.rows(sql, parameters, concern).await?;
    Ok(true)
}
