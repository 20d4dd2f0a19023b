//! Tests of the PostgreSQL store against a real server: the conformance suite, also through PgBouncer, leases, connections that break.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::conformance::{commit_at, conformance, event, message, new_session, start};
use crate::conformance_cells::cells_conformance;
use crate::conformance_links::links_conformance;
use crate::conformance_plans::plans_conformance;
use crate::conformance_requests::requests_conformance;
use crate::conformance_restoring::restoring_conformance;
use crate::contract::{LockNotice, LockReply, LockRequest, Store};
use crate::error::StoreError;
use crate::postgres::store::PostgresStore;
use crate::rows::{Commit, DocumentRow, NewSessionRow, RequestRow, SharedTexts, TextRow, VariableRow};

#[allow(unreachable_pub, reason = "other test binaries use it, too")]
#[path = "../../../../tests/support/database.rs"]
mod database;

use database::{connect, new_database, pooled, server};

/// The URL of a new database; ends the test without a server.
macro_rules! new_url {
    () => {{
        let Some(server) = server() else { return };
        new_database(&server).await
    }};
}

/// A store in a new database; none without a server.
pub(crate) async fn new_store() -> Option<PostgresStore> {
    Some(store(&new_database(&server()?).await))
}

fn store(url: &str) -> PostgresStore {
    PostgresStore::new(url).unwrap()
}

conformance!(((), store(&new_url!())));
cells_conformance!(((), store(&new_url!())));
links_conformance!(((), store(&new_url!())));
plans_conformance!(((), store(&new_url!())));
requests_conformance!(((), store(&new_url!())));
restoring_conformance!(((), store(&new_url!())));

#[tokio::test]
async fn commits_written_together_are_all_or_none() {
    crate::conformance_restoring::commits_written_together_are_all_or_none(&store(&new_url!())).await;
}

#[tokio::test]
async fn a_leased_session_can_be_asked_for() {
    let url = new_url!();
    let of_many = || store(&url).with_many_sessions();
    for other in [store(&url), of_many(), store(&pooled(&url))] {
        crate::conformance_locks::a_locked_session_can_be_asked_for(&of_many(), &other).await;
        crate::conformance_locks::a_process_that_runs_one_session_keeps_it(&store(&url), &other).await;
    }
}

/// A killed process keeps nothing: whoever asks waits until its leases expire.
#[tokio::test]
async fn a_process_that_runs_one_session_and_was_killed_is_waited_for() {
    let url = new_url!();
    let (terminal, server) = (store(&url), store(&url).with_many_sessions());
    let lease = terminal.lock("s", "a terminal").await.unwrap();
    let late = "UPDATE bcc_script.process SET expires_at = clock_timestamp() + interval '7 s'";
    connect(&url).await.batch_execute(late).await.unwrap();
    assert_eq!(server.ask_for("s", LockRequest::Release).await.unwrap(), LockReply::Asked);
    drop(lease);
}

/// A process that was running when a newer release changed the layout.
#[tokio::test]
async fn a_process_that_a_newer_version_has_overtaken_writes_nothing_more() {
    let url = new_url!();
    let store = store(&url).with_many_sessions();
    start(&store, "s").await;
    let lease = store.lock("s", "the owner").await.unwrap();
    connect(&url).await.batch_execute("UPDATE bcc_script.layout SET layout = 99").await.unwrap();
    let is_newer = |error: StoreError| assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    is_newer(store.commit("s", &commit_at(1)).await.unwrap_err());
    is_newer(store.commit_all("s", &Arc::new(vec![commit_at(1), commit_at(2)])).await.unwrap_err());
    is_newer(store.create(&new_session("t"), &[], &commit_at(0)).await.unwrap_err());
    is_newer(store.lock("t", "the owner").await.err().unwrap());
    is_newer(store.delete("t").await.unwrap_err());
    is_newer(store.claim_due("2100-01-01T00:00:00Z", 9).await.unwrap_err());
    is_newer(store.check_files().await.unwrap_err());
    let changes = "ALTER TABLE bcc_script.session RENAME COLUMN script TO script_id;
        ALTER FUNCTION bcc_script.delete_session RENAME TO remove_session";
    connect(&url).await.batch_execute(changes).await.unwrap();
    is_newer(store.session("s").await.unwrap_err());
    is_newer(store.delete("t").await.unwrap_err());
    drop(lease);
    let changes = "ALTER TABLE bcc_script.session RENAME COLUMN script_id TO script";
    connect(&url).await.batch_execute(changes).await.unwrap();
    let revisions: Vec<u64> = store.sessions().await.unwrap().iter().map(|row| row.revision).collect();
    assert_eq!(revisions, [1]);
}

