//! Tests of stores that are damaged or go away, through the program: nothing is acknowledged that is not stored, and what can
//! be read is saved.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::process::{Finished, Home, Running};

const SCRIPT: &str = "
session:
  session_id: talk
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: one, config: { content: One?, output: [{ get: one }] } }
            - { action_type: ai_ask, action_id: two, config: { content: Two?, output: [{ get: two }] } }
            - { action_type: ai_ask, action_id: three, config: { content: Three?, output: [{ get: three }] } }
            - { action_type: ai_ask, action_id: four, config: { content: Four?, output: [{ get: four }] } }
            - { action_type: ai_ask, action_id: five, config: { content: Five?, output: [{ get: five }] } }
            - { action_type: ai_ask, action_id: six, config: { content: Six?, output: [{ get: six }] } }
";

/// The bytes of the header of a log, and of a frame with its page.
const HEADER: usize = 32;
const FRAME: usize = 24 + 4096;

fn home() -> Home {
    let home = Home::new();
    home.file("talk.yaml", SCRIPT);
    home
}

fn log_of(home: &Home) -> PathBuf {
    PathBuf::from(format!("{}-wal", home.store().display()))
}

/// Starts a session with an answer to each of this many questions, and waits for the next question.
fn started(home: &Home, id: &str, answers: usize, arguments: &[&str]) -> Running {
    let mut running = home.start([&["run", "talk.yaml", "--session", id], arguments].concat());
    for number in 0..answers {
        running.event_of("waiting");
        assert!(running.send(&format!("answer {number}")));
    }
    running.event_of("waiting");
    running
}

/// A store with five acknowledged answers, whose process was killed.
fn killed() -> Home {
    let home = home();
    started(&home, "s", 5, &["--json"]).kill();
    home
}

fn answers(home: &Home, id: &str, store: &[&str]) -> Vec<String> {
    let export = home.finish([&["sessions", "export", id], store].concat(), "");
    assert_eq!(export.code, Some(0), "{}", export.err);
    let export: Value = serde_json::from_str(&export.out).unwrap();
    let messages = export["transcript"].as_array().unwrap().iter();
    messages.filter(|line| line["role"] == "user").map(|line| line["text"].as_str().unwrap().to_owned()).collect()
}

/// The files of the store, by name, without the index of the log.
fn files(home: &Home) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(home.store().parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.is_file() && !path.display().to_string().ends_with("-shm"))
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// Changes one byte in the middle of the log.
fn damage(home: &Home) {
    let mut log = fs::read(log_of(home)).unwrap();
    let frames = (log.len() - HEADER) / FRAME;
    log[HEADER + frames / 2 * FRAME + 24 + 500] ^= 0x01;
    fs::write(log_of(home), log).unwrap();
}

#[test]
fn a_check_is_also_one_json_document() {
    let home = killed();
    let log = log_of(&home);
    let check = |arguments: &[&str]| {
        let checked = home.finish([&["store", "check", "--json"], arguments].concat(), "");
        let document: Value = serde_json::from_str(&checked.out).unwrap_or_else(|_| panic!("{}", checked.err));
        assert_eq!(document["version"], 1);
        assert!(document["store"].as_str().unwrap().ends_with("sessions.db"), "{document}");
        (checked.code, document)
    };
    let (code, document) = check(&[]);
    assert_eq!((code, &document["ok"], &document["damage"]), (Some(0), &json!(true), &json!([])));
    assert_eq!(document["sessions"], json!([{ "id": "s", "readable": "all", "answers": 5, "all_answers": 5 }]));

    // Half of the frames are gone.
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..HEADER + (bytes.len() - HEADER) / FRAME / 2 * FRAME]).unwrap();
    let (code, document) = check(&["--lang", "zh"]);
    assert_eq!((code, &document["ok"]), (Some(1), &json!(false)));
    assert!(document["damage"][0].as_str().unwrap().is_ascii(), "{document}");
    assert_eq!(document["sessions"][0]["id"], "s", "{document}");
    assert!(document["sessions"][0]["answers"].as_u64().unwrap() < 5, "{document}");
    assert_eq!(home.finish(["store", "check", "--json", "--store", "nowhere.db"], "").code, Some(2));
}

