//! The conformance tests of stores: cases that run against each implementation.

use crate::conformance_cells::cell;
pub(crate) use crate::conformance_pages::{
    sessions_are_listed_by_page_script_status_user_time_and_id, sessions_are_listed_by_their_last_change,
};
use crate::contract::Store;
use crate::error::StoreError;
use crate::rows::{
    Commit, CounterRow, DocumentRow, FrameRow, JournalRow, MessageRow, NewSessionRow, SessionRow, VariableRow,
};

/// Makes a test of every case; `$open` gives `(a value that must be kept alive, a store)`.
macro_rules! conformance {
    ($open:expr) => {
        $crate::conformance::conformance!(@ $open;
            a_session_is_read_as_it_was_written
            a_second_session_with_the_same_id_is_rejected_and_changes_nothing
            a_commit_changes_what_it_names_and_nothing_else
            a_commit_for_another_revision_leaves_nothing_behind
            rows_that_do_not_continue_the_numbering_are_rejected
            an_answer_is_accepted_once
            a_commit_to_a_missing_session_is_rejected
            a_missing_session_has_no_rows
            the_journal_is_read_in_pages
            one_kind_of_event_is_found_among_many
            the_last_messages_are_returned_oldest_first
            variables_of_a_user_are_shared_by_sessions_and_outlive_them
            any_text_is_stored_unchanged
            sessions_are_listed_by_their_last_change
            sessions_are_listed_by_page_script_status_user_time_and_id
            deleting_a_session_deletes_its_rows_and_its_documents
            pruning_deletes_old_sessions_that_are_not_locked
            a_lock_has_one_holder_and_is_released_on_drop
            numbers_up_to_i64_max_are_stored
        );
    };
    (@ $open:expr; $($case:ident)+) => { $(
        #[tokio::test]
        async fn $case() {
            let (_guard, store) = $open;
            $crate::conformance::$case(&store).await;
        }
    )+ };
}
pub(crate) use conformance;

/// Any text: CJK, combining marks, right-to-left, an emoji of several code points, controls, NUL, quotes of SQL and JSON.
pub(crate) const NASTY: &str =
    "林小姐说「好」\u{0}e\u{301} שלום 👩‍👩‍👧 \r\n\t'; DROP TABLE session;-- \"\\u0000\" \u{FEFF}\u{10FFFF}";

pub(crate) fn new_session(id: &str) -> NewSessionRow {
    NewSessionRow {
        id: id.into(),
        user: "default".into(),
        script: "intake".into(),
        script_name: Some("初次访谈".into()),
        script_sha256: "5c".into(),
        started_at: "2026-11-21T20:00:00Z".into(),
        settings: r#"{"scheme":"english"}"#.into(),
        manifest: r#"{"script":"5c"}"#.into(),
        texts: None,
    }
}

/// An empty commit at this revision.
pub(crate) fn commit_at(revision: u64) -> Commit {
    Commit {
        revision,
        status: "running".into(),
        updated_at: "2026-11-21T20:00:00Z".into(),
        location: "{}".into(),
        head: "{}".into(),
        ..Commit::default()
    }
}

pub(crate) fn event(seq: u64, kind: &str) -> JournalRow {
    JournalRow { seq, at: "2026-11-21T20:00:00Z".into(), kind: kind.into(), body: format!("{{\"seq\":{seq}}}") }
}

pub(crate) fn message(number: u64, text: &str) -> MessageRow {
    MessageRow {
        number,
        role: if number % 2 == 1 { "ai" } else { "user" }.into(),
        text: text.into(),
        at: "2026-11-21T20:00:00Z".into(),
        action_id: "ask_1".into(),
        round: 1,
        message_id: format!("m{number}"),
    }
}

fn variable(scope: &str, path: &str, name: &str, value: &str) -> VariableRow {
    VariableRow {
        scope: scope.into(),
        path: path.into(),
        name: name.into(),
        value: value.into(),
        source: "ask_1".into(),
        round: Some(2),
        at: "2026-11-21T20:00:00Z".into(),
        sensitive: true,
    }
}

fn document(sha256: &str, text: &str) -> DocumentRow {
    DocumentRow { sha256: sha256.into(), text: text.into() }
}