/// A client of the server may go away at any moment, and with it whoever waits for the database.
#[tokio::test]
async fn a_session_that_nobody_waits_for_any_more_leaves_no_open_transaction() {
    let url = new_url!();
    let (writing, reading) = (store(&url), store(&url));
    let text = TextRow::new("a picture".to_owned());
    let shared = SharedTexts { session: "s".to_owned(), hashes: vec![text.sha256.clone()] };
    writing.create(&new_session("s"), &[], &Commit { texts: vec![text], ..commit_at(0) }).await.unwrap();
    let (mut revision, mut last_created) = (1, false);
    // Dropped after its first wake-up, its second one, and so on, until it is finished before.
    for polls in 1.. {
        let id = format!("copy-{polls}");
        let copy = NewSessionRow { texts: Some(shared.clone()), ..new_session(&id) };
        let first = commit_at(0);
        let mut count = 0;
        let mut create = Box::pin(writing.create(&copy, &[], &first));
        last_created = poll_fn(|context| {
            count += 1;
            match create.as_mut().poll(context) {
                Poll::Ready(created) => Poll::Ready(created.is_ok()),
                Poll::Pending if count >= polls => Poll::Ready(false),
                Poll::Pending => Poll::Pending,
            }
        })
        .await;
        drop(create);
        writing.commit("s", &commit_at(revision)).await.unwrap();
        revision += 1;
        // What is in no open transaction, every connection sees.
        assert_eq!(reading.session("s").await.unwrap().unwrap().revision, revision, "after {polls} polls");
        if last_created {
            assert!(reading.has_text(&id, &shared.hashes[0]).await.unwrap());
            break;
        }
        assert!(polls < 100, "it is never created");
    }
    assert!(last_created && revision > 3, "{revision}");
}

/// The same for whoever is the first to use an empty database, which gets its layout then.
#[tokio::test]
async fn a_first_use_that_nobody_waits_for_any_more_leaves_no_open_transaction() {
    let Some(server) = server() else { return };
    // Dropped after its first wake-up, its second one, and so on, until it is finished before.
    for polls in 1.. {
        assert!(polls < 100, "it is never finished");
        let url = new_database(&server).await;
        let (first, other) = (store(&url), store(&url));
        let (mut count, mut session) = (0, first.session("s"));
        let is_finished = poll_fn(|context| {
            count += 1;
            match session.as_mut().poll(context) {
                Poll::Ready(found) => Poll::Ready(found.is_ok()),
                Poll::Pending if count >= polls => Poll::Ready(false),
                Poll::Pending => Poll::Pending,
            }
        })
        .await;
        drop(session);
        let used = async {
            for store in [&other, &first] {
                store.session("s").await.unwrap();
            }
            start(&first, "s").await;
            assert!(other.session("s").await.unwrap().is_some(), "after {polls} polls");
        };
        tokio::time::timeout(Duration::from_secs(20), used).await.unwrap_or_else(|_| panic!("after {polls} polls"));
        if is_finished {
            break;
        }
    }
}

