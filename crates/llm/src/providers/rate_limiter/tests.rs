//! Tests of the rate limiter, in virtual time.

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
        limiter.acquire(u64::MAX, Priority::Foreground).await.settle(Some(u64::MAX));
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
            let permit = limiter.acquire(100, Priority::Foreground).await;
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
    limiter.acquire(900, Priority::Foreground).await.settle(Some(100));
    limiter.acquire(900, Priority::Foreground).await.settle(Some(2_000));
    assert_eq!(start.elapsed(), Duration::ZERO, "what was not used is free again");
    drop(limiter.acquire(1, Priority::Foreground).await);
    let waited = start.elapsed();
    assert!(waited >= window::MINUTE && waited < Duration::from_secs(61), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_correction_admits_the_next_call_before_the_minute_is_over() {
    let limiter = limiter(0, 0, 1_000);
    let start = Instant::now();
    let first = limiter.acquire(1_000, Priority::Foreground).await;
    let second = async {
        drop(limiter.acquire(500, Priority::Foreground).await);
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
    let permit = limiter.acquire(10, Priority::Foreground).await;
    permit.admit_retry().await;
    permit.admit_retry().await;
    assert_eq!(start.elapsed(), Duration::ZERO, "the tokens of a retry are not counted");
    assert!(timeout(Duration::from_secs(1), permit.admit_retry()).await.is_err(), "the minute is full");
    permit.admit_retry().await;
    assert!(start.elapsed() >= window::MINUTE && start.elapsed() < Duration::from_secs(61));
    permit.settle(Some(0));
}

#[tokio::test(start_paused = true)]
async fn canceled_calls_leave_the_queue_and_are_not_counted() {
    let limiter = limiter(1, 2, 0);
    let start = Instant::now();
    let permit = limiter.acquire(0, Priority::Foreground).await;
    for _ in 0..10 {
        assert!(
            timeout(Duration::from_millis(1), limiter.acquire(0, Priority::Foreground)).await.is_err(),
            "there is one place only"
        );
    }
    drop(permit);
    drop(timeout(Duration::from_millis(1), limiter.acquire(0, Priority::Foreground)).await.unwrap());
    assert!(
        timeout(Duration::from_secs(1), limiter.acquire(0, Priority::Foreground)).await.is_err(),
        "the minute is full"
    );
    drop(limiter.acquire(0, Priority::Foreground).await);
    assert!(start.elapsed() < Duration::from_secs(61), "the one that was given up was not counted");
}

/// Whether a call is admitted at once.
async fn is_admitted(limiter: &RateLimiter, tokens: u64, priority: Priority) -> bool {
    match timeout(Duration::from_millis(1), limiter.acquire(tokens, priority)).await {
        Ok(permit) => {
            // Only its slot is free again.
            drop(permit);
            true
        }
        Err(_) => false,
    }
}

#[tokio::test(start_paused = true)]
async fn background_calls_leave_a_slot_a_request_and_tokens_to_those_of_the_foreground() {
    use Priority::{Background, Foreground};
    let slots = limiter(3, 0, 0);
    let held = [slots.acquire(0, Background).await, slots.acquire(0, Background).await];
    assert!(!is_admitted(&slots, 0, Background).await);
    assert!(is_admitted(&slots, 0, Foreground).await);
    drop(held);
    assert!(is_admitted(&slots, 0, Background).await);

    let requests = limiter(0, 3, 0);
    assert!(is_admitted(&requests, 0, Background).await && is_admitted(&requests, 0, Background).await);
    assert!(!is_admitted(&requests, 0, Background).await);
    assert!(is_admitted(&requests, 0, Foreground).await);

    let tokens = limiter(0, 0, 1_000);
    assert!(is_admitted(&tokens, 300, Background).await);
    assert!(!is_admitted(&tokens, 400, Background).await);
    assert!(is_admitted(&tokens, 700, Foreground).await);

    // A limit that is too small for that is used up nevertheless.
    let small = limiter(0, 1, 1_000);
    assert!(is_admitted(&small, 900, Background).await);
}

/// Starts calls that each take a second, in this order, and returns the order in which they were admitted.
async fn admitted(limiter: RateLimiter, calls: &[(&'static str, Priority)]) -> Vec<&'static str> {
    let (limiter, order) = (Arc::new(limiter), Arc::new(Mutex::new(Vec::new())));
    let mut running = JoinSet::new();
    for (name, priority) in calls.iter().copied() {
        let (limiter, order) = (Arc::clone(&limiter), Arc::clone(&order));
        running.spawn(async move {
            let permit = limiter.acquire(0, priority).await;
            order.lock().unwrap().push(name);
            sleep(Duration::from_secs(1)).await;
            permit.settle(None);
        });
        // It waits before the next one arrives.
        sleep(Duration::from_millis(1)).await;
    }
    while let Some(call) = running.join_next().await {
        call.unwrap();
    }
    let order = order.lock().unwrap();
    order.clone()
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_of_the_foreground_are_admitted_before_those_of_the_background() {
    use Priority::{Background, Foreground};
    let calls = [
        ("a", Foreground),
        ("b", Foreground),
        ("m", Background),
        ("n", Background),
        ("c", Foreground),
        ("d", Foreground),
    ];
    for limiter in [limiter(2, 0, 0), limiter(0, 2, 0), limiter(2, 2, 0), limiter(1, 0, 0)] {
        let limits = limiter.limits();
        assert_eq!(admitted(limiter, &calls).await, ["a", "b", "c", "d", "m", "n"], "{limits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_background_call_that_waits_for_the_minute_holds_no_slot_that_another_call_needs() {
    let limiter = limiter(1, 0, 100);
    drop(limiter.acquire(90, Priority::Foreground).await);
    let background = async { limiter.acquire(50, Priority::Background).await.settle(None) };
    let foreground = async {
        sleep(Duration::from_secs(1)).await;
        let start = Instant::now();
        limiter.acquire(5, Priority::Foreground).await.settle(None);
        start.elapsed()
    };
    assert_eq!(tokio::join!(background, foreground).1, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_while_it_waits_leaves_its_slot_to_the_background() {
    let limiter = limiter(1, 0, 0);
    let held = limiter.acquire(0, Priority::Foreground).await;
    let background = async { drop(limiter.acquire(0, Priority::Background).await) };
    let foreground = async { drop(timeout(Duration::from_secs(1), limiter.acquire(0, Priority::Foreground)).await) };
    let release = async {
        sleep(Duration::from_secs(1)).await;
        drop(held);
    };
    let all = async { tokio::join!(background, foreground, release) };
    assert!(timeout(Duration::from_secs(5), all).await.is_ok());
}
