//! Decides whether a request is retried, and after which pause.
//!
//! `backon` is not used because `Retry-After` determines both the pause and whether to give up, and live observers must be
//! notified of each retry.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

use crate::model::error::{ModelError, TimeoutPhase};

/// The longest `Retry-After` that is honored. Longer ones end the call.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The longest pause between two attempts if the server does not specify one.
pub(crate) const MAX_BACKOFF: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub struct Retries {
    max_attempts: u32,
    backoff: Duration,
    sent: u32,
}

impl Retries {
    /// Allows at most `max_attempts` requests. `first_backoff` is the upper bound of the first pause; it doubles with each
    /// pause.
    pub fn new(max_attempts: u32, first_backoff: Duration) -> Self {
        Self { max_attempts, backoff: first_backoff, sent: 0 }
    }

    /// Counts a request and returns the number of requests sent so far.
    pub fn count(&mut self) -> u32 {
        self.sent = self.sent.saturating_add(1);
        self.sent
    }

    pub(crate) fn add_attempt(&mut self) {
        self.max_attempts = self.max_attempts.saturating_add(1);
    }

    /// How long to wait before the next request; `None` to give up.
    pub(crate) fn pause_after(&mut self, error: &ModelError) -> Option<Duration> {
        let server_wait = if let ModelError::Http { retry_after, .. } = error { *retry_after } else { None };
        self.pause(is_transient(error), server_wait)
    }

    /// The same for any failure: `transient` says whether a retry may succeed, `server_wait` is the pause that the server requests.
    pub fn pause(&mut self, transient: bool, server_wait: Option<Duration>) -> Option<Duration> {
        if self.sent >= self.max_attempts || !transient {
            return None;
        }
        let backoff = self.backoff.min(MAX_BACKOFF);
        self.backoff = backoff.saturating_mul(2);
        match server_wait {
            Some(wait) => (wait <= MAX_RETRY_AFTER).then_some(wait),
            // Full jitter, starting at 0, so that sessions that failed together do not retry at the same time.
            None => Some(backoff.mul_f64(fastrand::f64())),
        }
    }
}

/// Whether a retry of the same request may succeed.
pub fn is_transient(error: &ModelError) -> bool {
    match error {
        ModelError::Unreachable { .. } | ModelError::CutOff { .. } | ModelError::Garbled { .. } => true,
        ModelError::Http { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504 | 529),
        // A reply that exceeded the total limit while streaming would be just as slow again.
        ModelError::Timeout { phase, .. } => *phase != TimeoutPhase::Total,
        _ => false,
    }
}

/// The duration in a `Retry-After` header, which is a number of seconds or an HTTP date. A date is relative to `now`, the
/// server's `Date` header, so that differences between clocks do not matter. `None` if it is invalid; zero for a past date.
pub fn retry_after(header: &str, now: Option<&str>) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = http_date(header)?;
    let now = match now.and_then(http_date) {
        Some(now) => now,
        #[allow(clippy::disallowed_methods, reason = "how long a request pauses is in no journal and decides nothing")]
        None => Timestamp::now(),
    };
    Some(Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO))
}

fn http_date(text: &str) -> Option<Timestamp> {
    DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(500);

    fn http(status: u16, retry_after: Option<u64>) -> ModelError {
        ModelError::Http {
            host: "h".into(),
            status,
            message: String::new(),
            retry_after: retry_after.map(Duration::from_secs),
            attempts: 1,
        }
    }

    fn timeout(phase: TimeoutPhase) -> ModelError {
        ModelError::Timeout { host: "h".into(), phase, after: FIRST, attempts: 1 }
    }

    #[test]
    fn only_transient_errors_are_retried() {
        let mut table: Vec<(ModelError, bool)> = [429, 500, 502, 503, 504, 529]
            .map(|status| (http(status, None), true))
            .into_iter()
            .chain([301, 400, 401, 403, 404, 413, 422, 501].map(|status| (http(status, None), false)))
            .collect();
        table.extend([
            (ModelError::Unreachable { host: "h".into(), reason: "refused".into(), attempts: 1 }, true),
            (ModelError::CutOff { host: "h".into(), attempts: 1 }, true),
            (ModelError::Garbled { host: "h".into(), attempts: 1 }, true),
            (timeout(TimeoutPhase::FirstToken), true),
            (timeout(TimeoutPhase::Idle), true),
            (timeout(TimeoutPhase::Total), false),
            (ModelError::TooLarge { host: "h".into(), limit: 1, attempts: 1 }, false),
            (ModelError::Protocol { host: "h".into(), message: "m".into(), attempts: 1 }, false),
        ]);
        for (error, expected) in table {
            let mut retries = Retries::new(4, FIRST);
            retries.count();
            assert_eq!(retries.pause_after(&error).is_some(), expected, "{error}");
        }
    }

    #[test]
    fn the_number_of_requests_is_bounded() {
        for max_attempts in 1..6 {
            let mut retries = Retries::new(max_attempts, FIRST);
            let mut sent = retries.count();
            while retries.pause_after(&http(500, None)).is_some() {
                sent = retries.count();
            }
            assert_eq!(sent, max_attempts);
        }
    }

    #[test]
    fn pauses_are_random_below_a_bound_that_doubles_up_to_a_maximum() {
        const BOUNDS: [u128; 7] = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000];
        // The number of pauses in each quarter of the range.
        let mut quarters = [[0_u32; 4]; BOUNDS.len()];
        for _ in 0..400 {
            let mut retries = Retries::new(100, FIRST);
            retries.count();
            for (bound, quarters) in BOUNDS.into_iter().zip(&mut quarters) {
                let pause = retries.pause_after(&http(503, None)).unwrap().as_millis();
                assert!(pause <= bound, "{pause} ms of at most {bound}");
                quarters[usize::try_from(pause * 4 / (bound + 1)).unwrap()] += 1;
            }
        }
        // About a hundred each; the probability of fewer than fifty is one in ten million.
        assert!(quarters.iter().flatten().all(|count| *count > 50), "{quarters:?}");
    }

    #[test]
    fn retry_after_is_honored_up_to_a_minute() {
        for (server_wait, expected) in [(0, Some(0)), (7, Some(7)), (60, Some(60)), (61, None), (86_400, None)] {
            let mut retries = Retries::new(4, FIRST);
            retries.count();
            assert_eq!(
                retries.pause_after(&http(429, Some(server_wait))),
                expected.map(Duration::from_secs),
                "{server_wait} s"
            );
        }
    }

    #[test]
    fn retry_after_may_be_seconds_or_a_date() {
        let now = Some("Sat, 21 Nov 2026 20:00:00 GMT");
        let table = [
            ("0", Some(0.0)),
            (" 12 ", Some(12.0)),
            ("1.5", Some(1.5)),
            ("Sat, 21 Nov 2026 20:00:30 GMT", Some(30.0)),
            ("Fri, 21 Nov 2026 20:01:00 GMT", Some(60.0)),
            ("Sat, 21 Nov 2026 19:00:00 GMT", Some(0.0)),
            ("-5", None),
            ("NaN", None),
            ("1e300", None),
            ("soon", None),
            ("", None),
        ];
        for (header, expected) in table {
            assert_eq!(retry_after(header, now), expected.map(Duration::from_secs_f64), "{header:?}");
        }
    }

    #[test]
    fn without_a_date_header_the_local_clock_is_used() {
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT", None), Some(Duration::ZERO));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT", Some("no date")), Some(Duration::ZERO));
        assert!(retry_after("Fri, 31 Dec 9998 23:59:59 GMT", None).unwrap() > MAX_RETRY_AFTER);
    }
}
