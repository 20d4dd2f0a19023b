//! How long an attempt is waited for: in all, until the first token, and through silence after it.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::http::body::BodyError;
use crate::model::error::TimeoutPhase;

/// How long the figures after a finished reply are waited for. The reply itself is there, and a person waits for it.
const LINGER: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
pub struct TimeoutLimits {
    /// All of it, from the request to its end.
    pub total: Duration,
    /// From the request to its first part.
    pub first: Duration,
    /// Silence after that.
    pub idle: Duration,
}

#[derive(Debug)]
pub struct Timeouts {
    limits: TimeoutLimits,
    start: Instant,
    phase: Phase,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Waiting,
    Reading,
    /// The reply is whole.
    Lingering,
}

impl Timeouts {
    pub fn new(limits: TimeoutLimits) -> Self {
        Self { limits, start: Instant::now(), phase: Phase::Waiting }
    }

    /// The answer has begun: from now on only silence counts.
    pub fn begun(&mut self) {
        if matches!(self.phase, Phase::Waiting) {
            self.phase = Phase::Reading;
        }
    }

    /// The reply is whole.
    pub(crate) fn finished(&mut self) {
        self.phase = Phase::Lingering;
    }

    /// What `future` gives, unless a limit passes first.
    pub async fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, BodyError> {
        let (deadline, what, after) = self.next_limit();
        timeout_at(deadline, future).await.map_err(|_| BodyError::Late(what, after))
    }

    fn next_limit(&self) -> (Instant, TimeoutPhase, Duration) {
        let TimeoutLimits { total, first, idle } = self.limits;
        let whole = (self.start + total, TimeoutPhase::Total, total);
        let phase = match self.phase {
            Phase::Waiting => (self.start + first, TimeoutPhase::FirstToken, first),
            Phase::Reading => (Instant::now() + idle, TimeoutPhase::Idle, idle),
            Phase::Lingering => (Instant::now() + idle.min(LINGER), TimeoutPhase::Idle, idle.min(LINGER)),
        };
        if phase.0 <= whole.0 { phase } else { whole }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    fn of(total: u64, first: u64, idle: u64) -> Timeouts {
        let [total, first, idle] = [total, first, idle].map(Duration::from_secs);
        Timeouts::new(TimeoutLimits { total, first, idle })
    }

    async fn limit(patience: &Timeouts) -> (TimeoutPhase, u64) {
        match patience.wait(pending::<()>()).await {
            Err(BodyError::Late(what, _)) => (what, patience.start.elapsed().as_secs()),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_token_is_waited_for_from_the_beginning() {
        let patience = of(120, 60, 30);
        patience.wait(tokio::time::sleep(Duration::from_secs(50))).await.unwrap();
        assert_eq!(limit(&patience).await, (TimeoutPhase::FirstToken, 60));
    }

    #[tokio::test(start_paused = true)]
    async fn once_it_has_begun_only_silence_counts_until_the_total_is_used_up() {
        let mut patience = of(120, 10, 30);
        patience.begun();
        for _ in 0..4 {
            patience.wait(tokio::time::sleep(Duration::from_secs(25))).await.unwrap();
        }
        assert_eq!(limit(&patience).await, (TimeoutPhase::Total, 120));
        let mut patience = of(120, 10, 30);
        patience.begun();
        patience.wait(tokio::time::sleep(Duration::from_secs(25))).await.unwrap();
        assert_eq!(limit(&patience).await, (TimeoutPhase::Idle, 55));
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_limits_that_pass_together_the_first_one_counts_and_a_shorter_total_is_the_total() {
        assert_eq!(limit(&of(5, 5, 30)).await, (TimeoutPhase::FirstToken, 5));
        assert_eq!(limit(&of(5, 60, 30)).await, (TimeoutPhase::Total, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn a_finished_reply_is_not_held_up_by_what_should_follow_it() {
        let mut patience = of(120, 60, 30);
        patience.finished();
        patience.begun();
        assert_eq!(limit(&patience).await, (TimeoutPhase::Idle, 2));
    }
}
