//! Measures what a code cell of a notebook takes in the program, compared with a bare client of the same kernel (target: at most 1.2 × at
//! 200 cells).
//!
//! The program is a child process with a store on disk and `--json`; the time is that between the events which report the end of the
//! first and of the last cell. The bare clients are in `benches/support/bare_kernel.py`. All alternate. `BCC_BENCH_CELLS` sets the
//! number of cells (200), `BCC_BENCH_ROUNDS` how often they run (10).

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a bench may fail where it stands, prints its table, and shares code with tests"
)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{directory, median};
use crate::test_kernel::{kernel_python, kernel_variables};

mod support;

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/support/test_kernel.rs"]
mod test_kernel;

/// The root of the repository.
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The first cell, which is not measured.
const FIRST: &str = "import os\n_ = open('kernel.pid', 'w').write(str(os.getpid()))";

/// The last cell, which is not measured either: the processor times can be read while it runs.
const LAST: &str = "import time\nwhile not os.path.exists('go'):\n    time.sleep(0.01)";

/// The program starts Python kernels with this; Jupyter does not.
const HISTORY_IN_MEMORY: &str = "--HistoryManager.hist_file=:memory:";

/// What a cell takes, in milliseconds.
struct Cell {
    all: f64,
    /// The processor time of the program or the bare client, and of the kernel.
    processors: f64,
}

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// A script that runs a first cell, `cells` cells, and the last one.
fn script(cells: usize) -> String {
    let add = |number: usize, code: String| {
        json!({ "action_type": "add", "action_id": format!("a{number}"),
            "config": { "shot_type": "action", "content": code, "metadata": { "should_execute": true } } })
    };
    let mut actions = vec![add(0, FIRST.to_owned())];
    actions.extend((1..=cells).map(|number| add(number, format!("x_{number} = {number}\nprint(x_{number} + 1)"))));
    actions.push(add(cells + 1, LAST.to_owned()));
    let topics = json!([{ "topic_id": "t", "actions": actions }]);
    json!({ "session": { "session_id": "cells", "phases": [{ "phase_id": "p", "topics": topics }] } }).to_string()
}

/// The processor time of a process, in milliseconds.
fn processor_ms(id: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("a process that runs");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or_default();
    // A tick is 10 ms.
    (ticks(11) + ticks(12)) * 10.0
}

fn program(cells: usize, python: &Path) -> Cell {
    let directory = directory();
    let file = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).expect("a file");
    file("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    file("script.yaml", &script(cells));
    let mut command = Command::new(env!("CARGO_BIN_EXE_bcc-script"));
    command.args(["run", "script.yaml", "--session", "s", "--json", "--trust", "--model", "offline"]);
    command.args(["--store", "sessions.db"]).current_dir(directory.path());
    command.env_clear().env("HOME", directory.path()).envs(kernel_variables(python));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    let pid = directory.path().join("kernel.pid");
    let processors = |id: u32| {
        let kernel = std::fs::read_to_string(&pid).expect("the first cell writes it");
        processor_ms(&id.to_string()) + processor_ms(&kernel)
    };
    let (mut ended, mut first, mut last) = (0, None, None);
    for line in BufReader::new(child.stdout.take().expect("its output")).lines().map_while(Result::ok) {
        if !line.contains("\"type\":\"effect_finished\"") {
            continue;
        }
        ended += 1;
        let now = Instant::now();
        if ended == 1 {
            first = Some((Instant::now(), processors(child.id())));
        } else if ended == cells + 1 {
            last = Some((now, processors(child.id())));
            file("go", "");
        }
    }
    child.wait().expect("it ends");
    let (Some(first), Some(last)) = (first, last) else { panic!("the program ran no cells") };
    let each = |time: f64| time / cells as f64;
    Cell { all: each(last.0.duration_since(first.0).as_secs_f64() * 1e3), processors: each(last.1 - first.1) }
}

/// A client that only runs the cells, with its name in `benches/support/bare_kernel.py`, and the arguments that its kernel gets.
struct BareClient {
    title: &'static str,
    name: &'static str,
    arguments: &'static [&'static str],
}

const CLIENTS: [BareClient; 3] = [
    BareClient { title: "bare sockets", name: "sockets", arguments: &[HISTORY_IN_MEMORY] },
    BareClient { title: "jupyter_client", name: "jupyter_client", arguments: &[HISTORY_IN_MEMORY] },
    BareClient { title: "jupyter_client, kernel as Jupyter starts it", name: "jupyter_client", arguments: &[] },
];

impl BareClient {
    fn run(&self, cells: usize, python: &Path) -> Cell {
        let directory = directory();
        let mut command = Command::new(python);
        command.env("HOME", directory.path()).current_dir(directory.path());
        command.arg(Path::new(ROOT).join("benches/support/bare_kernel.py"));
        command.arg(cells.to_string()).arg(self.name).args(self.arguments);
        command.envs(kernel_variables(python)).stderr(Stdio::null());
        let output = command.output().expect("the bare client runs");
        let took: Value = serde_json::from_slice(&output.stdout).expect("its times");
        let time = |name: &str| took.get(name).and_then(Value::as_f64).expect("a time");
        Cell { all: time("ms"), processors: time("client_ms") + time("kernel_ms") }
    }
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let Some(python) = kernel_python() else { return };
    let (cells, rounds) = (setting("BCC_BENCH_CELLS", 200), setting("BCC_BENCH_ROUNDS", 10));
    let (mut ours, mut theirs) = (vec![], CLIENTS.map(|_| vec![]));
    for round in 0..rounds {
        if round % 2 == 0 {
            ours.push(program(cells, &python));
        }
        for (client, took) in CLIENTS.iter().zip(&mut theirs) {
            took.push(client.run(cells, &python));
        }
        if round % 2 == 1 {
            ours.push(program(cells, &python));
        }
    }
    let medians = |cells: &[Cell]| {
        let of = |part: fn(&Cell) -> f64| median(&mut cells.iter().map(part).collect::<Vec<f64>>());
        (of(|cell| cell.all), of(|cell| cell.processors))
    };
    println!("cells: {cells} cells, milliseconds for each (medians of {rounds} rounds; ratio at most 1.2)");
    let (time, processors) = medians(&ours);
    println!("  {:45} time {time:6.2}               processors {processors:6.2}", "program");
    for (client, took) in CLIENTS.iter().zip(&theirs) {
        let (its_time, its_processors) = medians(took);
        println!(
            "  {:45} time {its_time:6.2}, ratio {:.3}  processors {its_processors:6.2}, ratio {:.3}",
            client.title,
            time / its_time,
            processors / its_processors
        );
    }
}
