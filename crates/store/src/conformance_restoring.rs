//! The conformance tests of stores for what commits replace: any earlier state can be restored.

use crate::conformance::{commit_at, event, message, new_session, start};
use crate::conformance_cells::cell;
use crate::contract::Store;
use crate::error::StoreError;
use crate::rows::{
    CellRow, Commit, CounterRow, EarlierState, FrameRow, MessageRow, RequestRow, VariableKey, VariableRow,
};

/// Makes a test of every case, as [`crate::conformance::conformance`] does.
macro_rules! restoring_conformance {
    ($open:expr) => {
        $crate::conformance_restoring::restoring_conformance!(@ $open;
            every_earlier_state_can_be_restored
            the_rows_that_a_commit_replaced_are_returned
            what_is_not_part_of_the_state_stays
            an_earlier_revision_is_found_by_its_status_and_answers
            a_revision_that_is_not_earlier_has_no_state
            a_failed_commit_keeps_nothing
            a_deleted_session_has_no_earlier_states
            commits_written_together_are_like_commits_one_by_one
            a_request_is_opened_and_answered_by_commits_written_together
        );
    };
    (@ $open:expr; $($case:ident)+) => { $(
        #[tokio::test]
        async fn $case() {
            let (_guard, store) = $open;
            $crate::conformance_restoring::$case(&store).await;
        }
    )+ };
}
pub(crate) use restoring_conformance;

/// The state of a session, without its revision.
#[derive(Debug, PartialEq)]
struct Snapshot {
    head: [String; 3],
    answers: u64,
    frames: Vec<FrameRow>,
    variables: Vec<VariableRow>,
    counters: Vec<CounterRow>,
    messages: Vec<MessageRow>,
    cells: Vec<CellRow>,
    requests: Vec<RequestRow>,
}

async fn snapshot(store: &dyn Store) -> Snapshot {
    snapshot_of(store, "s").await
}

async fn snapshot_of(store: &dyn Store, id: &str) -> Snapshot {
    let row = store.session(id).await.unwrap().unwrap();
    Snapshot {
        head: [row.status, row.location, row.head],
        answers: row.answers,
        frames: store.frames(id).await.unwrap(),
        variables: store.variables(id).await.unwrap(),
        counters: store.counters(id).await.unwrap(),
        messages: store.messages(id, 0, usize::MAX).await.unwrap(),
        cells: store.cells(id, 0, usize::MAX).await.unwrap(),
        requests: store.requests(id).await.unwrap(),
    }
}

/// The commit at `revision` that restores `state`.
fn restoring(state: EarlierState, revision: u64) -> Commit {
    let EarlierState { status, location, head, answers, changes, .. } = state;
    Commit { revision, status, location, head, answers, updated_at: "2026-11-21T21:00:00Z".into(), ..changes }
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn some(&mut self, kinds: u64) -> Vec<u64> {
        let count = self.below(3);
        (0..count).map(|_| self.below(kinds)).collect()
    }
}

fn variable(number: u64, value: u64) -> VariableRow {
    let scope = if number.is_multiple_of(2) { "session" } else { "topic" };
    VariableRow {
        scope: scope.into(),
        path: format!("\"{}", number / 2),
        name: "名".into(),
        value: value.to_string(),
        ..VariableRow::default()
    }
}

fn request(id: u64, text: u64) -> RequestRow {
    let odd = text % 2 == 1;
    RequestRow {
        id: format!("a{id}"),
        kind: "input".into(),
        prompt: text.to_string(),
        due_at: odd.then(|| "2026-11-21T20:00:00Z".into()),
        opened_at: "2026-11-21T20:00:00Z".into(),
        ..RequestRow::default()
    }
}

