//! The locks of a server's sessions: many with few open files, and locks that were removed under it.

use std::process::Command;

use serde_json::json;

use crate::kills::ECHO;
use crate::process::{Home, Running};
use crate::served::Serving;

/// The sessions in memory, and the open files that the server may have.
const SESSIONS: usize = 250;
const MAX_FILES: usize = 128;

/// How often a message is sent that the server asks to send again.
const ATTEMPTS: usize = 10;

fn home() -> Home {
    let home = Home::new();
    home.put("scripts/echo.yaml", ECHO);
    home.put("bcc-script.toml", "[serve]\nrequests_per_minute = 1000000\n");
    home
}

#[tokio::test]
async fn a_server_may_run_more_sessions_than_it_may_have_open_files() {
    let home = home();
    let serve = home.command(["serve", "--addr", "127.0.0.1:0", "--trust"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -n {MAX_FILES}; exec \"$@\""), "sh"]).arg(serve.get_program());
    limited.args(serve.get_args()).env_clear().envs(home.variables()).current_dir(home.path());
    let serving = Serving::of(Running::start(limited));
    let mut ids = Vec::new();
    for _ in 0..SESSIONS {
        ids.push(serving.session("echo").await);
    }
    // All of them are locked.
    let refused = home.finish(["sessions", "resume", &ids[0]], "");
    assert!(refused.code == Some(1) && refused.err.contains("is in use by pid"), "{}", refused.err);
    for id in ids.iter().step_by(25) {
        serving.say(id, "word").await;
    }
}

#[tokio::test]
async fn a_session_whose_lock_was_removed_goes_on_from_what_another_process_has_stored() {
    let home = home();
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("echo").await;
    serving.say(&id, "one").await;
    std::fs::remove_dir_all(home.path().join(".bcc/sessions.db.locks")).unwrap();
    // It waits for the next answer when its input ends.
    let resumed = home.finish(["sessions", "resume", &id], "two\n");
    assert_eq!(resumed.code, Some(3), "{}", resumed.err);
    let path = format!("/v1/sessions/{id}/messages");
    let mut accepted = 0;
    for _ in 0..ATTEMPTS {
        let reply = serving.post(&path, json!({ "text": "three" })).await;
        if reply.status == 200 {
            accepted += 1;
            break;
        }
        // Another process has changed the session: the server reads it again.
        assert_eq!(reply.status, 503, "{reply:?}");
    }
    assert_eq!(accepted, 1);
    let export = home.export(&id);
    let texts: Vec<&str> =
        export["transcript"].as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap()).collect();
    for text in ["heard one", "heard two", "heard three"] {
        assert_eq!(texts.iter().filter(|said| **said == text).count(), 1, "{texts:?}");
    }
}

/// A newer release that starts on the same store migrates it.
#[tokio::test]
async fn a_server_whose_store_a_newer_release_has_changed_says_that_it_must_be_restarted() {
    let home = home();
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("echo").await;
    serving.say(&id, "one").await;
    let store = rusqlite::Connection::open(home.store()).unwrap();
    let layout: u32 = store.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    store.execute_batch(&format!("PRAGMA user_version = {}", layout + 1)).unwrap();
    let path = format!("/v1/sessions/{id}/messages");
    // The first one finds the session in memory, the second one opens it.
    for _ in 0..2 {
        let reply = serving.post(&path, json!({ "text": "two" })).await;
        assert_eq!((reply.status, &reply.json()["type"]), (503, &json!("/problems/unavailable")), "{reply:?}");
        assert_eq!(reply.json()["help"], "restart the server with that release", "{reply:?}");
    }
    assert_eq!(serving.get("/readyz").await.status, 503);
    assert_eq!(serving.get("/v1/sessions").await.status, 503);
    store.execute_batch(&format!("PRAGMA user_version = {layout}")).unwrap();
    let reply = serving.say(&id, "three").await;
    assert_eq!(reply["messages"][0]["text"], "heard three", "{reply}");
}
