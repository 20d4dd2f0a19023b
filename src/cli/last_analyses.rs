//! What monitors and the planner still do when a process leaves a session that waits: it gives them some time, because what is broken off
//! is paid for, and starts again when the session is resumed (docs/monitors.md).

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use bcc_engine::error::EngineError;
use bcc_runtime::run::session::Session;

/// How long a process waits for them at most.
pub const ANALYSIS_TIME: Duration = Duration::from_secs(10);

/// Waits until no monitor and no planner is under way any more, but not beyond `deadline`, and stores the results.
/// Errors: The store failed.
pub async fn finish_analyses(session: &mut Session, deadline: Instant) -> Result<(), EngineError> {
    while session.status().is_waiting()
        && session.awaits_analysis()
        && timeout_at(deadline, session.wait_for_result()).await.is_ok()
    {
        session.commit_results().await?;
    }
    Ok(())
}
