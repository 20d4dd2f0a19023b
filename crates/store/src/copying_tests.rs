//! Copies between stores of every kind are equal to what was copied.

use crate::conformance::{NASTY, commit_at, event, message, new_session};
use crate::conformance_cells::cell;
use crate::conformance_links::{link, talk};
use crate::contract::Store;
use crate::copying::{SessionCopy, StoreCopying, copy_store, session_copy};
use crate::error::StoreError;
use crate::link_contract::LinkStore;
use crate::link_rows::{LinkRow, LinkTalkRow};
use crate::plan_contract::PlanStore;
use crate::plan_rows::{PlanEditOutcome, PlanEditRow, PlanRow, PlanTaskRow};
use crate::rows::{Commit, CounterRow, DocumentRow, FrameRow, RequestRow, TextRow, VariableKey, VariableRow};
use crate::sqlite::open::{open, open_read_only};
use crate::sqlite::store::SqliteStore;

fn new_file() -> (tempfile::TempDir, SqliteStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("sessions.db")).unwrap();
    (directory, store)
}

fn variable(scope: &str, name: &str, value: &str, at: &str) -> VariableRow {
    let [scope, name, value, at] = [scope, name, value, at].map(str::to_owned);
    VariableRow {
        scope,
        name,
        value,
        at,
        source: "test".into(),
        round: Some(3),
        sensitive: true,
        ..VariableRow::default()
    }
}

const LATE: &str = "2026-11-21T20:00:00Z";

/// A session with rows of every kind, most of which were replaced.
async fn fill(store: &dyn Store, id: &str) {
    let large = format!("\"{}\"", "output ".repeat(4_000));
    let documents = ["a", NASTY].map(|sha256| DocumentRow { sha256: sha256.into(), text: format!("text of {sha256}") });
    store.create(&new_session(id), &documents, &commit_at(0)).await.unwrap();
    for revision in 1..6_u64 {
        let commit = Commit {
            frames_put: vec![FrameRow { key: format!("f{}", revision % 2), state: NASTY.into() }],
            variables_put: vec![variable("session", "v", &revision.to_string(), LATE)],
            user_variables_put: vec![variable("global", NASTY, &format!("{id} {revision}"), LATE)],
            counters_put: vec![CounterRow { name: "n".into(), count: revision }],
            journal: vec![event(revision, "noted")],
            messages_kept: Some(revision / 2),
            messages: vec![message(revision / 2 + 1, &format!("{NASTY} {revision}"))],
            cells_kept: Some(u64::from(revision > 3)),
            cells_put: vec![cell(1 + u64::from(revision > 3), &format!("c{revision}"), &large)],
            answer_ids: vec![format!("a{revision}")],
            requests_put: vec![RequestRow {
                id: format!("r{revision}"),
                due_at: Some(LATE.into()),
                opened_at: LATE.into(),
                ..RequestRow::default()
            }],
            requests_answered: vec![format!("r{}", revision - 1)],
            texts: vec![TextRow::new(format!("long text {revision}"))],
            answers: revision,
            ..commit_at(revision)
        };
        // A cell keeps its id.
        let commit = match revision {
            2 | 3 => {
                Commit { cells_kept: None, cells_put: vec![cell(1, "c1", &format!("{revision}{large}"))], ..commit }
            }
            5 => Commit { cells_kept: Some(1), ..commit },
            _ => commit,
        };
        store.commit(id, &commit).await.unwrap();
    }
    let key = VariableKey { scope: "session".into(), path: String::new(), name: "v".into() };
    let last = Commit { variables_removed: vec![key], frames_removed: vec!["f1".into()], ..commit_at(6) };
    store.commit(id, &last).await.unwrap();
}

async fn fill_links(store: &dyn LinkStore) {
    for id in ["open", "revoked"] {
        store.create_link(&link(id)).await.unwrap();
    }
    let began = LinkTalkRow { is_started: true, session: "s".into(), ..talk("open", "a") };
    store.start_talk(&began, Some(1)).await.unwrap();
    let withdrawn = LinkTalkRow { withdrawn_at: Some("2026-11-23T00:00:00Z".into()), ..talk("revoked", "b") };
    store.start_talk(&withdrawn, None).await.unwrap();
    store.revoke_link("revoked", "2026-11-24T00:00:00Z").await.unwrap();
}

