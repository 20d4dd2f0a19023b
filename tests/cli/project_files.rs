//! Tests of a project that someone else provided: links that lead out of it, pipes and devices, planted locks, stores that others can
//! change, and outputs that would replace something else.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::process::{Finished, Home, finished, install};

/// What must neither be shown nor changed.
const SECRET: &str = "classified-4711";

const SCRIPT: &str = "
session:
  session_id: talk
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: 好吗？, output: [{ get: answer, define: 回答 }] } }
";

const TEST: &str = "test: kept\nscript: ../scripts/talk.yaml\nsnapshot: [transcript]\nmodel: { ask: [{ content: 您好。 }] }\ndialogue:\n  - ai: 您好。\n";

const LEADS_OUT: &str = "leads out of the project";

/// A project in `project/`, and a secret file in `outside/`.
pub(crate) struct Cloned {
    pub(crate) home: Home,
}

impl Cloned {
    pub(crate) fn new() -> Self {
        let home = Home::new();
        home.put("project/bcc-script.toml", "");
        home.put("project/scripts/talk.yaml", SCRIPT);
        home.put("project/tests/kept.yaml", TEST);
        home.put("outside/secret", SECRET);
        home.put("outside/folder/secret.yaml", SECRET);
        Self { home }
    }

    pub(crate) fn at(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join("project").join(name)
    }

    /// Plants a link in the project, instead of what is there. Its target is relative to the folder with the project.
    fn plant(&self, name: &str, target: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        } else {
            let _ = fs::remove_file(&path);
        }
        symlink(self.home.path().join(target), path).unwrap();
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        let mut command = self.home.command(arguments);
        // What `/proc/self/environ` would show.
        command.current_dir(self.at("")).env("KEY", SECRET);
        finished(command, "很好\n")
    }

    /// Runs the program, which must say that a link leads out, and neither show the secret nor change anything outside.
    fn refuses(&self, arguments: &[&str]) -> Finished {
        let before = tree(&self.home.path().join("outside"));
        let finished = self.run(arguments);
        let all = format!("{}{}", finished.out, finished.err);
        assert!(!all.contains(SECRET), "{arguments:?}: {all}");
        assert!(all.contains(LEADS_OUT) && all.contains("replace"), "{arguments:?}: {all}");
        assert!(matches!(finished.code, Some(1 | 2)), "{arguments:?}: {:?} {all}", finished.code);
        assert_eq!(tree(&self.home.path().join("outside")), before, "{arguments:?}");
        finished
    }
}

/// The names and contents of all files below a folder.
fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => pending.push(path),
                false => found.push((path.display().to_string(), fs::read(&path).unwrap())),
            }
        }
    }
    found.sort();
    found
}

/// Targets of links that lead out of the project.
const TARGETS: [&str; 2] = ["outside/secret", "/proc/self/environ"];

#[test]
fn no_file_of_a_project_is_read_through_a_link_that_leads_out() {
    let cases: [(&str, &[&[&str]]); 6] = [
        ("scripts/linked.yaml", &[&["validate"], &["validate", "scripts"], &["validate", "--fix"]]),
        ("skills/linked.yaml", &[&["validate"]]),
        ("tests/linked.yaml", &[&["validate"], &["test"]]),
        (
            "_system/config/default/ai_ask_v1.md",
            &[
                &["run", "scripts/talk.yaml", "--json"],
                &["validate"],
                &["test"],
                &["templates", "show", "ai_ask"],
                &["templates", "list"],
            ],
        ),
        ("schemas/replies/own.json", &[&["run", "scripts/talk.yaml", "--json"], &["validate"], &["test"]]),
        (
            "bcc-script.toml",
            &[&["run", "scripts/talk.yaml", "--json"], &["validate"], &["test"], &["sessions", "list"], &["trust"]],
        ),
    ];
    for target in TARGETS {
        for (name, commands) in cases {
            let cloned = Cloned::new();
            cloned.plant(name, target);
            for arguments in commands {
                cloned.refuses(arguments);
            }
        }
    }
}

