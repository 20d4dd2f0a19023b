//! A time limit for work that calls a model.

use std::future::Future;
use std::time::Duration;

/// Waits for `work`, but not longer than `limit`; `None` if it takes longer, in which case it is dropped. It uses the clock of the
/// runtime, which tests can control.
pub async fn within<F: Future>(limit: Duration, work: F) -> Option<F::Output> {
    tokio::time::timeout(limit, work).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_work_that_exceeds_the_limit_is_canceled() {
        let limit = Duration::from_secs(2);
        assert_eq!(within(limit, std::future::pending::<()>()).await, None);
        let soon = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            5
        };
        assert_eq!(within(limit, soon).await, Some(5));
    }
}