pub(crate) async fn start(store: &dyn Store, id: &str) {
    store.create(&new_session(id), &[], &commit_at(0)).await.unwrap();
}

/// Everything that a store returns about a session.
pub(crate) async fn read_all(store: &dyn Store, id: &str) -> impl PartialEq + std::fmt::Debug {
    (
        store.session(id).await.unwrap(),
        store.frames(id).await.unwrap(),
        store.variables(id).await.unwrap(),
        store.user_variables("default").await.unwrap(),
        store.counters(id).await.unwrap(),
        store.journal(id, 0, usize::MAX).await.unwrap(),
        store.messages(id, 0, usize::MAX).await.unwrap(),
        store.cells(id, 0, usize::MAX).await.unwrap(),
    )
}

/// A commit with one row of each kind, each the first of its kind.
fn one_of_each(revision: u64) -> Commit {
    Commit {
        frames_put: vec![FrameRow { key: "ask_1".into(), state: "1".into() }],
        variables_put: vec![variable("session", "", "age", "35")],
        user_variables_put: vec![variable("global", "", "name", "\"Lin\"")],
        counters_put: vec![CounterRow { name: "turns".into(), count: 1 }],
        journal: vec![event(1, "message")],
        messages: vec![message(1, "Hello")],
        cells_put: vec![cell(1, "c1", "x")],
        answer_ids: vec!["a1".into()],
        answers: 1,
        ..commit_at(revision)
    }
}

pub(crate) async fn a_session_is_read_as_it_was_written(store: &dyn Store) {
    let new = new_session("s");
    let first = Commit { status: "waiting_input".into(), location: "[1]".into(), head: "[2]".into(), ..one_of_each(0) };
    store.create(&new, &[document("5c", "text")], &first).await.unwrap();
    let expected = SessionRow {
        id: new.id,
        user: new.user,
        status: "waiting_input".into(),
        script: new.script,
        script_name: new.script_name,
        script_sha256: new.script_sha256,
        started_at: new.started_at,
        updated_at: first.updated_at,
        revision: 1,
        last_seq: 1,
        answers: 1,
        location: "[1]".into(),
        settings: new.settings,
        manifest: new.manifest,
        head: "[2]".into(),
    };
    assert_eq!(store.session("s").await.unwrap(), Some(expected.clone()));
    assert_eq!(store.sessions().await.unwrap(), [expected]);
    assert_eq!(store.frames("s").await.unwrap(), first.frames_put);
    assert_eq!(store.variables("s").await.unwrap(), first.variables_put);
    assert_eq!(store.user_variables("default").await.unwrap(), first.user_variables_put);
    assert_eq!(store.counters("s").await.unwrap(), first.counters_put);
    assert_eq!(store.journal("s", 0, 9).await.unwrap(), first.journal);
    assert_eq!(store.messages("s", 0, 9).await.unwrap(), first.messages);
    assert!(store.answer_accepted("s", "a1").await.unwrap());
    assert_eq!(store.document("5c").await.unwrap().as_deref(), Some("text"));
}

pub(crate) async fn a_second_session_with_the_same_id_is_rejected_and_changes_nothing(store: &dyn Store) {
    store.create(&new_session("s"), &[document("d", "first")], &one_of_each(0)).await.unwrap();
    let before = read_all(store, "s").await;
    let other = Commit { user_variables_put: vec![variable("global", "", "name", "\"other\"")], ..one_of_each(0) };
    let error = store.create(&new_session("s"), &[document("e", "second")], &other).await.unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    assert!(read_all(store, "s").await == before);
    assert_eq!(store.document("e").await.unwrap(), None);
    // A rejected first commit leaves no session behind either.
    let error = store.create(&new_session("t"), &[document("e", "second")], &one_of_each(7)).await.unwrap_err();
    assert!(matches!(error, StoreError::Conflict { expected: 7, found: 0, .. }), "{error}");
    assert_eq!(store.session("t").await.unwrap(), None);
    assert_eq!(store.document("e").await.unwrap(), None);
}

