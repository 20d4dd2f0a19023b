//! A time limit for work that calls a model.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

/// The end of the time for some work. It uses the clock of the runtime, which tests can control.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    limit: Duration,
    at: Instant,
}

impl Deadline {
    /// The end of `limit`, which begins now.
    pub fn after(limit: Duration) -> Self {
        Self { limit, at: Instant::now() + limit }
    }

    /// The whole time, also if a part of it is over.
    pub const fn limit(&self) -> Duration {
        self.limit
    }

    /// Waits for `work`, but not beyond the deadline; `None` if it takes longer, in which case it is dropped.
    pub async fn within<F: Future>(&self, work: F) -> Option<F::Output> {
        tokio::time::timeout_at(self.at, work).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_work_that_exceeds_the_limit_is_canceled_and_all_parts_share_it() {
        let deadline = Deadline::after(Duration::from_secs(3));
        let part = || async {
            sleep(Duration::from_secs(2)).await;
            5
        };
        assert_eq!(deadline.within(part()).await, Some(5));
        assert_eq!(deadline.within(part()).await, None);
        let deadline = Deadline::after(Duration::from_secs(2));
        assert_eq!(deadline.within(pending::<()>()).await, None);
    }
}
