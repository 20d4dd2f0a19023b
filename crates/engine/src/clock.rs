//! The clocks of sessions: the machine's, a fixed one that advances with the events (docs/language.md), and one that is set.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

use bcc_lang::template::language::PromptLanguage;
use bcc_lang::value::instant::{instant, remaining};
use bcc_runtime::program::clock::Clock;

#[derive(Debug)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    pub fn new() -> Self {
        Self { started: std::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

/// The current time. The only function that reads the clock of the machine.
#[allow(clippy::disallowed_methods)] // all other code must use this function
pub fn now() -> Timestamp {
    Timestamp::now()
}

impl Clock for SystemClock {
    fn at(&self, _seq: u64) -> String {
        stamp(now())
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn prompt_time(&self, _seq: u64, language: PromptLanguage) -> String {
        readable_time(now(), TimeZone::system(), language)
    }

    fn remaining(&self, due: &str) -> Option<Duration> {
        remaining(now(), due)
    }

    fn instant(&self, text: &str) -> Option<String> {
        instant(text, &TimeZone::system())
    }
}

/// A clock that starts at a fixed time and advances one millisecond per event. A session has the same times whenever it is run or
/// resumed.
#[derive(Clone, Copy, Debug)]
pub struct FixedClock {
    start: Timestamp,
}

impl FixedClock {
    pub fn new(start: Timestamp) -> Self {
        Self { start }
    }

    fn moment(&self, seq: u64) -> Timestamp {
        let offset = SignedDuration::from_millis(i64::try_from(seq).unwrap_or(i64::MAX));
        self.start.checked_add(offset).unwrap_or(self.start)
    }
}

impl Clock for FixedClock {
    fn at(&self, seq: u64) -> String {
        stamp(self.moment(seq))
    }

    fn elapsed_ms(&self) -> u64 {
        0
    }

    fn prompt_time(&self, seq: u64, language: PromptLanguage) -> String {
        readable_time(self.moment(seq), TimeZone::UTC, language)
    }

    fn instant(&self, text: &str) -> Option<String> {
        instant(text, &TimeZone::UTC)
    }
}

/// A clock that changes only when it is set, for a session that is replayed.
#[derive(Debug)]
pub struct SetClock {
    moment: Mutex<Timestamp>,
    zone: TimeZone,
}

impl SetClock {
    /// A clock with readable times in the time zone of the machine, or in UTC as with [`FixedClock`].
    pub fn new(utc: bool) -> Self {
        let zone = if utc { TimeZone::UTC } else { TimeZone::system() };
        Self { moment: Mutex::new(Timestamp::UNIX_EPOCH), zone }
    }

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

    fn prompt_time(&self, _seq: u64, language: PromptLanguage) -> String {
        readable_time(self.moment(), self.zone.clone(), language)
    }

    fn instant(&self, text: &str) -> Option<String> {
        instant(text, &self.zone)
    }
}

/// RFC 3339 in UTC, always with six fractional digits, so that the texts sort by time.
pub fn stamp(moment: Timestamp) -> String {
    format!("{moment:.6}")
}

/// A stored time in a time zone; `None` if it is not a time.
pub fn in_zone(stamp: &str, zone: &TimeZone) -> Option<Zoned> {
    stamp.parse::<Timestamp>().ok().map(|moment| moment.to_zoned(zone.clone()))
}

pub(crate) fn readable_time(moment: Timestamp, zone: TimeZone, language: PromptLanguage) -> String {
    let local = moment.to_zoned(zone);
    match language {
        PromptLanguage::En => local.strftime("%Y-%m-%d %H:%M (%A)").to_string(),
        PromptLanguage::Zh => {
            let weekday = match local.weekday() {
                Weekday::Monday => "一",
                Weekday::Tuesday => "二",
                Weekday::Wednesday => "三",
                Weekday::Thursday => "四",
                Weekday::Friday => "五",
                Weekday::Saturday => "六",
                Weekday::Sunday => "日",
            };
            format!("{}（星期{weekday}）", local.strftime("%Y-%m-%d %H:%M"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_clock_advances_a_millisecond_per_event() {
        let clock = FixedClock::new("2026-11-21T20:00:00Z".parse().unwrap());
        assert_eq!(clock.at(0), "2026-11-21T20:00:00.000000Z");
        assert_eq!(clock.at(1001), "2026-11-21T20:00:01.001000Z");
        assert_eq!(clock.prompt_time(0, PromptLanguage::En), "2026-11-21 20:00 (Saturday)");
        assert_eq!(clock.prompt_time(0, PromptLanguage::Zh), "2026-11-21 20:00（星期六）");
        assert_eq!(clock.elapsed_ms(), 0);
    }

    #[test]
    fn the_fixed_clock_does_not_overflow() {
        let clock = FixedClock::new(Timestamp::MAX);
        assert_eq!(clock.at(u64::MAX), stamp(Timestamp::MAX));
    }
}