#[test]
fn no_folder_of_a_project_is_searched_through_a_link_that_leads_out() {
    let cases: [(&str, &[&[&str]]); 5] = [
        ("scripts/deep", &[&["validate"]]),
        ("tests/deep", &[&["test"]]),
        ("_system/config/default", &[&["run", "scripts/talk.yaml"], &["validate"]]),
        ("_system", &[&["run", "scripts/talk.yaml"]]),
        ("schemas", &[&["run", "scripts/talk.yaml"]]),
    ];
    for (name, commands) in cases {
        let cloned = Cloned::new();
        cloned.home.put("outside/folder/replies/own.json", "{}");
        cloned.home.put("outside/folder/ai_ask_v1.md", SECRET);
        cloned.home.put("outside/folder/config/default/ai_ask_v1.md", SECRET);
        cloned.plant(name, "outside/folder");
        for arguments in commands {
            cloned.refuses(arguments);
        }
    }
}

#[test]
fn links_do_not_lead_out_of_a_folder_that_nothing_marks_as_a_project() {
    let cloned = Cloned::new();
    fs::remove_file(cloned.at("bcc-script.toml")).unwrap();
    fs::remove_dir(cloned.home.path().join(".bcc")).unwrap();
    cloned.home.put("outside/good.yaml", SCRIPT);
    cloned.home.put("project/lib/good.yaml", SCRIPT);
    symlink("../lib/good.yaml", cloned.at("scripts/inside.yaml")).unwrap();
    for arguments in [&["validate"] as &[&str], &["validate", "scripts"], &["test", "--update"]] {
        let finished = cloned.run(arguments);
        assert_eq!(finished.code, Some(0), "{arguments:?}: {}{}", finished.out, finished.err);
    }
    cloned.plant("tests/snapshots/kept.yaml", "outside/secret");
    cloned.refuses(&["test"]);
    cloned.refuses(&["test", "--update"]);
    cloned.plant("scripts/talk.yaml", "outside/good.yaml");
    cloned.refuses(&["validate"]);
    let finished = cloned.run(&["test", "tests/kept.yaml"]);
    assert!(finished.code == Some(1) && finished.err.contains("is outside the project"), "{}", finished.err);
}

#[test]
fn a_snapshot_is_neither_shown_nor_written_through_a_link_that_leads_out() {
    for (name, target) in [
        ("tests/snapshots/kept.yaml", "outside/secret"),
        ("tests/snapshots/kept.yaml", "/proc/self/environ"),
        ("tests/snapshots/kept.yaml", "outside/new"),
        ("tests/snapshots", "outside"),
    ] {
        let cloned = Cloned::new();
        cloned.plant(name, target);
        let before = tree(&cloned.home.path().join("outside"));
        for arguments in [&["test"] as &[&str], &["test", "tests/kept.yaml"], &["test", "--update"]] {
            let finished = cloned.run(arguments);
            let all = format!("{}{}", finished.out, finished.err);
            assert!(finished.code == Some(1) && !all.contains(SECRET), "{target}: {arguments:?}: {all}");
        }
        assert_eq!(tree(&cloned.home.path().join("outside")), before, "{target}");
        assert!(cloned.at(name).is_symlink(), "{target}");
    }
    let cloned = Cloned::new();
    cloned.plant("tests/snapshots/kept.yaml", "outside/secret");
    cloned.refuses(&["test"]);
    cloned.refuses(&["test", "--update"]);
}

#[test]
fn links_inside_a_project_and_to_named_files_are_followed() {
    let cloned = Cloned::new();
    cloned.home.put("outside/good.yaml", SCRIPT);
    cloned.plant("named.yaml", "outside/good.yaml");
    symlink("talk.yaml", cloned.at("scripts/linked.yaml")).unwrap();
    symlink("../scripts", cloned.at("tests/scripts")).unwrap();
    symlink(cloned.at("scripts/talk.yaml"), cloned.at("scripts/absolute.yaml")).unwrap();
    symlink("stored.yaml", cloned.at("tests/linked")).unwrap();
    fs::create_dir(cloned.at("tests/snapshots")).unwrap();
    symlink("../stored.txt", cloned.at("tests/snapshots/kept.yaml")).unwrap();
    fs::write(cloned.at("tests/stored.txt"), "# old\n").unwrap();
    for arguments in [
        &["validate"] as &[&str],
        &["validate", "named.yaml"],
        &["run", "named.yaml"],
        &["run", "scripts/linked.yaml"],
        &["test", "--update"],
        &["test"],
    ] {
        let finished = cloned.run(arguments);
        assert_eq!(finished.code, Some(0), "{arguments:?}: {}{}", finished.out, finished.err);
    }
    assert!(cloned.at("tests/snapshots/kept.yaml").is_symlink());
    assert!(fs::read_to_string(cloned.at("tests/stored.txt")).unwrap().contains("您好"));
}

