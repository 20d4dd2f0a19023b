//! What every archive must do, as cases that run against each implementation.

use crate::conformance_cells::cell;
use crate::contract::Store;
use crate::error::StoreError;
use crate::rows::{
    Commit, CounterRow, DocumentRow, FrameRow, JournalRow, MessageRow, NewSessionRow, SessionRow, VariableRow,
};

/// Makes a test of every case; `$open` gives `(what must be kept alive, an archive)`.
macro_rules! conformance {
    ($open:expr) => {
        $crate::conformance::conformance!(@ $open;
            a_session_comes_back_as_it_was_written
            a_second_session_of_the_same_id_is_refused_and_changes_nothing
            a_commit_changes_what_it_names_and_nothing_else
            a_commit_for_another_revision_leaves_nothing_behind
            rows_that_do_not_go_on_where_the_session_ends_are_refused
            an_answer_is_taken_once
            a_commit_to_a_session_that_is_not_there_is_refused
            a_session_that_is_not_there_has_no_rows
            the_journal_is_read_in_pages
            one_kind_of_event_is_found_among_many
            the_end_of_the_transcript_comes_oldest_first
            variables_of_a_user_are_shared_by_sessions_and_outlive_them
            any_text_goes_in_and_comes_out_unchanged
            sessions_are_listed_by_their_last_change
            a_deleted_session_takes_its_own_rows_and_documents_along
            pruning_takes_old_sessions_that_nobody_holds
            a_lock_is_held_by_one_and_let_go_on_drop
            numbers_reach_as_far_as_i64
        );
    };
    (@ $open:expr; $($case:ident)+) => { $(
        #[tokio::test]
        async fn $case() {
            let (_kept, archive) = $open;
            $crate::conformance::$case(&archive).await;
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

pub(crate) async fn start(archive: &dyn Store, id: &str) {
    archive.create(&new_session(id), &[], &commit_at(0)).await.unwrap();
}

/// Everything that an archive says about a session.
pub(crate) async fn all_of(archive: &dyn Store, id: &str) -> impl PartialEq + std::fmt::Debug {
    (
        archive.session(id).await.unwrap(),
        archive.frames(id).await.unwrap(),
        archive.variables(id).await.unwrap(),
        archive.user_variables("default").await.unwrap(),
        archive.counters(id).await.unwrap(),
        archive.journal(id, 0, usize::MAX).await.unwrap(),
        archive.messages(id, 0, usize::MAX).await.unwrap(),
        archive.cells(id, 0, usize::MAX).await.unwrap(),
    )
}

/// A commit with a row of each sort, the first of each.
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

pub(crate) async fn a_session_comes_back_as_it_was_written(archive: &dyn Store) {
    let new = new_session("s");
    let first = Commit { status: "waiting_input".into(), location: "[1]".into(), head: "[2]".into(), ..one_of_each(0) };
    archive.create(&new, &[document("5c", "text")], &first).await.unwrap();
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
    assert_eq!(archive.session("s").await.unwrap(), Some(expected.clone()));
    assert_eq!(archive.sessions().await.unwrap(), [expected]);
    assert_eq!(archive.frames("s").await.unwrap(), first.frames_put);
    assert_eq!(archive.variables("s").await.unwrap(), first.variables_put);
    assert_eq!(archive.user_variables("default").await.unwrap(), first.user_variables_put);
    assert_eq!(archive.counters("s").await.unwrap(), first.counters_put);
    assert_eq!(archive.journal("s", 0, 9).await.unwrap(), first.journal);
    assert_eq!(archive.messages("s", 0, 9).await.unwrap(), first.messages);
    assert!(archive.answer_taken("s", "a1").await.unwrap());
    assert_eq!(archive.document("5c").await.unwrap().as_deref(), Some("text"));
}

pub(crate) async fn a_second_session_of_the_same_id_is_refused_and_changes_nothing(archive: &dyn Store) {
    archive.create(&new_session("s"), &[document("d", "first")], &one_of_each(0)).await.unwrap();
    let before = all_of(archive, "s").await;
    let other = Commit { user_variables_put: vec![variable("global", "", "name", "\"other\"")], ..one_of_each(0) };
    let refused = archive.create(&new_session("s"), &[document("e", "second")], &other).await.unwrap_err();
    assert!(matches!(refused, StoreError::Exists { .. }), "{refused}");
    assert!(all_of(archive, "s").await == before);
    assert_eq!(archive.document("e").await.unwrap(), None);
    // A first commit that does not fit leaves no session behind either.
    let refused = archive.create(&new_session("t"), &[document("e", "second")], &one_of_each(7)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Conflict { expected: 7, found: 0, .. }), "{refused}");
    assert_eq!(archive.session("t").await.unwrap(), None);
    assert_eq!(archive.document("e").await.unwrap(), None);
}

pub(crate) async fn a_commit_changes_what_it_names_and_nothing_else(archive: &dyn Store) {
    let frame = |key: &str, state: &str| FrameRow { key: key.into(), state: state.into() };
    let first = Commit {
        frames_put: vec![frame("a", "1"), frame("b", "1"), frame("c", "1")],
        variables_put: vec![variable("topic", "t#2", "x", "1"), variable("topic", "t#1", "x", "1")],
        ..one_of_each(0)
    };
    start(archive, "other").await;
    let other = all_of(archive, "other").await;
    archive.create(&new_session("s"), &[], &Commit { user_variables_put: vec![], ..first }).await.unwrap();
    let second = Commit {
        frames_put: vec![frame("b", "2"), frame("c", "2")],
        frames_removed: vec!["a".into(), "c".into(), "never there".into()],
        variables_put: vec![VariableRow { round: None, sensitive: false, ..variable("topic", "t#2", "x", "2") }],
        counters_put: vec![CounterRow { name: "turns".into(), count: 2 }],
        ..commit_at(1)
    };
    archive.commit("s", &second).await.unwrap();
    assert_eq!(archive.frames("s").await.unwrap(), [frame("b", "2"), frame("c", "2")]);
    assert_eq!(
        archive.variables("s").await.unwrap(),
        [variable("topic", "t#1", "x", "1"), second.variables_put[0].clone()]
    );
    assert_eq!(archive.counters("s").await.unwrap(), second.counters_put);
    assert_eq!(archive.journal("s", 0, 9).await.unwrap().len(), 1);
    let row = archive.session("s").await.unwrap().unwrap();
    assert_eq!((row.revision, row.last_seq, row.answers), (2, 1, 0));
    assert!(all_of(archive, "other").await == other);
}

pub(crate) async fn a_commit_for_another_revision_leaves_nothing_behind(archive: &dyn Store) {
    start(archive, "s").await;
    let before = all_of(archive, "s").await;
    for revision in [0, 2, u64::MAX] {
        let refused = archive.commit("s", &one_of_each(revision)).await.unwrap_err();
        let StoreError::Conflict { expected, found, .. } = refused else { panic!("{refused}") };
        assert_eq!((expected, found), (revision, 1));
    }
    assert!(all_of(archive, "s").await == before);
    assert!(!archive.answer_taken("s", "a1").await.unwrap());
}

pub(crate) async fn rows_that_do_not_go_on_where_the_session_ends_are_refused(archive: &dyn Store) {
    start(archive, "s").await;
    let before = all_of(archive, "s").await;
    let journals =
        [vec![event(0, "k")], vec![event(2, "k")], vec![event(1, "k"), event(3, "k")], vec![event(1, "k"); 2]];
    for journal in journals {
        let refused = archive.commit("s", &Commit { journal, ..one_of_each(1) }).await.unwrap_err();
        assert!(matches!(refused, StoreError::Gap { what: "event", .. }), "{refused}");
    }
    for messages in [vec![message(2, "x")], vec![message(1, "x"), message(1, "y")]] {
        let refused = archive.commit("s", &Commit { messages, ..one_of_each(1) }).await.unwrap_err();
        assert!(matches!(refused, StoreError::Gap { what: "message", .. }), "{refused}");
    }
    assert!(all_of(archive, "s").await == before);
    archive.commit("s", &one_of_each(1)).await.unwrap();
    let again = Commit { answer_ids: vec![], ..one_of_each(2) };
    let refused = archive.commit("s", &again).await.unwrap_err();
    assert!(matches!(refused, StoreError::Gap { what: "event", expected: 2, found: 1, .. }), "{refused}");
}

pub(crate) async fn an_answer_is_taken_once(archive: &dyn Store) {
    start(archive, "s").await;
    start(archive, "t").await;
    archive.commit("s", &one_of_each(1)).await.unwrap();
    let before = all_of(archive, "s").await;
    for answer_ids in [vec!["a2".to_owned(), "a1".into()], vec!["a3".into(), "a3".into()]] {
        let again = Commit { answer_ids, frames_put: vec![FrameRow::default()], ..commit_at(2) };
        let refused = archive.commit("s", &again).await.unwrap_err();
        assert!(matches!(refused, StoreError::AnswerTaken { .. }), "{refused}");
    }
    assert!(all_of(archive, "s").await == before);
    assert!(archive.answer_taken("s", "a1").await.unwrap());
    assert!(!archive.answer_taken("s", "a2").await.unwrap());
    assert!(!archive.answer_taken("t", "a1").await.unwrap(), "another session has its own answers");
}

pub(crate) async fn a_commit_to_a_session_that_is_not_there_is_refused(archive: &dyn Store) {
    let refused = archive.commit("s", &one_of_each(0)).await.unwrap_err();
    assert!(matches!(refused, StoreError::NotFound { .. }), "{refused}");
    assert_eq!(archive.user_variables("default").await.unwrap(), []);
}

pub(crate) async fn a_session_that_is_not_there_has_no_rows(archive: &dyn Store) {
    assert_eq!(archive.session("s").await.unwrap(), None);
    assert_eq!(archive.sessions().await.unwrap(), []);
    assert_eq!(archive.frames("s").await.unwrap(), []);
    assert_eq!(archive.variables("s").await.unwrap(), []);
    assert_eq!(archive.counters("s").await.unwrap(), []);
    assert_eq!(archive.journal("s", 0, 9).await.unwrap(), []);
    assert_eq!(archive.journal_of("s", "k", 0, 9).await.unwrap(), []);
    assert_eq!(archive.last_of("s", "k").await.unwrap(), None);
    assert_eq!(archive.messages("s", 0, 9).await.unwrap(), []);
    assert_eq!(archive.messages_tail("s", 9).await.unwrap(), []);
    assert!(!archive.answer_taken("s", "a").await.unwrap());
    assert_eq!(archive.document("d").await.unwrap(), None);
    assert!(!archive.delete("s").await.unwrap());
    assert_eq!(archive.prune("2030-01-01T00:00:00Z").await.unwrap(), Vec::<String>::new());
}

fn seqs(rows: &[JournalRow]) -> Vec<u64> {
    rows.iter().map(|row| row.seq).collect()
}

pub(crate) async fn the_journal_is_read_in_pages(archive: &dyn Store) {
    // Two sessions written in turns: neither reads the other's rows.
    start(archive, "s").await;
    start(archive, "t").await;
    for seq in 1..=10 {
        for id in ["s", "t"] {
            let row = JournalRow { body: format!("\"{id}{seq}\""), ..event(seq, "k") };
            archive.commit(id, &Commit { journal: vec![row], ..commit_at(seq) }).await.unwrap();
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
        assert_eq!(seqs(&archive.journal("s", after, limit).await.unwrap()), expected, "after {after}, {limit}");
    }
    assert_eq!(archive.journal("t", 9, 9).await.unwrap()[0].body, "\"t10\"");
}

pub(crate) async fn one_kind_of_event_is_found_among_many(archive: &dyn Store) {
    start(archive, "other").await;
    start(archive, "s").await;
    // Many events of one kind, some of a second, one of a third, over several hundred rows.
    let kind = |seq: u64| match seq {
        70 => "rare",
        seq if seq % 64 == 63 || seq % 64 == 0 || seq == 1 => "some",
        _ => "many",
    };
    for turn in 0..50 {
        let journal: Vec<_> = (turn * 10 + 1..=turn * 10 + 10).map(|seq| event(seq, kind(seq))).collect();
        archive.commit("s", &Commit { journal: journal.clone(), ..commit_at(turn + 1) }).await.unwrap();
        let other = journal.into_iter().map(|row| JournalRow { kind: "many".into(), ..row }).collect();
        archive.commit("other", &Commit { journal: other, ..commit_at(turn + 1) }).await.unwrap();
    }
    for name in ["many", "some", "rare", "none"] {
        let expected: Vec<u64> = (1..=500).filter(|seq| kind(*seq) == name).collect();
        for after in [0, 1, 62, 63, 64, 65, 69, 70, 71, 499, 500, 501, u64::MAX] {
            for limit in [0, 1, 3, usize::MAX] {
                let found = archive.journal_of("s", name, after, limit).await.unwrap();
                let expected: Vec<u64> = expected.iter().copied().filter(|seq| *seq > after).take(limit).collect();
                assert_eq!(seqs(&found), expected, "{name} after {after}, {limit}");
                assert!(found.iter().all(|row| row.kind == name));
            }
        }
        let last = archive.last_of("s", name).await.unwrap().map(|row| row.seq);
        assert_eq!(last, expected.last().copied(), "{name}");
    }
    assert_eq!(archive.last_of("other", "some").await.unwrap(), None);
}

pub(crate) async fn the_end_of_the_transcript_comes_oldest_first(archive: &dyn Store) {
    start(archive, "s").await;
    start(archive, "t").await;
    for id in ["s", "t"] {
        let messages = (1..=5).map(|number| message(number, id)).collect();
        archive.commit(id, &Commit { messages, ..commit_at(1) }).await.unwrap();
    }
    let numbers = |rows: Vec<MessageRow>| rows.iter().map(|row| row.number).collect::<Vec<_>>();
    let table: [(usize, &[u64]); 4] = [(0, &[]), (2, &[4, 5]), (5, &[1, 2, 3, 4, 5]), (usize::MAX, &[1, 2, 3, 4, 5])];
    for (count, expected) in table {
        let found = archive.messages_tail("s", count).await.unwrap();
        assert!(found.iter().all(|row| row.text == "s"));
        assert_eq!(numbers(found), expected);
    }
    assert_eq!(numbers(archive.messages("t", 1, 2).await.unwrap()), [2, 3]);
    assert_eq!(numbers(archive.messages("t", 4, 9).await.unwrap()), [5]);
    assert_eq!(numbers(archive.messages("t", u64::MAX, 9).await.unwrap()), [0; 0]);
}

pub(crate) async fn variables_of_a_user_are_shared_by_sessions_and_outlive_them(archive: &dyn Store) {
    start(archive, "s").await;
    start(archive, "t").await;
    let mut stranger = new_session("u");
    stranger.user = "林".into();
    archive.create(&stranger, &[], &commit_at(0)).await.unwrap();
    let put = |value: &str, revision| Commit {
        user_variables_put: vec![variable("global", "", "name", value)],
        ..commit_at(revision)
    };
    archive.commit("s", &put("1", 1)).await.unwrap();
    archive.commit("t", &put("2", 1)).await.unwrap();
    archive.commit("u", &put("3", 1)).await.unwrap();
    assert!(archive.delete("s").await.unwrap() && archive.delete("t").await.unwrap());
    assert_eq!(archive.user_variables("default").await.unwrap(), [variable("global", "", "name", "2")]);
    assert_eq!(archive.user_variables("林").await.unwrap(), [variable("global", "", "name", "3")]);
    assert_eq!(archive.variables("u").await.unwrap(), []);
}

pub(crate) async fn any_text_goes_in_and_comes_out_unchanged(archive: &dyn Store) {
    let long = NASTY.repeat((1 << 20) / NASTY.len() + 1);
    // Ids that are the same up to a NUL, or look like a path, are different ids.
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
        archive.create(&new, &[document(NASTY, &long)], &texts).await.unwrap();
        let row = archive.session(id).await.unwrap().unwrap();
        assert!(row.id == id && row.manifest == long && row.head == long && row.script_name.is_none());
        assert!(archive.frames(id).await.unwrap() == texts.frames_put);
        assert!(archive.variables(id).await.unwrap() == texts.variables_put);
        assert!(archive.counters(id).await.unwrap() == texts.counters_put);
        assert!(archive.journal(id, 0, 9).await.unwrap() == texts.journal);
        assert!(archive.last_of(id, NASTY).await.unwrap().as_ref() == texts.journal.first());
        assert!(archive.messages_tail(id, 9).await.unwrap() == texts.messages);
        assert!(archive.answer_taken(id, "a\0c").await.unwrap() && !archive.answer_taken(id, "a").await.unwrap());
        assert!(archive.document(NASTY).await.unwrap().as_deref() == Some(&long));
        drop(archive.lock(id, NASTY).await.unwrap());
    }
    assert_eq!(archive.sessions().await.unwrap().len(), 6);
    assert!(archive.session("a").await.unwrap().is_none());
}

pub(crate) async fn sessions_are_listed_by_their_last_change(archive: &dyn Store) {
    let times =
        [("b", "20:00:00Z"), ("a", "20:00:00Z"), ("c", "20:00:00.5Z"), ("d", "20:00:00.25Z"), ("e", "19:59:59Z")];
    for (id, time) in times {
        let first = Commit { updated_at: format!("2026-11-21T{time}"), ..commit_at(0) };
        archive.create(&new_session(id), &[], &first).await.unwrap();
    }
    let ids: Vec<_> = archive.sessions().await.unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(ids, ["c", "d", "a", "b", "e"]);
}

pub(crate) async fn a_deleted_session_takes_its_own_rows_and_documents_along(archive: &dyn Store) {
    let shared = [document("shared", "x"), document("shared", "x")];
    archive.create(&new_session("s"), &[shared[0].clone(), document("own", "y")], &one_of_each(0)).await.unwrap();
    archive.create(&new_session("t"), &shared, &Commit { user_variables_put: vec![], ..one_of_each(0) }).await.unwrap();
    let other = all_of(archive, "t").await;
    assert!(archive.delete("s").await.unwrap());
    assert!(!archive.delete("s").await.unwrap());
    assert_eq!(archive.document("own").await.unwrap(), None);
    assert_eq!(archive.document("shared").await.unwrap().as_deref(), Some("x"));
    assert!(all_of(archive, "t").await == other);
    // The id is free again, and nothing of the old session shows in the new one.
    start(archive, "s").await;
    assert_eq!(archive.journal("s", 0, 9).await.unwrap(), []);
    assert_eq!(archive.journal_of("s", "message", 0, 9).await.unwrap(), []);
    assert_eq!(archive.messages("s", 0, 9).await.unwrap(), []);
    assert_eq!(archive.cells("s", 0, 9).await.unwrap(), []);
    assert_eq!(archive.cell("s", "c1").await.unwrap(), None);
    assert_eq!(archive.frames("s").await.unwrap(), []);
    assert_eq!(archive.variables("s").await.unwrap(), []);
    assert_eq!(archive.counters("s").await.unwrap(), []);
    assert!(!archive.answer_taken("s", "a1").await.unwrap());
    assert!(archive.delete("t").await.unwrap());
    assert_eq!(archive.document("shared").await.unwrap(), None);
}

pub(crate) async fn pruning_takes_old_sessions_that_nobody_holds(archive: &dyn Store) {
    for (id, time) in [("old", "20:00:00Z"), ("older", "19:00:00Z"), ("held", "18:00:00Z"), ("new", "20:00:00.5Z")] {
        let first = Commit { updated_at: format!("2026-11-21T{time}"), ..commit_at(0) };
        archive.create(&new_session(id), &[], &first).await.unwrap();
    }
    let lock = archive.lock("held", "process 7").await.unwrap();
    assert_eq!(archive.prune("2026-11-21T20:00:00.5Z").await.unwrap(), ["older", "old"]);
    let left: Vec<_> = archive.sessions().await.unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(left, ["new", "held"]);
    drop(lock);
    assert_eq!(archive.prune("2026-11-21T20:00:00.5Z").await.unwrap(), ["held"]);
}

pub(crate) async fn a_lock_is_held_by_one_and_let_go_on_drop(archive: &dyn Store) {
    start(archive, "s").await;
    let lock = archive.lock("s", "process 4711 on 林").await.unwrap();
    for refused in [archive.lock("s", "me").await.err().unwrap(), archive.delete("s").await.unwrap_err()] {
        let StoreError::Held { holder, .. } = refused else { panic!("{refused}") };
        assert_eq!(holder, "process 4711 on 林");
    }
    let other = archive.lock("t", "me").await.unwrap();
    // A hold is no hindrance to whoever has it.
    archive.commit("s", &commit_at(1)).await.unwrap();
    drop(lock);
    let lock = archive.lock("s", "me").await.unwrap();
    drop((lock, other));
    assert!(archive.delete("s").await.unwrap());
}

pub(crate) async fn numbers_reach_as_far_as_i64(archive: &dyn Store) {
    start(archive, "s").await;
    let most = i64::MAX.unsigned_abs();
    let put = Commit {
        answers: most,
        counters_put: vec![CounterRow { name: "n".into(), count: most }],
        variables_put: vec![VariableRow { round: Some(u32::MAX), ..variable("session", "", "n", "1") }],
        ..commit_at(1)
    };
    archive.commit("s", &put).await.unwrap();
    assert_eq!(archive.session("s").await.unwrap().unwrap().answers, most);
    assert_eq!(archive.counters("s").await.unwrap(), put.counters_put);
    assert_eq!(archive.variables("s").await.unwrap(), put.variables_put);
}
