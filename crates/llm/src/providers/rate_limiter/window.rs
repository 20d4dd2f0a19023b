//! What was used in the last minute, and when there is room for more.
//!
//! A window that slides, not a bucket that fills up: a full bucket lets twice its size through within its first minute,
//! and the settings promise that no minute sees more than they say.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

pub const MINUTE: Duration = Duration::from_secs(60);

/// Uses that lie this close together are kept as one, which bounds what is kept: they are all forgotten with the last that
/// could be among them.
const GRAIN: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug)]
struct Used {
    began: Instant,
    amount: u64,
}

impl Used {
    fn forgotten_at(&self) -> Instant {
        self.began + GRAIN + MINUTE
    }
}

/// Uses of one limit in the last minute.
#[derive(Debug)]
pub struct Window {
    limit: u64,
    used: u64,
    kept: VecDeque<Used>,
}

impl Window {
    pub const fn new(limit: u64) -> Self {
        Self { limit, used: 0, kept: VecDeque::new() }
    }

    /// When there is room for `amount`: `None` is now. More than the limit itself goes through when nothing else does, or
    /// it would wait for ever.
    pub fn room(&mut self, now: Instant, amount: u64) -> Option<Instant> {
        self.forget(now);
        let most_beside = self.limit.saturating_sub(amount);
        let mut left = self.used;
        for used in &self.kept {
            if left <= most_beside {
                break;
            }
            left = left.saturating_sub(used.amount);
            if left <= most_beside {
                return Some(used.forgotten_at());
            }
        }
        None
    }

    /// Counts `amount`, and gives what [`Window::give_back`] knows it by.
    pub fn take(&mut self, now: Instant, amount: u64) -> Instant {
        self.forget(now);
        self.used = self.used.saturating_add(amount);
        match self.kept.back_mut().filter(|last| now < last.began + GRAIN) {
            Some(last) => {
                last.amount = last.amount.saturating_add(amount);
                last.began
            }
            None => {
                self.kept.push_back(Used { began: now, amount });
                now
            }
        }
    }

    /// Counts `amount` less of what was taken under `token`; nothing when that is forgotten already.
    pub fn give_back(&mut self, token: Instant, amount: u64) {
        if let Some(used) = self.kept.iter_mut().find(|used| used.began == token) {
            let back = amount.min(used.amount);
            used.amount -= back;
            self.used = self.used.saturating_sub(back);
        }
    }

    fn forget(&mut self, now: Instant) {
        while let Some(oldest) = self.kept.front().filter(|oldest| oldest.forgotten_at() <= now) {
            self.used = self.used.saturating_sub(oldest.amount);
            self.kept.pop_front();
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
    fn there_is_room_up_to_the_limit_and_again_when_a_minute_has_passed() {
        let start = Instant::now();
        let mut window = Window::new(3);
        for ms in [0, 1_000, 2_000] {
            assert_eq!(window.room(at(start, ms), 1), None);
            window.take(at(start, ms), 1);
        }
        assert_eq!(window.room(at(start, 3_000), 1), Some(at(start, 60_050)));
        assert_eq!(window.room(at(start, 3_000), 2), Some(at(start, 61_050)), "two fit when two are forgotten");
        assert_eq!(window.room(at(start, 60_050), 1), None);
        assert!(window.room(at(start, 60_050), 2).is_some());
    }

    #[test]
    fn what_is_larger_than_the_limit_goes_through_alone() {
        let start = Instant::now();
        let mut window = Window::new(100);
        assert_eq!(window.room(start, 5_000), None);
        window.take(start, 10);
        assert_eq!(window.room(start, 5_000), Some(at(start, 60_050)));
    }

    #[test]
    fn what_was_counted_too_much_is_given_back_once() {
        let start = Instant::now();
        let mut window = Window::new(100);
        let token = window.take(start, 90);
        assert!(window.room(start, 50).is_some());
        window.give_back(token, 60);
        assert_eq!(window.room(start, 50), None);
        window.give_back(token, 1_000);
        assert_eq!(window.used, 0);
        window.give_back(at(start, 7), 5);
        window.forget(at(start, 70_000));
        window.give_back(token, 5);
        assert_eq!(window.used, 0);
    }

    #[test]
    fn however_much_comes_what_is_kept_stays_small() {
        let start = Instant::now();
        let mut window = Window::new(u64::MAX);
        for ms in 0..100_000 {
            window.take(at(start, ms), 1);
        }
        assert!(window.kept.len() <= 1_203, "{}", window.kept.len());
        assert!((60_000..=60_051).contains(&window.used), "{}", window.used);
    }
}
