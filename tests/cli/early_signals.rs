//! Signals before a conversation begins, or without one: they end the program with 130, and leave nothing behind.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::process::{Home, Next, Running, TIMEOUT};

fn signal(running: &Running, signal: Signal) {
    kill_process(Pid::from_raw(running.id().cast_signed()).unwrap(), signal).unwrap();
}

/// Waits until the program handles signals, which it does before anything else: from the moment when the system knows the handlers, no
/// signal is lost.
fn wait_for_handler(running: &Running) {
    wait_until(|| {
        let status = fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|signals| u64::from_str_radix(signals.trim(), 16).ok()).unwrap_or_default();
        // The bits of SIGINT and SIGTERM.
        caught & 0x4002 == 0x4002
    });
}

fn wait_until(holds: impl Fn() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "this never happens");
        std::hint::spin_loop();
    }
}

/// The names in a folder, without locks, which block nothing.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.filter(|name| !name.ends_with(".locks")).collect();
    names.sort();
    names
}

#[test]
fn a_signal_at_any_moment_before_the_conversation_ends_the_program_with_130_and_damages_nothing() {
    for step in 0..24_u32 {
        let home = Home::new();
        let script = home.script("two_phases.yaml").display().to_string();
        let before = names(home.path());
        let running = home.start(["run", &script, "--session", "t"]);
        wait_for_handler(&running);
        // From the first moment to the first question.
        let moment = Instant::now() + Duration::from_micros(700) * step;
        wait_until(|| Instant::now() >= moment);
        signal(&running, if step % 2 == 0 { Signal::INT } else { Signal::TERM });
        // Its input stays open until it ends: the end of the input would end it, too, if it came first.
        while matches!(running.line_until(Instant::now() + TIMEOUT), Next::Line(_)) {}
        let finished = running.finish();
        assert_eq!(finished.code, Some(130), "step {step}: {}", finished.err);
        assert_eq!(names(home.path()), before, "step {step}");
        let left = names(&home.path().join(".bcc"));
        let store = ["sessions.db", "sessions.db-journal", "sessions.db-shm", "sessions.db-wal"];
        assert!(left.iter().all(|name| store.contains(&name.as_str())), "step {step}: {left:?}");
        let listed = home.finish(["sessions", "list"], "");
        assert_eq!(listed.code, Some(0), "step {step}: {}", listed.err);
        let again = home.finish(["run", &script, "--session", "t"], "小林\n35\n芝麻开门\n从前\n");
        assert_eq!(again.code, Some(0), "step {step}: {}", again.err);
    }
}

#[test]
fn a_signal_ends_a_program_that_waits_for_the_store() {
    let home = Home::new();
    let script = home.script("two_phases.yaml").display().to_string();
    assert_eq!(home.finish(["run", &script, "--session", "t"], "").code, Some(3));
    let opening = fs::File::open(home.path().join(".bcc/sessions.db.locks/store.opening")).unwrap();
    opening.lock().unwrap();
    for arguments in [["run", &script, "--json"].as_slice(), &["sessions", "resume", "t"], &["store", "check"]] {
        for sent in [Signal::INT, Signal::TERM] {
            let running = home.start(arguments);
            wait_for_handler(&running);
            signal(&running, sent);
            let finished = running.finish();
            assert_eq!(finished.code, Some(130), "{arguments:?}: {}", finished.err);
        }
    }
}

#[test]
fn an_interrupted_check_leaves_no_copy_of_the_conversations() {
    let home = Home::new();
    let script = home.script("two_phases.yaml").display().to_string();
    assert_eq!(home.finish(["run", &script, "--session", "t"], "").code, Some(3));
    // Enough to copy that the check is still running when its directory is seen.
    let store = rusqlite::Connection::open(home.store()).unwrap();
    store
        .execute_batch(
            "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1500)
             INSERT INTO blob (sha256, text) SELECT hex(randomblob(32)), hex(randomblob(20000)) FROM n",
        )
        .unwrap();
    drop(store);
    let before = names(home.path());
    let temporary = home.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    for (arguments, folder) in
        [(["store", "check"].as_slice(), temporary.clone()), (&["store", "recover"], home.path().join(".bcc"))]
    {
        let empty = names(&folder);
        let mut command = home.command(arguments);
        command.env("TMPDIR", &temporary);
        let running = Running::start(command);
        wait_until(|| names(&folder).len() > empty.len());
        signal(&running, Signal::INT);
        let finished = running.finish();
        assert_eq!(finished.code, Some(130), "{arguments:?}: {}{}", finished.out, finished.err);
        assert_eq!(finished.err, "", "{arguments:?}");
        assert_eq!(names(&folder), empty, "{arguments:?}");
    }
    fs::remove_dir(&temporary).unwrap();
    assert_eq!(names(home.path()), before);
    assert_eq!(home.finish(["store", "check"], "").code, Some(0));
}

#[test]
fn an_interrupted_init_leaves_no_half_made_folders() {
    for step in 0..12_u32 {
        let home = Home::new();
        let running = home.start(["init", "new"]);
        wait_for_handler(&running);
        let moment = Instant::now() + Duration::from_millis(1) * step;
        wait_until(|| Instant::now() >= moment);
        signal(&running, Signal::INT);
        let finished = running.finish();
        assert!(matches!(finished.code, Some(0 | 130)), "step {step}: {:?}", finished.code);
        let is_hidden = |name: &String| name.starts_with(".bcc-");
        let mut folders = vec![home.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            assert!(!names(&folder).iter().any(is_hidden), "step {step}: {}", folder.display());
            let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
            folders.extend(entries.filter(|path| path.is_dir()));
        }
        // Complete, or not there at all.
        let again = if home.path().join("new/bcc-script.toml").exists() { 2 } else { 0 };
        assert_eq!(home.finish(["init", "new"], "").code, Some(again), "step {step}");
    }
}
