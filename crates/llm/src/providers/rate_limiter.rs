//! Limits the concurrent requests to a model and the requests and tokens per minute, shared by all users of the model.
//!
//! `governor` is not used because its clock is not that of the runtime, so that it cannot be tested in virtual time, and because
//! estimates cannot be corrected after a reply with the actual number of tokens.

pub mod window;

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::{Mutex as AsyncMutex, Notify, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

use crate::model::provider::RetryLimiter;
use crate::providers::rate_limiter::window::Window;

/// The limits of a model; `None` means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    pub concurrency: Option<u32>,
    /// The maximum number of requests in any 60 seconds, including retries.
    pub requests_per_minute: Option<u32>,
    /// The maximum number of tokens of prompts and replies in any 60 seconds.
    pub tokens_per_minute: Option<u64>,
}

impl RateLimits {
    pub fn are_none(self) -> bool {
        self == Self::default()
    }
}

/// The rate limiter of one model. Calls are admitted in order of arrival.
#[derive(Debug)]
pub struct RateLimiter {
    limits: RateLimits,
    slots: Option<Semaphore>,
    /// Held by the call that waits for capacity in the minute; the others wait for the lock in order.
    queue: AsyncMutex<()>,
    minute: Mutex<Minute>,
    /// Notified when a correction frees capacity.
    capacity_freed: Notify,
}

#[derive(Debug)]
struct Minute {
    requests: Option<Window>,
    tokens: Option<Window>,
}

/// An admitted call. Dropping it frees its slot; its requests and tokens remain counted, because they may have been sent.
#[derive(Debug)]
pub struct Permit<'limiter> {
    limiter: &'limiter RateLimiter,
    #[allow(dead_code, reason = "held, not read")]
    slot: Option<SemaphorePermit<'limiter>>,
    tokens: Option<(Instant, u64)>,
}

impl RateLimiter {
    pub fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            slots: limits.concurrency.map(|slots| Semaphore::new(slots.max(1) as usize)),
            queue: AsyncMutex::new(()),
            minute: Mutex::new(Minute {
                requests: limits.requests_per_minute.map(|limit| Window::new(u64::from(limit.max(1)))),
                tokens: limits.tokens_per_minute.map(|limit| Window::new(limit.max(1))),
            }),
            capacity_freed: Notify::new(),
        }
    }

    pub const fn limits(&self) -> RateLimits {
        self.limits
    }

    /// Waits until a call of about `tokens` tokens is allowed. Dropping the future leaves the queue.
    pub async fn acquire(&self, tokens: u64) -> Permit<'_> {
        let slot = match &self.slots {
            // The only error is a closed semaphore, and it is never closed.
            Some(slots) => slots.acquire().await.ok(),
            None => None,
        };
        // The slot is acquired first, so that there is no wait between counting a call and sending it.
        let tokens = self.admit(Some(tokens)).await;
        Permit { limiter: self, slot, tokens }
    }

    /// Waits in the queue until a request is allowed, and counts it: the first one of a call with its tokens, a retry with `None`.
    async fn admit(&self, tokens: Option<u64>) -> Option<(Instant, u64)> {
        let _guard = self.queue.lock().await;
        loop {
            let capacity_freed = self.capacity_freed.notified();
            let until = match self.count(tokens) {
                Ok(counted) => return counted,
                Err(until) => until,
            };
            tokio::select! {
                () = sleep_until(until) => {}
                () = capacity_freed => {}
            }
        }
    }

    /// Counts a request, or returns the time at which there is capacity for it.
    fn count(&self, tokens: Option<u64>) -> Result<Option<(Instant, u64)>, Instant> {
        let now = Instant::now();
        let mut minute = self.minute();
        let next_available =
            |window: &mut Option<Window>, amount| window.as_mut().and_then(|window| window.available_at(now, amount));
        let tokens_until = tokens.and_then(|tokens| next_available(&mut minute.tokens, tokens));
        if let Some(until) = next_available(&mut minute.requests, 1).max(tokens_until) {
            return Err(until);
        }
        if let Some(requests) = &mut minute.requests {
            requests.take(now, 1);
        }
        let counted = minute.tokens.as_mut().zip(tokens);
        Ok(counted.map(|(window, tokens)| (window.take(now, tokens), tokens)))
    }

    fn minute(&self) -> MutexGuard<'_, Minute> {
        self.minute.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl RetryLimiter for RateLimiter {
    async fn admit_retry(&self) {
        self.admit(None).await;
    }
}

