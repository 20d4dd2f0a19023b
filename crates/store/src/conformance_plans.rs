//! The conformance tests of stores that concern plans.

use crate::conformance::NASTY;
use crate::contract::Store;
use crate::error::StoreError;
use crate::plan_rows::{MAX_PLAN_EDITS, PlanEditOutcome, PlanEditRow, PlanRow, PlanTaskRow, StoredPlan};

/// Makes a test of every case; `$open` gives `(a value that must be kept alive, a store)`.
macro_rules! plans_conformance {
    ($open:expr) => {
        $crate::conformance_plans::plans_conformance!(@ $open;
            a_plan_is_read_as_it_was_written_and_belongs_to_its_user
            an_edit_changes_what_it_names_and_nothing_else
            an_edit_is_made_once
            an_edit_for_another_revision_or_with_a_task_of_another_plan_leaves_nothing_behind
            ids_are_reserved_once_and_an_id_that_is_used_is_not_reserved
            the_newest_edits_of_a_plan_are_kept
            deleting_a_plan_deletes_its_tasks_and_its_edits
            an_id_of_any_size_can_be_sought
        );
    };
    (@ $open:expr; $($case:ident)+) => { $(
        #[tokio::test]
        async fn $case() {
            let (_guard, store) = $open;
            $crate::conformance_plans::$case(&store).await;
        }
    )+ };
}
pub(crate) use plans_conformance;

pub(crate) fn plan_row(id: u64) -> PlanRow {
    PlanRow {
        id,
        user: "anna".into(),
        revision: 1,
        status: "pending".into(),
        title: format!("计划 {id}"),
        created_at: "2026-11-21T20:00:00Z".into(),
        updated_at: "2026-11-21T20:00:00Z".into(),
        body: r#"{"goal":"写白皮书"}"#.into(),
    }
}

pub(crate) fn task(id: u64, rank: i64) -> PlanTaskRow {
    PlanTaskRow { id, parent: None, rank, body: format!("{{\"name\":\"task {id}\"}}") }
}

pub(crate) fn edit(plan: u64, revision: u64, key: &str) -> PlanEditRow {
    PlanEditRow {
        plan,
        revision,
        key: key.into(),
        result: format!("{{\"key\":\"{key}\"}}"),
        status: "running".into(),
        title: "later".into(),
        updated_at: "2026-11-22T20:00:00Z".into(),
        body: "{}".into(),
        ..PlanEditRow::default()
    }
}

/// Creates a plan with these tasks.
pub(crate) async fn create(store: &dyn Store, plan: u64, tasks: &[PlanTaskRow]) {
    let created = store.create_plan(&plan_row(plan), tasks, &format!("create {plan}"), "{}").await;
    assert_eq!(created, Ok(PlanEditOutcome::Applied));
}

async fn ids(store: &dyn Store, plan: u64) -> Vec<u64> {
    store.plan_tasks(plan).await.unwrap().unwrap().tasks.into_iter().map(|task| task.id).collect()
}

pub(crate) async fn a_plan_is_read_as_it_was_written_and_belongs_to_its_user(store: &dyn Store) {
    let nasty = PlanTaskRow { id: 9, parent: Some(7), rank: i64::MIN, body: NASTY.into() };
    let tasks = [task(7, 3), task(8, -3), nasty.clone(), PlanTaskRow { rank: 3, ..task(6, 0) }];
    create(store, 42, &tasks).await;
    create(store, 5, &[]).await;
    let other = PlanRow { user: NASTY.into(), title: NASTY.into(), body: NASTY.into(), ..plan_row(6) };
    store.create_plan(&other, &[], "create 6", "{}").await.unwrap();
    assert_eq!(store.plan(42).await.unwrap(), Some(plan_row(42)));
    assert_eq!(store.plan(43).await.unwrap(), None);
    // Sorted by rank, then by id.
    let [first, second, ..] = tasks;
    let sorted = vec![nasty, second, PlanTaskRow { rank: 3, ..task(6, 0) }, first];
    assert_eq!(store.plan_tasks(42).await.unwrap(), Some(StoredPlan { plan: plan_row(42), tasks: sorted }));
    assert_eq!(store.plan_tasks(43).await.unwrap(), None);
    assert_eq!(store.plans("anna").await.unwrap(), [plan_row(5), plan_row(42)]);
    assert_eq!(store.plans(NASTY).await.unwrap(), [other]);
    assert_eq!(store.plans("bob").await.unwrap(), []);
    assert_eq!(store.plan_of_task(9).await.unwrap(), Some(42));
    assert_eq!(store.plan_of_task(10).await.unwrap(), None);
}