pub(crate) async fn a_commit_changes_what_it_names_and_nothing_else(store: &dyn Store) {
    let frame = |key: &str, state: &str| FrameRow { key: key.into(), state: state.into() };
    let first = Commit {
        frames_put: vec![frame("a", "1"), frame("b", "1"), frame("c", "1")],
        variables_put: vec![variable("topic", "t#2", "x", "1"), variable("topic", "t#1", "x", "1")],
        ..one_of_each(0)
    };
    start(store, "other").await;
    let other = read_all(store, "other").await;
    store.create(&new_session("s"), &[], &Commit { user_variables_put: vec![], ..first }).await.unwrap();
    let second = Commit {
        frames_put: vec![frame("b", "2"), frame("c", "2")],
        frames_removed: vec!["a".into(), "c".into(), "never there".into()],
        variables_put: vec![VariableRow { round: None, sensitive: false, ..variable("topic", "t#2", "x", "2") }],
        counters_put: vec![CounterRow { name: "turns".into(), count: 2 }],
        ..commit_at(1)
    };
    store.commit("s", &second).await.unwrap();
    assert_eq!(store.frames("s").await.unwrap(), [frame("b", "2"), frame("c", "2")]);
    assert_eq!(
        store.variables("s").await.unwrap(),
        [variable("topic", "t#1", "x", "1"), second.variables_put[0].clone()]
    );
    assert_eq!(store.counters("s").await.unwrap(), second.counters_put);
    assert_eq!(store.journal("s", 0, 9).await.unwrap().len(), 1);
    let row = store.session("s").await.unwrap().unwrap();
    assert_eq!((row.revision, row.last_seq, row.answers), (2, 1, 0));
    assert!(read_all(store, "other").await == other);
}

pub(crate) async fn a_commit_for_another_revision_leaves_nothing_behind(store: &dyn Store) {
    start(store, "s").await;
    let before = read_all(store, "s").await;
    for revision in [0, 2, u64::MAX] {
        let error = store.commit("s", &one_of_each(revision)).await.unwrap_err();
        let StoreError::Conflict { expected, found, .. } = error else { panic!("{error}") };
        assert_eq!((expected, found), (revision, 1));
    }
    assert!(read_all(store, "s").await == before);
    assert!(!store.answer_accepted("s", "a1").await.unwrap());
}

pub(crate) async fn rows_that_do_not_continue_the_numbering_are_rejected(store: &dyn Store) {
    start(store, "s").await;
    let before = read_all(store, "s").await;
    let journals =
        [vec![event(0, "k")], vec![event(2, "k")], vec![event(1, "k"), event(3, "k")], vec![event(1, "k"); 2]];
    for journal in journals {
        let error = store.commit("s", &Commit { journal, ..one_of_each(1) }).await.unwrap_err();
        assert!(matches!(error, StoreError::Gap { what: "event", .. }), "{error}");
    }
    for messages in [vec![message(2, "x")], vec![message(1, "x"), message(1, "y")]] {
        let error = store.commit("s", &Commit { messages, ..one_of_each(1) }).await.unwrap_err();
        assert!(matches!(error, StoreError::Gap { what: "message", .. }), "{error}");
    }
    assert!(read_all(store, "s").await == before);
    store.commit("s", &one_of_each(1)).await.unwrap();
    let again = Commit { answer_ids: vec![], ..one_of_each(2) };
    let error = store.commit("s", &again).await.unwrap_err();
    assert!(matches!(error, StoreError::Gap { what: "event", expected: 2, found: 1, .. }), "{error}");
}

pub(crate) async fn an_answer_is_accepted_once(store: &dyn Store) {
    start(store, "s").await;
    start(store, "t").await;
    store.commit("s", &one_of_each(1)).await.unwrap();
    let before = read_all(store, "s").await;
    for answer_ids in [vec!["a2".to_owned(), "a1".into()], vec!["a3".into(), "a3".into()]] {
        let again = Commit { answer_ids, frames_put: vec![FrameRow::default()], ..commit_at(2) };
        let error = store.commit("s", &again).await.unwrap_err();
        assert!(matches!(error, StoreError::AnswerTaken { .. }), "{error}");
    }
    assert!(read_all(store, "s").await == before);
    assert!(store.answer_accepted("s", "a1").await.unwrap());
    assert!(!store.answer_accepted("s", "a2").await.unwrap());
    assert!(!store.answer_accepted("t", "a1").await.unwrap(), "another session has its own answers");
}

