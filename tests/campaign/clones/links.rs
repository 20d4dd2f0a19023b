//! Links that lead out of the project, and files that are no files, at every place that a command reads or writes.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::attack::Case;
use crate::clones::project::Project;

/// Places in a project, and whether a folder is expected there.
const PLACES: [(&str, bool); 25] = [
    ("bcc-script.toml", false),
    ("scripts/other.yaml", false),
    ("skills/calm.yaml", false),
    ("skills/more.yaml", false),
    ("skills", true),
    ("skills/more", true),
    ("tests/t.yaml", false),
    ("tests/more.yaml", false),
    ("tests/more", true),
    ("tests/snapshots", true),
    ("tests/snapshots/t.yaml", false),
    ("_system", true),
    ("_system/config/default/ai_ask_v1.md", false),
    ("_system/config/default/safety.md", false),
    ("_system/config/custom", true),
    ("schemas", true),
    ("schemas/replies/ai_ask.json", false),
    (".bcc", true),
    (".bcc/sessions.db", false),
    (".bcc/sessions.db-wal", false),
    (".bcc/sessions.db-shm", false),
    (".bcc/sessions.db-journal", false),
    (".bcc/sessions.db.locks", true),
    ("recording.jsonl", false),
    ("out.md", false),
];

/// Removes what is at a place of the project, and creates its folder.
fn clear(project: &Path, place: &str) -> PathBuf {
    let path = project.join(place);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(&path);
    let _ = fs::remove_dir_all(&path);
    path
}

pub fn links(case: &mut Case) -> Result<String, String> {
    let mut clone = Project::new(case);
    let mut planted = Vec::new();
    // Sometimes there is a store already, whose locks and log can be replaced.
    if case.rng.bool() {
        clone.is_ready();
        clone.run(&["run", "scripts/talk.yaml", "--session", "s"])?;
    }
    for _ in 0..case.rng.usize(1..3) {
        let (place, folder) = *case.one_of(&PLACES);
        if planted.iter().any(|(earlier, _): &(&str, PathBuf)| place.starts_with(earlier) || earlier.starts_with(place))
        {
            continue;
        }
        let target = match (folder, case.rng.u8(..5)) {
            (true, 0) => PathBuf::from("../outside"),
            (true, 1) => clone.outside.join("not-there"),
            (true, _) => clone.outside.join("folder"),
            (false, 0) => PathBuf::from("/proc/self/environ"),
            (false, 1) => clone.outside.join("not-there.txt"),
            (false, 2) => PathBuf::from("../".repeat(place.matches('/').count() + 1) + "outside/secret.txt"),
            (false, _) => clone.outside.join("secret.txt"),
        };
        symlink(&target, clear(&clone.project, place)).unwrap();
        planted.push((place, target));
    }
    // Every name that a lock may have.
    if case.rng.u8(..4) == 0 {
        let locks = clone.project.join(".bcc/sessions.db.locks");
        if locks.is_dir() && !locks.is_symlink() {
            for entry in fs::read_dir(&locks).unwrap() {
                let path = entry.unwrap().path();
                fs::remove_file(&path).unwrap();
                symlink(clone.outside.join("secret.txt"), &path).unwrap();
            }
            planted.push(("locks", locks));
        }
    }
    clone.is_ready();
    let context = |problem| format!("{planted:?}: {problem}");
    clone.explore(case, 4).map_err(context)?;
    Ok("nothing went out".to_owned())
}

/// Pipes, devices, sockets and folders where files are expected, and files where folders are.
pub fn special_files(case: &mut Case) -> Result<String, String> {
    let mut clone = Project::new(case);
    let (place, folder) = *case.one_of(&PLACES);
    let path = clear(&clone.project, place);
    let kind = *case.one_of(&["pipe", "endless device", "terminal", "socket", "folder", "unreadable"]);
    match kind {
        _ if folder => fs::write(&path, "no folder").unwrap(),
        "pipe" => {
            let status = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
            assert!(status.success());
        }
        "endless device" => symlink("/dev/zero", &path).unwrap(),
        "terminal" => symlink("/dev/tty", &path).unwrap(),
        // The name of a socket is short, so it is made in another place.
        "socket" => {
            let socket = case.directory.join("s");
            drop(UnixListener::bind(&socket).unwrap());
            fs::rename(&socket, &path).unwrap();
        }
        "folder" => fs::create_dir(&path).unwrap(),
        _ => {
            fs::write(&path, "x: 1\n").unwrap();
            let mut permissions = fs::metadata(&path).unwrap().permissions();
            std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0);
            fs::set_permissions(&path, permissions).unwrap();
        }
    }
    clone.is_ready();
    let kind = if folder { "file" } else { kind };
    clone.explore(case, 3).map_err(|problem| format!("a {kind} at {place}: {problem}"))?;
    Ok(format!("a {kind}"))
}
