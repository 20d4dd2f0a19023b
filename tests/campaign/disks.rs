//! Disks that fail: system calls that return errors (with strace, where it may trace), full file systems and devices, limits of files.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::json;

use crate::attack::{Attack, Case, ensure};
use crate::client::{Client, End, Plan, SESSION};
use crate::process::Home;
use crate::program::{command, launched, run};
use crate::session_output::journal;
use crate::talks::Talk;

pub const ATTACKS: &[Attack] = &[
    Attack { name: "disks/failing calls", run: failing_calls },
    Attack { name: "disks/failing calls", run: failing_calls },
    Attack { name: "disks/limit of files", run: limit_of_files },
    Attack { name: "disks/small file system", run: small_file_system },
    Attack { name: "disks/full device", run: full_device },
    Attack { name: "disks/store taken away", run: taken_away },
];

/// Whether this command succeeds here; asked once.
fn works(cell: &'static OnceLock<bool>, what: &str, words: &[&str]) -> bool {
    *cell.get_or_init(|| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let works = command.status().is_ok_and(|status| status.success());
        if !works {
            println!("{what} are left out: `{}` does not work here", words.join(" "));
        }
        works
    })
}

/// Lets processes with this launcher run until they end by themselves; each has to say what is wrong. Returns how often one failed.
fn run_failing(client: &mut Client<'_>, runs: usize) -> Result<usize, String> {
    let mut failures = 0;
    for _ in 0..runs {
        match client.run_process(&Plan::EndsItself) {
            End::Completed => break,
            End::Killed => {}
            End::Ended(code, err) => {
                failures += 1;
                let clear = matches!(code, Some(1..=3)) && !err.contains("panicked at") && !err.trim().is_empty();
                ensure(clear, || format!("it ended with {code:?} and said: {err}"))?;
            }
        }
    }
    Ok(failures)
}

/// The conversation comes to its end on a good disk, with everything that was acknowledged on the bad one.
fn recover(talk: &Talk, client: &mut Client<'_>, home: &Home, failures: usize) -> Result<String, String> {
    client.launcher.clear();
    talk.complete(client, home)?;
    Ok(if failures > 0 { "failed clearly, then the same end" } else { "the same end without a failure" }.into())
}

/// The calls that fail, with what they fail with.
const CALLS: [(&str, &[&str]); 9] = [
    ("pwrite64", &["ENOSPC", "EIO", "EDQUOT", "EFBIG"]),
    ("fdatasync", &["EIO", "ENOSPC"]),
    ("fsync", &["EIO", "EDQUOT"]),
    ("ftruncate", &["ENOSPC", "EIO"]),
    ("fallocate", &["ENOSPC"]),
    ("openat", &["EMFILE", "EACCES", "ENOSPC", "EROFS"]),
    ("pread64", &["EIO"]),
    ("mmap", &["ENOMEM"]),
    ("fcntl", &["EDEADLK", "ENOLCK"]),
];

fn failing_calls(case: &mut Case) -> Result<String, String> {
    static STRACE: OnceLock<bool> = OnceLock::new();
    if !works(&STRACE, "failing system calls", &["strace", "-o", "/dev/null", "true"]) {
        return Ok("left out: strace cannot trace here".into());
    }
    let talk = Talk::choose(case);
    let home = case.home();
    let mut client = talk.client(&home);
    let (call, errors) = case.one_of(&CALLS);
    let error = *case.one_of(errors);
    // Once, or from then on; early calls are those of the opening of the store.
    let number = if case.rng.bool() { case.rng.usize(1..12) } else { case.rng.usize(1..150) };
    let more = if case.rng.bool() { "+" } else { "" };
    let store = home.store().display().to_string();
    let mut launcher: Vec<String> = ["strace", "-f", "-qq", "-o", "/dev/null"].map(str::to_owned).to_vec();
    // Only calls on the store: a fault of anything else is another matter.
    for end in ["", "-wal", "-shm", "-journal"] {
        launcher.extend(["-P".to_owned(), format!("{store}{end}")]);
    }
    launcher.extend(["-e".to_owned(), format!("trace={call}"), "-e".to_owned()]);
    launcher.push(format!("inject={call}:error={error}:when={number}{more}"));
    client.launcher = launcher.into_iter().map(Into::into).collect();
    let runs = case.rng.usize(1..3);
    let context = |problem: String| format!("{call} fails with {error} at {number}{more}: {problem}");
    let failures = run_failing(&mut client, runs).map_err(context)?;
    recover(&talk, &mut client, &home, failures).map_err(context)
}

/// No file may grow beyond a limit: the store is as on a full disk.
fn limit_of_files(case: &mut Case) -> Result<String, String> {
    let talk = Talk::choose(case);
    let home = case.home();
    let mut client = talk.client(&home);
    // In blocks of 512 bytes: from less than an empty store to more than a conversation needs.
    let blocks = case.rng.usize(1..1200);
    let ignored = if case.rng.bool() { "trap '' XFSZ; " } else { "" };
    let script = format!("{ignored}ulimit -f {blocks}; exec \"$@\"");
    client.launcher = ["/bin/sh", "-c", &script, "sh"].map(Into::into).to_vec();
    let context = |problem: String| format!("files of at most {blocks} blocks, {ignored}: {problem}");
    let failures = run_failing(&mut client, 1).map_err(context)?;
    recover(&talk, &mut client, &home, failures).map_err(context)
}

