//! Tests of packed texts in the SQLite store: read unchanged in every way, small, and never taken for another text.

use tempfile::TempDir;

use crate::conformance::{NASTY, commit_at, event, new_session, start};
use crate::contract::Store;
use crate::error::StoreError;
use crate::rows::{Commit, JournalRow};
use crate::sqlite::open::open;
use crate::sqlite::packed::MIN_PACKED_BYTES;
use crate::sqlite::salvage::Saved;
use crate::sqlite::store::SqliteStore;
use crate::sqlite::unfinished_tests::recover;

fn new_store() -> (TempDir, SqliteStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("sessions.db")).unwrap();
    (directory, store)
}

fn number(store: &SqliteStore, sql: &str) -> i64 {
    store.connection().query_row(sql, [], |row| row.get(0)).unwrap()
}

/// What a model call of an action leaves behind: a long prompt, with the last ten lines of the conversation in it.
fn outcome(seq: u64, action: &str) -> JournalRow {
    let rule =
        |number: u64| format!("{number}. {action}: say what you see and nothing else, {}. ", number * 7919 % 1000);
    let rules: String = (0..60).map(rule).collect();
    let line = |number: u64| format!("client: line {number} 说的话 {NASTY}\n");
    let lines: String = (seq.saturating_sub(10)..seq).map(line).collect();
    let body =
        serde_json::json!({ "seq": seq, "llm_prompt": [rules, lines], "llm_response": format!("{{\"a\": {seq}}}") });
    JournalRow { body: body.to_string(), ..event(seq, "outcome") }
}

async fn append(store: &SqliteStore, session: &str, rows: impl IntoIterator<Item = JournalRow>) {
    for row in rows {
        let commit = Commit { journal: vec![row.clone()], ..commit_at(row.seq) };
        store.commit(session, &commit).await.unwrap();
    }
}

#[tokio::test]
async fn texts_that_are_mostly_earlier_ones_are_small_and_read_unchanged() {
    let (_home, store) = new_store();
    let rows: Vec<JournalRow> = (1..=40).map(|seq| outcome(seq, "ask")).collect();
    for session in ["s", "t"] {
        start(&store, session).await;
        append(&store, session, rows.clone()).await;
    }
    for session in ["s", "t"] {
        assert!(store.journal(session, 0, 99).await.unwrap() == rows);
        assert!(store.journal(session, 20, 3).await.unwrap() == rows[20..23]);
        assert!(store.journal_by_kind(session, "outcome", 5, 99).await.unwrap() == rows[5..]);
        assert!(store.last_by_kind(session, "outcome").await.unwrap().as_ref() == rows.last());
    }
    let plain: usize = rows.iter().map(|row| row.body.len()).sum();
    let stored = number(&store, "SELECT sum(length(CAST(body AS BLOB)) + ifnull(length(packed), 0)) FROM journal");
    assert!(stored < i64::try_from(plain * 2 / 5).unwrap(), "{stored} of {}", plain * 2);
    // Each session has dictionaries of its own, which go with it.
    assert!(number(&store, "SELECT count(*) FROM dictionary") >= 2);
    assert!(store.delete("s").await.unwrap());
    assert_eq!(number(&store, "SELECT count(DISTINCT session) FROM dictionary"), 1);
    assert!(store.journal("t", 0, 99).await.unwrap() == rows);
}

#[tokio::test]
async fn texts_that_have_nothing_in_common_are_stored_as_they_are() {
    let (_home, store) = new_store();
    start(&store, "s").await;
    let actions = ["ask", "tell", "think about it", "act", "judge", "plan"];
    let other = |seq: u64| {
        let words: Vec<String> =
            (0..400).map(|word: u64| format!("{:x}", (word + seq * 31) * 2_654_435_761 % 1_000_003)).collect();
        JournalRow {
            body: serde_json::json!({ actions[seq as usize % 6]: words }).to_string(),
            ..event(seq, "outcome")
        }
    };
    let rows: Vec<JournalRow> = (1..=36).map(other).collect();
    append(&store, "s", rows.clone()).await;
    assert!((5..=8).contains(&number(&store, "SELECT count(*) FROM dictionary")));
    assert!(store.journal("s", 0, 99).await.unwrap() == rows);
}

#[tokio::test]
async fn a_conversation_that_moves_on_gets_new_dictionaries() {
    let (_home, store) = new_store();
    start(&store, "s").await;
    // Twenty lines of the conversation, of which each turn brings two new ones; two actions take turns.
    let line = |number: u64| -> String {
        (0..12).map(|word| format!("{:x} ", (number * 131 + word) * 2_654_435_761 % 1_000_003)).collect()
    };
    let row = |seq: u64| {
        let lines: Vec<String> = (seq * 2..seq * 2 + 20).map(line).collect();
        let rules = format!("as {}: {}", seq % 2, "rule, ".repeat(100));
        JournalRow {
            body: serde_json::json!({ "seq": seq, "llm_prompt": [rules, lines] }).to_string(),
            ..event(seq, "outcome")
        }
    };
    let rows: Vec<JournalRow> = (1..=200).map(row).collect();
    append(&store, "s", rows.clone()).await;
    assert!(store.journal("s", 0, 999).await.unwrap() == rows);
    assert!(store.last_by_kind("s", "outcome").await.unwrap().as_ref() == rows.last());
    let plain: usize = rows.iter().map(|row| row.body.len()).sum();
    let stored = number(&store, "SELECT sum(length(CAST(body AS BLOB)) + ifnull(length(packed), 0)) FROM journal");
    assert!(stored < i64::try_from(plain * 11 / 20).unwrap(), "{stored} of {plain}");
    let dictionaries = number(&store, "SELECT count(*) FROM journal WHERE packed IS NULL");
    assert!((20..80).contains(&dictionaries), "{dictionaries}");
    assert_eq!(number(&store, "SELECT count(*) FROM dictionary"), 8);
}

