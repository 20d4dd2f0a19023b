//! Measures what a running monitor costs a turn: a turn with a monitor in flight (its model takes an hour, and newer analyses wait) and
//! the same turn without one. That the conversation never waits for a monitor is tested in `tests/sessions/background.rs`; this
//! measures the cost of starting and storing it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench may fail where it stands, and criterion writes functions without docs"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bcc_store::memory::MemoryStore;
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Map, Value, json};

use crate::support::{Bench, ROUNDS};

mod support;

const ACTIONS: usize = 40;

/// The replies to every question, each with different metrics, because equal ones would not be analyzed again. With `watched`, a monitor
/// runs after every answer.
fn replies(watched: bool) -> Value {
    let reply = |round: usize| {
        json!({
            "safety_risk": { "detected": false }, "content": "后来呢？", "EXIT": "NO", "BRIEF": "",
            "metrics": {
                "information_completeness": format!("第 {round} 轮，还缺时数"), "user_engagement": "投入",
                "emotional_intensity": "平静", "reply_relevance": "切题",
            },
            "progress_suggestion": "continue_needed", "metadata": { "emotional_tone": "平静", "crisis_signal": false },
            "sleep": "睡不好", "hours": null,
        })
    };
    let action_replies: Vec<Value> = (0..=ROUNDS).map(reply).collect();
    let mut replies = Map::new();
    for number in 0..ACTIONS {
        replies.insert(format!("ask_{number}"), json!(action_replies));
        if watched {
            let slow_reply = json!({ "$answered": true, "$after_ms": 3_600_000, "reply": "{}" });
            replies.insert(format!("monitor:ask_{number}"), json!([slow_reply]));
        }
    }
    json!({ "replies": replies })
}

fn monitored(c: &mut Criterion) {
    let mut group = c.benchmark_group("turn beside a monitor");
    for (name, watched) in [("none", false), ("in flight", true)] {
        let bench = Bench::new(ACTIONS);
        let file = bench.path("replies.json");
        std::fs::write(&file, replies(watched).to_string()).expect("the replies can be written");
        let model = format!("replay:{}", file.display());
        group.bench_function(name, |b| {
            b.iter_custom(|times| {
                let mut elapsed = Duration::ZERO;
                let mut session = None;
                for _ in 0..times {
                    let mut live = session
                        .take()
                        .unwrap_or_else(|| bench.session_on(Arc::new(MemoryStore::default()), "bench", &model));
                    let began = Instant::now();
                    let continues = bench.turn(&mut live);
                    elapsed += began.elapsed();
                    session = continues.then_some(live);
                }
                elapsed
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(8));
    targets = monitored
}
criterion_main!(benches);
