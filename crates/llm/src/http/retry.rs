//! When a request is made again, and how long is waited before that.
//!
//! A loop of our own around this, instead of `backon`: `Retry-After` decides over the wait and over giving up, and each
//! repetition has to be told to whoever listens live.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

use crate::model::error::{ModelError, TimeoutPhase};

/// The longest `Retry-After` that is waited for. A server that asks for more is left alone until a person comes back.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The longest pause between two attempts when the server asks for none.
pub const LONGEST_BACKOFF: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub struct Retries {
    max_attempts: u32,
    backoff: Duration,
    sent: u32,
}

impl Retries {
    /// At most `max_attempts` requests; `first_backoff` is the longest that the first pause may be, and that doubles from
    /// then on.
    pub fn new(max_attempts: u32, first_backoff: Duration) -> Self {
        Self { max_attempts, backoff: first_backoff, sent: 0 }
    }

    /// Counts a request and gives the number of requests sent so far.
    pub fn count(&mut self) -> u32 {
        self.sent = self.sent.saturating_add(1);
        self.sent
    }

    pub fn grant(&mut self) {
        self.max_attempts = self.max_attempts.saturating_add(1);
    }

    /// How long to wait before the next request; `None` to give up.
    pub fn pause_after(&mut self, error: &ModelError) -> Option<Duration> {
        let asked = if let ModelError::Http { retry_after, .. } = error { *retry_after } else { None };
        self.pause(is_transient(error), asked)
    }

    /// The same after any failure: whether the request may well succeed a little later, and what the server asks to wait.
    pub fn pause(&mut self, transient: bool, asked: Option<Duration>) -> Option<Duration> {
        if self.sent >= self.max_attempts || !transient {
            return None;
        }
        let backoff = self.backoff.min(LONGEST_BACKOFF);
        self.backoff = backoff.saturating_mul(2);
        match asked {
            Some(wait) => (wait <= LONGEST_RETRY_AFTER).then_some(wait),
            // Full jitter, anything from nothing up: sessions that failed together do not come back together.
            None => Some(backoff.mul_f64(fastrand::f64())),
        }
    }
}

/// Whether the same request may well succeed a little later.
pub fn is_transient(error: &ModelError) -> bool {
    match error {
        ModelError::Unreachable { .. } | ModelError::CutOff { .. } | ModelError::Garbled { .. } => true,
        ModelError::Http { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504 | 529),
        // A reply that was flowing and still too slow would be as slow again.
        ModelError::Timeout { what, .. } => *what != TimeoutPhase::Total,
        _ => false,
    }
}

/// The wait that a `Retry-After` header asks for: seconds, or an HTTP date. A date is counted from `now`, the server's
/// own `Date` header, so that clocks which differ do no harm. `None` when it cannot be read; a date that is past is zero.
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

    fn timeout(what: TimeoutPhase) -> ModelError {
        ModelError::Timeout { host: "h".into(), what, after: FIRST, attempts: 1 }
    }

    #[test]
    fn only_what_may_pass_by_itself_is_tried_again() {
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
    fn pauses_are_anything_up_to_a_bound_that_doubles_and_ends() {
        const BOUNDS: [u128; 7] = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000];
        // How often a pause fell into each quarter of what it may be.
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
        // A hundred each, give or take: fewer than fifty come once in ten million runs.
        assert!(quarters.iter().flatten().all(|count| *count > 50), "{quarters:?}");
    }

    #[test]
    fn the_servers_own_wait_is_honoured_and_one_over_a_minute_gives_up_at_once() {
        for (asked, expected) in [(0, Some(0)), (7, Some(7)), (60, Some(60)), (61, None), (86_400, None)] {
            let mut retries = Retries::new(4, FIRST);
            retries.count();
            assert_eq!(retries.pause_after(&http(429, Some(asked))), expected.map(Duration::from_secs), "{asked} s");
        }
    }

    #[test]
    fn retry_after_is_read_as_seconds_and_as_a_date() {
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
    fn without_the_servers_clock_a_date_counts_from_ours() {
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT", None), Some(Duration::ZERO));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT", Some("no date")), Some(Duration::ZERO));
        assert!(retry_after("Fri, 31 Dec 9998 23:59:59 GMT", None).unwrap() > LONGEST_RETRY_AFTER);
    }
}