/// In transaction mode, each transaction may have another connection.
mod through_a_pooler {
    use super::{conformance, new_database, pooled, requests_conformance, server, store};

    conformance!(((), store(&pooled(&new_url!()))));
    requests_conformance!(((), store(&pooled(&new_url!()))));
}

/// Ends the leases of all processes, by the clock of the database.
async fn expire_all(url: &str) {
    let sql = "UPDATE bcc_script.process SET expires_at = clock_timestamp() - interval '1 s'";
    connect(url).await.batch_execute(sql).await.unwrap();
}

#[tokio::test]
async fn many_processes_create_one_store() {
    let url = new_url!();
    let stores: Vec<PostgresStore> = (0..12).map(|_| store(&url)).collect();
    let opened = stores.iter().map(|store| store.session("s"));
    for session in futures_of(opened).await {
        assert_eq!(session.unwrap(), None);
    }
    assert_eq!(stores[0].version().await.unwrap().1, 5);
}

/// The results of all futures, which run at the same time.
async fn futures_of<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.map(|future| Some(Box::pin(future))).collect();
    let mut results: Vec<Option<F::Output>> = waiting.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, result) in waiting.iter_mut().zip(&mut results) {
            if let Some(running) = future
                && let std::task::Poll::Ready(output) = running.as_mut().poll(context)
            {
                (*result, *future) = (Some(output), None);
            }
        }
        match waiting.iter().all(Option::is_none) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    results.into_iter().map(Option::unwrap).collect()
}

#[tokio::test]
async fn the_layout_of_a_database_is_told_without_a_change() {
    let url = new_url!();
    assert_eq!(store(&url).layouts().await.unwrap(), (0, 5));
    let schemas = "SELECT FROM pg_namespace WHERE nspname = 'bcc_script'";
    assert!(connect(&url).await.query(schemas, &[]).await.unwrap().is_empty());
    store(&url).session("s").await.unwrap();
    connect(&url).await.batch_execute("UPDATE bcc_script.layout SET layout = 3").await.unwrap();
    assert_eq!(store(&url).layouts().await.unwrap(), (3, 5));
    assert_eq!(store(&url).layouts().await.unwrap(), (3, 5), "it is not upgraded");
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_left_unchanged() {
    let url = new_url!();
    store(&url).session("s").await.unwrap();
    connect(&url).await.batch_execute("UPDATE bcc_script.layout SET layout = 99").await.unwrap();
    let error = store(&url).session("s").await.unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 99, known: 5, .. }), "{error}");
}

#[tokio::test]
async fn what_cannot_be_reached_is_named_without_its_password() {
    let Some(server) = server() else { return };
    let (start, _) = server.rsplit_once('/').unwrap();
    let missing = format!("{}/no_such_database", start.replace("postgres@", "postgres:geheim@"));
    for (url, why) in [
        (missing.as_str(), "the server has no such database"),
        ("postgres://u:geheim@%2Fno%2Fsuch%2Fplace/db", "no connection can be made"),
    ] {
        let error = store(url).session("s").await.unwrap_err();
        let StoreError::Unreachable { .. } = error else { panic!("{error}") };
        let text = error.to_string();
        assert!(text.contains(why) && !text.contains("geheim"), "{text}");
    }
    assert!(matches!(PostgresStore::new("postgres://u:geheim@:x/y").map(|_| ()), Err(StoreError::Unreachable { .. })));
}

#[tokio::test]
async fn a_lease_is_given_up_when_another_process_asks_for_it() {
    let url = new_url!();
    let (first, second) = (store(&url).with_many_sessions(), store(&url).with_many_sessions());
    start(&first, "s").await;
    let lease = first.lock("s", "the first").await.unwrap();
    let error = second.lock("s", "the second").await.err().unwrap();
    assert!(matches!(&error, StoreError::Held { holder, .. } if holder == "the first"), "{error}");
    assert_eq!(second.ask_for("s", LockRequest::Release).await.unwrap(), LockReply::Asked);
    assert_eq!(lease.notice().await, LockNotice::Wanted);
    // The owner still has it until it releases it.
    first.commit("s", &commit_at(1)).await.unwrap();
    drop(lease);
    let lease = taken(&second, "s").await;
    assert!(matches!(first.lock("s", "the first").await, Err(StoreError::Held { .. })));
    // The leases of a process end with it.
    drop((lease, second));
    drop(taken(&first, "s").await);
}