/// The store is on a file system of a few hundred KiB, and is copied from there when the process has ended.
fn small_file_system(case: &mut Case) -> Result<String, String> {
    static MOUNT: OnceLock<bool> = OnceLock::new();
    let mount = ["unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"];
    if !works(&MOUNT, "small file systems", &mount) {
        return Ok("left out: no file system can be mounted here".into());
    }
    let talk = Talk::choose(case);
    let home = case.home();
    let mut client = talk.client(&home);
    let size = case.rng.usize(16..900);
    let folder = home.path().join(".bcc").display().to_string();
    let script = format!(
        "cp -a '{folder}/.' '{folder}.copy' 2>/dev/null; mount -t tmpfs -o size={size}k tmpfs '{folder}' && \
         cp -a '{folder}.copy/.' '{folder}/'; \"$@\"; code=$?; mkdir -p '{folder}.copy'; \
         cp -a '{folder}/.' '{folder}.copy/'; exit $code"
    );
    client.launcher =
        ["unshare", "--mount", "--map-root-user", "/bin/sh", "-c", &script, "sh"].map(Into::into).to_vec();
    let context = |problem: String| format!("a file system of {size} KiB: {problem}");
    let failures = run_failing(&mut client, 1).map_err(context)?;
    let copy = format!("{folder}.copy");
    if fs::exists(&copy).unwrap() {
        fs::remove_dir_all(&folder).unwrap();
        fs::rename(&copy, &folder).unwrap();
    }
    recover(&talk, &mut client, &home, failures).map_err(context)
}

/// Everything that is written to `/dev/full` fails with a message and a code.
fn full_device(case: &mut Case) -> Result<String, String> {
    if !fs::exists("/dev/full").unwrap() {
        return Ok("left out: there is no /dev/full".into());
    }
    let talk = Talk::choose(case);
    let home = case.home();
    let mut client = talk.client(&home);
    if client.run_process(&Plan::Undisturbed) != End::Completed {
        return Err("the session does not come to its end".into());
    }
    let commands: [&[&str]; 9] = [
        &["sessions", "export", "talk", "-o", "/dev/full", "--format", "json"],
        &["sessions", "export", "talk", "-o", "/dev/full", "--format", "html"],
        &["run", "talk.yaml", "--store", "/dev/full"],
        &["run", "talk.yaml", "--record", "/dev/full"],
        &["sessions", "list", ">"],
        &["sessions", "export", "talk", ">"],
        &["run", "talk.yaml", "--json", ">"],
        &["validate", "talk.yaml", "--format", "json", ">"],
        &["graph", "talk.yaml", ">"],
    ];
    let words = *case.one_of(&commands);
    // `>`: standard output is the full device.
    let ended = match words.split_last() {
        Some((&">", words)) => run(launched("exec \"$@\" >/dev/full", home.path(), home.path(), words), "好\n好\n"),
        _ => run(command(home.path(), home.path(), words), "好\n好\n"),
    };
    ended.orderly()?;
    ensure(ended.code != Some(0), || format!("{}: code 0, though nothing could be written", ended.arguments))?;
    Ok(format!("{} fails with {}", words.join(" "), ended.outcome()))
}

/// The store is removed, moved or replaced while a session uses it: no event is told that is not in the store.
fn taken_away(case: &mut Case) -> Result<String, String> {
    let talk = Talk::choose(case);
    let home = case.home();
    let script = talk.script(&home).display().to_string();
    let run = ["run", &script, "--json", "--session", SESSION].map(str::to_owned);
    let mut running = home.start(run.iter().chain(&talk.arguments));
    running.event_of("waiting");
    let how = *case.one_of(&["removed", "moved", "replaced", "its folder moved"]);
    let (folder, away) = (home.path().join(".bcc"), home.path().join("away"));
    let files = || fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    if how == "its folder moved" {
        fs::rename(&folder, &away).unwrap();
    } else {
        fs::create_dir(&away).unwrap();
        for file in files() {
            let moved = away.join(file.file_name().unwrap());
            match how {
                "removed" => fs::remove_file(&file).unwrap(),
                "moved" => fs::rename(&file, &moved).unwrap(),
                _ => {
                    // Another file of the same content.
                    fs::copy(&file, &moved).unwrap();
                    fs::rename(&moved, &file).unwrap();
                }
            }
        }
    }
    let mut told = Vec::new();
    running.send(&json!({ "user": talk.answer("a1"), "answer_id": "a1" }).to_string());
    while let Some(event) = running.event() {
        if event["seq"].is_u64() {
            told.push(event.clone());
        }
        if event["type"] == "waiting" {
            break;
        }
    }
    let finished = running.finish();
    let clear = !finished.err.contains("panicked at") && finished.code.is_some_and(|code| code != 101);
    ensure(clear, || format!("{how}: {:?} {}", finished.code, finished.err))?;
    match how {
        "its folder moved" => {
            let _ = fs::remove_dir_all(&folder);
            fs::rename(&away, &folder).unwrap();
        }
        "moved" => {
            files().for_each(|file| fs::remove_file(file).unwrap());
            for entry in fs::read_dir(&away).unwrap() {
                let entry = entry.unwrap();
                fs::rename(entry.path(), folder.join(entry.file_name())).unwrap();
            }
        }
        _ => {}
    }
    let kept = if how == "removed" { Vec::new() } else { journal(&home, SESSION) };
    for event in &told {
        ensure(kept.contains(event), || format!("{how}: it told an event that is not in the store: {event}"))?;
    }
    Ok(format!("{how}: code {:?}", finished.code))
}
