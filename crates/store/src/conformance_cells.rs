//! The conformance tests of stores for the cells of notebooks: cases that run against each implementation.

use crate::conformance::{NASTY, commit_at, new_session, read_all, start};
use crate::contract::Store;
use crate::error::StoreError;
use crate::rows::{CellRow, Commit, NewSessionRow, SharedTexts, TextRow};

/// Makes a test of every case; `$open` gives `(a value that must be kept alive, a store)`.
macro_rules! cells_conformance {
    ($open:expr) => {
        $crate::conformance_cells::cells_conformance!(@ $open;
            cells_are_found_by_id_in_pages_and_from_the_end
            a_cell_that_is_stored_again_keeps_its_position
            a_new_cell_must_be_the_next_one
            the_id_of_a_cell_is_permanent_and_unique
            sessions_do_not_share_cells
            cells_are_deleted_with_their_session
            any_text_of_a_cell_is_stored_unchanged
            a_text_is_found_by_its_hash_in_its_session_only
            a_new_session_has_texts_of_another_one
        );
    };
    (@ $open:expr; $($case:ident)+) => { $(
        #[tokio::test]
        async fn $case() {
            let (_guard, store) = $open;
            $crate::conformance_cells::$case(&store).await;
        }
    )+ };
}
pub(crate) use cells_conformance;

pub(crate) fn cell(number: u64, id: &str, body: &str) -> CellRow {
    CellRow { number, id: id.into(), body: format!("\"{body}\"") }
}

fn put(revision: u64, cells_put: Vec<CellRow>) -> Commit {
    Commit { cells_put, ..commit_at(revision) }
}

fn numbers(rows: &[CellRow]) -> Vec<u64> {
    rows.iter().map(|row| row.number).collect()
}

pub(crate) async fn cells_are_found_by_id_in_pages_and_from_the_end(store: &dyn Store) {
    start(store, "s").await;
    for number in 1..=10 {
        let row = cell(number, &format!("c{number}"), "x");
        store.commit("s", &put(number, vec![row])).await.unwrap();
    }
    assert_eq!(store.cell("s", "c7").await.unwrap(), Some(cell(7, "c7", "x")));
    assert_eq!(store.cell("s", "c11").await.unwrap(), None);
    let pages: [(u64, usize, &[u64]); 5] =
        [(0, 3, &[1, 2, 3]), (3, 3, &[4, 5, 6]), (8, 100, &[9, 10]), (10, 5, &[]), (0, 0, &[])];
    for (after, limit, expected) in pages {
        assert_eq!(numbers(&store.cells("s", after, limit).await.unwrap()), expected, "after {after}, {limit}");
    }
    assert_eq!(numbers(&store.cells_tail("s", 3).await.unwrap()), [8, 9, 10]);
    assert_eq!(numbers(&store.cells_tail("s", usize::MAX).await.unwrap()).len(), 10);
    assert!(store.cells_tail("s", 0).await.unwrap().is_empty());
}

pub(crate) async fn a_cell_that_is_stored_again_keeps_its_position(store: &dyn Store) {
    start(store, "s").await;
    store.commit("s", &put(1, vec![cell(1, "a", "1"), cell(2, "b", "1")])).await.unwrap();
    // A change and a new cell in one commit.
    store.commit("s", &put(2, vec![cell(1, "a", "2"), cell(3, "c", "1")])).await.unwrap();
    let expected = [cell(1, "a", "2"), cell(2, "b", "1"), cell(3, "c", "1")];
    assert_eq!(store.cells("s", 0, 9).await.unwrap(), expected);
    assert_eq!(store.cell("s", "a").await.unwrap().as_ref(), expected.first());
}

pub(crate) async fn a_new_cell_must_be_the_next_one(store: &dyn Store) {
    start(store, "s").await;
    store.commit("s", &put(1, vec![cell(1, "a", "1")])).await.unwrap();
    let before = read_all(store, "s").await;
    let invalid =
        [(vec![cell(3, "c", "")], 3), (vec![cell(0, "z", "")], 0), (vec![cell(2, "b", ""), cell(4, "d", "")], 4)];
    for (cells, number) in invalid {
        let error = store.commit("s", &put(2, cells)).await.unwrap_err();
        let StoreError::Gap { what: "cell", found, .. } = error else { panic!("{error}") };
        assert_eq!(found, number);
    }
    assert!(read_all(store, "s").await == before);
}

pub(crate) async fn the_id_of_a_cell_is_permanent_and_unique(store: &dyn Store) {
    start(store, "s").await;
    store.commit("s", &put(1, vec![cell(1, "a", "1"), cell(2, "b", "1")])).await.unwrap();
    let before = read_all(store, "s").await;
    let invalid = [
        vec![cell(3, "a", "")],
        vec![cell(1, "b", "")],
        vec![cell(2, "z", "")],
        vec![cell(3, "c", ""), cell(4, "c", "")],
    ];
    for cells in invalid {
        let number = cells.last().unwrap().number;
        let error = store.commit("s", &put(2, cells)).await.unwrap_err();
        let StoreError::CellIdMismatch { number: found, .. } = error else { panic!("{error}") };
        assert_eq!(found, number);
    }
    assert!(read_all(store, "s").await == before);
}

