//! Tests of unusable stores through the program: a clear error, and nothing overwritten.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::process::{Finished, Running, TIMEOUT, finished};

const SCRIPT: &str = "
session:
  session_id: talk
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: 好吗？, output: [{ get: 回答 }] } }
";

fn project() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("talk.yaml"), SCRIPT).unwrap();
    directory
}

fn program(directory: &Path, arguments: &[&str], input: &str) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bcc-script"));
    command.args(arguments).current_dir(directory).env_clear().env("XDG_CONFIG_HOME", directory.join("home"));
    finished(command, input)
}

#[test]
fn an_unusable_store_is_rejected_and_not_changed() {
    let newer = {
        let directory = project();
        assert_eq!(program(directory.path(), &["run", "talk.yaml"], "好\n").code, Some(0));
        let path = directory.path().join(".bcc/sessions.db");
        let store = rusqlite::Connection::open(&path).unwrap();
        store.pragma_update(None, "user_version", 4711).unwrap();
        store.pragma_update(None, "journal_mode", "delete").unwrap();
        drop(store);
        std::fs::read(path).unwrap()
    };
    let somebody_elses = {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.db");
        rusqlite::Connection::open(&path)
            .unwrap()
            .execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
            .unwrap();
        std::fs::read(path).unwrap()
    };
    let mut damaged = newer.clone();
    damaged[100..3000].fill(0x5a);
    let cases: [(&str, Vec<u8>, &str); 4] = [
        ("a text", "这不是数据库\n".repeat(100).into_bytes(), "not an SQLite file"),
        ("somebody else's database", somebody_elses, "not"),
        ("of a newer release", newer, "newer"),
        ("damaged inside", damaged, ""),
    ];
    for (name, bytes, part) in cases {
        let directory = project();
        let path = directory.path().join("store.db");
        std::fs::write(&path, &bytes).unwrap();
        for arguments in [vec!["run", "talk.yaml"], vec!["sessions", "list"], vec!["sessions", "delete", "x"]] {
            let arguments: Vec<&str> = arguments.into_iter().chain(["--store", "store.db"]).collect();
            let output = program(directory.path(), &arguments, "好\n");
            assert_eq!(output.code, Some(1), "{name}: {arguments:?}: {}", output.err);
            assert!(output.err.contains("store.db"), "{name}: {}", output.err);
            assert!(output.err.contains(part), "{name}: {}", output.err);
            assert!(output.out.is_empty(), "{name}: nothing was said");
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "{name}: {arguments:?}");
        }
    }
}

#[test]
fn a_store_whose_creation_was_killed_has_no_sessions_and_is_completed_by_the_next_run() {
    let check = |directory: &Path, what: &str| {
        let arguments: [&[&str]; 3] =
            [&["sessions", "list"], &["sessions", "list", "--store", ".bcc/sessions.db"], &["store", "check"]];
        let lists = arguments.map(|arguments| program(directory, arguments, ""));
        for output in &lists[..2] {
            assert_eq!(output.code, Some(0), "{what}: {}", output.err);
        }
        let is_created = !lists[0].err.contains("no sessions yet");
        let rerun = program(directory, &["run", "talk.yaml"], "好\n");
        assert_eq!(rerun.code, Some(0), "{what}: {}", rerun.err);
        is_created
    };
    let directory = project();
    std::fs::create_dir(directory.path().join(".bcc")).unwrap();
    std::fs::write(directory.path().join(".bcc/sessions.db"), "").unwrap();
    let shown = program(directory.path(), &["sessions", "show", "x"], "");
    assert_eq!(shown.code, Some(2), "{}", shown.err);
    assert!(!check(directory.path(), "an empty file"));

    let mut unfinished = 0;
    for step in 0..24_u32 {
        let directory = project();
        let store = directory.path().join(".bcc/sessions.db");
        let mut command = Command::new(env!("CARGO_BIN_EXE_bcc-script"));
        command.args(["run", "talk.yaml"]).current_dir(directory.path()).env_clear();
        let mut running = Running::start(command);
        let deadline = Instant::now() + TIMEOUT;
        while !store.exists() {
            assert!(Instant::now() < deadline, "the store is never created");
            std::hint::spin_loop();
        }
        // From the empty file to the first commits of the session.
        let kill_at = Instant::now() + Duration::from_micros(300) * (step % 8);
        while Instant::now() < kill_at {
            std::hint::spin_loop();
        }
        running.kill();
        if !check(directory.path(), &format!("step {step}")) {
            unfinished += 1;
        }
    }
    assert!(unfinished > 0, "no kill was early enough");
}

