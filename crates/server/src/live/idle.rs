//! How long a session that rests stays in memory.

use std::time::Duration;

use bcc_runtime::run::session::Session;

/// How often a session is looked at that stays only because of its kernel.
const KERNEL_LOOK: Duration = Duration::from_secs(1);

/// Waits until nobody has used a session for this time, and its kernel has nothing that would be lost: a kernel ends with its session in
/// memory, and else after its own `idle_timeout`.
pub(super) async fn unused(session: &Session, idle_time: Duration) {
    tokio::time::sleep(idle_time).await;
    while session.has_kernel_memory() {
        tokio::time::sleep(KERNEL_LOOK).await;
    }
}
