//! Time that passes only when somebody says so: a scripted model takes five seconds, and nobody waits for them.
//!
//! Whoever sleeps is woken when the time is moved on to where they wanted to be. What moves it on is the driver of the
//! conversation, when nothing else is left to be done.

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
    /// Who sleeps, by when they want to be woken and the order in which they lay down.
    sleepers: BTreeMap<(Duration, u64), Option<Waker>>,
    count: u64,
}

impl VirtualTime {
    pub fn now(&self) -> Duration {
        self.state().now
    }

    /// Comes back when so much has passed; at once when that is nothing.
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

    pub fn next(&self) -> Option<Duration> {
        self.state().sleepers.keys().next().map(|(until, _)| *until)
    }

    /// Moves on to a moment, and wakes whoever slept until then. The past is left alone.
    pub fn move_to(&self, moment: Duration) {
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
    async fn sleepers_wake_in_their_order_and_nothing_passes_by_itself() {
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
        while let Some(next) = time.next() {
            time.move_to(next);
            tokio::task::yield_now().await;
        }
        assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
        assert_eq!(time.now(), Duration::from_secs(3));
    }

    #[tokio::test]
    async fn a_sleep_of_nothing_is_over_and_one_that_is_given_up_is_forgotten() {
        let time = Arc::new(VirtualTime::default());
        time.sleep(Duration::ZERO).await;
        drop(time.sleep(Duration::from_secs(1)));
        assert_eq!(time.next(), None);
    }
}