/// Any changes of a state.
fn random_commit(numbers: &mut Numbers, now: &Snapshot, revision: u64) -> Commit {
    let key = |number: u64| VariableKey { name: "名".into(), ..variable(number, 0).key() };
    let (messages, cells) = (now.messages.len() as u64, now.cells.len() as u64);
    let messages_kept = (numbers.below(6) == 0).then(|| numbers.below(messages + 1));
    let cells_kept = (numbers.below(6) == 0).then(|| numbers.below(cells + 1));
    let (last_message, last_cell) = (messages_kept.unwrap_or(messages), cells_kept.unwrap_or(cells));
    let mut cells_put: Vec<CellRow> = now.cells.iter().take(last_cell as usize).cloned().collect();
    cells_put.retain(|_| numbers.below(4) == 0);
    cells_put.iter_mut().for_each(|row| row.body = format!("\"changed at {revision}\""));
    cells_put.extend((1..=numbers.below(3)).map(|new| cell(last_cell + new, &format!("c{revision}.{new}"), "new")));
    let texts = (1..=numbers.below(3)).map(|new| message(last_message + new, &format!("said at {revision}")));
    Commit {
        status: ["running", "waiting_input"][numbers.below(2) as usize].into(),
        location: format!("[{revision}]"),
        head: format!("{{\"revision\":{revision}}}"),
        answers: numbers.below(5),
        frames_removed: numbers.some(5).iter().map(|frame| format!("f{frame}")).collect(),
        frames_put: numbers
            .some(5)
            .iter()
            .map(|frame| FrameRow { key: format!("f{frame}"), state: revision.to_string() })
            .collect(),
        variables_removed: numbers.some(6).into_iter().map(key).collect(),
        variables_put: numbers.some(6).into_iter().map(|number| variable(number, revision)).collect(),
        counters_removed: numbers.some(4).iter().map(|name| format!("n{name}")).collect(),
        counters_put: numbers
            .some(4)
            .iter()
            .map(|name| CounterRow { name: format!("n{name}"), count: revision })
            .collect(),
        messages_kept,
        messages: texts.collect(),
        cells_kept,
        cells_put,
        requests_removed: numbers.some(5).iter().map(|id| format!("a{id}")).collect(),
        requests_answered: numbers.some(5).iter().map(|id| format!("a{id}")).collect(),
        requests_put: numbers.some(5).into_iter().map(|id| request(id, revision)).collect(),
        ..commit_at(revision)
    }
}

pub(crate) async fn every_earlier_state_can_be_restored(store: &dyn Store) {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    start(store, "s").await;
    start(store, "other").await;
    // The state at each revision from 1 on.
    let mut states = vec![snapshot(store).await];
    for step in 0..300 {
        let revision = states.len() as u64;
        // Changes of another session do not matter.
        store
            .commit("other", &Commit { counters_put: vec![CounterRow::default()], ..commit_at(step + 1) })
            .await
            .unwrap();
        if step < 60 && numbers.below(4) > 0 {
            let now = states.last().unwrap();
            store.commit("s", &random_commit(&mut numbers, now, revision)).await.unwrap();
            states.push(snapshot(store).await);
            continue;
        }
        let earlier = 1 + numbers.below(revision);
        let Some(state) = store.earlier_state("s", earlier).await.unwrap() else {
            assert_eq!(earlier, revision, "only the current state is not an earlier one");
            continue;
        };
        store.commit("s", &restoring(state, revision)).await.unwrap();
        let restored = snapshot(store).await;
        assert_eq!(restored, states[earlier as usize - 1], "revision {earlier} at revision {revision}");
        states.push(restored);
    }
}

pub(crate) async fn the_rows_that_a_commit_replaced_are_returned(store: &dyn Store) {
    let frame = |state: &str| FrameRow { key: "f".into(), state: state.into() };
    let first =
        Commit { frames_put: vec![frame("1")], head: "[1]".into(), status: "waiting_input".into(), ..commit_at(0) };
    store.create(&new_session("s"), &[], &first).await.unwrap();
    let sensitive = VariableRow { sensitive: true, round: Some(2), ..variable(1, 35) };
    let second = Commit {
        frames_put: vec![frame("2")],
        variables_put: vec![sensitive.clone()],
        journal: vec![event(1, "k")],
        ..commit_at(1)
    };
    store.commit("s", &second).await.unwrap();
    let third = Commit {
        frames_removed: vec!["f".into()],
        variables_put: vec![VariableRow { value: "36".into(), ..sensitive.clone() }],
        messages: vec![message(1, "x")],
        cells_put: vec![cell(1, "c", "x")],
        ..commit_at(2)
    };
    store.commit("s", &third).await.unwrap();
    let state = store.earlier_state("s", 1).await.unwrap().unwrap();
    assert_eq!((state.revision, state.last_seq, &*state.head, &*state.status), (1, 0, "[1]", "waiting_input"));
    let expected = Commit {
        frames_put: vec![frame("1")],
        variables_removed: vec![sensitive.key()],
        messages_kept: Some(0),
        cells_kept: Some(0),
        ..Commit::default()
    };
    assert_eq!(state.changes, expected);
    let state = store.earlier_state("s", 2).await.unwrap().unwrap();
    assert_eq!((state.last_seq, &*state.head), (1, "{}"));
    // Values are kept as they were, not masked: they are restored.
    assert_eq!(state.changes.variables_put, [sensitive]);
    assert_eq!(state.changes.frames_put, [frame("2")]);
}

