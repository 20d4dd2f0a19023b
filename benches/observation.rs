//! Measures whether building an observation for a behavior server costs the same in a long notebook as in a short one.

#![allow(missing_docs, reason = "criterion makes functions without a comment")]

use std::hint::black_box;

use bcc_runtime::notebook::cell::Cell;
use bcc_runtime::notebook::protocol::observation::{MAX_CELLS, ObservationSource, observation};
use bcc_runtime::notebook::state::NotebookState;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use serde_json::Map;

fn building(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("observation");
    for count in [10_u64, 10_000] {
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

criterion_group!(benches, building);
criterion_main!(benches);
