//! Tests of what commits replace, as the SQLite store has it: packed or, in stores of earlier layouts, as text.

use rusqlite::params;
use tempfile::TempDir;

use crate::conformance::{NASTY, commit_at, new_session};
use crate::contract::Store;
use crate::rows::{Commit, EarlierState, FrameRow, VariableRow};
use crate::sqlite::open::open;
use crate::sqlite::packed_state::unpack;
use crate::sqlite::replaced::revisions;
use crate::sqlite::store::SqliteStore;
use crate::sqlite::write::Count;

const COMMITS: u64 = 30;

/// What a turn of an action leaves behind, with a value that has no room with the head.
fn turn(number: u64) -> Commit {
    let variable = VariableRow {
        scope: "session".to_owned(),
        name: "heard".to_owned(),
        value: format!("\"{number}: {}\"", "她说：「好」。".repeat(120)),
        source: "ask".to_owned(),
        at: "2026-01-01T00:00:00.000000Z".to_owned(),
        ..VariableRow::default()
    };
    let state = format!("{{\"at\":\"action\",\"next\":0,\"calls\":{number},\"again\":0,\"asked\":{NASTY:?}}}");
    Commit {
        location: "{\"phase_id\":\"p\",\"topic_id\":\"t\",\"action_id\":\"ask\",\"path\":\"t/ask\"}".to_owned(),
        head: format!("{{\"waiting\":null,\"pending\":false,\"hidden\":0,\"messages\":{number},\"turns\":{number}}}"),
        frames_put: vec![FrameRow { key: "p/t/ask".to_owned(), state }],
        variables_put: vec![variable],
        ..commit_at(number)
    }
}

async fn store_with_turns() -> (TempDir, SqliteStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("sessions.db")).unwrap();
    store.create(&new_session("s"), &[], &turn(0)).await.unwrap();
    for number in 1..=COMMITS {
        store.commit("s", &turn(number)).await.unwrap();
    }
    (directory, store)
}

async fn earlier_states(store: &SqliteStore) -> Vec<Option<EarlierState>> {
    let mut states = vec![];
    for revision in 0..=COMMITS {
        states.push(store.earlier_state("s", revision).await.unwrap());
    }
    states
}

/// The entries of the table with their text, whichever form they have.
fn texts(store: &SqliteStore) -> Vec<(i64, String, Option<String>, bool)> {
    let connection = store.connection();
    let mut statement = connection.prepare("SELECT revision, key, row, packed FROM replaced").unwrap();
    let entries = statement.query_map([], |row| {
        let packed: Option<Vec<u8>> = row.get(3)?;
        let text = match &packed {
            Some(packed) => Some(unpack(packed)?),
            None => row.get(2)?,
        };
        Ok((row.get(0)?, row.get(1)?, text, packed.is_some()))
    });
    entries.unwrap().collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn what_commits_replaced_is_packed_and_read_unchanged() {
    let (_home, store) = store_with_turns().await;
    let states = earlier_states(&store).await;
    for number in 0..COMMITS {
        let state = states[number as usize + 1].as_ref().unwrap();
        let written = turn(number);
        assert_eq!((&state.head, &state.location), (&written.head, &written.location));
        assert_eq!(state.changes.frames_put, written.frames_put);
        assert_eq!(state.changes.variables_put, written.variables_put);
    }
    let entries = texts(&store);
    assert!(entries.iter().all(|(_, _, text, is_packed)| *is_packed == text.is_some()), "{entries:?}");
    let plain: usize = entries.iter().filter_map(|(_, _, text, _)| text.as_ref()).map(String::len).sum();
    let stored: i64 = store
        .connection()
        .query_row(
            "SELECT sum(ifnull(length(CAST(row AS BLOB)), 0) + ifnull(length(packed), 0)) FROM replaced",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert!(stored * 4 < plain as i64, "{stored} of {plain}");
}

#[tokio::test]
async fn entries_of_earlier_layouts_are_read_as_well() {
    let (_home, store) = store_with_turns().await;
    let states = earlier_states(&store).await;
    // Such a store has them as text, and goes on with packed ones.
    for (revision, key, text, _) in texts(&store).into_iter().filter(|(revision, ..)| *revision < 15) {
        let sql = "UPDATE replaced SET row = ?, packed = NULL WHERE revision = ? AND key = ?";
        assert_eq!(store.connection().execute(sql, params![text, revision, key]).unwrap(), 1);
    }
    assert!(texts(&store).iter().any(|(.., is_packed)| !is_packed));
    assert_eq!(earlier_states(&store).await, states);
}

#[tokio::test]
async fn a_damaged_entry_is_reported_and_passed_over_where_another_one_will_do() {
    let (_home, store) = store_with_turns().await;
    let last = COMMITS;
    let sql =
        "UPDATE replaced SET packed = substr(packed, 1, length(packed) - 1) WHERE revision = ? AND key LIKE 'head %'";
    assert_eq!(store.connection().execute(sql, [Count(last)]).unwrap(), 1);
    assert!(store.earlier_state("s", last).await.is_err());
    let connection = store.connection();
    let session = connection.query_row("SELECT key FROM session", [], |row| row.get(0)).unwrap();
    assert_eq!(revisions(&connection, session, 3, u64::MAX).unwrap(), [last - 1, last - 2, last - 3]);
    assert_eq!(revisions(&connection, session, 3, 0).unwrap().len(), 3);
}
