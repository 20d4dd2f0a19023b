//! Limits the concurrent requests to a model and the requests and tokens per minute, shared by all users of the model. Calls that a
//! person waits for come before those in the background.
//!
//! `governor` is not used because its clock is not that of the runtime, so that it cannot be tested in virtual time, and because
//! estimates cannot be corrected after a reply with the actual number of tokens.

pub mod slots;
#[cfg(test)]
mod tests;
pub mod window;

use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::time::{Instant, sleep_until};

use crate::model::provider::RetryLimiter;
use crate::model::request::Purpose;
use crate::providers::rate_limiter::slots::{CallSlot, CallSlots};
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

/// Whether somebody waits for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    Foreground,
    /// Nothing waits for it: it leaves a part of the limits to the calls of the foreground, and is admitted when none of them waits.
    Background,
}

impl From<Purpose> for Priority {
    fn from(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Action | Purpose::Persona => Self::Foreground,
            Purpose::Monitor | Purpose::Orchestrator => Self::Background,
        }
    }
}

/// The rate limiter of one model. Calls of the same priority are admitted in order of arrival.
#[derive(Debug)]
pub struct RateLimiter {
    limits: RateLimits,
    slots: Option<CallSlots>,
    /// Held by the call that waits for capacity in the minute; the others wait for the lock in order.
    queue: AsyncMutex<()>,
    /// The same for the calls of the background.
    background_queue: AsyncMutex<()>,
    minute: Mutex<Minute>,
    /// Notified when a correction frees capacity, and when a call of the foreground no longer waits.
    capacity_freed: Notify,
}

#[derive(Debug)]
struct Minute {
    requests: Option<Window>,
    tokens: Option<Window>,
    /// The number of calls of the foreground that wait for capacity.
    waiting: usize,
}

/// An admitted call. Dropping it frees its slot; its requests and tokens remain counted, because they may have been sent.
#[derive(Debug)]
pub struct Permit<'limiter> {
    limiter: &'limiter RateLimiter,
    priority: Priority,
    slot: Option<CallSlot<'limiter>>,
    tokens: Option<(Instant, u64)>,
}

/// Counts a call of the foreground as waiting until it is dropped.
struct WaitingCall<'limiter>(&'limiter RateLimiter);

impl RateLimiter {
    pub fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            slots: limits.concurrency.map(CallSlots::new),
            queue: AsyncMutex::new(()),
            background_queue: AsyncMutex::new(()),
            minute: Mutex::new(Minute {
                requests: limits.requests_per_minute.map(|limit| Window::new(u64::from(limit.max(1)))),
                tokens: limits.tokens_per_minute.map(|limit| Window::new(limit.max(1))),
                waiting: 0,
            }),
            capacity_freed: Notify::new(),
        }
    }

    pub const fn limits(&self) -> RateLimits {
        self.limits
    }

    /// Waits until a call of about `tokens` tokens is allowed. Dropping the future leaves the queue.
    pub async fn acquire(&self, tokens: u64, priority: Priority) -> Permit<'_> {
        loop {
            // The slot is acquired first, so that there is no wait between counting a call and sending it.
            let slot = match &self.slots {
                Some(slots) => Some(slots.acquire(priority).await),
                None => None,
            };
            let tokens = tokio::select! {
                biased;
                tokens = self.admit(Some(tokens), priority) => tokens,
                () = wanted(slot.as_ref()) => continue,
            };
            return Permit { limiter: self, priority, slot, tokens };
        }
    }

    /// Waits in the queue until a request is allowed, and counts it: the first one of a call with its tokens, a retry with `None`.
    async fn admit(&self, tokens: Option<u64>, priority: Priority) -> Option<(Instant, u64)> {
        let (_waiting, _guard) = match priority {
            Priority::Foreground => (Some(self.waiting()), self.queue.lock().await),
            Priority::Background => (None, self.background_queue.lock().await),
        };
        loop {
            let capacity_freed = self.capacity_freed.notified();
            let until = match self.count(tokens, priority) {
                Ok(counted) => return counted,
                Err(until) => until,
            };
            let available = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = available => {}
                () = capacity_freed => {}
            }
        }
    }

    /// Counts a request, or returns the time at which there is capacity for it; `None` if another call is admitted first.
    fn count(&self, tokens: Option<u64>, priority: Priority) -> Result<Option<(Instant, u64)>, Option<Instant>> {
        let now = Instant::now();
        let mut minute = self.minute();
        let is_background = priority == Priority::Background;
        if is_background && minute.waiting > 0 {
            return Err(None);
        }
        // The next call of the foreground may be about as large as this one.
        let needed = |window: &Window, amount: u64| {
            let with_next = amount.saturating_mul(2);
            if is_background && with_next <= window.limit() { with_next } else { amount }
        };
        let next_available = |window: &mut Option<Window>, amount| {
            window.as_mut().and_then(|window| window.available_at(now, needed(window, amount)))
        };
        let tokens_until = tokens.and_then(|tokens| next_available(&mut minute.tokens, tokens));
        if let Some(until) = next_available(&mut minute.requests, 1).max(tokens_until) {
            return Err(Some(until));
        }
        if let Some(requests) = &mut minute.requests {
            requests.take(now, 1);
        }
        let counted = minute.tokens.as_mut().zip(tokens);
        Ok(counted.map(|(window, tokens)| (window.take(now, tokens), tokens)))
    }

    fn waiting(&self) -> WaitingCall<'_> {
        self.minute().waiting += 1;
        WaitingCall(self)
    }

    fn minute(&self) -> MutexGuard<'_, Minute> {
        self.minute.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.0.minute().waiting -= 1;
        self.0.capacity_freed.notify_waiters();
    }
}

/// Waits until this slot must be given to a call of the foreground.
async fn wanted(slot: Option<&CallSlot<'_>>) {
    match slot {
        Some(slot) => slot.wanted().await,
        None => pending().await,
    }
}

#[async_trait]
impl RetryLimiter for Permit<'_> {
    async fn admit_retry(&self) {
        self.limiter.admit(None, self.priority).await;
    }
}

impl Permit<'_> {
    /// Waits until this call must be cancelled, because a call of the foreground needs its slot and there is no other one.
    pub async fn withdrawn(&self) {
        wanted(self.slot.as_ref()).await;
    }

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
