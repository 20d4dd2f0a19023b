//! The two clocks: the machine's, and one that stands where it is told and moves with the events (docs/language.md).

use std::sync::{Mutex, PoisonError};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use bcc_runtime::program::clock::Clock;

#[derive(Debug)]
pub struct SystemClock {
    began: std::time::Instant,
}

impl SystemClock {
    pub fn new() -> Self {
        Self { began: std::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

/// The one place that asks the machine for the time.
#[allow(clippy::disallowed_methods)] // this is the clock that everything else must take its time from
pub fn now() -> Timestamp {
    Timestamp::now()
}

impl Clock for SystemClock {
    fn at(&self, _seq: u64) -> String {
        stamp(now())
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn words(&self, _seq: u64) -> String {
        in_words(now(), TimeZone::system())
    }
}

/// A clock that starts at a moment and moves one millisecond an event. The same session gives the same times, whenever
/// and however often it is run or resumed.
#[derive(Clone, Copy, Debug)]
pub struct FixedClock {
    start: Timestamp,
}

impl FixedClock {
    pub fn new(start: Timestamp) -> Self {
        Self { start }
    }

    fn moment(&self, seq: u64) -> Timestamp {
        let passed = SignedDuration::from_millis(i64::try_from(seq).unwrap_or(i64::MAX));
        self.start.checked_add(passed).unwrap_or(self.start)
    }
}

impl Clock for FixedClock {
    fn at(&self, seq: u64) -> String {
        stamp(self.moment(seq))
    }

    fn elapsed_ms(&self) -> u64 {
        0
    }

    fn words(&self, seq: u64) -> String {
        in_words(self.moment(seq), TimeZone::UTC)
    }
}

/// A clock that stands still until it is set: of a session that is repeated.
#[derive(Debug)]
pub struct SetClock {
    moment: Mutex<Timestamp>,
    zone: TimeZone,
}

impl SetClock {
    /// A clock whose words are those of the machine's own zone, or of UTC as with [`FixedClock`].
    pub fn new(utc: bool) -> Self {
        let zone = if utc { TimeZone::UTC } else { TimeZone::system() };
        Self { moment: Mutex::new(Timestamp::UNIX_EPOCH), zone }
    }

    /// From here on it is this moment.
    pub fn set(&self, moment: Timestamp) {
        *self.moment.lock().unwrap_or_else(PoisonError::into_inner) = moment;
    }

    fn moment(&self) -> Timestamp {
        *self.moment.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for SetClock {
    fn at(&self, _seq: u64) -> String {
        stamp(self.moment())
    }

    fn elapsed_ms(&self) -> u64 {
        0
    }

    fn words(&self, _seq: u64) -> String {
        in_words(self.moment(), self.zone.clone())
    }
}

/// RFC 3339 in UTC, always with six digits of a second, so that texts order as times.
pub fn stamp(moment: Timestamp) -> String {
    format!("{moment:.6}")
}

fn in_words(moment: Timestamp, zone: TimeZone) -> String {
    moment.to_zoned(zone).strftime("%Y-%m-%d %H:%M (%A)").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_clock_moves_a_millisecond_an_event() {
        let clock = FixedClock::new("2026-11-21T20:00:00Z".parse().unwrap());
        assert_eq!(clock.at(0), "2026-11-21T20:00:00.000000Z");
        assert_eq!(clock.at(1001), "2026-11-21T20:00:01.001000Z");
        assert_eq!(clock.words(0), "2026-11-21 20:00 (Saturday)");
        assert_eq!(clock.elapsed_ms(), 0);
    }

    #[test]
    fn no_number_of_events_breaks_the_clock() {
        let clock = FixedClock::new(Timestamp::MAX);
        assert_eq!(clock.at(u64::MAX), stamp(Timestamp::MAX));
    }
}