async fn fill_plan(store: &dyn PlanStore) {
    let (plan, task) = store.reserve_plan_ids(1, 3).await.unwrap();
    let tasks = [PlanTaskRow { id: task, rank: 1, body: NASTY.into(), parent: None }];
    let row = PlanRow { id: plan, user: "林".into(), title: NASTY.into(), ..PlanRow::default() };
    store.create_plan(&row, &tasks, "first", "made").await.unwrap();
    let put = vec![PlanTaskRow { id: task + 1, rank: -1, body: "{}".into(), parent: Some(task) }];
    let edit =
        PlanEditRow { plan, revision: 1, key: "second".into(), result: "edited".into(), put, ..PlanEditRow::default() };
    store.edit_plan(&edit).await.unwrap();
}

/// Fills a store with everything that can be copied.
async fn fill_all(store: &dyn StoreCopying) {
    fill(store, "s").await;
    fill(store, NASTY).await;
    fill_plan(store).await;
    fill_links(store).await;
}

/// Copies of all sessions, with the texts that each had of its own.
async fn sessions(store: &dyn StoreCopying, own: Option<&[SessionCopy]>) -> Vec<SessionCopy> {
    let mut copies = vec![];
    for row in store.sessions().await.unwrap() {
        let mut copy = session_copy(store, row).await.unwrap();
        let own = own.and_then(|own| own.iter().find(|other| other.row.id == copy.row.id));
        // A copy of a file has the parts of large rows as texts, too.
        copy.hidden.texts.retain(|hash| own.is_none_or(|own| own.hidden.texts.contains(hash)));
        for hash in &copy.hidden.texts {
            copy.rows
                .texts
                .push(TextRow { sha256: hash.clone(), text: store.text(&copy.row.id, hash).await.unwrap().unwrap() });
        }
        copies.push(copy);
    }
    copies
}

async fn copy_is_equal(from: &dyn StoreCopying, to: &dyn StoreCopying) {
    let original = sessions(from, None).await;
    let mut names = vec![];
    let report = copy_store(from, to, |id| names.push(id.to_owned())).await.unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!((report.copied.len(), report.unchanged, report.plans), (2, 0, 1));
    assert_eq!(names, report.copied);
    assert_eq!(sessions(to, Some(&original)).await, original);
    for user in ["default", "林"] {
        assert_eq!(to.user_variables(user).await.unwrap(), from.user_variables(user).await.unwrap());
        assert_eq!(to.plans(user).await.unwrap(), from.plans(user).await.unwrap());
    }
    for revision in 1..6 {
        let (there, here) =
            (to.earlier_state("s", revision).await.unwrap(), from.earlier_state("s", revision).await.unwrap());
        assert_eq!(there, here);
        assert!(here.is_some());
    }
    assert_eq!(to.document(NASTY).await.unwrap(), from.document(NASTY).await.unwrap());
    assert_eq!(to.links().await.unwrap(), from.links().await.unwrap());
    for id in ["open", "revoked"] {
        assert_eq!(to.talks(id).await.unwrap(), from.talks(id).await.unwrap());
    }
    // The session goes on there, and knows its answers.
    assert!(to.answer_accepted("s", "a3").await.unwrap());
    let plan = from.plans("林").await.unwrap().remove(0).id;
    assert_eq!(to.plan_copy(plan).await.unwrap(), from.plan_copy(plan).await.unwrap());
    assert_eq!(to.reserve_plan_ids(0, 0).await.unwrap(), from.reserve_plan_ids(0, 0).await.unwrap());
    let again = PlanEditRow { plan, revision: 1, key: "second".into(), ..PlanEditRow::default() };
    assert_eq!(to.edit_plan(&again).await.unwrap(), PlanEditOutcome::Repeated { result: "edited".into() });
    // Made again, it changes nothing.
    let report = copy_store(from, to, |id| panic!("{id} was copied again")).await.unwrap();
    assert!(report.is_complete() && report.unchanged == 2, "{report:?}");
}

#[tokio::test]
async fn a_copy_has_everything_that_was_copied() {
    let ((_first, from), (_second, to)) = (new_file(), new_file());
    fill_all(&from).await;
    copy_is_equal(&from, &to).await;
}