pub(crate) async fn what_is_not_part_of_the_state_stays(store: &dyn Store) {
    start(store, "s").await;
    let commit = Commit {
        journal: vec![event(1, "k")],
        user_variables_put: vec![VariableRow { scope: "global".into(), name: "name".into(), ..VariableRow::default() }],
        answer_ids: vec!["a1".into()],
        ..commit_at(1)
    };
    store.commit("s", &commit).await.unwrap();
    let state = store.earlier_state("s", 1).await.unwrap().unwrap();
    assert_eq!(state.changes, Commit::default());
    store.commit("s", &restoring(state, 2)).await.unwrap();
    assert_eq!(store.journal("s", 0, 9).await.unwrap(), commit.journal);
    assert_eq!(store.user_variables("default").await.unwrap(), commit.user_variables_put);
    assert!(store.answer_accepted("s", "a1").await.unwrap());
    assert_eq!(store.session("s").await.unwrap().unwrap().revision, 3);
}

pub(crate) async fn an_earlier_revision_is_found_by_its_status_and_answers(store: &dyn Store) {
    start(store, "s").await;
    for (revision, (status, answers)) in
        [("waiting_input", 0), ("running", 1), ("waiting_input", 1), ("waiting_input", 1), ("running", 2)]
            .into_iter()
            .enumerate()
    {
        let commit = Commit { status: status.into(), answers, ..commit_at(revision as u64 + 1) };
        store.commit("s", &commit).await.unwrap();
    }
    let table = [
        (("running", 0), Some(1)),
        (("waiting_input", 0), Some(2)),
        (("running", 1), Some(3)),
        (("waiting_input", 1), Some(5)),
        // The current state is not an earlier one.
        (("running", 2), None),
        (("waiting_input", 2), None),
        (("waiting_input", u64::MAX >> 1), None),
    ];
    for ((status, answers), expected) in table {
        assert_eq!(store.revision_with("s", status, answers).await.unwrap(), expected, "{status} {answers}");
        assert_eq!(store.revision_with("t", status, answers).await.unwrap(), None);
    }
}

pub(crate) async fn a_revision_that_is_not_earlier_has_no_state(store: &dyn Store) {
    start(store, "s").await;
    store.commit("s", &commit_at(1)).await.unwrap();
    for revision in [0, 2, 3, u64::MAX >> 1] {
        assert_eq!(store.earlier_state("s", revision).await.unwrap(), None, "{revision}");
    }
    assert_eq!(store.earlier_state("t", 1).await.unwrap(), None);
}

pub(crate) async fn a_failed_commit_keeps_nothing(store: &dyn Store) {
    start(store, "s").await;
    let gap = Commit { journal: vec![event(7, "k")], frames_put: vec![FrameRow::default()], ..commit_at(1) };
    store.commit("s", &gap).await.unwrap_err();
    assert_eq!(store.earlier_state("s", 1).await.unwrap(), None);
    let wrong_cell =
        Commit { cells_put: vec![cell(9, "c", "x")], frames_put: vec![FrameRow::default()], ..commit_at(1) };
    store.commit("s", &wrong_cell).await.unwrap_err();
    assert_eq!(store.earlier_state("s", 1).await.unwrap(), None);
}

pub(crate) async fn a_deleted_session_has_no_earlier_states(store: &dyn Store) {
    start(store, "s").await;
    store.commit("s", &Commit { requests_put: vec![request(1, 1)], ..commit_at(1) }).await.unwrap();
    assert!(store.delete("s").await.unwrap());
    assert_eq!(store.earlier_state("s", 1).await.unwrap(), None);
    assert_eq!(store.open_requests(None).await.unwrap(), []);
    start(store, "s").await;
    assert_eq!(store.earlier_state("s", 1).await.unwrap(), None, "a new session with the id has no old rows");
}

/// A commit as turns without effects make it, most of the time.
fn simple(mut commit: Commit, answers: bool) -> Commit {
    // The cells that follow a removal have numbers of their own.
    if commit.cells_kept.is_some() {
        commit.cells_put.clear();
    }
    (commit.messages_kept, commit.cells_kept) = (None, None);
    if !answers {
        commit.requests_answered.clear();
    }
    commit
}

