//! A sliding window of the usage in the last minute.
//!
//! A token bucket is not used because a full bucket allows twice its size in the first minute, but the settings guarantee that the
//! limit is never exceeded in any minute.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// Usage within this interval is stored as one entry, which bounds the number of entries. An entry expires with the last usage
/// that it may contain.
const RESOLUTION: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug)]
struct Usage {
    start: Instant,
    amount: u64,
}

impl Usage {
    fn expires_at(&self) -> Instant {
        self.start + RESOLUTION + MINUTE
    }
}

/// The usage of one limit in the last minute.
#[derive(Debug)]
pub(crate) struct Window {
    limit: u64,
    used: u64,
    entries: VecDeque<Usage>,
}

impl Window {
    pub(crate) const fn new(limit: u64) -> Self {
        Self { limit, used: 0, entries: VecDeque::new() }
    }

    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// The time at which `amount` is available; `None` means now. An amount above the limit is allowed when nothing else is in use,
    /// because otherwise it would wait forever.
    pub(crate) fn available_at(&mut self, now: Instant, amount: u64) -> Option<Instant> {
        self.remove_expired(now);
        let max_other = self.limit.saturating_sub(amount);
        let mut remaining = self.used;
        for used in &self.entries {
            if remaining <= max_other {
                break;
            }
            remaining = remaining.saturating_sub(used.amount);
            if remaining <= max_other {
                return Some(used.expires_at());
            }
        }
        None
    }

    /// Counts `amount` and returns its key for [`Window::release`].
    pub(crate) fn take(&mut self, now: Instant, amount: u64) -> Instant {
        self.remove_expired(now);
        self.used = self.used.saturating_add(amount);
        match self.entries.back_mut().filter(|last| now < last.start + RESOLUTION) {
            Some(last) => {
                last.amount = last.amount.saturating_add(amount);
                last.start
            }
            None => {
                self.entries.push_back(Usage { start: now, amount });
                now
            }
        }
    }

    /// Subtracts `amount` from the usage at `used_at`; does nothing if it has expired.
    pub(crate) fn release(&mut self, used_at: Instant, amount: u64) {
        if let Some(used) = self.entries.iter_mut().find(|used| used.start == used_at) {
            let released = amount.min(used.amount);
            used.amount -= released;
            self.used = self.used.saturating_sub(released);
        }
    }

    fn remove_expired(&mut self, now: Instant) {
        while let Some(oldest) = self.entries.front().filter(|oldest| oldest.expires_at() <= now) {
            self.used = self.used.saturating_sub(oldest.amount);
            self.entries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn capacity_is_available_up_to_the_limit_and_again_after_a_minute() {
        let start = Instant::now();
        let mut window = Window::new(3);
        for ms in [0, 1_000, 2_000] {
            assert_eq!(window.available_at(at(start, ms), 1), None);
            window.take(at(start, ms), 1);
        }
        assert_eq!(window.available_at(at(start, 3_000), 1), Some(at(start, 60_050)));
        assert_eq!(window.available_at(at(start, 3_000), 2), Some(at(start, 61_050)), "two fit when two are forgotten");
        assert_eq!(window.available_at(at(start, 60_050), 1), None);
        assert!(window.available_at(at(start, 60_050), 2).is_some());
    }

    #[test]
    fn an_amount_above_the_limit_is_allowed_alone() {
        let start = Instant::now();
        let mut window = Window::new(100);
        assert_eq!(window.available_at(start, 5_000), None);
        window.take(start, 10);
        assert_eq!(window.available_at(start, 5_000), Some(at(start, 60_050)));
    }

    #[test]
    fn an_overestimate_is_released_once() {
        let start = Instant::now();
        let mut window = Window::new(100);
        let used_at = window.take(start, 90);
        assert!(window.available_at(start, 50).is_some());
        window.release(used_at, 60);
        assert_eq!(window.available_at(start, 50), None);
        window.release(used_at, 1_000);
        assert_eq!(window.used, 0);
        window.release(at(start, 7), 5);
        window.remove_expired(at(start, 70_000));
        window.release(used_at, 5);
        assert_eq!(window.used, 0);
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        let start = Instant::now();
        let mut window = Window::new(u64::MAX);
        for ms in 0..100_000 {
            window.take(at(start, ms), 1);
        }
        assert!(window.entries.len() <= 1_203, "{}", window.entries.len());
        assert!((60_000..=60_051).contains(&window.used), "{}", window.used);
    }
}
