//! Measures whether a long session stays as fast as a short one and its store grows linearly (target: turn 10,000 at most
//! 1.1 × turn 10).
//!
//! Two measurements: the tenth turn of new sessions compared with turns from the 10,000th on, alternately; and the size of the store
//! with the mean time of a turn, every 1,000 turns. `BCC_BENCH_TURNS` sets the number of turns (10,000).

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a bench may fail where it stands, and prints its table")]

use std::sync::Arc;
use std::time::Instant;

use bcc_runtime::run::session::Session;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use bcc_store::sqlite::open::open;

use crate::support::{Bench, ROUNDS, median, size};

mod support;

/// The number of pairs of a tenth turn and a late one.
const PAIRS: usize = 400;

/// The turn that late turns are compared with.
const EARLY: usize = 10;

/// The turns of one line of the table.
const TURNS_PER_LINE: usize = 1_000;

fn timed(bench: &Bench, session: &mut Session) -> f64 {
    let began = Instant::now();
    assert!(bench.turn(session), "the script is long enough");
    began.elapsed().as_secs_f64() * 1e6
}

/// Drives `session` to turn `turns` and prints a line every [`TURNS_PER_LINE`] turns.
fn drive(bench: &Bench, session: &mut Session, turns: usize, size: impl Fn() -> Option<u64>) {
    let mut before = size();
    for line in 1..=turns / TURNS_PER_LINE {
        let mut times: Vec<f64> = (0..TURNS_PER_LINE).map(|_| timed(bench, session)).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        print!("  to turn {:6}   mean {mean:8.1} µs   median {:8.1} µs", line * TURNS_PER_LINE, median(&mut times));
        if let (Some(from), Some(to)) = (before, size()) {
            print!("   store {:9} bytes   {:6} bytes a turn", to, (to.saturating_sub(from)) / TURNS_PER_LINE as u64);
            before = Some(to);
        }
        println!();
    }
}

/// Compares turn 10 of new sessions with the next turns of `late`, measured alternately.
fn compare(bench: &Bench, late: &mut Session, store: &Arc<dyn Store>) {
    let (mut early_times, mut late_times) = (Vec::new(), Vec::new());
    // Compares the same turn of an action, its tenth. The other rounds are not timed.
    for pair in 0..PAIRS {
        let mut early = bench.session(Arc::clone(store), &format!("early-{pair}"));
        for _ in 1..EARLY {
            bench.turn(&mut early);
        }
        let early_first = pair % 2 == 0;
        if early_first {
            early_times.push(timed(bench, &mut early));
        }
        late_times.push(timed(bench, late));
        if !early_first {
            early_times.push(timed(bench, &mut early));
        }
    }
    let (early, late) = (median(&mut early_times), median(&mut late_times));
    println!(
        "  turn {EARLY}: {early:.1} µs, late turns: {late:.1} µs, ratio {:.3} (medians; at most 1.1)",
        late / early
    );
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let turns: usize = std::env::var("BCC_BENCH_TURNS").ok().and_then(|turns| turns.parse().ok()).unwrap_or(10_000);
    let bench = Bench::new((turns + PAIRS).div_ceil(ROUNDS) + 1);

    println!("growth/in memory");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let mut session = bench.session(Arc::clone(&store), "late");
    drive(&bench, &mut session, turns, || None);
    compare(&bench, &mut session, &store);

    println!("growth/durable");
    let path = bench.path("sessions.db");
    let store: Arc<dyn Store> = Arc::new(open(&path).expect("a store"));
    let mut session = bench.session(Arc::clone(&store), "late");
    drive(&bench, &mut session, turns, || Some(size(&path)));
    compare(&bench, &mut session, &store);
}
