//! Tests of exit codes and the messages that come with them.

use super::*;

use process::{TIMEOUT, fixture, wait};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn success_exits_with_0_usage_errors_with_2_and_a_session_that_has_ended_with_4() {
    let home = Home::new();
    let script = home.script("two_phases.yaml").display().to_string();
    let other = home.script("short_talk.yaml").display().to_string();
    let invalid = fixture("invalid.yaml").display().to_string();
    let store = home.store().display().to_string();
    assert_eq!(talk(&home, &[], ANSWERS).code, Some(0));
    let cases: &[(i32, &[&str], &str)] = &[
        (0, &["--help"], ""),
        (0, &["--version"], ""),
        (0, &["sessions", "list"], ""),
        (0, &["sessions", "export", "t"], ""),
        (2, &[], "Usage"),
        (2, &["rnu"], "unrecognized subcommand"),
        (2, &["run"], "FILE"),
        (2, &["run", &script, "--sesion", "x"], "--session"),
        (2, &["run", "nowhere.yaml"], "nowhere.yaml"),
        (2, &["run", &invalid, "--store", &store], "2 errors"),
        (4, &["run", &script, "--session", "t"], "`t` cannot continue: its status is `completed`"),
        (2, &["run", &other, "--session", "t"], "belongs to the script `two_phases`"),
        (2, &["run", &script, "--session", "../t"], "is not a valid session id"),
        (2, &["run", &script, "--session", ".."], "is not a valid session id"),
        (2, &["run", &script, "--model", "nobody"], "nobody"),
        (2, &["run", &script, "--clock", "tomorrow"], "2026-"),
        (2, &["run", &script, "--project", "nowhere"], "nowhere"),
        (4, &["sessions", "resume", "t"], "`t` cannot continue: its status is `completed`"),
        (2, &["sessions", "resume", "nobody"], "there is no session `nobody`"),
        (2, &["sessions", "resume", "t", "--after", "3"], "--json"),
        (2, &["sessions", "show", "nobody"], "there is no session `nobody`"),
        (2, &["sessions", "export", "nobody"], "there is no session `nobody`"),
        (2, &["sessions", "delete", "nobody"], "there is no session `nobody`"),
        (2, &["sessions", "prune", "--older-than", "soon"], "30d"),
        (2, &["sessions", "list", "--store", "nowhere.db"], "nowhere.db"),
    ];
    for (code, arguments, message) in cases {
        let finished = home.finish(*arguments, "");
        assert_eq!(finished.code, Some(*code), "{arguments:?}: {}", finished.err);
        assert!(finished.err.contains(message), "{arguments:?}: {}", finished.err);
    }
    assert!(!home.path().join("nowhere.db").exists(), "looking makes no files");
}

#[test]
fn a_signal_ends_a_waiting_program_with_130_and_it_can_be_resumed() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        for (json, question) in [(false, "怎么称呼你？"), (true, "\"waiting\"")] {
            let home = Home::new();
            let script = home.script("two_phases.yaml");
            let mut command = home.command(["run", script.to_str().unwrap(), "--session", "t"]);
            if json {
                command.arg("--json");
            }
            let mut child =
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let output = BufReader::new(child.stdout.take().unwrap());
            output.lines().map(Result::unwrap).find(|line| line.contains(question)).expect("a question");
            kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
            assert_eq!(wait(&mut child).code(), Some(130), "{signal:?}, json {json}, within {TIMEOUT:?}");
            assert_eq!(home.finish(["sessions", "resume", "t"], ANSWERS).code, Some(0));
        }
    }
}

#[test]
fn a_file_that_is_no_store_exits_with_1_and_is_not_changed() {
    let home = Home::new();
    let text = "no database, but somebody's notes, long enough to look like a header of one hundred bytes. ".repeat(3);
    let store = home.file("notes.db", &text).display().to_string();
    let script = home.script("two_phases.yaml").display().to_string();
    let commands: [&[&str]; 3] = [
        &["run", &script, "--store", &store],
        &["sessions", "list", "--store", &store],
        &["sessions", "resume", "t", "--store", &store],
    ];
    for arguments in commands {
        let finished = home.finish(arguments, "");
        assert_eq!(finished.code, Some(1), "{arguments:?}: {}", finished.err);
        assert!(finished.err.contains("notes.db"), "{}", finished.err);
        assert_eq!(std::fs::read_to_string(&store).unwrap(), text);
    }
}
