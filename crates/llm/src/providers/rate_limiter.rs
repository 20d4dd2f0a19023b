//! How many requests a model is asked at a time and in a minute, shared by everybody who asks it.
//!
//! Of our own instead of `governor`: its clock does not follow the runtime's, so that nothing of it can be tested in
//! virtual time, and what it let through cannot be corrected when a reply tells how many tokens it really had.

pub mod window;

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as Turnstile, Notify, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

use crate::providers::rate_limiter::window::Window;

/// What a model may be asked; `None` is as much as anybody wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    pub concurrency: Option<u32>,
    /// The most requests in any 60 seconds, repetitions included.
    pub requests_per_minute: Option<u32>,
    /// The most tokens of prompts and replies in any 60 seconds.
    pub tokens_per_minute: Option<u64>,
}

impl RateLimits {
    pub fn are_none(self) -> bool {
        self == Self::default()
    }
}

/// What one model may be asked. Who comes first is let through first.
#[derive(Debug)]
pub struct RateLimiter {
    limits: RateLimits,
    places: Option<Semaphore>,
    /// Held by the one who waits for room in the minute: the others stand behind, in order.
    turnstile: Turnstile<()>,
    minute: Mutex<Minute>,
    /// Told when a correction makes room earlier than time does.
    freed: Notify,
}

#[derive(Debug)]
struct Minute {
    requests: Option<Window>,
    tokens: Option<Window>,
}

/// Who was let through. Dropping it leaves its place; what it counted in the minute stays counted, as it may have been sent.
#[derive(Debug)]
pub struct Permit<'gate> {
    gate: &'gate RateLimiter,
    #[allow(dead_code, reason = "held, not read")]
    place: Option<SemaphorePermit<'gate>>,
    tokens: Option<(Instant, u64)>,
}

