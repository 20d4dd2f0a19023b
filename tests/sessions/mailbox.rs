//! Analyses that run beside a session: one at a time, never waited for, ended with it (004, unit test 7). Time is virtual.

use crate::watching;
use std::sync::Arc;
use std::time::Duration;

use bcc_runtime::program::analysis::MonitorAnalysis;
use bcc_runtime::program::monitor::USUAL_LIMIT;
use bcc_runtime::program::program::Program;
use bcc_runtime::run::mailbox::{Job, Mailbox, Unanswered};
use tokio::time::{Instant, sleep};

use watching::{BLOCKED, Seeded, context, monitor_of, program, watched};

// ── the mailbox ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

struct Desk {
    program: Arc<Program>,
    mailbox: Mailbox,
}

impl Desk {
    fn new() -> Self {
        let project = tempfile::tempdir().unwrap();
        Self { program: program(project.path(), None), mailbox: Mailbox::default() }
    }

    fn start(&self, provider: &Arc<Seeded>, id: &str, engagement: &str, seq: u64) {
        let about = Unanswered { home: "p/t".into(), seq, watched: watched("ai_ask", id, engagement) };
        let context = context(&self.program, 0, provider, seq);
        self.mailbox.start(Job { about, monitor: monitor_of("ai_ask"), context });
    }

    fn pending(&self) -> Vec<u64> {
        self.mailbox.pending().iter().map(|about| about.seq).collect()
    }

    fn taken(&self) -> Vec<u64> {
        self.mailbox.take().iter().map(|arrival| arrival.about.seq).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn unit_7_starting_an_analysis_takes_no_time_and_its_feedback_arrives_later() {
    let (desk, provider) = (Desk::new(), Seeded::new(BLOCKED, 5));
    let began = Instant::now();
    desk.start(&provider, "ask", "敷衍", 4);
    assert_eq!((began.elapsed(), desk.taken(), desk.pending()), (Duration::ZERO, vec![], vec![4]));
    desk.mailbox.arrived().await;
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    assert_eq!(desk.pending(), [4], "until it is taken, a resumed session would have to start it again");
    let arrivals = desk.mailbox.take();
    assert!(arrivals[0].feedback.as_deref().unwrap().starts_with("【Topic层策略建议】\n用户在回避"));
    assert!(!arrivals[0].orchestrate);
    assert_eq!((desk.pending(), desk.taken()), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn one_analysis_of_an_action_runs_at_a_time_and_only_the_newest_waits() {
    let (desk, provider) = (Desk::new(), Seeded::new(BLOCKED, 10));
    for (seq, engagement) in [(1, "一"), (2, "二"), (3, "三")] {
        desk.start(&provider, "ask", engagement, seq);
        tokio::task::yield_now().await;
    }
    desk.start(&provider, "other", "一", 4);
    tokio::task::yield_now().await;
    assert_eq!((desk.pending(), provider.count()), (vec![1, 3, 4], 2));
    sleep(Duration::from_secs(11)).await;
    assert_eq!((desk.taken(), desk.pending(), provider.count()), (vec![1, 4], vec![3], 3));
    desk.mailbox.arrived().await;
    assert_eq!((desk.taken(), desk.pending()), (vec![3], vec![]));
}

#[tokio::test(start_paused = true)]
async fn the_same_metrics_are_not_analysed_twice_unless_the_analysis_failed() {
    let (desk, provider) = (Desk::new(), Seeded::new(BLOCKED, 1));
    desk.start(&provider, "ask", "敷衍", 1);
    desk.start(&provider, "ask", "敷衍", 2);
    desk.mailbox.arrived().await;
    desk.start(&provider, "ask", "敷衍", 3);
    assert_eq!((desk.taken(), desk.pending(), provider.count()), (vec![1], vec![], 1));
    // Back to what is being analysed: what waited is out of date.
    desk.start(&provider, "ask", "投入", 4);
    desk.start(&provider, "ask", "走神", 5);
    desk.start(&provider, "ask", "投入", 6);
    assert_eq!(desk.pending(), [4]);
    desk.mailbox.arrived().await;
    desk.taken();
    // Another visit of the topic knows nothing of this one.
    desk.mailbox.forget("p/t");
    desk.start(&provider, "ask", "投入", 7);
    assert_eq!(desk.pending(), [7]);
    let (desk, broken) = (Desk::new(), Seeded::new("rubbish", 1));
    for seq in [1, 2] {
        desk.start(&broken, "ask", "敷衍", seq);
        desk.mailbox.arrived().await;
        assert_eq!(desk.taken(), [seq]);
    }
    assert_eq!(broken.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_monitor_that_hangs_for_hours_ends_at_the_limit_and_one_that_panics_ends() {
    let (desk, hanging) = (Desk::new(), Seeded::new(BLOCKED, 7200));
    let began = Instant::now();
    desk.start(&hanging, "ask", "敷衍", 1);
    desk.mailbox.arrived().await;
    assert_eq!(began.elapsed(), USUAL_LIMIT);
    let arrival = desk.mailbox.take().remove(0);
    assert_eq!((arrival.feedback, arrival.analysed.analysis), (None, MonitorAnalysis::default()));
    assert_eq!(
        arrival.analysed.calls[0].error.as_ref().map(ToString::to_string).as_deref(),
        Some("nothing was received within 120 s")
    );
    desk.start(&Seeded::new("panic", 0), "ask", "敷衍", 2);
    desk.mailbox.arrived().await;
    let arrival = desk.mailbox.take().remove(0);
    assert_eq!((arrival.about.seq, arrival.feedback, desk.pending()), (2, None, vec![]));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_mailbox_ends_what_runs_and_starts_nothing_that_waits() {
    let (desk, provider) = (Desk::new(), Seeded::new(BLOCKED, 10));
    desk.start(&provider, "ask", "一", 1);
    desk.start(&provider, "ask", "二", 2);
    tokio::task::yield_now().await;
    assert!(Arc::strong_count(&provider) > 1, "it is held by what runs and by what waits");
    drop(desk);
    sleep(Duration::from_secs(30)).await;
    assert_eq!((provider.count(), Arc::strong_count(&provider)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_dropped_loses_nothing() {
    let (desk, provider) = (Desk::new(), Seeded::new(BLOCKED, 5));
    desk.start(&provider, "ask", "一", 1);
    for _ in 0..4 {
        assert!(tokio::time::timeout(Duration::from_secs(1), desk.mailbox.arrived()).await.is_err());
    }
    sleep(Duration::from_secs(2)).await;
    // Twice: to look is not to take.
    desk.mailbox.arrived().await;
    desk.mailbox.arrived().await;
    assert_eq!(desk.taken(), [1]);
}

#[tokio::test(start_paused = true)]
async fn what_is_pending_is_stored_and_started_again() {
    let (desk, provider) = (Desk::new(), Seeded::new(BLOCKED, 5));
    desk.start(&provider, "ask", "一", 9);
    let stored = serde_json::to_string(&desk.mailbox.pending()).unwrap();
    drop(desk);
    let (desk, again) = (Desk::new(), Seeded::new(BLOCKED, 5));
    for about in serde_json::from_str::<Vec<Unanswered>>(&stored).unwrap() {
        let context = context(&desk.program, 0, &again, about.seq);
        desk.mailbox.start(Job { about, monitor: monitor_of("ai_ask"), context });
    }
    desk.mailbox.arrived().await;
    assert_eq!((desk.taken(), again.count()), (vec![9], 1));
}
