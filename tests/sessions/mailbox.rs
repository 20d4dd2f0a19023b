//! Background analyses: one at a time, never waited for, and ended with their session (docs/acceptance-004.md, unit
//! test 7). Time is virtual.

use crate::watching;
use std::sync::Arc;
use std::time::Duration;

use bcc_runtime::program::analysis::MonitorAnalysis;
use bcc_runtime::program::monitor::DEFAULT_MONITOR_TIMEOUT;
use bcc_runtime::program::program::Program;
use bcc_runtime::run::mailbox::{Job, Mailbox, PendingAnalysis};
use tokio::time::{Instant, sleep};

use watching::{BLOCKED, NEXT, Seeded, context, monitor, program, watched};

// ── the mailbox ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

struct Fixture {
    program: Arc<Program>,
    mailbox: Mailbox,
}

impl Fixture {
    fn new() -> Self {
        let project = tempfile::tempdir().unwrap();
        Self { program: program(project.path(), None), mailbox: Mailbox::default() }
    }

    fn start(&self, provider: &Arc<Seeded>, id: &str, engagement: &str, seq: u64) {
        let request = PendingAnalysis {
            visit_key: "p/t".into(),
            seq,
            messages: None,
            restarted_at: None,
            watched: watched("ai_ask", id, engagement),
        };
        let context = context(&self.program, 0, provider, seq);
        self.mailbox.start(Job { request, monitor: monitor("ai_ask"), context });
    }

    fn pending(&self) -> Vec<u64> {
        self.mailbox.pending().iter().map(|request| request.seq).collect()
    }