pub(crate) async fn an_edit_changes_what_it_names_and_nothing_else(store: &dyn Store) {
    create(store, 1, &[task(1, 1), task(2, 2), task(3, 3)]).await;
    create(store, 2, &[task(11, 1)]).await;
    let moved = PlanTaskRow { parent: Some(3), rank: 9, body: "{}".into(), ..task(1, 1) };
    // The task of another plan stays.
    let row = PlanEditRow { put: vec![moved.clone(), task(4, 0)], removed: vec![2, 11, 99], ..edit(1, 1, "e") };
    assert_eq!(store.edit_plan(&row).await, Ok(PlanEditOutcome::Applied));
    let after = store.plan_tasks(1).await.unwrap().unwrap();
    let expected = PlanRow {
        revision: 2,
        status: "running".into(),
        title: "later".into(),
        updated_at: "2026-11-22T20:00:00Z".into(),
        body: "{}".into(),
        ..plan_row(1)
    };
    assert_eq!(after, StoredPlan { plan: expected, tasks: vec![task(4, 0), task(3, 3), moved] });
    assert_eq!(store.plan_of_task(2).await.unwrap(), None);
    assert_eq!(ids(store, 2).await, [11]);
    assert_eq!(store.plan(2).await.unwrap(), Some(plan_row(2)));
}

pub(crate) async fn an_id_of_any_size_can_be_sought(store: &dyn Store) {
    create(store, 42, &[]).await;
    for id in [0, 41, u64::from(u32::MAX), i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
        assert_eq!(store.plan(id).await.unwrap(), None, "{id}");
        assert_eq!(store.plan_tasks(id).await.unwrap(), None, "{id}");
        assert_eq!(store.plan_of_task(id).await.unwrap(), None, "{id}");
        assert_eq!(store.delete_plan(id, "key", "null").await.unwrap(), None, "{id}");
    }
    assert!(store.plan(42).await.unwrap().is_some());
}

pub(crate) async fn an_edit_is_made_once(store: &dyn Store) {
    create(store, 1, &[]).await;
    let row = PlanEditRow { put: vec![task(1, 1)], ..edit(1, 1, "e") };
    assert_eq!(store.edit_plan(&row).await, Ok(PlanEditOutcome::Applied));
    let again =
        PlanEditRow { put: vec![task(2, 1)], removed: vec![1], revision: 7, result: "other".into(), ..row.clone() };
    assert_eq!(store.edit_plan(&again).await, Ok(PlanEditOutcome::Repeated { result: row.result.clone() }));
    assert_eq!((ids(store, 1).await, store.plan(1).await.unwrap().unwrap().revision), (vec![1], 2));
    assert_eq!(store.plan_edit("e").await.unwrap(), Some(row.result));
    assert_eq!(store.plan_edit("f").await.unwrap(), None);
    let repeated = store.create_plan(&plan_row(8), &[task(80, 0)], "create 1", "other").await;
    assert_eq!(repeated, Ok(PlanEditOutcome::Repeated { result: "{}".into() }));
    assert_eq!((store.plan(8).await.unwrap(), store.plan_of_task(80).await.unwrap()), (None, None));
}