impl Permit<'_> {
    /// Corrects the count of tokens; `None` if it is unknown.
    pub fn settle(self, tokens: Option<u64>) {
        let now = Instant::now();
        let mut minute = self.limiter.minute();
        if let (Some(window), Some((used_at, counted)), Some(tokens)) = (&mut minute.tokens, self.tokens, tokens) {
            if tokens > counted {
                window.take(now, tokens - counted);
            } else {
                window.release(used_at, counted - tokens);
            }
        }
        drop(minute);
        // `notify_waiters` stores no permit: only current waiters need the notification.
        self.limiter.capacity_freed.notify_waiters();
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

    fn limiter(concurrency: u32, requests: u32, tokens: u64) -> RateLimiter {
        let some = |limit: u32| (limit > 0).then_some(limit);
        RateLimiter::new(RateLimits {
            concurrency: some(concurrency),
            requests_per_minute: some(requests),
            tokens_per_minute: (tokens > 0).then_some(tokens),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_limiter_without_limits_never_waits() {
        let limiter = limiter(0, 0, 0);
        let start = Instant::now();
        for _ in 0..10_000 {
            limiter.acquire(u64::MAX).await.settle(Some(u64::MAX));
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_calls_respect_every_limit_and_run_in_order() {
        const CALLS: u32 = 300;
        let limiter = Arc::new(limiter(7, 50, 4_000));
        let (active, max_active) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let mut calls = JoinSet::new();
        for number in 0..CALLS {
            let (limiter, active, max_active) = (Arc::clone(&limiter), Arc::clone(&active), Arc::clone(&max_active));
            calls.spawn(async move {
                // The calls arrive one after another within the first half minute.
                sleep(Duration::from_millis(u64::from(number) * 100)).await;
                let permit = limiter.acquire(100).await;
                let entered = Instant::now();
                max_active.fetch_max(active.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(Duration::from_millis(u64::from(number % 13) * 300)).await;
                active.fetch_sub(1, Ordering::SeqCst);
                permit.settle(Some(u64::from(number % 5) * 40));
                (number, entered)
            });
        }
        let mut entered = Vec::new();
        while let Some(call) = calls.join_next().await {
            entered.push(call.unwrap());
        }
        entered.sort();
        assert_eq!(entered.len(), CALLS as usize);
        assert_eq!(max_active.load(Ordering::SeqCst), 7);
        assert!(entered.is_sorted_by_key(|(_, at)| *at), "who came first went first");
        for (first, (_, start)) in entered.iter().enumerate() {
            let within = entered.iter().skip(first).take_while(|(_, at)| *at < *start + window::MINUTE);
            assert!(within.count() <= 50);
        }
        let (Some((_, first)), Some((_, last))) = (entered.first(), entered.last()) else { panic!("nobody entered") };
        // Both their 24,000 tokens and their 300 requests take six minutes.
        assert!(*last - *first < Duration::from_secs(7 * 60), "no more is waited than must be");
    }

    #[tokio::test(start_paused = true)]
    async fn token_estimates_are_corrected_after_the_reply() {
        let limiter = limiter(0, 0, 1_000);
        let start = Instant::now();
        limiter.acquire(900).await.settle(Some(100));
        limiter.acquire(900).await.settle(Some(2_000));
        assert_eq!(start.elapsed(), Duration::ZERO, "what was not used is free again");
        drop(limiter.acquire(1).await);
        let waited = start.elapsed();
        assert!(waited >= window::MINUTE && waited < Duration::from_secs(61), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_correction_admits_the_next_call_before_the_minute_is_over() {
        let limiter = limiter(0, 0, 1_000);
        let start = Instant::now();
        let first = limiter.acquire(1_000).await;
        let second = async {
            drop(limiter.acquire(500).await);
            start.elapsed()
        };
        let correct = async {
            sleep(Duration::from_secs(3)).await;
            first.settle(Some(200));
        };
        let (waited, ()) = tokio::join!(second, correct);
        assert_eq!(waited, Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn retries_count_as_requests_and_wait_for_capacity() {
        let limiter = limiter(1, 3, 10);
        let start = Instant::now();
        let permit = limiter.acquire(10).await;
        limiter.admit_retry().await;
        limiter.admit_retry().await;
        assert_eq!(start.elapsed(), Duration::ZERO, "the tokens of a retry are not counted");
        assert!(timeout(Duration::from_secs(1), limiter.admit_retry()).await.is_err(), "the minute is full");
        limiter.admit_retry().await;
        assert!(start.elapsed() >= window::MINUTE && start.elapsed() < Duration::from_secs(61));
        permit.settle(Some(0));
    }

    #[tokio::test(start_paused = true)]
    async fn canceled_calls_leave_the_queue_and_are_not_counted() {
        let limiter = limiter(1, 2, 0);
        let start = Instant::now();
        let permit = limiter.acquire(0).await;
        for _ in 0..10 {
            assert!(timeout(Duration::from_millis(1), limiter.acquire(0)).await.is_err(), "there is one place only");
        }
        drop(permit);
        drop(timeout(Duration::from_millis(1), limiter.acquire(0)).await.unwrap());
        assert!(timeout(Duration::from_secs(1), limiter.acquire(0)).await.is_err(), "the minute is full");
        drop(limiter.acquire(0).await);
        assert!(start.elapsed() < Duration::from_secs(61), "the one that was given up was not counted");
    }
}
