//! Tests of how a session is found: by the beginning of its id, as the newest unfinished one, and by the note of `run`.

use super::*;

/// Starts sessions of `short_talk.yaml` with these ids, each a day after the one before.
fn started(home: &Home, ids: &[&str]) -> String {
    let script = home.script("short_talk.yaml").display().to_string();
    for (day, id) in ids.iter().enumerate() {
        let clock = format!("2026-11-0{}T20:00:00Z", day + 1);
        assert_eq!(home.finish(["run", &script, "--session", id, "--clock", &clock], "").code, Some(3));
    }
    script
}

#[test]
fn the_beginning_of_an_id_will_do_if_it_is_unique() {
    let home = Home::new();
    started(&home, &["talk-1", "talk-12", "walk-3"]);
    for arguments in [&["show", "w"][..], &["export", "walk"], &["resume", "wal"], &["show", "talk-12"]] {
        let code = if arguments[0] == "resume" { 3 } else { 0 };
        let finished = sessions(&home, arguments);
        assert_eq!(finished.code, Some(code), "{arguments:?}: {}", finished.err);
    }
    // An id that is also the beginning of another one means itself.
    assert!(sessions(&home, &["show", "talk-1"]).out.contains("- session: talk-1 ("));
    for command in ["show", "export", "resume", "delete"] {
        let ambiguous = sessions(&home, &[command, "talk"]);
        assert_eq!(ambiguous.code, Some(2), "{command}: {}", ambiguous.err);
        let expected = "`talk` is the beginning of 2 session ids: `talk-12`, `talk-1`";
        assert!(ambiguous.err.contains(expected), "{command}: {}", ambiguous.err);
        let unknown = sessions(&home, &[command, ""]);
        assert_eq!(unknown.code, Some(2), "{command}: {}", unknown.err);
    }
    let compared = home.finish(["templates", "render", "--session", "talk", "--action", "x"], "");
    assert!(compared.err.contains("is the beginning of 2 session ids"), "{}", compared.err);
    assert_eq!(sessions(&home, &["delete", "walk"]).err, "deleted walk-3\n");
    assert_eq!(sessions(&home, &["list"]).out.lines().count(), 2);
    // A new session may have an id that is the beginning of another one.
    let script = home.path().join("short_talk.yaml").display().to_string();
    assert_eq!(home.finish(["run", &script, "--session", "talk"], "").code, Some(3));
    assert_eq!(sessions(&home, &["list"]).out.lines().count(), 3);
}

#[test]
fn resume_without_an_id_takes_the_newest_unfinished_session() {
    let home = Home::new();
    let none = sessions(&home, &["resume"]);
    assert_eq!(none.code, Some(2), "{}", none.err);
    talk(&home, &["--clock", "2026-11-20T20:00:00Z"], ANSWERS);
    let over = sessions(&home, &["resume"]);
    assert_eq!(over.code, Some(2), "{}", over.err);
    assert!(over.err.contains("there is no unfinished session"), "{}", over.err);
    started(&home, &["older", "newer"]);
    let resumed = sessions(&home, &["resume"]);
    assert_eq!(resumed.code, Some(3), "{}", resumed.err);
    assert!(resumed.err.contains("resuming session newer\n"), "{}", resumed.err);
}

#[test]
fn run_names_an_unfinished_session_of_the_same_script_and_user() {
    let home = Home::new();
    let script = started(&home, &["left"]);
    talk(&home, &[], "");
    let note = "note: the session left of this script is unfinished, and a new one has begun. \
                Resume the other with: bcc-script sessions resume left\n";
    let run = |arguments: &[&str]| home.finish(["run", &script].iter().chain(arguments), "").err;
    assert!(!run(&["--user", "lin"]).contains("unfinished"), "another user");
    assert!(!run(&["--json", "--user", "lin"]).contains("unfinished"), "a program");
    assert!(!run(&["--session", "left"]).contains("unfinished"), "the session itself");
    let holder = home.start(["run", &script, "--session", "left", "--json"]);
    holder.event_of("waiting");
    assert!(!run(&[]).contains("session left"), "another process runs it");
    drop(holder);
    assert_eq!(sessions(&home, &["delete", "short_talk"]).code, Some(2), "three were started without an id");
    for row in sessions(&home, &["list"]).out.lines().filter(|row| !row.starts_with("left\t")) {
        sessions(&home, &["delete", row.split('\t').next().unwrap()]);
    }
    assert!(run(&[]).contains(note), "{}", run(&[]));
}