#[test]
fn a_changed_byte_of_a_log_is_noticed_and_no_acknowledged_answer_is_lost() {
    for command in [vec!["run", "talk.yaml", "--session", "s"], vec!["sessions", "resume", "s"]] {
        let home = killed();
        damage(&home);
        let before = files(&home);
        for arguments in [vec!["sessions", "list"], vec!["sessions", "show", "s"], vec!["store", "check"]] {
            let finished = home.finish(&arguments, "");
            assert_eq!(finished.code, Some(1), "{arguments:?}: {finished:?}");
            assert_eq!(files(&home), before, "{arguments:?}");
        }
        for json in [&[] as &[&str], &["--json"]] {
            let refused = home.finish([command.as_slice(), json].concat(), "another answer\n");
            assert_eq!(refused.code, Some(1), "{refused:?}");
            assert!(refused.err.contains("sessions.db.damaged-"), "{}", refused.err);
            assert!(refused.err.contains("bcc-script store recover --store"), "{}", refused.err);
            assert!(!refused.out.contains("seq"), "{}", refused.out);
        }
        let after = files(&home);
        assert_eq!(after.len(), before.len() * 2, "one copy of each file");
        assert!(before.iter().all(|file| after.contains(file)), "the store is unchanged");

        let recovered = home.finish(["store", "recover", "--replace"], "");
        assert_eq!(recovered.code, Some(0), "{recovered:?}");
        assert!(recovered.out.contains("s\tcomplete; answers: 5"), "{}", recovered.out);
        assert_eq!(home.finish(["store", "check"], "").code, Some(0));
        let expected: Vec<String> = (0..5).map(|number| format!("answer {number}")).collect();
        assert_eq!(answers(&home, "s", &[]), expected);
        let resumed = home.finish(["sessions", "resume", "s"], "the last\n");
        assert_eq!(resumed.code, Some(0), "{resumed:?}");
    }
}

#[test]
fn a_truncated_store_with_a_whole_log_is_left_unchanged_and_recovered_next_to_it() {
    let home = killed();
    let length = fs::metadata(home.store()).unwrap().len();
    fs::OpenOptions::new().write(true).open(home.store()).unwrap().set_len(length / 2).unwrap();
    let before = files(&home);
    let refused = home.finish(["run", "talk.yaml", "--session", "s"], "another answer\n");
    assert!(before.iter().all(|file| files(&home).contains(file)), "the store is unchanged");
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{refused:?}");
    let recovered = home.finish(["store", "recover", "--lang", "zh"], "");
    assert!(before.iter().all(|file| files(&home).contains(file)), "the store is unchanged");
    assert!(recovered.out.contains("损坏的存储库未作改动"), "{recovered:?}");
    let new = recovered.out.split("抢救出的存储库是 ").nth(1).unwrap().split('；').next().unwrap();
    let checked = home.finish(["store", "check", "--store", new], "");
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[test]
fn a_sound_store_needs_no_recovery_and_a_missing_one_is_wrong_usage() {
    let home = killed();
    let before = files(&home);
    let checked = home.finish(["store", "check"], "");
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.out.contains("s\tcomplete; answers: 5") && checked.out.contains("is sound; sessions: 1"));
    assert_eq!(files(&home), before);
    let recovered = home.finish(["store", "recover"], "");
    assert_eq!(recovered.code, Some(0), "{recovered:?}");
    assert!(recovered.out.contains("nothing to recover"), "{}", recovered.out);
    for command in ["check", "recover"] {
        assert_eq!(home.finish(["store", command, "--store", "nowhere.db"], "").code, Some(2));
    }
    let mut running = started(&home, "other", 0, &["--json"]);
    let checked = home.finish(["store", "check"], "");
    assert_eq!(checked.code, Some(1));
    assert!(checked.err.contains("in use by another process"), "{}", checked.err);
    running.kill();
}

/// Moves the files of a store.
type Move = fn(&Path);

/// Changes a path while a session waits for an answer, and returns what the process answers to `input`.
fn after(go: Move, input: Option<&str>) -> Finished {
    let home = home();
    let mut running = started(&home, "s", 1, &["--json"]);
    go(&home.store());
    if let Some(input) = input {
        assert!(running.send(input));
    }
    running.finish()
}

