//! Measures whether an observation costs the same in a long notebook as in a short one: building the one for a server, and a whole
//! behavior of a model, from reading the notebook for its prompt to the commit of what it did (target: flat from 10 to 10,000 cells).

#![allow(missing_docs, reason = "criterion makes functions without a comment")]
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a bench may fail where it stands, and prints its table")]

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_runtime::notebook::cell::CellKind;
use bcc_runtime::program::event::{Committed, Event, Observer};
use bcc_runtime::run::session::SessionPause;
use bcc_store::sqlite::open::open;
use serde_json::json;

use crate::support::{directory, median};

use bcc_runtime::notebook::cell::Cell;
use bcc_runtime::notebook::protocol::observation::{MAX_CELLS, ObservationSource, observation};
use bcc_runtime::notebook::state::NotebookState;
use criterion::{BenchmarkId, Criterion, criterion_group};
use serde_json::Map;

mod support;

/// The numbers of cells.
const CELLS: [u64; 4] = [10, 100, 1_000, 10_000];

/// The number of behaviors of a loop: the maximum of the language.
const BEHAVIORS: usize = 100;

/// How often the loop runs with each number of cells.
const LOOPS: usize = 5;

fn building(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("observation");
    for count in CELLS {
        let first = count.saturating_sub(MAX_CELLS as u64) + 1;
        let cells: Vec<Cell> = (first..=count)
            .map(|number| Cell {
                number,
                id: format!("cell-{number}"),
                content: "text ".repeat(100),
                ..Cell::default()
            })
            .collect();
        let state = NotebookState { cell_count: count, ..NotebookState::default() };
        group.bench_with_input(BenchmarkId::new("cells", count), &cells, |bencher, cells| {
            bencher.iter(|| {
                let source = ObservationSource {
                    notebook_id: "n",
                    state: &state,
                    cells,
                    variables: Map::new(),
                    feedback: None,
                    stream: true,
                    include_progress: true,
                };
                black_box(observation(&source))
            });
        });
    }
    group.finish();
}

/// A notebook with a section for every five cells.
fn notebook(count: u64) -> Vec<Cell> {
    let cell = |number: u64| {
        let (kind, content) = match number % 5 {
            1 => (CellKind::Markdown, format!("## Section {number}")),
            2 => (CellKind::Markdown, "What stands here was found out before. ".repeat(10)),
            _ => (CellKind::Code, format!("found_{number} = measure({number})\nprint(found_{number})")),
        };
        let outputs = match kind {
            CellKind::Code => {
                vec![json!({ "output_type": "stream", "name": "stdout", "text": format!("{number} of them\n") })]
            }
            _ => vec![],
        };
        Cell { number, id: format!("given-{number}"), kind, content, outputs, ..Cell::default() }
    };
    (1..=count).map(cell).collect()
}

/// The moments at which behaviors ended.
#[derive(Default)]
struct Ends(Mutex<Vec<Instant>>);

impl Observer for Ends {
    fn committed(&self, committed: &Committed<'_>) {
        if matches!(committed.event, Event::Behavior { .. }) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        }
    }
}

/// The times of the behaviors of a loop, in microseconds: of the first one with all that comes before it, and of each other one.
fn behaviors(cells: &[Cell]) -> (f64, Vec<f64>) {
    let directory = directory();
    let action = json!({ "action_type": "behavior_loop", "action_id": "work",
        "config": { "target": "Go on", "reflection": "off", "max_behaviors": BEHAVIORS } });
    let topics = json!([{ "topic_id": "t", "actions": [action] }]);
    let script = json!({ "session": { "session_id": "s", "phases": [{ "phase_id": "p", "topics": topics }] } });
    // It adds no cell: the notebook remains as long as it is.
    let reply = json!({ "actions": [{ "action": "next_event", "event_type": "looked" }], "transition": { "continue_behaviors": true } });
    let replies = json!({ "replies": { "work": vec![reply; BEHAVIORS] } });
    let file = directory.path().join("script.yaml");
    std::fs::write(&file, script.to_string()).expect("a script");
    std::fs::write(directory.path().join("replies.yaml"), replies.to_string()).expect("replies");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let environment = Environment::default();
    let project = Project::of(&file, Some(directory.path()), false, &environment).expect("a project");
    let store = Arc::new(open(&directory.path().join("sessions.db")).expect("a store"));
    let engine = Engine::new(project, environment, store);
    let model = format!("replay:{}", directory.path().join("replies.yaml").display());
    let request = RunRequest { file, model: Some(model), cells: cells.to_vec(), ..RunRequest::default() };
    let ends = Arc::new(Ends::default());
    let mut session =
        runtime.block_on(engine.run(&request, Arc::clone(&ends) as _)).expect("the session begins").session;
    let began = Instant::now();
    assert_eq!(runtime.block_on(session.advance()).expect("the loop"), SessionPause::Completed);
    let ends = ends.0.lock().unwrap_or_else(PoisonError::into_inner);
    let micros = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64() * 1e6;
    assert_eq!(ends.len(), BEHAVIORS);
    let first = ends.first().map_or(0.0, |end| micros(began, *end));
    (first, ends.iter().zip(ends.iter().skip(1)).map(|(from, to)| micros(*from, *to)).collect())
}

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let notebooks = CELLS.map(notebook);
    let mut times = CELLS.map(|_| (vec![], vec![]));
    for _ in 0..LOOPS {
        for (cells, (first, others)) in notebooks.iter().zip(&mut times) {
            let (time, more) = behaviors(cells);
            first.push(time);
            others.extend(more);
        }
    }
    println!("observation/behaviors of a model, in a store on disk (medians)");
    for (count, (first, others)) in CELLS.iter().zip(&mut times) {
        println!("  {count:6} cells: {:8.0} µs each, the first one {:8.0} µs", median(others), median(first));
    }
}

criterion_group!(benches, building);
