//! A virtual clock for tests, which advances only explicitly, so that the delays of a scripted model take no real time.
//!
//! A sleep ends when the clock is advanced to its end. The driver of the conversation advances the clock when nothing else can run.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

#[derive(Debug, Default)]
pub struct VirtualTime {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    now: Duration,
    /// The active sleeps by end time and order of creation.
    sleepers: BTreeMap<(Duration, u64), Option<Waker>>,
    count: u64,
}

impl VirtualTime {
    pub fn now(&self) -> Duration {
        self.state().now
    }

    /// Waits until `time` has passed; returns immediately if it is zero.
    pub fn sleep(self: &Arc<Self>, time: Duration) -> Sleep {
        let mut state = self.state();
        let until = state.now.saturating_add(time);
        state.count += 1;
        let key = (until, state.count);
        if !time.is_zero() {
            state.sleepers.insert(key, None);
        }
        drop(state);
        Sleep { time: Arc::clone(self), key }
    }

    pub fn next_wakeup(&self) -> Option<Duration> {
        self.state().sleepers.keys().next().map(|(until, _)| *until)
    }

    /// Advances to `moment` and wakes the sleeps that end by then. Does nothing if `moment` is in the past.
    pub fn advance_to(&self, moment: Duration) {
        let mut state = self.state();
        state.now = state.now.max(moment);
        let now = state.now;
        let mut woken = Vec::new();
        for ((until, _), waker) in &mut state.sleepers {
            if *until > now {
                break;
            }
            woken.extend(waker.take());
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub struct Sleep {
    time: Arc<VirtualTime>,
    key: (Duration, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.time.state();
        if self.key.0 <= state.now {
            return Poll::Ready(());
        }
        state.sleepers.insert(self.key, Some(context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.time.state().sleepers.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sleeps_end_in_order_and_only_when_the_time_advances() {
        let time = Arc::new(VirtualTime::default());
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for seconds in [3, 1, 2] {
            let (time, order) = (Arc::clone(&time), Arc::clone(&order));
            tasks.push(tokio::spawn(async move {
                time.sleep(Duration::from_secs(seconds)).await;
                order.lock().unwrap().push(seconds);
            }));
        }
        tokio::task::yield_now().await;
        assert_eq!(*order.lock().unwrap(), Vec::<u64>::new());
        while let Some(next) = time.next_wakeup() {
            time.advance_to(next);
            tokio::task::yield_now().await;
        }
        assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
        assert_eq!(time.now(), Duration::from_secs(3));
    }

    #[tokio::test]
    async fn an_empty_sleep_ends_immediately_and_a_dropped_one_is_removed() {
        let time = Arc::new(VirtualTime::default());
        time.sleep(Duration::ZERO).await;
        drop(time.sleep(Duration::from_secs(1)));
        assert_eq!(time.next_wakeup(), None);
    }
}
