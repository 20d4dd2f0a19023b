//! No file may make this program panic, overflow a stack, or report something false. The tests mutate all scripts, templates,
//! texts, conditions and replies of this repository, on threads with 2 MiB of stack.
//!
//! A plain run takes 1,500 mutants, the same ones each time. `BCC_MUTATE_SECONDS=60` takes new ones for that time,
//! `BCC_MUTATE_SEED=…` chooses which, and `BCC_MUTATE_CASE=…` takes a single one. Failing inputs are minimized and stored below the
//! target directory; the message contains the path. A stack overflow, which ends the process, leaves its input there as
//! `current-….bin`.

use crate::mutate;
use crate::path;
use crate::seeds;
use std::cell::RefCell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::seeds::{Form, Seed};

/// The default of the standard library for threads.
const STACK_BYTES: usize = 2 * 1024 * 1024;

/// The mutants of a plain run.
const PLAIN_RUN: u64 = 1_500;

/// The attempts to make a failing input smaller.
const MAX_TRIES: usize = 600;

thread_local! {
    static PANICKED: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The problem of the input, if any: a panic, or an error of [`path::take`]. Every input is taken twice.
fn problem_of(form: Form, bytes: &[u8]) -> Option<String> {
    let twice = || {
        let first = path::take(form, bytes, true)?;
        if first == path::take(form, bytes, false)? {
            Ok(())
        } else {
            Err("a second run gives something else".to_owned())
        }
    };
    match catch_unwind(AssertUnwindSafe(twice)) {
        Ok(outcome) => outcome.err(),
        Err(_) => Some(PANICKED.with_borrow(Clone::clone)),
    }
}

/// Removes parts of a failing input as long as it fails in the same way: halves first, single bytes last.
fn minimize(form: Form, bytes: &[u8], problem: &str) -> Vec<u8> {
    // The same problem, at any position.
    let kind = |problem: &str| problem.chars().filter(|c| !c.is_ascii_digit()).take(60).collect::<String>();
    let mut smallest = bytes.to_vec();
    let mut tries = 0;
    let mut width = smallest.len() / 2;
    while width > 0 {
        let mut at = 0;
        while at < smallest.len() && tries < MAX_TRIES {
            let mut shorter = smallest.clone();
            shorter.drain(at..(at + width).min(smallest.len()));
            tries += 1;
            if problem_of(form, &shorter).is_some_and(|other| kind(&other) == kind(problem)) {
                smallest = shorter;
            } else {
                at += width;
            }
        }
        width /= 2;
    }
    smallest
}

/// The folder for failing inputs, below the target directory.
fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mutations");
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

#[test]
fn no_mutant_of_a_seed_makes_the_checks_panic_or_report_nonsense() {
    let seconds = number("BCC_MUTATE_SECONDS");
    let chosen = number("BCC_MUTATE_SEED");
    let base = chosen.unwrap_or_else(|| if seconds.is_some() { fastrand::u64(0..1_000_000_000) } else { 1 });
    let only = number("BCC_MUTATE_CASE");
    let deadline = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let seeds = seeds::all();
    assert!(seeds.len() > 300, "only {} seeds", seeds.len());
    let workers = thread::available_parallelism().map_or(2, usize::from).min(4);
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let failures: Mutex<Vec<String>> = Mutex::default();
    let slowest: Mutex<(Duration, u64, usize)> = Mutex::default();

    // Panics are caught and reported with the case, not printed at once.
    let default_hook = take_hook();
    set_hook(Box::new(|panic| PANICKED.set(format!("it panics: {panic}"))));
    thread::scope(|scope| {
        for worker in 0..workers {
            let (seeds, next, stop, failures, slowest) = (&seeds, &next, &stop, &failures, &slowest);
            let current = folder().join(format!("current-{worker}.bin"));
            let work = move || {
                loop {
                    let count = next.fetch_add(1, Ordering::Relaxed);
                    let case = only.unwrap_or(count);
                    let finished = match (only, deadline) {
                        (Some(_), _) => count > 0,
                        (None, Some(deadline)) => Instant::now() >= deadline,
                        (None, None) => count >= PLAIN_RUN,
                    };
                    if finished || stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let (form, bytes) = make_mutant(base, case, seeds);
                    fs::write(&current, &bytes).unwrap();
                    let began = Instant::now();
                    let found = problem_of(form, &bytes);
                    let took = began.elapsed();
                    let mut slowest = slowest.lock().unwrap_or_else(PoisonError::into_inner);
                    if took > slowest.0 {
                        *slowest = (took, case, bytes.len());
                        fs::write(folder().join("slowest.bin"), &bytes).unwrap();
                    }
                    drop(slowest);
                    if let Some(problem) = found {
                        let failing = folder().join(format!("failing-{base}-{case}.bin"));
                        fs::write(&failing, minimize(form, &bytes, &problem)).unwrap();
                        let mut failures = failures.lock().unwrap();
                        failures.push(format!("seed {base}, case {case}, {form:?}, {}:\n{problem}", failing.display()));
                        stop.store(failures.len() >= 10, Ordering::Relaxed);
                    }
                }
                let _ = fs::remove_file(&current);
            };
            thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).unwrap();
        }
    });
    set_hook(default_hook);
    let cases = next.load(Ordering::Relaxed).saturating_sub(workers as u64);
    let (took, case, length) = *slowest.lock().unwrap();
    eprintln!("seed {base}: {cases} mutants; the slowest is case {case}, {length} bytes, {took:?}");
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {cases} fail\n{}", failures.len(), failures.join("\n\n"));
}

fn make_mutant(base: u64, case: u64, seeds: &[Seed]) -> (Form, Vec<u8>) {
    let mut rng = Rng::with_seed(base.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(case));
    let seed = &seeds[rng.usize(0..seeds.len())];
    (seed.form, mutate::mutant(&mut rng, seed, seeds))
}

/// Inputs that failed before: the files of `tests/mutations/`, each taken as every form.
#[test]
fn inputs_that_failed_before_do_not_fail_again() {
    crate::at_root();
    for entry in fs::read_dir("tests/mutations").unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        for form in [Form::Script, Form::Template, Form::Text, Form::Expression, Form::Reply] {
            if let Err(problem) = path::take(form, &bytes, true) {
                panic!("{} as {form:?}: {problem}", path.display());
            }
        }
    }
}