/// The lease of a session, once it is released.
async fn taken(store: &PostgresStore, id: &str) -> std::sync::Arc<dyn crate::contract::SessionLock> {
    loop {
        match store.lock(id, "another one").await {
            Ok(lease) => return lease,
            Err(StoreError::Held { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_process_that_has_lost_its_lease_cannot_commit() {
    let url = new_url!();
    let (first, second) = (store(&url).with_many_sessions(), store(&url).with_many_sessions());
    start(&first, "s").await;
    let lost = first.lock("s", "the first").await.unwrap();
    let lease = loop {
        // The first one may just renew it.
        expire_all(&url).await;
        if let Ok(lease) = second.lock("s", "the second").await {
            break lease;
        }
    };
    let error = first.commit("s", &commit_at(1)).await.unwrap_err();
    assert!(matches!(error, StoreError::LeaseLost { .. }), "{error}");
    // Also after it has noticed it, until its holder has gone.
    assert_eq!(lost.notice().await, LockNotice::Lost);
    let later = Arc::new(vec![commit_at(1), commit_at(2)]);
    for error in [first.commit("s", &commit_at(1)).await, first.commit_all("s", &later).await] {
        let error = error.unwrap_err();
        assert!(matches!(error, StoreError::LeaseLost { .. }), "{error}");
    }
    assert!(matches!(first.lock("s", "the first").await, Err(StoreError::Held { .. })));
    second.commit("s", &commit_at(1)).await.unwrap();
    assert_eq!(first.session("s").await.unwrap().unwrap().revision, 2);
    drop((lost, lease, second));
    drop(taken(&first, "s").await);
}

/// Somebody keeps what expired processes have left.
#[tokio::test]
async fn leases_are_renewed_while_something_else_takes_long() {
    let url = new_url!();
    let store = store(&url);
    let _lease = store.lock("s", "the owner").await.unwrap();
    let (keeping, looking) = (connect(&url).await, connect(&url).await);
    let expired = "INSERT INTO bcc_script.process (id, expires_at, runs_one)
        VALUES (1, clock_timestamp() - interval '2 h', false)";
    keeping.batch_execute(expired).await.unwrap();
    keeping.batch_execute("BEGIN; SELECT FROM bcc_script.process WHERE id = 1 FOR UPDATE").await.unwrap();
    let mut ends: Vec<String> = vec![];
    while ends.len() < 4 {
        let sql = "SELECT expires_at::text, expires_at > clock_timestamp() FROM bcc_script.process, pg_sleep(0.02)
            WHERE id <> 1";
        let row = looking.query_one(sql, &[]).await.unwrap();
        assert!(row.get::<_, bool>(1), "not renewed any more after {ends:?}");
        let end = row.get(0);
        if ends.last() != Some(&end) {
            ends.push(end);
        }
    }
}

#[tokio::test]
async fn due_sessions_are_claimed_by_one_process_each() {
    let url = new_url!();
    let (first, second) = (store(&url).with_many_sessions(), store(&url).with_many_sessions());
    for number in 0..40 {
        let request = RequestRow {
            id: "r".into(),
            kind: "time".into(),
            due_at: Some("2026-11-21T20:00:00Z".into()),
            opened_at: "2026-11-21T19:00:00Z".into(),
            ..RequestRow::default()
        };
        let waiting = Commit { requests_put: vec![request], ..commit_at(0) };
        first.create(&new_session(&format!("s{number}")), &[], &waiting).await.unwrap();
    }
    assert_eq!(first.claim_due("2026-11-21T20:00:00Z", 100).await.unwrap(), [""; 0]);
    let claims = (0..8).map(|number| match number % 2 {
        0 => first.claim_due("2026-11-21T20:00:01Z", 10),
        _ => second.claim_due("2026-11-21T20:00:01Z", 10),
    });
    let mut claimed: Vec<String> = futures_of(claims).await.into_iter().flat_map(Result::unwrap).collect();
    claimed.extend(first.claim_due("2026-11-21T20:00:01Z", 100).await.unwrap());
    claimed.sort();
    let mut expected: Vec<String> = (0..40).map(|number| format!("s{number}")).collect();
    expected.sort();
    assert_eq!(claimed, expected);
    // One that was claimed and not continued is claimed again later.
    let sql = "UPDATE bcc_script.request SET claimed_until = clock_timestamp() - interval '1 s' WHERE session = 1";
    connect(&url).await.batch_execute(sql).await.unwrap();
    assert_eq!(second.claim_due("2026-11-21T20:00:01Z", 100).await.unwrap().len(), 1);
}

/// What one of many commits writes.
fn nth(number: u64) -> Commit {
    Commit {
        journal: vec![event(number, "noted")],
        messages: vec![message(number, "text")],
        answer_ids: vec![format!("a{number}")],
        user_variables_put: vec![VariableRow {
            scope: "global".into(),
            name: format!("v{}", number % 3),
            value: number.to_string(),
            source: "test".into(),
            at: "2026-11-21T20:00:00Z".into(),
            ..VariableRow::default()
        }],
        ..commit_at(number)
    }
}

/// Connections are ended while commits of several sessions are on their way. Each commit is written once, and each caller learns it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_is_written_once_although_connections_break() {
    const COMMITS: u64 = 60;
    const WRITERS: u64 = 4;
    let url = new_url!();
    let store = Arc::new(store(&url));
    store.session("s").await.unwrap();
    let breaking = connect(&url).await;
    let (committed, mut commits) = tokio::sync::mpsc::unbounded_channel::<(u64, u64)>();
    // All connections break each time that every writer has got something through, so that each of them goes on
    // however slow the machine is.
    let breaker = tokio::spawn(async move {
        let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let (mut broken, mut finished, mut heard) = (0_i64, BTreeSet::new(), BTreeSet::new());
        while let Some((writer, number)) = commits.recv().await {
            heard.insert(writer);
            if number == COMMITS {
                finished.insert(writer);
            }
            if heard.union(&finished).count() as u64 == WRITERS {
                broken += breaking.query_one(sql, &[]).await.unwrap().get::<_, i64>(0);
                heard.clear();
            }
        }
        broken
    });
    let writers = (0..WRITERS).map(|writer| {
        let (store, committed) = (Arc::clone(&store), committed.clone());
        tokio::spawn(async move {
            let id = format!("s{writer}");
            let document = DocumentRow { sha256: "shared".into(), text: "text".into() };
            let first = Commit { revision: 0, ..nth(1) };
            store.create(&new_session(&id), &[document], &first).await.unwrap();
            for number in 2..=COMMITS {
                store.commit(&id, &Commit { revision: number - 1, ..nth(number) }).await.unwrap();
                committed.send((writer, number)).unwrap();
            }
            assert_eq!(store.session(&id).await.unwrap().unwrap().revision, COMMITS);
            let journal = store.journal(&id, 0, usize::MAX).await.unwrap();
            assert_eq!(journal.iter().map(|row| row.seq).collect::<Vec<_>>(), (1..=COMMITS).collect::<Vec<_>>());
            assert_eq!(store.messages(&id, 0, usize::MAX).await.unwrap().len(), COMMITS as usize);
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    drop(committed);
    assert!(breaker.await.unwrap() > 20, "hardly a connection was broken");
}