pub(crate) async fn an_edit_for_another_revision_or_with_a_task_of_another_plan_leaves_nothing_behind(
    store: &dyn Store,
) {
    create(store, 1, &[task(1, 1)]).await;
    create(store, 2, &[task(2, 1)]).await;
    let changed = |error| matches!(error, Err(StoreError::PlanChanged { plan: 1, expected: 0 | 2, found: 1, .. }));
    for revision in [0, 2] {
        let row = PlanEditRow { put: vec![task(3, 1)], removed: vec![1], ..edit(1, revision, "e") };
        assert!(changed(store.edit_plan(&row).await));
    }
    let row = PlanEditRow { put: vec![task(3, 1), task(2, 5)], removed: vec![1], ..edit(1, 1, "e") };
    let error = store.edit_plan(&row).await.unwrap_err();
    assert!(matches!(error, StoreError::PlanTaskExists { task: 2, plan: 2, .. }), "{error}");
    let error = store.edit_plan(&edit(3, 1, "e")).await.unwrap_err();
    assert!(matches!(error, StoreError::NoPlan { plan: 3, .. }), "{error}");
    let error = store.create_plan(&plan_row(1), &[task(4, 1)], "again", "{}").await.unwrap_err();
    assert!(matches!(error, StoreError::PlanExists { plan: 1, .. }), "{error}");
    let error = store.create_plan(&plan_row(4), &[task(4, 1), task(1, 1)], "again", "{}").await.unwrap_err();
    assert!(matches!(error, StoreError::PlanTaskExists { task: 1, plan: 1, .. }), "{error}");
    assert_eq!((store.plan(1).await.unwrap(), ids(store, 1).await), (Some(plan_row(1)), vec![1]));
    assert_eq!((ids(store, 2).await, store.plan(4).await.unwrap()), (vec![2], None));
    assert_eq!(store.plan_of_task(4).await.unwrap(), None);
    for key in ["e", "again"] {
        assert_eq!(store.plan_edit(key).await.unwrap(), None);
    }
}

pub(crate) async fn ids_are_reserved_once_and_an_id_that_is_used_is_not_reserved(store: &dyn Store) {
    assert_eq!(store.reserve_plan_ids(1, 10).await.unwrap(), (1, 1));
    assert_eq!(store.reserve_plan_ids(0, 5).await.unwrap(), (2, 11));
    assert_eq!(store.reserve_plan_ids(2, 0).await.unwrap(), (2, 16));
    create(store, 42, &[task(215, 1)]).await;
    assert_eq!(store.reserve_plan_ids(1, 1).await.unwrap(), (43, 216));
    create(store, 28, &[task(104, 1)]).await;
    store.edit_plan(&PlanEditRow { put: vec![task(300, 1)], ..edit(28, 1, "e") }).await.unwrap();
    assert_eq!(store.reserve_plan_ids(1, 1).await.unwrap(), (44, 301));
    // Also if it is not used any more.
    store.delete_plan(42, "delete", "{}").await.unwrap();
    assert_eq!(store.reserve_plan_ids(1, 1).await.unwrap(), (45, 302));
    let error = store.reserve_plan_ids(1, u64::MAX).await.unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
    assert_eq!(store.reserve_plan_ids(1, 1).await.unwrap(), (46, 303));
}

pub(crate) async fn the_newest_edits_of_a_plan_are_kept(store: &dyn Store) {
    create(store, 1, &[]).await;
    create(store, 2, &[]).await;
    for revision in 1..=MAX_PLAN_EDITS + 1 {
        store.edit_plan(&edit(1, revision, &format!("edit {revision}"))).await.unwrap();
    }
    for dropped in ["create 1", "edit 1"] {
        assert_eq!(store.plan_edit(dropped).await.unwrap(), None, "{dropped}");
    }
    for kept in ["create 2".to_owned(), "edit 2".to_owned(), format!("edit {}", MAX_PLAN_EDITS + 1)] {
        assert!(store.plan_edit(&kept).await.unwrap().is_some(), "{kept}");
    }
}

pub(crate) async fn deleting_a_plan_deletes_its_tasks_and_its_edits(store: &dyn Store) {
    create(store, 1, &[task(1, 1), task(2, 2)]).await;
    create(store, 2, &[task(3, 1)]).await;
    store.edit_plan(&edit(1, 1, "e")).await.unwrap();
    assert_eq!(store.delete_plan(1, "delete", "gone").await.unwrap(), Some(PlanEditOutcome::Applied));
    assert_eq!((store.plan(1).await.unwrap(), store.plan_tasks(1).await.unwrap()), (None, None));
    for task in [1, 2] {
        assert_eq!(store.plan_of_task(task).await.unwrap(), None);
    }
    for key in ["create 1", "e"] {
        assert_eq!(store.plan_edit(key).await.unwrap(), None);
    }
    // The deletion itself is recognised.
    let again = store.delete_plan(1, "delete", "other").await.unwrap();
    assert_eq!(again, Some(PlanEditOutcome::Repeated { result: "gone".into() }));
    assert_eq!(store.plan_edit("delete").await.unwrap(), Some("gone".into()));
    assert_eq!(store.delete_plan(1, "another", "other").await.unwrap(), None);
    assert_eq!(ids(store, 2).await, [3]);
    // Its ids may be used again.
    create(store, 1, &[task(1, 1)]).await;
}
