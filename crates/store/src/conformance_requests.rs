//! The conformance tests of stores for pending requests.

use crate::conformance::{commit_at, start};
use crate::contract::Store;
use crate::rows::{Commit, RequestRow};

/// Makes a test of every case, as [`crate::conformance::conformance`] does.
macro_rules! requests_conformance {
    ($open:expr) => {
        $crate::conformance_requests::requests_conformance!(@ $open;
            a_request_is_read_as_it_was_written_until_it_is_answered
            open_requests_are_listed_by_session_or_by_due_time
        );
    };
    (@ $open:expr; $($case:ident)+) => { $(
        #[tokio::test]
        async fn $case() {
            let (_guard, store) = $open;
            $crate::conformance_requests::$case(&store).await;
        }
    )+ };
}
pub(crate) use requests_conformance;

fn request(id: &str, due_at: Option<&str>) -> RequestRow {
    RequestRow {
        id: id.into(),
        kind: "approval".into(),
        prompt: "发送吗？".into(),
        schema: Some(r#"{"type":"object"}"#.into()),
        decisions: Some(r#"["approve","reject"]"#.into()),
        approvers: Some(r#"["supervisor"]"#.into()),
        due_at: due_at.map(str::to_owned),
        opened_at: "2026-11-21T20:00:00Z".into(),
        answered_at: None,
    }
}

fn opening(revision: u64, requests_put: Vec<RequestRow>) -> Commit {
    Commit { requests_put, ..commit_at(revision) }
}

pub(crate) async fn a_request_is_read_as_it_was_written_until_it_is_answered(store: &dyn Store) {
    start(store, "s").await;
    let rows = [request("a1", None), RequestRow { id: "a2".into(), ..RequestRow::default() }];
    store.commit("s", &opening(1, rows.to_vec())).await.unwrap();
    assert_eq!(store.requests("s").await.unwrap(), rows);
    let answered = Commit {
        requests_answered: vec!["a1".into(), "never asked".into()],
        updated_at: "2026-11-22T08:00:00Z".into(),
        ..commit_at(2)
    };
    store.commit("s", &answered).await.unwrap();
    let answered = RequestRow { answered_at: Some("2026-11-22T08:00:00Z".into()), ..rows[0].clone() };
    assert_eq!(store.requests("s").await.unwrap(), [answered.clone(), rows[1].clone()]);
    // It is answered once.
    let again = Commit { requests_answered: vec!["a1".into()], updated_at: "2027".into(), ..commit_at(3) };
    store.commit("s", &again).await.unwrap();
    assert_eq!(store.requests("s").await.unwrap()[0], answered);
    store.commit("s", &Commit { requests_removed: vec!["a1".into()], ..commit_at(4) }).await.unwrap();
    assert_eq!(store.requests("s").await.unwrap(), rows[1..]);
    assert_eq!(store.requests("t").await.unwrap(), []);
}

pub(crate) async fn open_requests_are_listed_by_session_or_by_due_time(store: &dyn Store) {
    for id in ["t", "s"] {
        start(store, id).await;
    }
    let late = request("late", Some("2026-11-23T00:00:00Z"));
    let soon = request("soon", Some("2026-11-22T00:00:00.5Z"));
    let first = request("first", Some("2026-11-22T00:00:00Z"));
    let never = request("never", None);
    store.commit("t", &opening(1, vec![late, first, never])).await.unwrap();
    store.commit("s", &opening(1, vec![soon, request("answered", Some("2026-11-20T00:00:00Z"))])).await.unwrap();
    store.commit("s", &Commit { requests_answered: vec!["answered".into()], ..commit_at(2) }).await.unwrap();
    let listed = async |due_before: Option<&str>| -> Vec<String> {
        let open = store.open_requests(due_before).await.unwrap();
        open.into_iter().map(|open| format!("{} {}", open.session, open.request.id)).collect()
    };
    assert_eq!(listed(None).await, ["s soon", "t first", "t late", "t never"]);
    assert_eq!(listed(Some("2026-11-22T12:00:00Z")).await, ["t first", "s soon"]);
    // Before, not at the time; also with fractions of a second.
    assert_eq!(listed(Some("2026-11-22T00:00:00.5Z")).await, ["t first"]);
    assert_eq!(listed(Some("2026-11-22T00:00:00Z")).await, Vec::<String>::new());
    assert_eq!(listed(Some("2030-01-01T00:00:00Z")).await, ["t first", "s soon", "t late"]);
}