pub(crate) async fn sessions_do_not_share_cells(store: &dyn Store) {
    for id in ["s", "t"] {
        start(store, id).await;
        store.commit(id, &put(1, vec![cell(1, "a", id), cell(2, "b", id)])).await.unwrap();
    }
    assert_eq!(store.cell("t", "a").await.unwrap(), Some(cell(1, "a", "t")));
    assert_eq!(store.cells("s", 1, 9).await.unwrap(), [cell(2, "b", "s")]);
    assert_eq!(store.cells_tail("t", 1).await.unwrap(), [cell(2, "b", "t")]);
    assert!(store.cells("u", 0, 9).await.unwrap().is_empty() && store.cell("u", "a").await.unwrap().is_none());
    assert!(store.cells_tail("u", 9).await.unwrap().is_empty());
}

pub(crate) async fn cells_are_deleted_with_their_session(store: &dyn Store) {
    for id in ["deleted", "pruned", "kept"] {
        start(store, id).await;
        let at = if id == "kept" { "2026-11-22T00:00:00Z" } else { "2026-11-20T00:00:00Z" };
        let commit = Commit { updated_at: at.into(), ..put(1, vec![cell(1, "a", id)]) };
        store.commit(id, &commit).await.unwrap();
    }
    assert!(store.delete("deleted").await.unwrap());
    assert_eq!(store.prune("2026-11-21T00:00:00Z").await.unwrap(), ["pruned"]);
    for id in ["deleted", "pruned"] {
        // The id is free again, and the new session has no cell of the old one.
        start(store, id).await;
        assert!(store.cells(id, 0, 9).await.unwrap().is_empty());
        store.commit(id, &put(1, vec![cell(1, "a", "new")])).await.unwrap();
    }
    assert_eq!(store.cells("kept", 0, 9).await.unwrap(), [cell(1, "a", "kept")]);
}

pub(crate) async fn any_text_of_a_cell_is_stored_unchanged(store: &dyn Store) {
    start(store, "s").await;
    let long = NASTY.repeat((1 << 20) / NASTY.len());
    let rows = [NASTY, "", "a\0b", "a\0c", &long].into_iter().zip(1..);
    let rows: Vec<CellRow> = rows.map(|(id, number)| CellRow { number, id: id.into(), body: long.clone() }).collect();
    store.commit("s", &put(1, rows.clone())).await.unwrap();
    assert!(store.cells("s", 0, 9).await.unwrap() == rows);
    for row in rows {
        assert!(store.cell("s", &row.id).await.unwrap() == Some(row));
    }
    assert!(store.cell("s", "a").await.unwrap().is_none());
}

pub(crate) async fn a_text_is_found_by_its_hash_in_its_session_only(store: &dyn Store) {
    let (long, short) = (TextRow::new(NASTY.repeat(2_000)), TextRow::new("abc".into()));
    assert_eq!(short.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    for id in ["s", "t"] {
        start(store, id).await;
    }
    let texts = vec![long.clone(), short.clone()];
    store.commit("s", &Commit { texts: texts.clone(), ..commit_at(1) }).await.unwrap();
    // The same text again is stored once.
    store.commit("s", &Commit { texts, ..commit_at(2) }).await.unwrap();
    for row in [&long, &short] {
        assert!(store.text("s", &row.sha256).await.unwrap().as_ref() == Some(&row.text));
        assert!(store.has_text("s", &row.sha256).await.unwrap());
        assert!(!store.has_text("t", &row.sha256).await.unwrap(), "another session");
        assert!(!store.has_text("missing", &row.sha256).await.unwrap());
        assert_eq!(store.text("t", &row.sha256).await.unwrap(), None, "another session");
        assert_eq!(store.text("missing", &row.sha256).await.unwrap(), None);
    }
    assert_eq!(store.text("s", "ab").await.unwrap(), None);
    assert!(store.delete("s").await.unwrap());
    start(store, "s").await;
    assert_eq!(store.text("s", &long.sha256).await.unwrap(), None);
}

pub(crate) async fn a_new_session_has_texts_of_another_one(store: &dyn Store) {
    let (long, short, other) =
        (TextRow::new(NASTY.repeat(2_000)), TextRow::new("abc".into()), TextRow::new("x".into()));
    for id in ["s", "t"] {
        start(store, id).await;
    }
    store.commit("s", &Commit { texts: vec![long.clone(), short.clone()], ..commit_at(1) }).await.unwrap();
    store.commit("t", &Commit { texts: vec![other.clone()], ..commit_at(1) }).await.unwrap();
    let new = |id: &str, from: &str| {
        // One is not among the texts of that session, and one is nowhere.
        let hashes = vec![long.sha256.clone(), other.sha256.clone(), "ab".to_owned()];
        NewSessionRow { texts: Some(SharedTexts { session: from.to_owned(), hashes }), ..new_session(id) }
    };
    store.create(&new("copy", "s"), &[], &commit_at(0)).await.unwrap();
    assert!(store.text("copy", &long.sha256).await.unwrap().as_ref() == Some(&long.text));
    for row in [&short, &other] {
        assert_eq!(store.text("copy", &row.sha256).await.unwrap(), None);
    }
    // It keeps them when the other session is gone.
    assert!(store.delete("s").await.unwrap());
    assert!(store.text("copy", &long.sha256).await.unwrap().as_ref() == Some(&long.text));
    let refused = store.create(&new("late", "s"), &[], &commit_at(0)).await;
    assert!(matches!(&refused, Err(StoreError::NotFound { id, .. }) if id == "s"), "{refused:?}");
    assert!(store.session("late").await.unwrap().is_none(), "all or nothing");
}