impl RateLimiter {
    pub fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            places: limits.concurrency.map(|places| Semaphore::new(places.max(1) as usize)),
            turnstile: Turnstile::new(()),
            minute: Mutex::new(Minute {
                requests: limits.requests_per_minute.map(|limit| Window::new(u64::from(limit.max(1)))),
                tokens: limits.tokens_per_minute.map(|limit| Window::new(limit.max(1))),
            }),
            freed: Notify::new(),
        }
    }

    pub const fn limits(&self) -> RateLimits {
        self.limits
    }

    /// Waits until a call of about `tokens` tokens may be made. Dropping the future leaves the queue.
    pub async fn enter(&self, tokens: u64) -> Permit<'_> {
        let place = match &self.places {
            // It is never closed, which is the only error there is.
            Some(places) => places.acquire().await.ok(),
            None => None,
        };
        // Only whoever has a place is counted: between counting and sending nothing is waited for.
        let _turn = self.turnstile.lock().await;
        loop {
            let freed = self.freed.notified();
            let until = match self.count(tokens) {
                Ok(tokens) => return Permit { gate: self, place, tokens },
                Err(until) => until,
            };
            tokio::select! {
                () = sleep_until(until) => {}
                () = freed => {}
            }
        }
    }

    /// Counts a request, or tells when there is room for it.
    fn count(&self, tokens: u64) -> Result<Option<(Instant, u64)>, Instant> {
        let now = Instant::now();
        let mut minute = self.minute();
        let full = |window: &mut Option<Window>, amount| window.as_mut().and_then(|window| window.room(now, amount));
        let until = full(&mut minute.requests, 1).max(full(&mut minute.tokens, tokens));
        if let Some(until) = until {
            return Err(until);
        }
        if let Some(requests) = &mut minute.requests {
            requests.take(now, 1);
        }
        Ok(minute.tokens.as_mut().map(|window| (window.take(now, tokens), tokens)))
    }

    fn minute(&self) -> MutexGuard<'_, Minute> {
        self.minute.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// Corrects what was counted: `requests` were sent, with `tokens` tokens; `None` where nobody knows.
    pub fn settle(self, requests: u32, tokens: Option<u64>) {
        let now = Instant::now();
        let mut minute = self.gate.minute();
        if let Some(window) = minute.requests.as_mut().filter(|_| requests > 1) {
            window.take(now, u64::from(requests - 1));
        }
        if let (Some(window), Some((token, counted)), Some(tokens)) = (&mut minute.tokens, self.tokens, tokens) {
            if tokens > counted {
                window.take(now, tokens - counted);
            } else {
                window.give_back(token, counted - tokens);
            }
        }
        drop(minute);
        // Without a permit that is kept for later: only who waits now has a use for it.
        self.gate.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use tokio::task::JoinSet;
    use tokio::time::{sleep, timeout};

    use super::*;

    fn gate(concurrency: u32, requests: u32, tokens: u64) -> RateLimiter {
        let some = |limit: u32| (limit > 0).then_some(limit);
        RateLimiter::new(RateLimits {
            concurrency: some(concurrency),
            requests_per_minute: some(requests),
            tokens_per_minute: (tokens > 0).then_some(tokens),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_gate_without_limits_lets_everybody_through_at_once() {
        let gate = gate(0, 0, 0);
        let start = Instant::now();
        for _ in 0..10_000 {
            gate.enter(u64::MAX).await.settle(9, Some(u64::MAX));
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn many_sessions_keep_to_every_limit_in_any_minute_and_go_in_the_order_in_which_they_came() {
        const CALLS: u32 = 300;
        let gate = Arc::new(gate(7, 50, 4_000));
        let (inside, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let mut calls = JoinSet::new();
        for number in 0..CALLS {
            let (gate, inside, most) = (Arc::clone(&gate), Arc::clone(&inside), Arc::clone(&most));
            calls.spawn(async move {
                // They come one after the other, all before the first minute is half over.
                sleep(Duration::from_millis(u64::from(number) * 100)).await;
                let pass = gate.enter(100).await;
                let entered = Instant::now();
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(Duration::from_millis(u64::from(number % 13) * 300)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                pass.settle(1, Some(u64::from(number % 5) * 40));
                (number, entered)
            });
        }
        let mut entered = Vec::new();
        while let Some(call) = calls.join_next().await {
            entered.push(call.unwrap());
        }
        entered.sort();
        assert_eq!(entered.len(), CALLS as usize);
        assert_eq!(most.load(Ordering::SeqCst), 7);
        assert!(entered.is_sorted_by_key(|(_, at)| *at), "who came first went first");
        for (first, (_, begins)) in entered.iter().enumerate() {
            let within = entered.iter().skip(first).take_while(|(_, at)| *at < *begins + window::MINUTE);
            assert!(within.count() <= 50);
        }
        let (Some((_, first)), Some((_, last))) = (entered.first(), entered.last()) else { panic!("nobody entered") };
        // Their 24,000 tokens and 300 requests both are six minutes full.
        assert!(*last - *first < Duration::from_secs(7 * 60), "no more is waited than must be");
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_are_counted_as_estimated_and_corrected_by_the_reply() {
        let gate = gate(0, 0, 1_000);
        let start = Instant::now();
        gate.enter(900).await.settle(1, Some(100));
        gate.enter(900).await.settle(1, Some(2_000));
        assert_eq!(start.elapsed(), Duration::ZERO, "what was not used is free again");
        drop(gate.enter(1).await);
        let waited = start.elapsed();
        assert!(waited >= window::MINUTE && waited < Duration::from_secs(61), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_correction_lets_the_next_one_in_before_the_minute_is_over() {
        let gate = gate(0, 0, 1_000);
        let start = Instant::now();
        let first = gate.enter(1_000).await;
        let second = async {
            drop(gate.enter(500).await);
            start.elapsed()
        };
        let correct = async {
            sleep(Duration::from_secs(3)).await;
            first.settle(1, Some(200));
        };
        let (waited, ()) = tokio::join!(second, correct);
        assert_eq!(waited, Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn repetitions_count_as_requests() {
        let gate = gate(0, 4, 0);
        let start = Instant::now();
        gate.enter(0).await.settle(3, None);
        drop(gate.enter(0).await);
        assert_eq!(start.elapsed(), Duration::ZERO);
        drop(gate.enter(0).await);
        assert!(start.elapsed() >= window::MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_given_up_leaves_the_queue_and_takes_nothing() {
        let gate = gate(1, 2, 0);
        let start = Instant::now();
        let held = gate.enter(0).await;
        for _ in 0..10 {
            assert!(timeout(Duration::from_millis(1), gate.enter(0)).await.is_err(), "there is one place only");
        }
        drop(held);
        drop(timeout(Duration::from_millis(1), gate.enter(0)).await.unwrap());
        assert!(timeout(Duration::from_secs(1), gate.enter(0)).await.is_err(), "the minute is full");
        drop(gate.enter(0).await);
        assert!(start.elapsed() < Duration::from_secs(61), "the one that was given up was not counted");
    }
}
