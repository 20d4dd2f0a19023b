//! Measures what a step of a workflow state file costs beside a bare atomic write of the same bytes, at the start, in the middle and at
//! the end of a file of 50,000 steps (target: at most 1.2 ×, the same everywhere).
//!
//! The time of a step contains everything: its turn, the commits of its session in SQLite, and the write of the file.
//! `BCC_BENCH_STEPS` sets the number of steps (50,000).

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a bench may fail where it stands, and prints its table")]

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::files::write::replace;
use bcc_engine::loaded::LoadedProgram;
use bcc_engine::project::Project;
use bcc_engine::state_file::open::run_state_file;
use bcc_runtime::program::event::{Committed, Event, Observer};
use serde_json::{Value, json};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of steps that are measured in each place.
const MEASURED: usize = 100;

/// Notes when each step ended.
#[derive(Default)]
struct Ends(Mutex<Vec<Instant>>);

impl Observer for Ends {
    fn committed(&self, committed: &Committed<'_>) {
        if matches!(committed.event, Event::Outcome { .. }) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        }
    }
}

/// A file in which the steps before `from` are done, and an approval follows the measured ones.
fn file(count: usize, from: usize) -> Value {
    let step = |number: usize| {
        let id = format!("step_{number}");
        match number {
            _ if number < from => {
                let (at, result) =
                    ("2026-01-01T00:00:00.000000Z", json!({ "exit_code": 0, "stdout": "done", "simulated": true }));
                json!({ "id": id, "type": "action", "status": "completed", "started_at": at, "completed_at": at, "result": result, "simulate": { "stdout": "done" } })
            }
            _ if number == from + MEASURED + 1 => json!({ "id": id, "type": "approval", "status": "pending" }),
            _ => json!({ "id": id, "type": "action", "status": "pending", "simulate": { "stdout": "done" } }),
        }
    };
    let steps: Vec<Value> = (0..count).map(step).collect();
    json!({ "workflow_id": "bench", "status": "pending", "current_step": format!("step_{from}"), "steps": steps })
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The median time of a step and of a bare write, in milliseconds.
fn measure(directory: &Path, count: usize, from: usize) -> (f64, f64) {
    fs::create_dir_all(directory.join(".bcc")).expect("the folder is new");
    let path = directory.join(format!("w{from}.json"));
    fs::write(&path, serde_json::to_string_pretty(&file(count, from)).expect("it is JSON")).expect("the folder exists");
    let environment = Environment::default();
    let project = Project::in_directory(directory.to_path_buf(), true, &environment).expect("it has no configuration");
    let request = RunRequest { file: path.clone(), model: Some("offline".into()), ..RunRequest::default() };
    let loaded = LoadedProgram::of(&project, &request).expect("the file is valid");
    let engine = Engine::with_store(project, environment, None).expect("the store is new");
    let ends = Arc::new(Ends::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let observer = Arc::clone(&ends) as Arc<dyn Observer>;
        let mut opened = run_state_file(&engine, loaded, &request, observer).await.expect("it starts");
        opened.session.advance().await.expect("it runs to the approval");
    });
    let ends = ends.0.lock().unwrap_or_else(PoisonError::into_inner);
    let pairs = ends.iter().zip(ends.iter().skip(1));
    let mut steps: Vec<f64> = pairs.map(|(a, b)| b.duration_since(*a).as_secs_f64() * 1e3).collect();
    let bytes = fs::read(&path).expect("it was written");
    let other = directory.join("bare.json");
    fs::write(&other, &bytes).expect("the folder exists");
    let mut bare: Vec<f64> = (0..MEASURED)
        .map(|_| {
            let began = Instant::now();
            replace(&other, &bytes).expect("it is replaced");
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    (median(&mut steps), median(&mut bare))
}

fn main() {
    let count: usize = std::env::var("BCC_BENCH_STEPS").ok().and_then(|count| count.parse().ok()).unwrap_or(50_000);
    println!("a state file of {count} steps; the median of {MEASURED} steps and of {MEASURED} bare writes");
    for (name, from) in [("first", 0), ("middle", count / 2), ("last", count.saturating_sub(MEASURED + 5))] {
        let directory = tempfile::tempdir().expect("a temporary folder");
        let (step, bare) = measure(directory.path(), count, from);
        println!("  {name:6}  step {step:8.2} ms   bare write {bare:8.2} ms   {:5.2} ×", step / bare);
    }
}