#[test]
fn a_store_that_went_away_acknowledges_nothing_and_is_not_called_saved() {
    let moves: [(&str, Move); 4] = [
        ("removed", |store| fs::remove_file(store).unwrap()),
        ("moved", |store| fs::rename(store, store.with_extension("old")).unwrap()),
        ("its log removed", |store| fs::remove_file(format!("{}-wal", store.display())).unwrap()),
        ("its directory replaced", |store| {
            let directory = store.parent().unwrap();
            fs::rename(directory, directory.with_extension("old")).unwrap();
            fs::create_dir(directory).unwrap();
            fs::write(store, "").unwrap();
        }),
    ];
    for (name, go) in moves {
        for input in [Some("a lost answer"), None] {
            let finished = after(go, input);
            assert_eq!(finished.code, Some(3), "{name}: {finished:?}");
            assert!(finished.err.contains("was removed, moved or replaced"), "{name}: {finished:?}");
            assert!(!finished.err.contains("saved; the session"), "{name}: {finished:?}");
            let events = finished.events();
            let has_seq = events.iter().any(|event| event.get("seq").is_some());
            assert!(!has_seq && !finished.out.contains("a lost answer"), "{name}: {}", finished.out);
            assert_eq!(events.last().unwrap()["type"], "error", "{name}");
        }
    }
}

#[test]
fn a_moved_store_is_put_back_and_the_session_continues() {
    let home = home();
    let mut running = started(&home, "s", 1, &["--json"]);
    let directory = home.store().parent().unwrap().to_owned();
    let moved = directory.with_extension("old");
    fs::rename(&directory, &moved).unwrap();
    assert!(running.send("a lost answer"));
    assert_eq!(running.finish().code, Some(3));
    fs::rename(&moved, &directory).unwrap();
    assert_eq!(answers(&home, "s", &[]), ["answer 0"]);
    let resumed = home.finish(["sessions", "resume", "s"], "1\n2\n3\n4\n5\n");
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
}

#[test]
fn a_resume_right_after_a_kill_is_never_refused() {
    let home = home();
    started(&home, "s", 0, &["--json"]).kill();
    for round in 0..20 {
        let running = home.start(["sessions", "resume", "s", "--json"]);
        running.event_of("waiting");
        let pid = rustix::process::Pid::from_raw(i32::try_from(running.id()).unwrap()).unwrap();
        // The process may not be gone yet when the next one starts.
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        let resumed = home.finish(["sessions", "resume", "s"], "");
        assert_eq!(resumed.code, Some(3), "round {round}: {resumed:?}");
    }
}

#[test]
fn a_session_id_cannot_look_like_an_option() {
    let home = home();
    for id in ["-s", "--json", "-"] {
        let finished = home.finish(["run", "talk.yaml", &format!("--session={id}")], "");
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(finished.err.contains("is not a valid session id"), "{}", finished.err);
    }
    home.file("talk.yaml", &SCRIPT.replace("session_id: talk", "session_id: --talk"));
    assert_eq!(home.finish(["run", "talk.yaml"], "").code, Some(3));
    let listed = home.finish(["sessions", "list"], "");
    assert!(listed.out.starts_with("talk-"), "{}", listed.out);
}

#[test]
fn a_thread_that_cannot_be_started_is_an_error() {
    let home = home();
    for arguments in
        [vec!["run", "talk.yaml"], vec!["run", "talk.yaml", "--json"], vec!["validate", "--watch", "talk.yaml"]]
    {
        let mut command = home.command(&arguments);
        // No address space has room for such a stack.
        command.env("RUST_MIN_STACK", (1_u64 << 60).to_string());
        let finished = crate::process::finished(command, "an answer\n");
        assert_eq!(finished.code, Some(1), "{arguments:?}: {finished:?}");
        assert!(finished.err.contains("cannot start a thread"), "{arguments:?}: {}", finished.err);
        assert!(!finished.err.contains("panicked"), "{arguments:?}: {}", finished.err);
    }
    // The address of a host is looked up on a thread.
    let model = "[models.default]\nprovider = \"openai\"\nbase_url = \"http://localhost:9/v1\"\nmodel = \"m\"\n";
    home.file("bcc-script.toml", model);
    let mut command = home.command(["models", "check", "--trust"]);
    command.env("RUST_MIN_STACK", (1_u64 << 60).to_string());
    let finished = crate::process::finished(command, "");
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(!finished.err.contains("panicked"), "{}", finished.err);
}
