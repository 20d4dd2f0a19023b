//! A campaign of attacks on the program as a child process: kills, disks that fail, damaged stores, hostile projects, hostile servers.
//! Whatever happens, nothing that was acknowledged is lost, nothing is said twice, nothing leaks, and every command ends in time.
//!
//! A plain run takes the same few cases each time. `BCC_CAMPAIGN_SECONDS=600 cargo test --test campaign -- --nocapture` takes new ones
//! for ten minutes. `BCC_CAMPAIGN_SEED=…` chooses which, `BCC_CAMPAIGN_CASE=…` takes a single one, `BCC_CAMPAIGN_ATTACK=…` takes only
//! attacks whose name contains this text, and `BCC_CAMPAIGN_BINARY=…` names another build of the program. A failure prints what repeats
//! it, and keeps its directory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::print_stderr, clippy::print_stdout, unreachable_pub)]

mod attack;
mod clones;
mod disks;
mod kills;
mod program;
mod servers;
mod stores;
mod talks;

#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/client.rs"]
mod client;
#[path = "../support/fixture_talks.rs"]
mod fixture_talks;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/process.rs"]
mod process;
#[allow(dead_code, reason = "what several test binaries share")]
#[path = "../support/session_output.rs"]
mod session_output;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::attack::{Attack, Case};

/// The root of the repository.
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The families of attacks, which take turns.
const FAMILIES: [&[Attack]; 5] = [kills::ATTACKS, disks::ATTACKS, stores::ATTACKS, clones::ATTACKS, servers::ATTACKS];

/// The cases of a plain run.
const PLAIN_RUN: u64 = 10;

/// After so many failures the campaign ends.
const MAX_FAILURES: usize = 20;

/// The most characters of a problem that are printed.
const MAX_PROBLEM: usize = 3_000;

thread_local! {
    static PANICKED: RefCell<String> = const { RefCell::new(String::new()) };
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// How often each attack had each outcome.
type Counts = BTreeMap<(&'static str, String), usize>;

/// The attack of a case: the families take turns, so that each has its share of the time.
fn attack_of(case: &mut Case, only: Option<&str>) -> &'static Attack {
    let chosen = |attack: &&Attack| only.is_none_or(|only| attack.name.contains(only));
    let families: Vec<Vec<&Attack>> = FAMILIES
        .iter()
        .map(|family| family.iter().filter(chosen).collect::<Vec<_>>())
        .filter(|family| !family.is_empty())
        .collect();
    assert!(!families.is_empty(), "no attack has this name");
    let family = &families[case.number as usize % families.len()];
    family[case.rng.usize(..family.len())]
}

/// Runs one case. Returns the attack, and its outcome or what is wrong.
fn run_case(seed: u64, number: u64, only: Option<&str>) -> (&'static Attack, Result<String, String>) {
    let mut case = Case::new(seed, number);
    let attack = attack_of(&mut case, only);
    let result = match catch_unwind(AssertUnwindSafe(|| (attack.run)(&mut case))) {
        Ok(result) => result,
        Err(_) => Err(PANICKED.with_borrow(Clone::clone)),
    };
    match result {
        Ok(outcome) => {
            case.remove();
            (attack, Ok(outcome))
        }
        Err(problem) => {
            let problem: String = problem.chars().take(MAX_PROBLEM).collect();
            (attack, Err(format!("{problem}\nits directory: {}", case.directory.display())))
        }
    }
}

#[test]
fn no_attack_loses_leaks_or_repeats_anything_or_makes_the_program_panic_or_hang() {
    let seconds = number("BCC_CAMPAIGN_SECONDS");
    let chosen = number("BCC_CAMPAIGN_SEED");
    let seed = chosen.unwrap_or_else(|| if seconds.is_some() { fastrand::u64(0..1_000_000_000) } else { 1 });
    let single = number("BCC_CAMPAIGN_CASE");
    let only = std::env::var("BCC_CAMPAIGN_ATTACK").ok();
    let only = only.as_deref();
    println!("campaign with seed {seed} against {}", process::binary().display());
    let deadline = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let finished = |taken: u64, failures: usize| match (single, deadline) {
        _ if failures >= MAX_FAILURES => true,
        (Some(_), _) => taken > 0,
        (None, Some(deadline)) => Instant::now() >= deadline,
        (None, None) => taken >= PLAIN_RUN,
    };
    // The processes mostly wait for each other and for the disk.
    let workers = thread::available_parallelism().map_or(2, usize::from).min(4);
    let next = AtomicU64::new(0);
    let counts: Mutex<Counts> = Mutex::default();
    let failures: Mutex<Vec<String>> = Mutex::default();

    // Panics are caught and reported with their case.
    let default_hook = take_hook();
    set_hook(Box::new(|panic| PANICKED.set(panic.to_string())));
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let taken = next.fetch_add(1, Ordering::Relaxed);
                    if finished(taken, failures.lock().unwrap_or_else(PoisonError::into_inner).len()) {
                        break;
                    }
                    let number = single.unwrap_or(taken);
                    let (attack, result) = run_case(seed, number, only);
                    let outcome = result.unwrap_or_else(|problem| {
                        let repeat = format!("BCC_CAMPAIGN_SEED={seed} BCC_CAMPAIGN_CASE={number}");
                        let repeat = only.map_or(repeat.clone(), |only| format!("{repeat} BCC_CAMPAIGN_ATTACK={only}"));
                        let report = format!("{}: {problem}\nrepeat with {repeat}", attack.name);
                        eprintln!("{report}\n");
                        failures.lock().unwrap_or_else(PoisonError::into_inner).push(report);
                        "FAILED".to_owned()
                    });
                    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                    *counts.entry((attack.name, outcome)).or_default() += 1;
                }
            });
        }
    });
    set_hook(default_hook);

    let counts = counts.into_inner().unwrap();
    println!("seed {seed}: {} cases", counts.values().sum::<usize>());
    for ((attack, outcome), count) in &counts {
        println!("{count:6}  {attack}: {outcome}");
    }
    let failures = failures.into_inner().unwrap();
    if failures.is_empty() {
        std::fs::remove_dir_all(attack::campaign_directory()).unwrap();
    }
    assert!(failures.is_empty(), "{} cases fail\n\n{}", failures.len(), failures.join("\n\n"));
}
