//! From the start of the program to its first words, and the most memory that it holds (the issue asks for at most 15 ms and
//! 30 MB): the program as it is built for release, run on `scripts/welcome.yaml` by a pipe.
//!
//! `BCC_BENCH_RUNS` says how many runs of each (60).

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a bench may fail where it stands, and prints its table")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::support::{directory, median};

mod support;

/// The sessions that a store holds when it is called existing.
const SESSIONS: usize = 50;

/// What the person answers until the script is through.
const ANSWERS: &str = "小林\n7\n茶\n";

struct Run {
    /// Until the first line of the AI, in milliseconds.
    first_ms: f64,
    /// The most memory until then, in KiB, where the system tells.
    first_kib: Option<u64>,
    /// The most memory while the rest of the script ran.
    last_kib: Option<u64>,
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bcc-script"));
    // Nothing of the person's own environment may choose a model or a store.
    command.env_clear().current_dir(env!("CARGO_MANIFEST_DIR"));
    for name in ["PATH", "HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// The peak of the resident memory of a child.
fn peak_kib(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

fn run(store: &Path) -> Run {
    let mut command = program();
    command.args(["run", "scripts/welcome.yaml", "--store"]).arg(store);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let began = Instant::now();
    let mut child = command.spawn().expect("the program starts");
    let mut output = BufReader::new(child.stdout.take().expect("its output"));
    let mut line = String::new();
    output.read_line(&mut line).expect("its first words");
    let first_ms = began.elapsed().as_secs_f64() * 1e3;
    assert!(!line.is_empty(), "the program said nothing");
    let first_kib = peak_kib(&child);
    let mut input = child.stdin.take().expect("its input");
    input.write_all(ANSWERS.as_bytes()).expect("the answers");
    // What is asked last is said before the goodbye: two lines for each of the first two answers, then the end.
    let mut last_kib = first_kib;
    while output.read_line(&mut line).expect("its words") > 0 {
        last_kib = peak_kib(&child).or(last_kib);
    }
    drop(input);
    let status = child.wait().expect("its end");
    assert!(status.success(), "{status}");
    Run { first_ms, first_kib, last_kib }
}

fn tell(name: &str, runs: &[Run]) {
    let mut times: Vec<f64> = runs.iter().map(|run| run.first_ms).collect();
    let middle = median(&mut times);
    let at = |share: usize| times.get((times.len() * share / 100).min(times.len() - 1)).copied().unwrap_or_default();
    let most = |of: fn(&Run) -> Option<u64>| match runs.iter().filter_map(of).max() {
        Some(kib) => format!("{:.1} MB", kib as f64 * 1024.0 / 1e6),
        None => "not told".to_owned(),
    };
    println!(
        "  {name:30} median {middle:6.2} ms   fastest {:6.2}   90 % within {:6.2}   peak memory {} at first words, {} at the end",
        at(0),
        at(90),
        most(|run| run.first_kib),
        most(|run| run.last_kib)
    );
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let count: usize = std::env::var("BCC_BENCH_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(60);
    let place = directory();
    let existing = place.path().join("existing.db");
    for _ in 0..SESSIONS {
        run(&existing);
    }
    println!("start, {count} runs of each (at most 15 ms, 30 MB)");
    let (mut fresh, mut again, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..count {
        fresh.push(run(&place.path().join(format!("fresh-{number}.db"))));
        again.push(run(&existing));
        let began = Instant::now();
        let version = program().arg("--version").output().expect("the program starts");
        bare.push(Run { first_ms: began.elapsed().as_secs_f64() * 1e3, first_kib: None, last_kib: None });
        assert!(version.status.success());
    }
    tell("a fresh store", &fresh);
    tell(&format!("a store of {SESSIONS} sessions and more"), &again);
    let mut bare: Vec<f64> = bare.iter().map(|run| run.first_ms).collect();
    println!("  {:30} median {:6.2} ms", "--version, for comparison", median(&mut bare));
}
