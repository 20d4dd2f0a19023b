//! Time that passes while nothing is done.

use std::time::Duration;

/// Waits.
pub(crate) async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}