pub(crate) async fn a_commit_to_a_missing_session_is_rejected(store: &dyn Store) {
    let error = store.commit("s", &one_of_each(0)).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert_eq!(store.user_variables("default").await.unwrap(), []);
}

pub(crate) async fn a_missing_session_has_no_rows(store: &dyn Store) {
    assert_eq!(store.session("s").await.unwrap(), None);
    assert_eq!(store.sessions().await.unwrap(), []);
    assert_eq!(store.frames("s").await.unwrap(), []);
    assert_eq!(store.variables("s").await.unwrap(), []);
    assert_eq!(store.counters("s").await.unwrap(), []);
    assert_eq!(store.journal("s", 0, 9).await.unwrap(), []);
    assert_eq!(store.journal_by_kind("s", "k", 0, 9).await.unwrap(), []);
    assert_eq!(store.last_by_kind("s", "k").await.unwrap(), None);
    assert_eq!(store.messages("s", 0, 9).await.unwrap(), []);
    assert_eq!(store.messages_tail("s", 9).await.unwrap(), []);
    assert!(!store.answer_accepted("s", "a").await.unwrap());
    assert_eq!(store.document("d").await.unwrap(), None);
    assert!(!store.delete("s").await.unwrap());
    assert_eq!(store.prune("2030-01-01T00:00:00Z").await.unwrap(), Vec::<String>::new());
}

fn seqs(rows: &[JournalRow]) -> Vec<u64> {
    rows.iter().map(|row| row.seq).collect()
}

pub(crate) async fn the_journal_is_read_in_pages(store: &dyn Store) {
    // Two sessions are written alternately: neither returns rows of the other.
    start(store, "s").await;
    start(store, "t").await;
    for seq in 1..=10 {
        for id in ["s", "t"] {
            let row = JournalRow { body: format!("\"{id}{seq}\""), ..event(seq, "k") };
            store.commit(id, &Commit { journal: vec![row], ..commit_at(seq) }).await.unwrap();
        }
    }
    let table: [(u64, usize, &[u64]); 7] = [
        (0, 3, &[1, 2, 3]),
        (3, 3, &[4, 5, 6]),
        (8, 100, &[9, 10]),
        (10, 5, &[]),
        (0, 0, &[]),
        (11, 5, &[]),
        (u64::MAX, usize::MAX, &[]),
    ];
    for (after, limit, expected) in table {
        assert_eq!(seqs(&store.journal("s", after, limit).await.unwrap()), expected, "after {after}, {limit}");
    }
    assert_eq!(store.journal("t", 9, 9).await.unwrap()[0].body, "\"t10\"");
}

pub(crate) async fn one_kind_of_event_is_found_among_many(store: &dyn Store) {
    start(store, "other").await;
    start(store, "s").await;
    // Many events of one kind, some of a second, one of a third, over several hundred rows.
    let kind = |seq: u64| match seq {
        70 => "rare",
        seq if seq % 64 == 63 || seq % 64 == 0 || seq == 1 => "some",
        _ => "many",
    };
    for turn in 0..50 {
        let journal: Vec<_> = (turn * 10 + 1..=turn * 10 + 10).map(|seq| event(seq, kind(seq))).collect();
        store.commit("s", &Commit { journal: journal.clone(), ..commit_at(turn + 1) }).await.unwrap();
        let other = journal.into_iter().map(|row| JournalRow { kind: "many".into(), ..row }).collect();
        store.commit("other", &Commit { journal: other, ..commit_at(turn + 1) }).await.unwrap();
    }
    for name in ["many", "some", "rare", "none"] {
        let expected: Vec<u64> = (1..=500).filter(|seq| kind(*seq) == name).collect();
        for after in [0, 1, 62, 63, 64, 65, 69, 70, 71, 499, 500, 501, u64::MAX] {
            for limit in [0, 1, 3, usize::MAX] {
                let found = store.journal_by_kind("s", name, after, limit).await.unwrap();
                let expected: Vec<u64> = expected.iter().copied().filter(|seq| *seq > after).take(limit).collect();
                assert_eq!(seqs(&found), expected, "{name} after {after}, {limit}");
                assert!(found.iter().all(|row| row.kind == name));
            }
        }
        let last = store.last_by_kind("s", name).await.unwrap().map(|row| row.seq);
        assert_eq!(last, expected.last().copied(), "{name}");
    }
    assert_eq!(store.last_by_kind("other", "some").await.unwrap(), None);
}