#[tokio::test]
async fn short_long_and_odd_texts_are_read_unchanged() {
    let (_home, store) = new_store();
    start(&store, "s").await;
    let texts = [
        "x".repeat(MIN_PACKED_BYTES - 1),
        "x".repeat(MIN_PACKED_BYTES),
        "x".repeat(MIN_PACKED_BYTES + 1),
        "é".repeat(MIN_PACKED_BYTES),
        "x".repeat((60 << 10) - 1),
        "x".repeat(60 << 10),
        "x".repeat((60 << 10) + 1),
        format!("\u{1}p{}", "x".repeat(5000)),
        NASTY.repeat(100),
        NASTY.repeat(200),
    ];
    let rows: Vec<JournalRow> =
        (1..).zip(&texts).map(|(seq, text)| JournalRow { body: text.clone(), ..event(seq, "k") }).collect();
    append(&store, "s", rows.clone()).await;
    assert!(store.journal("s", 0, 99).await.unwrap() == rows);
    assert!(number(&store, "SELECT count(*) FROM journal WHERE packed IS NOT NULL") >= 3);
}

#[tokio::test]
async fn a_damaged_dictionary_or_packed_text_is_an_error_and_never_another_text() {
    let damages = [
        "UPDATE journal SET body = replace(body, 'say what you see', 'say what you sea') WHERE packed IS NULL",
        "DELETE FROM journal WHERE packed IS NULL AND key & 1023 = 1",
        "UPDATE journal SET dictionary = 2 WHERE packed IS NOT NULL AND key & 1023 = 3",
        "UPDATE journal SET dictionary = NULL WHERE packed IS NOT NULL",
        "UPDATE journal SET body = '99999999999 00000000' WHERE packed IS NOT NULL",
        "UPDATE journal SET body = '5000' WHERE packed IS NOT NULL",
        "UPDATE journal SET body = replace(body, ' ', ' z') WHERE packed IS NOT NULL",
        "UPDATE journal SET packed = zeroblob(10) WHERE packed IS NOT NULL",
        "UPDATE journal SET packed = CAST(packed || x'00' AS BLOB) WHERE packed IS NOT NULL",
    ];
    for damage in damages {
        let (_home, store) = new_store();
        start(&store, "s").await;
        append(&store, "s", (1..=5).map(|seq| outcome(seq, "ask"))).await;
        let changed = store.connection().execute(damage, []).unwrap();
        assert!(changed > 0, "{damage}");
        let Err(error) = store.journal("s", 0, 99).await else { panic!("{damage}") };
        assert!(matches!(error, StoreError::Corrupt { .. } | StoreError::Io { .. }), "{damage}: {error:?}");
        let said = error.to_string();
        assert!(!said.contains("say what"), "{damage}: {said}");
    }
}

#[tokio::test]
async fn a_session_is_never_compared_with_the_texts_of_another() {
    let (_home, store) = new_store();
    start(&store, "s").await;
    append(&store, "s", (1..=3).map(|seq| outcome(seq, "ask"))).await;
    store.create(&new_session("t"), &[], &commit_at(0)).await.unwrap();
    append(&store, "t", [outcome(1, "ask")]).await;
    let in_t = "SELECT count(*) FROM journal WHERE packed IS NOT NULL
        AND key >> 36 = (SELECT key FROM session WHERE id = 't')";
    assert_eq!(number(&store, in_t), 0);
    assert!(store.delete("s").await.unwrap());
    assert!(store.journal("t", 0, 9).await.unwrap() == [outcome(1, "ask")]);
}

#[tokio::test]
async fn a_recovery_keeps_the_other_sessions_and_reads_no_damaged_text_as_another() {
    for damage in [
        "UPDATE journal SET dictionary = NULL WHERE packed IS NOT NULL AND key >> 36 = 1",
        "UPDATE journal SET packed = zeroblob(10) WHERE packed IS NOT NULL AND key >> 36 = 1",
        "UPDATE journal SET body = replace(body, 'say what you see', 'say what you sea') WHERE packed IS NULL AND key >> 36 = 1",
    ] {
        let (home, store) = new_store();
        let rows: Vec<JournalRow> = (1..=5).map(|seq| outcome(seq, "ask")).collect();
        for session in ["s", "t"] {
            start(&store, session).await;
            append(&store, session, rows.clone()).await;
        }
        assert!(store.connection().execute(damage, []).unwrap() > 0, "{damage}");
        drop(store);
        let recovery = recover(&home.path().join("sessions.db"), false).unwrap();
        let saved: Vec<Saved> = recovery.report.sessions.iter().map(|session| session.saved).collect();
        assert!(saved[0] != Saved::Whole && saved[1] == Saved::Whole, "{damage}: {saved:?}");
        let recovered = open(&recovery.store.unwrap()).unwrap();
        assert!(recovered.journal("t", 0, 99).await.unwrap() == rows, "{damage}");
        // What is stored after it is packed again.
        append(&recovered, "t", [outcome(6, "ask")]).await;
        assert!(recovered.journal("t", 5, 9).await.unwrap() == [outcome(6, "ask")], "{damage}");
    }
}
