//! Rows of a store that nobody wrote: the export of such a session is an error or a document.
//!
//! The input is a text. Its first lines are the head, the location, the settings and the manifest; each further line is a row of the table
//! that its first character names.

#![no_main]
#![allow(clippy::expect_used, reason = "a failure is what the fuzzer looks for")]

use bcc_engine::export::export;
use bcc_runtime::program::stored_event::public_line;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use bcc_store::rows::{CellRow, Commit, FrameRow, JournalRow, MessageRow, NewSessionRow, VariableRow};
use serde_json::Value;

/// A commit with these rows.
fn commit(head: &str, location: &str, lines: &[&str]) -> Commit {
    let mut commit = Commit { status: "waiting_input".to_owned(), ..Commit::default() };
    (commit.head, commit.location) = (head.to_owned(), location.to_owned());
    for line in lines {
        let Some((table, text)) = line.split_at_checked(1) else { continue };
        let text = text.to_owned();
        match table {
            "f" => commit.frames_put.push(FrameRow { key: format!("f{}", commit.frames_put.len()), state: text }),
            "v" => commit.variables_put.push(VariableRow {
                scope: "session".to_owned(),
                name: format!("v{}", commit.variables_put.len()),
                sensitive: text.len() % 2 == 0,
                value: text,
                ..VariableRow::default()
            }),
            "m" => commit.messages.push(MessageRow {
                number: commit.messages.len() as u64 + 1,
                role: "ai".to_owned(),
                text,
                ..MessageRow::default()
            }),
            "c" => commit.cells_put.push(CellRow {
                number: commit.cells_put.len() as u64 + 1,
                id: format!("c{}", commit.cells_put.len()),
                body: text,
            }),
            _ => {
                let event: Option<Value> = serde_json::from_str(line).ok();
                let kind = event.as_ref().and_then(|event| event["type"].as_str()).unwrap_or("outcome").to_owned();
                let seq = commit.journal.len() as u64 + 1;
                commit.journal.push(JournalRow { seq, kind, body: (*line).to_owned(), ..JournalRow::default() });
            }
        }
    }
    commit
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let lines: Vec<&str> = text.lines().collect();
    let [head, location, settings, manifest, rows @ ..] = lines.as_slice() else { return };
    for line in rows {
        let _ = public_line(line);
    }
    let session = NewSessionRow {
        id: "s".to_owned(),
        settings: (*settings).to_owned(),
        manifest: (*manifest).to_owned(),
        ..NewSessionRow::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let store = MemoryStore::default();
        if store.create(&session, &[], &commit(head, location, rows)).await.is_ok() {
            let _ = export(&store, "s", true).await;
        }
    });
});
