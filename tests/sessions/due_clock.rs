//! A clock on which every time that somebody waits for is still to come, until the test says that it is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bcc_engine::clock::FixedClock;
use bcc_lang::template::language::PromptLanguage;
use bcc_runtime::program::clock::Clock;

pub struct DueClock {
    clock: FixedClock,
    is_over: AtomicBool,
}

impl DueClock {
    pub fn new(is_over: bool) -> Self {
        let clock = FixedClock::new("2026-11-30T08:00:00Z".parse().unwrap());
        Self { clock, is_over: AtomicBool::new(is_over) }
    }

    pub fn end_all(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}

impl Clock for DueClock {
    fn at(&self, seq: u64) -> String {
        self.clock.at(seq)
    }

    fn elapsed_ms(&self) -> u64 {
        0
    }

    fn prompt_time(&self, seq: u64, language: PromptLanguage) -> String {
        self.clock.prompt_time(seq, language)
    }

    fn remaining(&self, _due: &str) -> Option<Duration> {
        Some(if self.is_over.load(Ordering::Acquire) { Duration::ZERO } else { Duration::from_secs(3600) })
    }

    fn instant(&self, text: &str) -> Option<String> {
        self.clock.instant(text)
    }
}
