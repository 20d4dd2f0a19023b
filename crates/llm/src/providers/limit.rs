//! A limit on how long something that asks a model may take as a whole.

use std::future::Future;
use std::time::Duration;

/// Waits for `work`, but not longer than `limit`; `None` when it takes longer, and it is then dropped. The time is that of
/// the runtime, so that tests can let it pass at will.
pub async fn within<F: Future>(limit: Duration, work: F) -> Option<F::Output> {
    tokio::time::timeout(limit, work).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_takes_longer_is_given_up_and_what_does_not_is_not() {
        let limit = Duration::from_secs(2);
        assert_eq!(within(limit, std::future::pending::<()>()).await, None);
        let soon = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            5
        };
        assert_eq!(within(limit, soon).await, Some(5));
    }
}
