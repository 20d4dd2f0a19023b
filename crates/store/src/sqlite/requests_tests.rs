//! Tests of the requests of a store: how those that are due are found.

use crate::sqlite::open::open;
use crate::sqlite::requests::due_query;

#[tokio::test]
async fn due_requests_are_found_by_their_time_without_looking_at_those_that_are_not_due() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("sessions.db")).unwrap();
    let connection = store.connection();
    let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", due_query())).unwrap();
    let steps: Vec<String> =
        plan.query_map(["2026-11-26T00:00:00Z"], |row| row.get(3)).unwrap().collect::<rusqlite::Result<_>>().unwrap();
    let reads: Vec<&str> = steps.iter().map(String::as_str).filter(|step| !step.contains("ORDER BY")).collect();
    let [requests, sessions] = reads.as_slice() else { panic!("{steps:?}") };
    assert_eq!(*requests, "SEARCH r USING INDEX request_due (<expr><?)", "{steps:?}");
    assert!(sessions.starts_with("SEARCH s USING INTEGER PRIMARY KEY"), "{steps:?}");
    // Only requests with the same time are sorted.
    assert!(steps.iter().all(|step| !step.contains("TEMP B-TREE FOR ORDER BY")), "{steps:?}");
}