pub(crate) async fn the_last_messages_are_returned_oldest_first(store: &dyn Store) {
    start(store, "s").await;
    start(store, "t").await;
    for id in ["s", "t"] {
        let messages = (1..=5).map(|number| message(number, id)).collect();
        store.commit(id, &Commit { messages, ..commit_at(1) }).await.unwrap();
    }
    let numbers = |rows: Vec<MessageRow>| rows.iter().map(|row| row.number).collect::<Vec<_>>();
    let table: [(usize, &[u64]); 4] = [(0, &[]), (2, &[4, 5]), (5, &[1, 2, 3, 4, 5]), (usize::MAX, &[1, 2, 3, 4, 5])];
    for (count, expected) in table {
        let found = store.messages_tail("s", count).await.unwrap();
        assert!(found.iter().all(|row| row.text == "s"));
        assert_eq!(numbers(found), expected);
    }
    assert_eq!(numbers(store.messages("t", 1, 2).await.unwrap()), [2, 3]);
    assert_eq!(numbers(store.messages("t", 4, 9).await.unwrap()), [5]);
    assert_eq!(numbers(store.messages("t", u64::MAX, 9).await.unwrap()), [0; 0]);
}

pub(crate) async fn variables_of_a_user_are_shared_by_sessions_and_outlive_them(store: &dyn Store) {
    start(store, "s").await;
    start(store, "t").await;
    let mut other_user = new_session("u");
    other_user.user = "林".into();
    store.create(&other_user, &[], &commit_at(0)).await.unwrap();
    let put = |value: &str, revision| Commit {
        user_variables_put: vec![variable("global", "", "name", value)],
        ..commit_at(revision)
    };
    store.commit("s", &put("1", 1)).await.unwrap();
    store.commit("t", &put("2", 1)).await.unwrap();
    store.commit("u", &put("3", 1)).await.unwrap();
    assert!(store.delete("s").await.unwrap() && store.delete("t").await.unwrap());
    assert_eq!(store.user_variables("default").await.unwrap(), [variable("global", "", "name", "2")]);
    assert_eq!(store.user_variables("林").await.unwrap(), [variable("global", "", "name", "3")]);
    assert_eq!(store.variables("u").await.unwrap(), []);
}

pub(crate) async fn any_text_is_stored_unchanged(store: &dyn Store) {
    let long = NASTY.repeat((1 << 20) / NASTY.len() + 1);
    // Ids that are the same up to a NUL, or that look like paths, are different ids.
    for id in ["", NASTY, "a\0b", "a\0c", "../../x", &long] {
        let texts = Commit {
            status: NASTY.into(),
            location: long.clone(),
            head: long.clone(),
            frames_put: vec![FrameRow { key: NASTY.into(), state: long.clone() }],
            variables_put: vec![variable(NASTY, NASTY, NASTY, &long)],
            counters_put: vec![CounterRow { name: NASTY.into(), count: 1 }],
            journal: vec![JournalRow { body: long.clone(), ..event(1, NASTY) }],
            messages: vec![message(1, &long)],
            answer_ids: vec![NASTY.into(), "a\0b".into(), "a\0c".into()],
            ..commit_at(0)
        };
        let new = NewSessionRow { script_name: None, manifest: long.clone(), user: NASTY.into(), ..new_session(id) };
        store.create(&new, &[document(NASTY, &long)], &texts).await.unwrap();
        let row = store.session(id).await.unwrap().unwrap();
        assert!(row.id == id && row.manifest == long && row.head == long && row.script_name.is_none());
        assert!(store.frames(id).await.unwrap() == texts.frames_put);
        assert!(store.variables(id).await.unwrap() == texts.variables_put);
        assert!(store.counters(id).await.unwrap() == texts.counters_put);
        assert!(store.journal(id, 0, 9).await.unwrap() == texts.journal);
        assert!(store.last_by_kind(id, NASTY).await.unwrap().as_ref() == texts.journal.first());
        assert!(store.messages_tail(id, 9).await.unwrap() == texts.messages);
        assert!(store.answer_accepted(id, "a\0c").await.unwrap() && !store.answer_accepted(id, "a").await.unwrap());
        assert!(store.document(NASTY).await.unwrap().as_deref() == Some(&long));
        drop(store.lock(id, NASTY).await.unwrap());
    }
    assert_eq!(store.sessions().await.unwrap().len(), 6);
    assert!(store.session("a").await.unwrap().is_none());
}