/// As on a disk that only reads, or in a folder of somebody else.
#[tokio::test]
async fn a_store_that_cannot_be_written_is_copied_too() {
    let ((first, from), (_second, to)) = (new_file(), new_file());
    fill_all(&from).await;
    let read_only = open_read_only(&first.path().join("sessions.db")).unwrap();
    assert!(matches!(read_only.lock("s", "me").await, Err(StoreError::ReadOnly { .. })));
    copy_is_equal(&read_only, &to).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_copy_in_a_database_and_back_has_everything() {
    use crate::postgres::tests::new_store;
    let Some(database) = new_store().await else { return };
    let ((_first, from), (_second, to)) = (new_file(), new_file());
    fill_all(&from).await;
    copy_is_equal(&from, &database).await;
    copy_is_equal(&database, &to).await;
    assert_eq!(database.commit("s", &commit_at(7)).await, to.commit("s", &commit_at(7)).await);
}

#[tokio::test]
async fn what_differs_or_is_in_use_is_left_as_it_is() {
    let ((_first, from), (_second, to)) = (new_file(), new_file());
    for id in ["same", "different", "held"] {
        from.create(&new_session(id), &[], &commit_at(0)).await.unwrap();
    }
    to.create(&new_session("different"), &[], &Commit { status: "other".into(), ..commit_at(0) }).await.unwrap();
    let newer = variable("global", "v", "\"newer\"", "2026-11-22T20:00:00Z");
    let older = variable("global", "v", "\"older\"", LATE);
    let put = |row: &VariableRow| Commit { user_variables_put: vec![row.clone()], ..commit_at(1) };
    from.commit("same", &put(&older)).await.unwrap();
    to.create(&new_session("own"), &[], &commit_at(0)).await.unwrap();
    to.commit("own", &put(&newer)).await.unwrap();
    let _lock = from.lock("held", "somebody").await.unwrap();
    let report = copy_store(&from, &to, |_| {}).await.unwrap();
    assert!(!report.is_complete());
    assert_eq!(report.copied, ["same"]);
    assert_eq!(report.different, ["different"]);
    assert_eq!(report.held, [("held".to_owned(), "somebody".to_owned())]);
    assert_eq!(to.session("different").await.unwrap().unwrap().status, "other");
    assert_eq!(to.user_variables("default").await.unwrap(), [newer]);
}

/// The texts are written while they are read, one at a time: without all of them there is no session.
#[tokio::test]
async fn a_session_with_a_text_that_cannot_be_read_is_not_copied_at_all() {
    let ((first, from), (_second, to)) = (new_file(), new_file());
    let texts: Vec<TextRow> = (0..9).map(|number| TextRow::new(format!("text {number}"))).collect();
    from.create(&new_session("s"), &[], &Commit { texts: texts.clone(), ..commit_at(0) }).await.unwrap();
    let damaged = texts.iter().map(|row| row.sha256.as_str()).max().unwrap();
    let connection = rusqlite::Connection::open(first.path().join("sessions.db")).unwrap();
    connection.execute("UPDATE blob SET text = 'other' WHERE sha256 = ?", [damaged]).unwrap();
    assert!(copy_store(&from, &to, |_| {}).await.is_err());
    assert!(to.session("s").await.unwrap().is_none());
    assert!(!to.has_text("s", &texts[0].sha256).await.unwrap());
    // Its lock is free again, and so is the file.
    let text = texts.iter().find(|row| row.sha256 == damaged).map(|row| row.text.as_str());
    connection.execute("UPDATE blob SET text = ? WHERE sha256 = ?", (text, damaged)).unwrap();
    assert_eq!(copy_store(&from, &to, |_| {}).await.unwrap().copied, ["s"]);
    for row in &texts {
        assert_eq!(to.text("s", &row.sha256).await.unwrap().as_ref(), Some(&row.text));
    }
}

/// A plan of this user, with one task.
async fn put_plan(store: &dyn PlanStore, (user, plan, task): (&str, u64, u64), key: &str) {
    let row = PlanRow { id: plan, user: user.into(), title: key.into(), ..PlanRow::default() };
    let tasks = [PlanTaskRow { id: task, rank: 1, body: "{}".into(), parent: None }];
    store.create_plan(&row, &tasks, key, "made").await.unwrap();
}

/// What the new store has in another place is left out, and everything after it is copied.
async fn what_is_taken_is_left_out(from: &dyn StoreCopying, to: &dyn StoreCopying) {
    put_plan(from, ("a", 1, 1), "task of another plan").await;
    put_plan(from, ("b", 2, 2), "first").await;
    put_plan(from, ("c", 3, 3), "other plan").await;
    put_plan(from, ("d", 4, 4), "last").await;
    from.reserve_plan_ids(100, 100).await.unwrap();
    put_plan(to, ("z", 9, 1), "there").await;
    put_plan(to, ("z", 8, 10), "first").await;
    put_plan(to, ("z", 3, 11), "there, too").await;
    for id in ["new", "token", "closed", "talks"] {
        from.create_link(&link(id)).await.unwrap();
        from.start_talk(&talk(id, "a"), None).await.unwrap();
    }
    from.create_link(&LinkRow { revoked_at: Some(LATE.into()), ..link("revoked") }).await.unwrap();
    to.create_link(&LinkRow { token_sha256: link("token").token_sha256, ..link("other") }).await.unwrap();
    to.create_link(&LinkRow { revoked_at: Some(LATE.into()), ..link("closed") }).await.unwrap();
    for id in ["talks", "revoked"] {
        to.create_link(&link(id)).await.unwrap();
    }
    let other = LinkTalkRow { session: "another one".into(), ..talk("talks", "a") };
    to.start_talk(&other, None).await.unwrap();
    let withdrawn = LinkTalkRow { withdrawn_at: Some(LATE.into()), ..talk("talks", "a") };
    from.update_talk(&withdrawn).await.unwrap();
    from.start_talk(&talk("talks", "b"), None).await.unwrap();
    let report = copy_store(from, to, |_| {}).await.unwrap();
    assert!(!report.is_complete());
    assert_eq!((report.different_plans.as_slice(), report.plans), ([1, 2, 3].as_slice(), 1));
    assert_eq!(to.plan(4).await.unwrap(), from.plan(4).await.unwrap());
    assert_eq!(to.plan(1).await.unwrap().map(|plan| plan.id), None);
    assert_eq!(to.plan_of_task(1).await.unwrap(), Some(9));
    assert_eq!(to.plan_of_task(2).await.unwrap(), None);
    let mut different = report.different_links;
    different.sort();
    assert_eq!(different, ["talks", "token"]);
    assert_eq!(to.talks("new").await.unwrap(), [talk("new", "a")]);
    assert_eq!(to.talks("token").await.unwrap(), []);
    assert_eq!(to.talks("talks").await.unwrap(), [other, talk("talks", "b")]);
    // A conversation that began before the link was revoked in the new store is there, and the link stays revoked.
    assert_eq!(to.talks("closed").await.unwrap(), [talk("closed", "a")]);
    let links = to.links().await.unwrap();
    let revoked: Vec<&str> = links.iter().filter(|row| row.revoked_at.is_some()).map(|row| row.id.as_str()).collect();
    assert_eq!(revoked, ["closed", "revoked"]);
    assert!(to.reserve_plan_ids(0, 0).await.unwrap() >= from.reserve_plan_ids(0, 0).await.unwrap());
}

#[tokio::test]
async fn what_is_taken_in_a_file_is_left_out() {
    let ((_first, from), (_second, to)) = (new_file(), new_file());
    what_is_taken_is_left_out(&from, &to).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn what_is_taken_in_a_database_is_left_out() {
    use crate::postgres::tests::new_store;
    let Some(database) = new_store().await else { return };
    let (_directory, from) = new_file();
    what_is_taken_is_left_out(&from, &database).await;
}

/// A copy that ends at the conversations of a link.
#[tokio::test]
async fn a_revoked_link_is_never_open_in_the_copy() {
    let ((_first, from), (second, to)) = (new_file(), new_file());
    fill_links(&from).await;
    // Only one conversation can be written.
    let connection = rusqlite::Connection::open(second.path().join("sessions.db")).unwrap();
    connection.execute_batch("CREATE UNIQUE INDEX one ON talk (is_started IS NULL)").unwrap();
    assert!(copy_store(&from, &to, |_| {}).await.is_err());
    let there: Vec<String> = to.links().await.unwrap().into_iter().map(|link| link.id).collect();
    assert_eq!(there, ["open"]);
    connection.execute_batch("DROP INDEX one").unwrap();
    assert!(copy_store(&from, &to, |_| {}).await.unwrap().is_complete());
    assert_eq!(to.links().await.unwrap(), from.links().await.unwrap());
    assert_eq!(to.talks("revoked").await.unwrap(), from.talks("revoked").await.unwrap());
}
