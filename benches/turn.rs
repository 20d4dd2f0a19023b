//! Measures the cost of a turn: in memory, and on a disk compared with the bare commits that it makes (target: at most 60 µs
//! and at most 1.3 ×).
//!
//! Both sides of the ratio are measured alternately on the same disk and in the same process, so that other disk load affects both.
//! `BCC_BENCH_PAIRS` sets the number of pairs (1,500).

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench may fail where it stands, prints its table, and criterion writes functions without docs"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use bcc_store::rows::Commit;
use bcc_store::sqlite::open::open;
use criterion::{Criterion, criterion_group};
use rusqlite::Connection;

use crate::support::bare::{Bare, bytes};
use crate::support::recorder::Recorder;
use crate::support::{Bench, ROUNDS, median};

mod support;

/// The number of pairs that are not counted.
const WARM_UP: usize = 50;

/// The times of one side, in microseconds.
#[derive(Default)]
struct Side(Vec<f64>);

impl Side {
    fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = work();
        self.0.push(began.elapsed().as_secs_f64() * 1e6);
        result
    }

    fn median(&self) -> f64 {
        median(&mut self.0.clone())
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }
}

/// The size of a store, with what is still in its log.
fn file_bytes(path: &Path) -> u64 {
    let store = Connection::open(path).expect("the store opens");
    store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("the log is folded in");
    std::fs::metadata(path).expect("the store is a file").len()
}

/// Measures the durable turn, the plain statements and the store alone, turn by turn with the same rows.
fn pairs() {
    let counted = std::env::var("BCC_BENCH_PAIRS").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(1_500);
    let total: usize = counted + WARM_UP;
    let bench = Bench::new(total.div_ceil(ROUNDS) + 1);
    let recorder = Arc::new(Recorder::default());
    let mut recorded_session = bench.session(Arc::clone(&recorder) as Arc<dyn Store>, "bench");
    let opening = recorder.take();
    let turns: Vec<Vec<Commit>> = (0..total)
        .map(|_| {
            assert!(bench.turn(&mut recorded_session));
            recorder.take().commits
        })
        .collect();

    let durable = bench.path("durable.db");
    let mut session = bench.session(Arc::new(open(&durable).expect("a store")), "bench");
    let mut bare = Bare::new(&bench.runtime, &bench.path("bare.db"), &opening);
    let replayed = open(&bench.path("replayed.db")).expect("a store");
    let (new, documents) = opening.created.first().expect("a session was made");
    bench.runtime.block_on(replayed.create(new, documents, &opening.commits[0])).expect("the session is made");
    for commit in &opening.commits[1..] {
        bare.commit(commit).expect("the opening");
        bench.runtime.block_on(replayed.commit("bench", commit)).expect("the opening");
    }

    let mut sides = [Side::default(), Side::default(), Side::default()];
    for (number, commits) in turns.iter().enumerate() {
        if number == WARM_UP {
            sides = Default::default();
        }
        // Rotates the order, so that each side is first equally often.
        for place in 0..sides.len() {
            let side = (number + place) % sides.len();
            sides[side].time(|| match side {
                0 => assert!(bench.turn(&mut session)),
                1 => commits.iter().for_each(|commit| bare.commit(commit).expect("the bare commit")),
                _ => bench.runtime.block_on(async {
                    for commit in commits {
                        replayed.commit("bench", commit).await.expect("the replayed commit");
                    }
                }),
            });
        }
    }
    // The ratio is only meaningful for the same work. Only the milliseconds of a call may differ in length.
    let written = bytes(&Connection::open(&durable).expect("the store opens"));
    assert!((written - bare.bytes()).abs() < written / 1_000, "{written} and {}", bare.bytes());

    let [turn, bare, replayed] = &sides;
    println!("turn/durable, {} pairs, {} bytes of texts a turn", turn.0.len(), written / total as i64);
    drop(session);
    let (stored, unpacked) = (file_bytes(&durable), file_bytes(&bench.path("bare.db")));
    println!(
        "  in the file a turn             {} bytes; bare {} bytes",
        stored / total as u64,
        unpacked / total as u64
    );
    for (name, side) in [("durable turn", turn), ("bare commits", bare), ("replayed through the store", replayed)] {
        println!("  {name:30} median {:8.1} µs   mean {:8.1} µs", side.median(), side.mean());
    }
    let mut ratios: Vec<f64> = turn.0.iter().zip(&bare.0).map(|(turn, bare)| turn / bare).collect();
    println!(
        "  turn / bare commits            of medians {:.3}   of means {:.3}   median of pairs {:.3}   (at most 1.3)",
        turn.median() / bare.median(),
        turn.mean() / bare.mean(),
        median(&mut ratios)
    );
}

fn in_memory(c: &mut Criterion) {
    let bench = Bench::new(40);
    c.bench_function("turn/in memory", |b| {
        b.iter_custom(|times| {
            let mut elapsed = Duration::ZERO;
            let mut session = None;
            for _ in 0..times {
                let mut live =
                    session.take().unwrap_or_else(|| bench.session(Arc::new(MemoryStore::default()), "bench"));
                let began = Instant::now();
                let continues = bench.turn(&mut live);
                elapsed += began.elapsed();
                session = continues.then_some(live);
            }
            elapsed
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(8));
    targets = in_memory
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` only checks that the bench runs; `-- memory` selects only the criterion part.
    if arguments.iter().any(|argument| argument == "--bench") && !arguments.iter().any(|name| name.contains("memory")) {
        pairs();
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