    fn take(&self) -> Vec<u64> {
        self.mailbox.take().iter().map(|arrival| arrival.request.seq).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn unit_7_starting_an_analysis_takes_no_time_and_its_feedback_arrives_later() {
    let (fixture, provider) = (Fixture::new(), Seeded::new(BLOCKED, 5));
    let began = Instant::now();
    fixture.start(&provider, "ask", "敷衍", 4);
    assert_eq!((began.elapsed(), fixture.take(), fixture.pending()), (Duration::ZERO, vec![], vec![4]));
    fixture.mailbox.wait_for_result().await;
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    assert_eq!(fixture.pending(), [4], "until it is taken, a resumed session would have to start it again");
    let arrivals = fixture.mailbox.take();
    assert!(arrivals[0].feedback.as_deref().unwrap().starts_with("【Topic层策略建议】\n用户在回避"));
    assert!(!arrivals[0].orchestrate);
    assert_eq!((fixture.pending(), fixture.take()), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn one_analysis_of_an_action_runs_at_a_time_and_only_the_newest_waits() {
    let (fixture, provider) = (Fixture::new(), Seeded::new(BLOCKED, 10));
    for (seq, engagement) in [(1, "一"), (2, "二"), (3, "三")] {
        fixture.start(&provider, "ask", engagement, seq);
        tokio::task::yield_now().await;
    }
    fixture.start(&provider, "other", "一", 4);
    tokio::task::yield_now().await;
    assert_eq!((fixture.pending(), provider.count()), (vec![1, 3, 4], 2));
    sleep(Duration::from_secs(11)).await;
    assert_eq!((fixture.take(), fixture.pending(), provider.count()), (vec![1, 4], vec![3], 3));
    fixture.mailbox.wait_for_result().await;
    assert_eq!((fixture.take(), fixture.pending()), (vec![3], vec![]));
}

#[tokio::test(start_paused = true)]
async fn the_same_metrics_are_not_analyzed_twice_unless_the_analysis_failed() {
    let (fixture, provider) = (Fixture::new(), Seeded::new(BLOCKED, 1));
    fixture.start(&provider, "ask", "敷衍", 1);
    fixture.start(&provider, "ask", "敷衍", 2);
    fixture.mailbox.wait_for_result().await;
    fixture.start(&provider, "ask", "敷衍", 3);
    assert_eq!((fixture.take(), fixture.pending(), provider.count()), (vec![1], vec![], 1));
    // The metrics are again those being analyzed: the waiting analysis is out of date.
    fixture.start(&provider, "ask", "投入", 4);
    fixture.start(&provider, "ask", "走神", 5);
    fixture.start(&provider, "ask", "投入", 6);
    assert_eq!(fixture.pending(), [4]);
    fixture.mailbox.wait_for_result().await;
    fixture.take();
    // Another visit of the topic does not know this one.
    fixture.mailbox.forget("p/t");
    fixture.start(&provider, "ask", "投入", 7);
    assert_eq!(fixture.pending(), [7]);
    let (fixture, broken) = (Fixture::new(), Seeded::new("rubbish", 1));
    for seq in [1, 2] {
        fixture.start(&broken, "ask", "敷衍", seq);
        fixture.mailbox.wait_for_result().await;
        assert_eq!(fixture.take(), [seq]);
    }
    assert_eq!(broken.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_monitor_that_hangs_ends_at_the_timeout_and_one_that_panics_ends() {
    let (fixture, hanging) = (Fixture::new(), Seeded::new(BLOCKED, 7200));
    let began = Instant::now();
    fixture.start(&hanging, "ask", "敷衍", 1);
    fixture.mailbox.wait_for_result().await;
    assert_eq!(began.elapsed(), DEFAULT_MONITOR_TIMEOUT);
    let arrival = fixture.mailbox.take().remove(0);
    assert_eq!((arrival.feedback, arrival.result.analysis), (None, MonitorAnalysis::default()));
    assert_eq!(
        arrival.result.calls[0].error.as_ref().map(ToString::to_string).as_deref(),
        Some("nothing was received within 120 s")
    );
    fixture.start(&Seeded::new("panic", 0), "ask", "敷衍", 2);
    fixture.mailbox.wait_for_result().await;
    let arrival = fixture.mailbox.take().remove(0);
    assert_eq!((arrival.request.seq, arrival.feedback, fixture.pending()), (2, None, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_monitor_that_is_asked_again_has_no_more_time_than_one_that_is_not() {
    let replies = ["rubbish", "rubbish", BLOCKED].join(NEXT);
    for (seconds, advises) in [(30, true), (50, false)] {
        let (fixture, provider) = (Fixture::new(), Seeded::new(&replies, seconds));
        let began = Instant::now();
        fixture.start(&provider, "ask", "敷衍", 1);
        fixture.mailbox.wait_for_result().await;
        assert_eq!(began.elapsed(), Duration::from_secs(3 * seconds).min(DEFAULT_MONITOR_TIMEOUT));
        assert_eq!(fixture.mailbox.take()[0].feedback.is_some(), advises);
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_the_mailbox_ends_running_analyses_and_starts_no_waiting_ones() {
    let (fixture, provider) = (Fixture::new(), Seeded::new(BLOCKED, 10));
    fixture.start(&provider, "ask", "一", 1);
    fixture.start(&provider, "ask", "二", 2);
    tokio::task::yield_now().await;
    assert!(Arc::strong_count(&provider) > 1, "it is held by what runs and by what waits");
    drop(fixture);
    sleep(Duration::from_secs(30)).await;
    assert_eq!((provider.count(), Arc::strong_count(&provider)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_dropped_loses_nothing() {
    let (fixture, provider) = (Fixture::new(), Seeded::new(BLOCKED, 5));
    fixture.start(&provider, "ask", "一", 1);
    for _ in 0..4 {
        assert!(tokio::time::timeout(Duration::from_secs(1), fixture.mailbox.wait_for_result()).await.is_err());
    }
    sleep(Duration::from_secs(2)).await;
    // Waiting twice does not take the result.
    fixture.mailbox.wait_for_result().await;
    fixture.mailbox.wait_for_result().await;
    assert_eq!(fixture.take(), [1]);
}

#[tokio::test(start_paused = true)]
async fn pending_analyses_are_stored_and_started_again() {
    let (fixture, provider) = (Fixture::new(), Seeded::new(BLOCKED, 5));
    fixture.start(&provider, "ask", "一", 9);
    let stored = serde_json::to_string(&fixture.mailbox.pending()).unwrap();
    drop(fixture);
    let (fixture, second_provider) = (Fixture::new(), Seeded::new(BLOCKED, 5));
    for request in serde_json::from_str::<Vec<PendingAnalysis>>(&stored).unwrap() {
        let context = context(&fixture.program, 0, &second_provider, request.seq);
        fixture.mailbox.start(Job { request, monitor: monitor("ai_ask"), context });
    }
    fixture.mailbox.wait_for_result().await;
    assert_eq!((fixture.take(), second_provider.count()), (vec![9], 1));
}
