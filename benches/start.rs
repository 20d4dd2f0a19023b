//! Measures the time from the start of the program to its first output, and its peak memory (target: at most 15 ms and
//! 30 MB): the release build, run on `scripts/welcome.yaml` through a pipe.
//!
//! `BCC_BENCH_RUNS` sets the number of runs of each kind (60).

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a bench may fail where it stands, and prints its table")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::support::{directory, median};

mod support;

/// The sessions of the existing store.
const SESSIONS: usize = 50;

/// The answers of the person until the end of the script.
const ANSWERS: &str = "小林\n7\n茶\n";

struct Run {
    /// The time until the first line of the assistant, in milliseconds.
    first_ms: f64,
    /// The peak memory until then, in KiB, if the system reports it.
    first_kib: Option<u64>,
    /// The peak memory until the end of the script, in KiB, if the system reports it.
    last_kib: Option<u64>,
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bcc-script"));
    // The environment of the user must not choose a model or a store.
    command.env_clear().current_dir(env!("CARGO_MANIFEST_DIR"));
    for name in ["PATH", "HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// The peak resident memory of a child process.
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
    let mut last_kib = first_kib;
    while output.read_line(&mut line).expect("its words") > 0 {
        last_kib = peak_kib(&child).or(last_kib);
    }
    drop(input);
    let status = child.wait().expect("its end");
    assert!(status.success(), "{status}");
    Run { first_ms, first_kib, last_kib }
}

fn print_row(name: &str, runs: &[Run]) {
    let mut times: Vec<f64> = runs.iter().map(|run| run.first_ms).collect();
    let middle = median(&mut times);
    let at = |share: usize| times.get((times.len() * share / 100).min(times.len() - 1)).copied().unwrap_or_default();
    let max = |of: fn(&Run) -> Option<u64>| match runs.iter().filter_map(of).max() {
        Some(kib) => format!("{:.1} MB", kib as f64 * 1024.0 / 1e6),
        None => "not told".to_owned(),
    };
    println!(
        "  {name:30} median {middle:6.2} ms   fastest {:6.2}   90 % within {:6.2}   peak memory {} at first words, {} at the end",
        at(0),
        at(90),
        max(|run| run.first_kib),
        max(|run| run.last_kib)
    );
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let count: usize = std::env::var("BCC_BENCH_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(60);
    let folder = directory();
    let existing = folder.path().join("existing.db");
    for _ in 0..SESSIONS {
        run(&existing);
    }
    println!("start, {count} runs of each (at most 15 ms, 30 MB)");
    let (mut fresh_runs, mut existing_runs, mut version_runs) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..count {
        fresh_runs.push(run(&folder.path().join(format!("fresh-{number}.db"))));
        existing_runs.push(run(&existing));
        let began = Instant::now();
        let version = program().arg("--version").output().expect("the program starts");
        version_runs.push(Run { first_ms: began.elapsed().as_secs_f64() * 1e3, first_kib: None, last_kib: None });
        assert!(version.status.success());
    }
    print_row("a fresh store", &fresh_runs);
    print_row(&format!("a store of {SESSIONS} sessions and more"), &existing_runs);
    let mut version_times: Vec<f64> = version_runs.iter().map(|run| run.first_ms).collect();
    println!("  {:30} median {:6.2} ms", "--version, for comparison", median(&mut version_times));
}