#[test]
fn a_limit_of_file_sizes_is_a_full_disk_and_no_death() {
    let directory = project();
    let limited = |blocks: u32, arguments: &[&str]| {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("ulimit -f {blocks}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_bcc-script")]);
        command.args(arguments).current_dir(directory.path()).env_clear();
        command.env("XDG_CONFIG_HOME", directory.path().join("home"));
        finished(command, "很好\n")
    };
    assert_eq!(program(directory.path(), &["run", "talk.yaml", "--session", "s"], "").code, Some(3));
    // In blocks of 512 bytes, or 1024 in some shells: less than the log takes.
    let output = limited(8, &["sessions", "resume", "s"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.err.contains("sessions.db"), "{}", output.err);
    let resumed = program(directory.path(), &["sessions", "resume", "s"], "很好\n");
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
}

#[test]
fn a_directory_in_place_of_the_store_is_reported() {
    let directory = project();
    std::fs::create_dir(directory.path().join("store.db")).unwrap();
    let output = program(directory.path(), &["run", "talk.yaml", "--store", "store.db"], "");
    assert_eq!(output.code, Some(1));
    assert!(output.err.contains("store.db"), "{}", output.err);
}

/// Whoever makes the file first, and where a backup was put back.
#[test]
fn a_store_that_others_may_read_is_restricted_or_reported() {
    let directory = project();
    let store = directory.path().join("s0.db");
    std::fs::write(&store, "").unwrap();
    let set = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    set(&store, 0o644);
    assert_eq!(program(directory.path(), &["run", "talk.yaml", "--store", "s0.db"], "").code, Some(3));
    assert_eq!(std::fs::metadata(&store).unwrap().permissions().mode() & 0o777, 0o600);
    let doctor = || program(directory.path(), &["doctor", "--offline", "--store", "s0.db"], "").out;
    assert!(!doctor().contains("can read"), "{}", doctor());
    set(&store, 0o644);
    set(directory.path(), 0o700);
    // Somebody who does not reach it cannot read it.
    assert!(!doctor().contains("can read"), "{}", doctor());
    set(directory.path(), 0o755);
    let report = doctor();
    assert!(report.contains("everyone on this machine can read") && report.contains("chmod go-rwx"), "{report}");
}

#[test]
fn only_the_owner_may_read_the_conversation() {
    let directory = project();
    assert_eq!(program(directory.path(), &["run", "talk.yaml"], "").code, Some(3));
    let folder = directory.path().join(".bcc");
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.join("sessions.db")), 0o600);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}

#[test]
fn listing_sessions_and_a_broken_script_create_no_store() {
    let directory = project();
    std::fs::write(directory.path().join("broken.yaml"), "session: { session_id: x }").unwrap();
    assert_eq!(program(directory.path(), &["sessions", "list"], "").code, Some(0));
    assert_eq!(program(directory.path(), &["sessions", "show", "x"], "").code, Some(2));
    assert_eq!(program(directory.path(), &["sessions", "resume", "x"], "").code, Some(2));
    assert_eq!(program(directory.path(), &["run", "broken.yaml"], "").code, Some(2));
    assert_eq!(program(directory.path(), &["run", "nowhere.yaml"], "").code, Some(2));
    assert!(!directory.path().join(".bcc").exists());
}

#[test]
fn editing_files_changes_no_started_session() {
    let directory = project();
    let template = directory.path().join("_system/config/default");
    std::fs::create_dir_all(&template).unwrap();
    std::fs::write(template.join("ai_ask_v1.md"), "以前：{{ content }}").unwrap();
    let started = program(directory.path(), &["run", "talk.yaml", "--session", "s"], "");
    assert_eq!(started.code, Some(3), "{}", started.err);
    std::fs::write(directory.path().join("talk.yaml"), "session: {}").unwrap();
    std::fs::write(template.join("ai_ask_v1.md"), "以后：{{ no_such_name }}").unwrap();
    let resumed = program(directory.path(), &["sessions", "resume", "s"], "很好\n");
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    let export = program(directory.path(), &["sessions", "export", "s", "--calls"], "");
    let export = &export.out;
    assert!(export.contains("以前：好吗？") && !export.contains("以后"), "{export}");
}

#[test]
fn a_reply_schema_of_the_project_must_hold_what_the_kind_reads() {
    let directory = project();
    let folder = directory.path().join("schemas/replies");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("ai_ask.json"), r#"{"type": "object", "properties": {"content": {"type": "string"}}}"#)
        .unwrap();
    let rejected = program(directory.path(), &["run", "talk.yaml"], "");
    assert_eq!(rejected.code, Some(2));
    assert!(rejected.err.contains("lacks safety_risk, EXIT"), "{}", rejected.err);
    std::fs::write(folder.join("ai_ask.json"), "{").unwrap();
    let rejected = program(directory.path(), &["run", "talk.yaml"], "");
    assert_eq!(rejected.code, Some(2));
    assert!(rejected.err.contains("`ai_ask` in schemas/replies/ is not valid JSON"), "{}", rejected.err);
}
