//! Many processes that use one store at the same time (docs/sessions.md).
//!
//! `BCC_TEST_PROCESSES=N` starts N of them.

use std::process::{Child, Stdio};

use crate::process::Home;

const PROCESSES: usize = 200;

const ANSWERS: &str = "小林\n41\n咖啡\n";

/// Starts a conversation that reads its answers from a file, so that the test need not feed it.
fn start(home: &Home, number: usize) -> Child {
    let answers = std::fs::File::open(home.path().join("answers")).unwrap();
    let mut command = home.command(["run", "short_talk.yaml", "--session", &format!("s{number}")]);
    command.stdin(answers).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn two_hundred_processes_write_into_one_store_and_none_is_turned_away() {
    let count = std::env::var("BCC_TEST_PROCESSES").ok().and_then(|count| count.parse().ok()).unwrap_or(PROCESSES);
    let home = Home::new();
    home.script("short_talk.yaml");
    home.file("answers", ANSWERS);
    let running: Vec<Child> = (0..count).map(|number| start(&home, number)).collect();
    let mut failed = Vec::new();
    for process in running {
        let ended = process.wait_with_output().unwrap();
        if ended.status.code() != Some(0) {
            failed.push(String::from_utf8_lossy(&ended.stderr).into_owned());
        }
    }
    assert!(failed.is_empty(), "{} of {count}: {failed:?}", failed.len());
    // Each has said everything, and nothing is missing in the store.
    let expected = transcript(&home, 0);
    assert_eq!(expected.last().map(String::as_str).map(|last| last.contains("再见")), Some(true), "{expected:?}");
    for number in [1, count / 2, count - 1] {
        assert_eq!(transcript(&home, number).len(), expected.len());
    }
    // Every answer of every process is there.
    let listed = home.finish(["sessions", "list", "--json"], "");
    let listed: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    let sessions = listed["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), count);
    let answers = ANSWERS.lines().count();
    for session in sessions {
        assert_eq!(
            (session["status"].as_str(), session["answers"].as_u64()),
            (Some("completed"), Some(answers as u64))
        );
    }
    let checked = home.finish(["store", "check"], "");
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

fn transcript(home: &Home, number: usize) -> Vec<String> {
    let export = home.export(&format!("s{number}"));
    export["transcript"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["text"].as_str().unwrap().to_owned())
        .collect()
}
