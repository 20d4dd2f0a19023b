//! Measures `graph_rag` with 10,000, 100,000 and 1,000,000 triples: indexing, loading the index in another process, updates after a change
//! of the source, and queries (target: a median of at most 20 ms with 1,000,000 triples).
//!
//! `BCC_BENCH_TRIPLES` sets other numbers of triples, separated by commas. The memory is the maximum of the process so far.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench may fail where it stands, and prints its table"
)]

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use bcc_tools::graph::answer::graph_value;
use bcc_tools::graph::index::{GraphIndex, LoadedGraph};
use bcc_tools::graph::search::{GraphQuery, search};
use fastrand::Rng;

/// The number of times that all queries are made.
const REPETITIONS: usize = 20;

const GENERA: [&str; 8] =
    ["Escherichia", "Salmonella", "Bacillus", "Vibrio", "Pseudomonas", "Klebsiella", "大肠杆菌", "沙门氏菌"];

const PREDICATES: [&str; 12] = [
    "infects",
    "binds to",
    "attaches to",
    "encodes",
    "is part of",
    "inhibits",
    "is located in",
    "was isolated from",
    "is resistant to",
    "吸附于",
    "编码",
    "抑制",
];

/// An entity; small numbers are more frequent.
fn entity(rng: &mut Rng, count: usize) -> String {
    let number = (rng.f64().powi(3) * count as f64) as usize;
    let genus = GENERA[number % GENERA.len()];
    match number % 5 {
        0 => format!("{genus} phage T{number}"),
        1 => format!("{genus} strain K-{number}"),
        2 => format!("gp{number} tail fiber protein"),
        3 => format!("噬菌体蛋白{number}"),
        _ => format!("LPS receptor {number} of {genus}"),
    }
}

fn lines(count: usize) -> Vec<String> {
    let mut rng = Rng::with_seed(20);
    (0..count)
        .map(|_| {
            let (subject, object) = (entity(&mut rng, count / 4), entity(&mut rng, count / 4));
            format!("{subject},{},{object},doi:10.1/{}", PREDICATES[rng.usize(..PREDICATES.len())], rng.u16(..))
        })
        .collect()
}

/// Queries with rare and with frequent words, in both languages, with and without a focus.
fn queries() -> Vec<GraphQuery> {
    let query = |query: &str, hops: u32, focus: &[&str]| GraphQuery {
        query: query.to_owned(),
        top_k: 12,
        hops,
        focus: focus.iter().map(|name| (*name).to_owned()).collect(),
    };
    vec![
        query("How do T40 phages attach to Escherichia?", 1, &[]),
        query("phage tail fiber protein that binds to the LPS receptor of Salmonella strain", 1, &[]),
        query("大肠杆菌噬菌体蛋白吸附于哪些受体？", 1, &[]),
        query("gp1237 tail fiber protein", 2, &[]),
        query("resistant strain", 0, &[]),
        query("what infects it", 1, &["Escherichia phage T0", "噬菌体蛋白3"]),
        query("噬菌体", 3, &[]),
        query("encodes", 2, &["phage T40"]),
    ]
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    println!("  {what:46} {:10.1} ms", began.elapsed().as_secs_f64() * 1e3);
    result
}

fn index(folder: &Path) -> GraphIndex {
    GraphIndex::new(folder.to_path_buf(), vec!["*.csv".to_owned()])
}

fn refresh(index: &GraphIndex) -> std::sync::Arc<LoadedGraph> {
    index.refresh(&AtomicBool::new(false)).expect("the sources can be read")
}

/// The processor time of this thread so far, in milliseconds: on a machine that does other things, it is less than the time.
fn processor_time() -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    statistics.split(' ').next().and_then(|time| time.parse::<f64>().ok()).unwrap_or_default() / 1e6
}

/// A number of the status of this process, in KB.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

fn measure(count: usize) {
    println!("graph/{count}");
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("a.csv");
    let mut lines = lines(count);
    std::fs::write(&source, lines.join("\n")).expect("a source");
    let used = index(folder.path());
    timed("index", || refresh(&used));
    // The source is now older than what is known of it, or it would be read again.
    std::thread::sleep(std::time::Duration::from_millis(200));
    timed("read a source again that was just written", || refresh(&used));
    let before = status("VmRSS:");
    let other = index(folder.path());
    timed("load in another process", || refresh(&other));
    println!("  memory of the loaded index, in KB {:25}", status("VmRSS:").saturating_sub(before));
    drop(other);
    timed("nothing changed", || refresh(&used));
    lines.insert(count / 2, "Escherichia phage T0,infects,a new host".to_owned());
    std::fs::write(&source, lines.join("\n")).expect("a source");
    timed("update: a line inserted in the middle", || refresh(&used));
    std::fs::write(folder.path().join("b.csv"), lines[..1000].join("\n")).expect("a source");
    std::thread::sleep(std::time::Duration::from_millis(200));
    refresh(&used);
    std::fs::write(folder.path().join("b.csv"), lines[..1001].join("\n")).expect("a source");
    timed("update: another source of 1,001 triples changed", || refresh(&used));
    let graph = refresh(&used);
    let queries = queries();
    let (mut times, mut processor_times) = (Vec::new(), Vec::new());
    let mut slowest = (0.0, "");
    for _ in 0..REPETITIONS {
        for query in &queries {
            let (began, used) = (Instant::now(), processor_time());
            let (value, _) = graph_value(&graph, &search(&graph, query), true, 64 * 1024);
            let time = began.elapsed().as_secs_f64() * 1e3;
            processor_times.push(processor_time() - used);
            assert!(!value["triples"].as_array().expect("triples").is_empty(), "{}", query.query);
            times.push(time);
            if time > slowest.0 {
                slowest = (time, &query.query);
            }
        }
    }
    let at = |times: &mut Vec<f64>, part: f64| {
        times.sort_by(f64::total_cmp);
        times[((times.len() - 1) as f64 * part) as usize]
    };
    let (p50, p95) = (at(&mut times, 0.5), at(&mut times, 0.95));
    println!("  query: p50 {p50:.2} ms, p95 {p95:.2} ms, max {:.2} ms ({})", slowest.0, slowest.1);
    let (p50, p95) = (at(&mut processor_times, 0.5), at(&mut processor_times, 0.95));
    println!("  query, processor time: p50 {p50:.2} ms, p95 {p95:.2} ms");
    println!("  peak memory {} KB", status("VmHWM:"));
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let counts = std::env::var("BCC_BENCH_TRIPLES").unwrap_or_else(|_| "10000,100000,1000000".to_owned());
    for count in counts.split(',').filter_map(|count| count.parse().ok()) {
        measure(count);
    }
}