pub(crate) async fn commits_written_together_are_like_commits_one_by_one(store: &dyn Store) {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    start(store, "s").await;
    start(store, "together").await;
    let mut now = snapshot(store).await;
    let (mut revision, mut seq) = (1, store.session("s").await.unwrap().unwrap().last_seq);
    for round in 0..150 {
        let answering = numbers.below(4);
        let mut commits = vec![];
        for number in 0..=numbers.below(4) {
            let mut commit = random_commit(&mut numbers, &now, revision);
            if round % 4 > 0 {
                // Messages continue those of the same group.
                let first = now.messages.len() as u64;
                commit = simple(commit, number == answering);
                (commit.messages.iter_mut().zip(first + 1..)).for_each(|(row, number)| row.number = number);
            }
            commit.updated_at = format!("2026-11-21T20:{:02}:{:02}Z", revision / 60, revision % 60);
            commit.answer_ids = vec![format!("id {revision}")];
            commit.journal = (1..=numbers.below(3)).map(|new| event(seq + new, "k")).collect();
            seq += commit.journal.len() as u64;
            store.commit("s", &commit).await.unwrap();
            now = snapshot(store).await;
            revision += 1;
            commits.push(commit);
        }
        store.commit_all("together", &std::sync::Arc::new(commits)).await.unwrap();
        assert_eq!(snapshot_of(store, "together").await, now, "round {round}");
    }
    let [one, other] = [store.session("s").await.unwrap().unwrap(), store.session("together").await.unwrap().unwrap()];
    assert_eq!((one.revision, one.last_seq, &one.updated_at), (other.revision, other.last_seq, &other.updated_at));
    assert_eq!(
        store.journal("s", 0, usize::MAX).await.unwrap(),
        store.journal("together", 0, usize::MAX).await.unwrap()
    );
    for earlier in 1..revision {
        let [one, other] =
            [store.earlier_state("s", earlier).await.unwrap(), store.earlier_state("together", earlier).await.unwrap()];
        assert_eq!(one, other, "revision {earlier}");
    }
    assert_eq!(
        store.revision_with("s", "running", 2).await.unwrap(),
        store.revision_with("together", "running", 2).await.unwrap()
    );
}

pub(crate) async fn a_request_is_opened_and_answered_by_commits_written_together(store: &dyn Store) {
    start(store, "s").await;
    let at = |second: u64| format!("2026-11-21T20:00:0{second}Z");
    let answering = |revision, ids: [&str; 2]| Commit {
        requests_answered: ids.map(str::to_owned).to_vec(),
        updated_at: at(revision),
        ..commit_at(revision)
    };
    store.commit("s", &Commit { requests_put: vec![request(1, 2)], ..commit_at(1) }).await.unwrap();
    let commits = vec![
        Commit { requests_put: vec![request(2, 4)], ..commit_at(2) },
        answering(3, ["a1", "a2"]),
        Commit { requests_put: vec![request(3, 6)], updated_at: at(4), ..commit_at(4) },
    ];
    store.commit_all("s", &std::sync::Arc::new(commits)).await.unwrap();
    let answered = |requests: &[RequestRow]| -> Vec<_> {
        requests.iter().map(|row| (row.id.clone(), row.answered_at.clone())).collect()
    };
    let expected = [("a1".into(), Some(at(3))), ("a2".into(), Some(at(3))), ("a3".into(), None)];
    assert_eq!(answered(&store.requests("s").await.unwrap()), expected);
    // After the commit that opened the second request, it was open.
    let state = store.earlier_state("s", 3).await.unwrap().unwrap();
    assert_eq!(answered(&state.changes.requests_put), [("a1".into(), None), ("a2".into(), None)]);
    assert_eq!(state.changes.requests_removed, ["a3"]);
}

pub(crate) async fn commits_written_together_are_all_or_none(store: &dyn Store) {
    start(store, "s").await;
    let before = snapshot(store).await;
    let good = |revision| Commit { answer_ids: vec!["a".into()], ..commit_at(revision) };
    let wrong = std::sync::Arc::new(vec![good(1), commit_at(3)]);
    assert!(matches!(store.commit_all("s", &wrong).await, Err(StoreError::Conflict { .. })));
    let taken = std::sync::Arc::new(vec![good(1), good(2)]);
    assert!(matches!(store.commit_all("s", &taken).await, Err(StoreError::AnswerTaken { .. })));
    let gone = std::sync::Arc::new(vec![commit_at(1), commit_at(2)]);
    assert!(matches!(store.commit_all("nobody", &gone).await, Err(StoreError::NotFound { .. })));
    assert_eq!(snapshot(store).await, before);
    assert_eq!(store.session("s").await.unwrap().unwrap().revision, 1);
}
