//! The slots for concurrent calls. Calls of the background never hold the last one, or give it back when another call needs it.

use tokio::sync::{Mutex as AsyncMutex, Notify, Semaphore, SemaphorePermit, watch};

use crate::providers::rate_limiter::Priority;

#[derive(Debug)]
pub(crate) struct CallSlots {
    all: Semaphore,
    /// The slots that calls of the background may hold: all but one, or the only one.
    background: Semaphore,
    is_single: bool,
    /// Held by the background call that waits for a slot; the others wait for the lock in order.
    background_queue: AsyncMutex<()>,
    /// The number of calls of the foreground that wait for a slot.
    waiting: watch::Sender<usize>,
    /// Notified when a slot may be free.
    freed: Notify,
}

/// One slot, which is free again when it is dropped.
#[derive(Debug)]
pub(crate) struct CallSlot<'slots> {
    slots: &'slots CallSlots,
    /// `None` only while it is dropped.
    permit: Option<SemaphorePermit<'slots>>,
    /// The share of the background.
    share: Option<SemaphorePermit<'slots>>,
}

/// Counts a call of the foreground as waiting until it is dropped.
struct WaitingCall<'slots>(&'slots CallSlots);

impl CallSlots {
    pub(crate) fn new(count: u32) -> Self {
        let count = count.max(1);
        Self {
            all: Semaphore::new(count as usize),
            background: Semaphore::new((count - 1).max(1) as usize),
            is_single: count == 1,
            background_queue: AsyncMutex::new(()),
            waiting: watch::Sender::new(0),
            freed: Notify::new(),
        }
    }

    /// Waits for a slot. Dropping the future leaves the queue.
    pub(crate) async fn acquire(&self, priority: Priority) -> CallSlot<'_> {
        match priority {
            Priority::Foreground => self.foreground().await,
            Priority::Background => self.background().await,
        }
    }

    async fn foreground(&self) -> CallSlot<'_> {
        if let Ok(permit) = self.all.try_acquire() {
            return CallSlot { slots: self, permit: Some(permit), share: None };
        }
        self.waiting.send_modify(|waiting| *waiting += 1);
        let _waiting = WaitingCall(self);
        // The only error is a closed semaphore, and it is never closed.
        CallSlot { slots: self, permit: self.all.acquire().await.ok(), share: None }
    }

    async fn background(&self) -> CallSlot<'_> {
        let share = self.background.acquire().await.ok();
        let _guard = self.background_queue.lock().await;
        loop {
            let freed = self.freed.notified();
            // A slot that is freed goes to the waiting calls of the foreground first, so that this fails as long as there are any.
            if let Ok(permit) = self.all.try_acquire() {
                return CallSlot { slots: self, permit: Some(permit), share };
            }
            freed.await;
        }
    }
}

impl CallSlot<'_> {
    /// Waits until a call of the foreground needs this slot, because a call of the background holds the only one.
    pub(crate) async fn wanted(&self) {
        if self.share.is_none() || !self.slots.is_single {
            return std::future::pending().await;
        }
        // The sender lives as long as the slots.
        let _ = self.slots.waiting.subscribe().wait_for(|waiting| *waiting > 0).await;
    }
}

impl Drop for CallSlot<'_> {
    fn drop(&mut self) {
        drop(self.permit.take());
        self.slots.freed.notify_waiters();
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.0.waiting.send_modify(|waiting| *waiting -= 1);
        // A call that is cancelled may return a slot that it was just given.
        self.0.freed.notify_waiters();
    }
}