#[test]
fn pipes_and_devices_in_a_project_are_reported_without_waiting() {
    for name in [
        "scripts/pipe.yaml",
        "tests/snapshots/kept.yaml",
        "_system/config/default/ai_ask_v1.md",
        "schemas/replies/own.json",
        "bcc-script.toml",
    ] {
        let cloned = Cloned::new();
        let path = cloned.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let arguments: &[&str] = if name.contains("snapshots") { &["test", "--update"] } else { &["validate"] };
        let finished = cloned.run(arguments);
        let all = format!("{}{}", finished.out, finished.err);
        assert!(matches!(finished.code, Some(1 | 2)) && all.contains("not a regular file"), "{name}: {all}");
    }
}

#[test]
fn a_planted_lock_is_refused_and_nothing_is_truncated() {
    type Plant = fn(&Path, &Path);
    let plants: [(&str, Plant); 3] = [
        ("a link", |victim, lock| symlink(victim, lock).unwrap()),
        ("a hard link", |victim, lock| fs::hard_link(victim, lock).unwrap()),
        ("a link to a new file", |victim, lock| symlink(victim.with_file_name("new"), lock).unwrap()),
    ];
    for (what, plant) in plants {
        let cloned = Cloned::new();
        let session = ["run", "scripts/talk.yaml", "--session", "s"];
        // Ends without an answer, so that the session can be resumed.
        let mut first = cloned.home.command(session);
        first.current_dir(cloned.at(""));
        assert_eq!(finished(first, "").code, Some(3));
        let victim = cloned.home.path().join("outside/secret");
        let locks = cloned.at(".bcc/sessions.db.locks");
        let lock = locks.join(lock_name("s"));
        fs::create_dir_all(&locks).unwrap();
        let _ = fs::remove_file(&lock);
        plant(&victim, &lock);
        for arguments in
            [&session as &[&str], &["sessions", "resume", "s"], &["sessions", "delete", "s"], &["sessions", "resume"]]
        {
            let finished = cloned.run(arguments);
            assert_eq!(finished.code, Some(1), "{what}: {arguments:?}: {}{}", finished.out, finished.err);
            assert!(
                finished.err.contains("is a link, or something else than a lock"),
                "{what}: {arguments:?}: {}",
                finished.err
            );
        }
        cloned.run(&["sessions", "prune", "--older-than", "0s"]);
        assert!(!cloned.run(&["doctor"]).out.contains(SECRET), "{what}");
        assert_eq!(tree(&cloned.home.path().join("outside")).len(), 2, "{what}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), SECRET, "{what}");
    }
}

/// The name of the lock file of a session, as in `crates/store/src/sqlite/locks/lock.rs`.
fn lock_name(id: &str) -> String {
    format!("{}.lock", &bcc_engine::pin::sha256(id.as_bytes())[..32])
}

#[test]
fn a_planted_folder_of_locks_or_log_is_not_followed() {
    let cloned = Cloned::new();
    assert_eq!(cloned.run(&["run", "scripts/talk.yaml", "--session", "s"]).code, Some(0));
    cloned.plant(".bcc/sessions.db.locks", "outside/folder");
    let finished = cloned.run(&["sessions", "delete", "s"]);
    assert!(finished.code == Some(1) && finished.err.contains("sessions.db.locks is a link"), "{}", finished.err);
    fs::remove_file(cloned.at(".bcc/sessions.db.locks")).unwrap();
    for name in ["sessions.db-wal", "sessions.db-shm", "sessions.db-journal"] {
        cloned.plant(&format!(".bcc/{name}"), "outside/secret");
        cloned.run(&["run", "scripts/talk.yaml"]);
        cloned.run(&["sessions", "list"]);
        assert_eq!(fs::read_to_string(cloned.home.path().join("outside/secret")).unwrap(), SECRET, "{name}");
        fs::remove_file(cloned.at(&format!(".bcc/{name}"))).unwrap();
    }
    assert_eq!(cloned.run(&["sessions", "delete", "s"]).code, Some(0));
}

#[test]
fn the_store_of_a_project_is_not_used_through_a_link_that_leads_out() {
    for (name, target) in [(".bcc", "outside"), (".bcc/sessions.db", "outside/sessions.db")] {
        let cloned = Cloned::new();
        let other = Cloned::new();
        other.run(&["run", "scripts/talk.yaml", "--session", "s"]);
        fs::copy(other.at(".bcc/sessions.db"), cloned.home.path().join("outside/sessions.db")).unwrap();
        cloned.plant(name, target);
        for arguments in [
            &["run", "scripts/talk.yaml"] as &[&str],
            &["sessions", "list"],
            &["sessions", "delete", "s"],
            &["sessions", "resume"],
        ] {
            cloned.refuses(arguments);
        }
        // A person may keep the store wherever they want.
        let named = cloned.at(name);
        let named = if named.is_dir() { named.join("sessions.db") } else { named };
        let finished = cloned.run(&["sessions", "list", "--store", named.to_str().unwrap()]);
        assert!(finished.code == Some(0) && finished.out.contains("talk"), "{}", finished.err);
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_store_that_everyone_can_change_is_refused_and_a_named_one_is_reported() {
    for (name, mode) in [(".bcc", 0o777), (".bcc/sessions.db", 0o666)] {
        let cloned = Cloned::new();
        assert_eq!(cloned.run(&["run", "scripts/talk.yaml"]).code, Some(0));
        set_mode(&cloned.at(name), mode);
        for arguments in [&["run", "scripts/talk.yaml"] as &[&str], &["sessions", "list"], &["sessions", "resume"]] {
            let finished = cloned.run(arguments);
            assert_eq!(finished.code, Some(2), "{name}: {arguments:?}: {}", finished.err);
            for part in ["everyone may change", name, "chmod o-w"] {
                assert!(finished.err.contains(part), "{name}: {arguments:?}: {part}: {}", finished.err);
            }
        }
        let finished = cloned.run(&["sessions", "list", "--store", ".bcc/sessions.db"]);
        assert!(finished.code == Some(0) && finished.err.contains("everyone may change"), "{name}: {}", finished.err);
        assert!(cloned.run(&["doctor"]).out.contains("everyone may change"), "{name}");
    }
}

#[test]
fn a_folder_above_the_store_that_everyone_can_change_is_reported() {
    let cloned = Cloned::new();
    let quiet = cloned.run(&["run", "scripts/talk.yaml"]);
    assert!(!quiet.err.contains("everyone may change") && !quiet.err.contains("another user"), "{}", quiet.err);
    set_mode(&cloned.at(""), 0o777);
    let finished = cloned.run(&["run", "scripts/talk.yaml"]);
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert!(finished.err.contains("everyone may change"), "{}", finished.err);
    // As for temporary files, only the owner may rename files there.
    set_mode(&cloned.at(""), 0o1777);
    assert!(!cloned.run(&["run", "scripts/talk.yaml"]).err.contains("everyone may change"));
}

#[test]
fn what_a_killed_process_left_is_removed_by_the_next_one() {
    let cloned = Cloned::new();
    fs::write(
        cloned.at("scripts/talk.yaml"),
        SCRIPT.replace("config: { content: 好吗？", "config: { content_template: 好吗？"),
    )
    .unwrap();
    let left = cloned.at(&format!("scripts/.bcc-{}", "0123456789abcdef".repeat(2)));
    fs::write(&left, "api_key = 'sk-…'").unwrap();
    let others = [".bcc-notes", ".gitkeep"].map(|name| cloned.at(&format!("scripts/{name}")));
    others.iter().for_each(|path| fs::write(path, "mine").unwrap());
    let finished = cloned.run(&["validate", "--fix"]);
    assert!(
        fs::read_to_string(cloned.at("scripts/talk.yaml")).unwrap().contains("{ content: 好吗？"),
        "{}",
        finished.out
    );
    assert!(!left.exists());
    assert!(others.iter().all(|path| path.exists()));
    assert_eq!(fs::read_dir(cloned.at("scripts")).unwrap().count(), 3);
}

/// Users that do not exist.
const ALICE: u32 = 45_001;
const MALLORY: u32 = 45_002;

/// Whether this process may give files to others. Otherwise the tests of other owners print a note and pass.
fn is_root(home: &Home) -> bool {
    let is_root = fs::metadata(home.path()).unwrap().uid() == 0;
    if !is_root {
        println!("not run: only root can give files to other users");
    }
    is_root
}

#[test]
fn a_store_of_another_user_is_refused_and_root_is_told() {
    let cloned = Cloned::new();
    if !is_root(&cloned.home) {
        return;
    }
    assert_eq!(cloned.run(&["run", "scripts/talk.yaml"]).code, Some(0));
    for name in [".bcc", ".bcc/sessions.db"] {
        chown(cloned.at(name), Some(MALLORY), Some(MALLORY)).unwrap();
        let finished = cloned.run(&["run", "scripts/talk.yaml"]);
        assert_eq!(finished.code, Some(0), "{}", finished.err);
        assert!(finished.err.contains(&format!("belongs to another user (id {MALLORY})")), "{}", finished.err);
    }
    // The program must be accessible to Alice, wherever it was built.
    let program = cloned.home.path().join("program");
    install(Path::new(env!("CARGO_BIN_EXE_bcc-script")), &program);
    set_mode(cloned.home.path(), 0o755);
    for path in [cloned.at(""), cloned.at("scripts"), cloned.home.path().join("config")] {
        chown(path, Some(ALICE), Some(ALICE)).unwrap();
    }
    // Mallory has left a store that Alice can write to.
    for name in [".bcc", ".bcc/sessions.db", ".bcc/sessions.db.locks"] {
        chown(cloned.at(name), Some(MALLORY), Some(ALICE)).unwrap();
        set_mode(&cloned.at(name), 0o770);
    }
    for lock in fs::read_dir(cloned.at(".bcc/sessions.db.locks")).unwrap() {
        chown(lock.unwrap().path(), Some(ALICE), Some(ALICE)).unwrap();
    }
    let alice = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).env_clear().envs(cloned.home.variables()).current_dir(cloned.at(""));
        command.uid(ALICE).gid(ALICE);
        finished(command, "很好\n")
    };
    let refused = alice(&["run", "scripts/talk.yaml"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains(&format!("belongs to another user (id {MALLORY})")), "{}", refused.err);
    assert!(refused.err.contains("`--store`") && refused.out.is_empty(), "{}", refused.err);
    let named = alice(&["run", "scripts/talk.yaml", "--store", ".bcc/sessions.db"]);
    assert!(named.code == Some(0) && named.err.contains("belongs to another user"), "{}", named.err);
}

#[test]
fn twenty_simultaneous_calls_of_trust_all_count_whatever_the_umask_is() {
    let home = Home::new();
    let trust = |number: u32, umask: &str| {
        home.put(&format!("p{number}/bcc-script.toml"), format!("# {number}\n"));
        let mut command = Command::new("sh");
        let program = env!("CARGO_BIN_EXE_bcc-script");
        command.args(["-c", &format!("umask {umask}; exec {program} trust p{number}")]);
        command.env_clear().envs(home.variables()).current_dir(home.path());
        let finished = finished(command, "");
        assert_eq!(finished.code, Some(0), "{}", finished.err);
    };
    std::thread::scope(|scope| {
        for number in 0..20 {
            let umask = ["000", "022", "077", "777"][number as usize % 4];
            scope.spawn(move || trust(number, umask));
        }
    });
    let path = home.path().join("config/bcc-script/trust.json");
    let stored: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(stored["directories"].as_object().unwrap().len(), 20, "{stored}");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
}
