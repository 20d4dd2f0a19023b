//! The clock of a test: it starts at a given time, advances one millisecond per event, and follows the virtual time of the test.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use bcc_engine::clock::FixedClock;
use bcc_lang::value::instant::remaining;
use bcc_llm::providers::scripted::time::VirtualTime;
use bcc_runtime::program::clock::Clock;

/// How often other tasks are given a chance to run before virtual time advances: one task may wake another.
const MAX_YIELDS: u32 = 8;

/// The default start time of a test.
const USUAL_START: Timestamp = Timestamp::constant(1_767_258_000, 0);

/// The time of the events of one turn, at most.
const UNCOUNTED: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct TestClock {
    start: Timestamp,
    time: Arc<VirtualTime>,
}

impl TestClock {
    /// A clock that starts at `start`, by default on 2026-01-01 at 09:00.
    pub(crate) fn new(start: Option<Timestamp>, time: Arc<VirtualTime>) -> Self {
        Self { start: start.unwrap_or(USUAL_START), time }
    }

    fn fixed(&self) -> FixedClock {
        let passed = SignedDuration::try_from(self.time.now()).unwrap_or(SignedDuration::ZERO);
        FixedClock::new(self.start.checked_add(passed).unwrap_or(self.start))
    }
}

impl Clock for TestClock {
    fn at(&self, seq: u64) -> String {
        self.fixed().at(seq)
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.time.now().as_millis()).unwrap_or(u64::MAX)
    }

    fn prompt_time(&self, seq: u64, language: bcc_lang::template::language::PromptLanguage) -> String {
        self.fixed().prompt_time(seq, language)
    }

    fn remaining(&self, due: &str) -> Option<Duration> {
        let passed = SignedDuration::try_from(self.time.now()).unwrap_or(SignedDuration::ZERO);
        let left = remaining(self.start.checked_add(passed).unwrap_or(self.start), due)?;
        // Each event takes a millisecond, which a test does not count.
        Some(left.saturating_sub(UNCOUNTED))
    }

    fn instant(&self, text: &str) -> Option<String> {
        self.fixed().instant(text)
    }
}

/// Lets all other tasks run that are ready.
pub(crate) async fn yield_to_tasks() {
    for _ in 0..MAX_YIELDS {
        tokio::task::yield_now().await;
    }
}

/// Runs `future`; whenever no task is ready, virtual time advances to the next timer.
pub(crate) async fn with_virtual_time<T>(time: &VirtualTime, future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    loop {
        tokio::select! {
            biased;
            done = &mut future => return done,
            () = yield_to_tasks() => {}
        }
        match time.next_wakeup() {
            Some(next) => time.advance_to(next),
            // A real model is awaited in real time.
            None => return future.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_advances_with_events_and_with_virtual_time() {
        let time = Arc::new(VirtualTime::default());
        let clock = TestClock::new(None, Arc::clone(&time));
        assert_eq!(clock.at(0), "2026-01-01T09:00:00.000000Z");
        time.advance_to(Duration::from_secs(90));
        assert_eq!(clock.at(2), "2026-01-01T09:01:30.002000Z");
        assert_eq!(clock.elapsed_ms(), 90_000);
        let own = TestClock::new(Some("2026-11-21T20:00:00Z".parse().unwrap()), time);
        assert_eq!(own.prompt_time(0, bcc_lang::template::language::PromptLanguage::En), "2026-11-21 20:01 (Saturday)");
    }
}