pub(crate) async fn deleting_a_session_deletes_its_rows_and_its_documents(store: &dyn Store) {
    let shared = [document("shared", "x"), document("shared", "x")];
    store.create(&new_session("s"), &[shared[0].clone(), document("own", "y")], &one_of_each(0)).await.unwrap();
    store.create(&new_session("t"), &shared, &Commit { user_variables_put: vec![], ..one_of_each(0) }).await.unwrap();
    let other = read_all(store, "t").await;
    assert!(store.delete("s").await.unwrap());
    assert!(!store.delete("s").await.unwrap());
    assert_eq!(store.document("own").await.unwrap(), None);
    assert_eq!(store.document("shared").await.unwrap().as_deref(), Some("x"));
    assert!(read_all(store, "t").await == other);
    // The id is free again, and the new session contains nothing of the old one.
    start(store, "s").await;
    assert_eq!(store.journal("s", 0, 9).await.unwrap(), []);
    assert_eq!(store.journal_by_kind("s", "message", 0, 9).await.unwrap(), []);
    assert_eq!(store.messages("s", 0, 9).await.unwrap(), []);
    assert_eq!(store.cells("s", 0, 9).await.unwrap(), []);
    assert_eq!(store.cell("s", "c1").await.unwrap(), None);
    assert_eq!(store.frames("s").await.unwrap(), []);
    assert_eq!(store.variables("s").await.unwrap(), []);
    assert_eq!(store.counters("s").await.unwrap(), []);
    assert!(!store.answer_accepted("s", "a1").await.unwrap());
    assert!(store.delete("t").await.unwrap());
    assert_eq!(store.document("shared").await.unwrap(), None);
}

pub(crate) async fn pruning_deletes_old_sessions_that_are_not_locked(store: &dyn Store) {
    for (id, time) in [("old", "20:00:00Z"), ("older", "19:00:00Z"), ("held", "18:00:00Z"), ("new", "20:00:00.5Z")] {
        let first = Commit { updated_at: format!("2026-11-21T{time}"), ..commit_at(0) };
        store.create(&new_session(id), &[], &first).await.unwrap();
    }
    let lock = store.lock("held", "process 7").await.unwrap();
    assert_eq!(store.prune("2026-11-21T20:00:00.5Z").await.unwrap(), ["older", "old"]);
    let left: Vec<_> = store.sessions().await.unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(left, ["new", "held"]);
    drop(lock);
    assert_eq!(store.prune("2026-11-21T20:00:00.5Z").await.unwrap(), ["held"]);
}

pub(crate) async fn a_lock_has_one_holder_and_is_released_on_drop(store: &dyn Store) {
    start(store, "s").await;
    let lock = store.lock("s", "process 4711 on 林").await.unwrap();
    for error in [store.lock("s", "me").await.err().unwrap(), store.delete("s").await.unwrap_err()] {
        let StoreError::Held { holder, .. } = error else { panic!("{error}") };
        assert_eq!(holder, "process 4711 on 林");
    }
    let other = store.lock("t", "me").await.unwrap();
    // The lock does not block its holder.
    store.commit("s", &commit_at(1)).await.unwrap();
    drop(lock);
    let lock = store.lock("s", "me").await.unwrap();
    drop((lock, other));
    assert!(store.delete("s").await.unwrap());
}

pub(crate) async fn numbers_up_to_i64_max_are_stored(store: &dyn Store) {
    start(store, "s").await;
    let max = i64::MAX.unsigned_abs();
    let put = Commit {
        answers: max,
        counters_put: vec![CounterRow { name: "n".into(), count: max }],
        variables_put: vec![VariableRow { round: Some(u32::MAX), ..variable("session", "", "n", "1") }],
        ..commit_at(1)
    };
    store.commit("s", &put).await.unwrap();
    assert_eq!(store.session("s").await.unwrap().unwrap().answers, max);
    assert_eq!(store.counters("s").await.unwrap(), put.counters_put);
    assert_eq!(store.variables("s").await.unwrap(), put.variables_put);
}
