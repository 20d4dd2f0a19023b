//! Nothing that stands in a file may make this program panic, overflow a stack, or say something that is not so: mutants of all
//! scripts, templates, texts, conditions and replies of this repository, on threads of 2 MiB.
//!
//! A plain run takes fifteen hundred mutants, the same ones each time. `BCC_MUTATE_SECONDS=60` takes new ones for so long.
//! `BCC_MUTATE_SEED=…` chooses which, and `BCC_MUTATE_CASE=…` takes one alone. What fails is kept below the target directory, made small, with its path in the message;
//! a stack overflow, which ends the process, leaves its input there as `current-….bin`.

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

/// What a thread of the standard library has when nobody says otherwise.
const STACK_BYTES: usize = 2 * 1024 * 1024;

/// How many mutants a plain run takes.
const PLAIN_RUN: u64 = 1_500;

/// How often a failing input is tried while it is made smaller.
const MOST_TRIES: usize = 600;

thread_local! {
    static PANICKED: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What is wrong with the input, if anything: a panic, or what [`path::take`] says. Every input is taken twice.
fn fault(form: Form, bytes: &[u8]) -> Option<String> {
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

/// Leaves out of a failing input what it fails without in the same way: first halves, in the end bytes.
fn minimised(form: Form, bytes: &[u8], problem: &str) -> Vec<u8> {
    // The same fault, wherever it stands.
    let kind = |problem: &str| problem.chars().filter(|c| !c.is_ascii_digit()).take(60).collect::<String>();
    let mut small = bytes.to_vec();
    let mut tries = 0;
    let mut width = small.len() / 2;
    while width > 0 {
        let mut at = 0;
        while at < small.len() && tries < MOST_TRIES {
            let mut less = small.clone();
            less.drain(at..(at + width).min(small.len()));
            tries += 1;
            if fault(form, &less).is_some_and(|other| kind(&other) == kind(problem)) {
                small = less;
            } else {
                at += width;
            }
        }
        width /= 2;
    }
    small
}

/// Below the target directory.
fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mutations");
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

#[test]
fn no_mutant_of_a_seed_makes_the_checks_panic_or_lie() {
    let seconds = number("BCC_MUTATE_SECONDS");
    let chosen = number("BCC_MUTATE_SEED");
    let base = chosen.unwrap_or_else(|| if seconds.is_some() { fastrand::u64(0..1_000_000_000) } else { 1 });
    let only = number("BCC_MUTATE_CASE");
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let seeds = seeds::all();
    assert!(seeds.len() > 300, "only {} seeds", seeds.len());
    let workers = thread::available_parallelism().map_or(2, usize::from).min(4);
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let failures: Mutex<Vec<String>> = Mutex::default();
    let slowest: Mutex<(Duration, u64, usize)> = Mutex::default();

    // Panics are caught and told with the case, not printed as they come.
    let before = take_hook();
    set_hook(Box::new(|panic| PANICKED.set(format!("it panics: {panic}"))));
    thread::scope(|scope| {
        for worker in 0..workers {
            let (seeds, next, stop, failures, slowest) = (&seeds, &next, &stop, &failures, &slowest);
            let current = folder().join(format!("current-{worker}.bin"));
            let work = move || {
                loop {
                    let count = next.fetch_add(1, Ordering::Relaxed);
                    let case = only.unwrap_or(count);
                    let over = match (only, until) {
                        (Some(_), _) => count > 0,
                        (None, Some(until)) => Instant::now() >= until,
                        (None, None) => count >= PLAIN_RUN,
                    };
                    if over || stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let (form, bytes) = make(base, case, seeds);
                    fs::write(&current, &bytes).unwrap();
                    let began = Instant::now();
                    let found = fault(form, &bytes);
                    let took = began.elapsed();
                    let mut slowest = slowest.lock().unwrap_or_else(PoisonError::into_inner);
                    if took > slowest.0 {
                        *slowest = (took, case, bytes.len());
                        fs::write(folder().join("slowest.bin"), &bytes).unwrap();
                    }
                    drop(slowest);
                    if let Some(problem) = found {
                        let kept = folder().join(format!("failing-{base}-{case}.bin"));
                        fs::write(&kept, minimised(form, &bytes, &problem)).unwrap();
                        let mut failures = failures.lock().unwrap();
                        failures.push(format!("seed {base}, case {case}, {form:?}, {}:\n{problem}", kept.display()));
                        stop.store(failures.len() >= 10, Ordering::Relaxed);
                    }
                }
                let _ = fs::remove_file(&current);
            };
            thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).unwrap();
        }
    });
    set_hook(before);
    let cases = next.load(Ordering::Relaxed).saturating_sub(workers as u64);
    let (took, case, length) = *slowest.lock().unwrap();
    eprintln!("seed {base}: {cases} mutants; the slowest is case {case}, {length} bytes, {took:?}");
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {cases} fail\n{}", failures.len(), failures.join("\n\n"));
}

fn make(base: u64, case: u64, seeds: &[Seed]) -> (Form, Vec<u8>) {
    let mut rng = Rng::with_seed(base.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(case));
    let seed = &seeds[rng.usize(0..seeds.len())];
    (seed.form, mutate::mutant(&mut rng, seed, seeds))
}

/// Inputs that once failed: the files of `tests/mutations/`, each taken as every form.
#[test]
fn what_once_failed_does_not_fail_again() {
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
