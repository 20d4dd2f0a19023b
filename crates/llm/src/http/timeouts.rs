//! Timeouts of an attempt: total, until the first token, and idle.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::http::body::BodyError;
use crate::model::error::TimeoutPhase;

/// How long to wait for usage data after a finished reply. The reply is complete, and a person is waiting for it.
const MAX_TRAILING_WAIT: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
pub struct TimeoutLimits {
    /// From the request to the end of the response.
    pub total: Duration,
    /// From the request to the first part of the response.
    pub first: Duration,
    /// Without data after that.
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
    /// The reply is complete, and what follows it is awaited until then.
    Finished(Instant),
}

impl Timeouts {
    pub fn new(limits: TimeoutLimits) -> Self {
        Self { limits, start: Instant::now(), phase: Phase::Waiting }
    }

    /// Marks that the response has started: from now on the idle limit applies.
    pub fn mark_started(&mut self) {
        if matches!(self.phase, Phase::Waiting) {
            self.phase = Phase::Reading;
        }
    }

    /// Marks that the reply is complete. What the server sends from now on does not prolong the wait.
    pub(crate) fn mark_finished(&mut self) {
        if !matches!(self.phase, Phase::Finished(_)) {
            self.phase = Phase::Finished(Instant::now() + self.trailing_wait());
        }
    }

    /// Waits for `future` until a limit expires.
    pub async fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, BodyError> {
        let (deadline, phase, after) = self.next_limit();
        // Data that is always ready would never let the timeout expire.
        if matches!(self.phase, Phase::Finished(_)) && Instant::now() >= deadline {
            return Err(BodyError::Timeout(phase, after));
        }
        timeout_at(deadline, future).await.map_err(|_| BodyError::Timeout(phase, after))
    }

    fn next_limit(&self) -> (Instant, TimeoutPhase, Duration) {
        let TimeoutLimits { total, first, idle } = self.limits;
        let overall = (self.start + total, TimeoutPhase::Total, total);
        let phase = match self.phase {
            Phase::Waiting => (self.start + first, TimeoutPhase::FirstToken, first),
            Phase::Reading => (Instant::now() + idle, TimeoutPhase::Idle, idle),
            Phase::Finished(until) => (until, TimeoutPhase::Idle, self.trailing_wait()),
        };
        if phase.0 <= overall.0 { phase } else { overall }
    }

    fn trailing_wait(&self) -> Duration {
        self.limits.idle.min(MAX_TRAILING_WAIT)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    fn with_limits(total: u64, first: u64, idle: u64) -> Timeouts {
        let [total, first, idle] = [total, first, idle].map(Duration::from_secs);
        Timeouts::new(TimeoutLimits { total, first, idle })
    }

    async fn limit(timeouts: &Timeouts) -> (TimeoutPhase, u64) {
        match timeouts.wait(pending::<()>()).await {
            Err(BodyError::Timeout(expired, _)) => (expired, timeouts.start.elapsed().as_secs()),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_token_limit_starts_with_the_request() {
        let timeouts = with_limits(120, 60, 30);
        timeouts.wait(tokio::time::sleep(Duration::from_secs(50))).await.unwrap();
        assert_eq!(limit(&timeouts).await, (TimeoutPhase::FirstToken, 60));
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_start_the_idle_limit_applies_until_the_total_limit() {
        let mut timeouts = with_limits(120, 10, 30);
        timeouts.mark_started();
        for _ in 0..4 {
            timeouts.wait(tokio::time::sleep(Duration::from_secs(25))).await.unwrap();
        }
        assert_eq!(limit(&timeouts).await, (TimeoutPhase::Total, 120));
        let mut timeouts = with_limits(120, 10, 30);
        timeouts.mark_started();
        timeouts.wait(tokio::time::sleep(Duration::from_secs(25))).await.unwrap();
        assert_eq!(limit(&timeouts).await, (TimeoutPhase::Idle, 55));
    }

    #[tokio::test(start_paused = true)]
    async fn of_equal_limits_the_first_token_limit_applies_and_a_shorter_total_is_the_total() {
        assert_eq!(limit(&with_limits(5, 5, 30)).await, (TimeoutPhase::FirstToken, 5));
        assert_eq!(limit(&with_limits(5, 60, 30)).await, (TimeoutPhase::Total, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn a_finished_reply_waits_only_briefly_for_trailing_data() {
        let mut timeouts = with_limits(120, 60, 30);
        timeouts.mark_finished();
        timeouts.mark_started();
        assert_eq!(limit(&timeouts).await, (TimeoutPhase::Idle, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn data_after_a_finished_reply_does_not_prolong_the_wait() {
        let mut timeouts = with_limits(120, 60, 30);
        timeouts.mark_finished();
        timeouts.wait(tokio::time::sleep(Duration::from_millis(1_500))).await.unwrap();
        timeouts.mark_finished();
        assert_eq!(limit(&timeouts).await, (TimeoutPhase::Idle, 2));
        assert!(timeouts.wait(async {}).await.is_err(), "it is over, although there is data");
    }
}
