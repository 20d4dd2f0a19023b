//! The clocks of sessions: the machine's, a fixed one that advances with the events (docs/language.md), and one that is set.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

use bcc_lang::template::language::PromptLanguage;
use bcc_lang::value::instant::{instant, remaining};
use bcc_runtime::program::clock::Clock;

/// How old an event may be so that a prompt after it has its time.
const MAX_AGE: SignedDuration = SignedDuration::from_secs(30);

/// The clock of the machine, for one session.
#[derive(Debug)]
pub struct SystemClock {
    started: std::time::Instant,
    /// The number and the time of the newest events: the last one, and the one that is being written.
    newest: Mutex<[Option<(u64, Timestamp)>; 2]>,
}

impl SystemClock {
    pub fn new() -> Self {
        Self { started: std::time::Instant::now(), newest: Mutex::default() }
    }

    fn remember(&self, seq: u64, moment: Timestamp) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        match *newest {
            [before, Some((last, _))] if last == seq => *newest = [before, Some((seq, moment))],
            [Some((before, _)), last] if before == seq => *newest = [Some((seq, moment)), last],
            [_, last] => *newest = [last, Some((seq, moment))],
        }
    }

    fn remembered(&self, seq: u64) -> Option<Timestamp> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.iter().flatten().find(|(number, _)| *number == seq).map(|(_, moment)| *moment)
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
    fn at(&self, seq: u64) -> String {
        let moment = now();
        self.remember(seq, moment);
        stamp(moment)
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The time of the event before the prompt, so that a session that is repeated has the same one, although the minute ends in between.
    fn prompt_time(&self, seq: u64, language: PromptLanguage) -> String {
        let now = now();
        let is_recent = |moment: &Timestamp| now.duration_since(*moment) < MAX_AGE;
        let moment = self.remembered(seq).filter(is_recent).unwrap_or(now);
        readable_time(moment, TimeZone::system(), language)
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
    // Cheaper than a format string, and once in every prompt.
    let (date, hour, minute) = (local.date(), local.hour(), local.minute());
    match language {
        PromptLanguage::En => {
            let weekday = match local.weekday() {
                Weekday::Monday => "Monday",
                Weekday::Tuesday => "Tuesday",
                Weekday::Wednesday => "Wednesday",
                Weekday::Thursday => "Thursday",
                Weekday::Friday => "Friday",
                Weekday::Saturday => "Saturday",
                Weekday::Sunday => "Sunday",
            };
            format!("{date} {hour:02}:{minute:02} ({weekday})")
        }
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
            format!("{date} {hour:02}:{minute:02}（星期{weekday}）")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_llm::prompt_time::without_times;

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
    fn every_time_in_a_prompt_is_left_out_and_nothing_else() {
        let start: Timestamp = "2026-11-21T20:00:00Z".parse().unwrap();
        for day in 0..7 {
            let moment = start.checked_add(SignedDuration::from_hours(24 * day)).unwrap();
            for language in [PromptLanguage::En, PromptLanguage::Zh] {
                let time = readable_time(moment, TimeZone::UTC, language);
                assert_eq!(without_times(&format!("It is {time}. 现在是 {time}。")), "It is time. 现在是 time。");
            }
        }
        for text in ["On 2026-11-21 20:00 we met.", "2026-11-21 (Saturday)", "2026-11-21 20:00 (Someday)"] {
            assert_eq!(without_times(text), text);
        }
    }

    #[test]
    fn a_prompt_has_the_time_of_the_event_before_it() {
        let clock = SystemClock::new();
        let moment: Timestamp = "2026-11-21T20:00:00Z".parse().unwrap();
        clock.remember(6, moment);
        clock.remember(7, moment);
        clock.at(8);
        clock.at(8);
        assert_eq!((clock.remembered(6), clock.remembered(7)), (None, Some(moment)));
        clock.remember(7, Timestamp::UNIX_EPOCH);
        assert_eq!(clock.remembered(7), Some(Timestamp::UNIX_EPOCH));
        assert!(clock.remembered(8).is_some_and(|at| at > moment));
        // Not if that was long ago.
        assert!(!clock.prompt_time(7, PromptLanguage::En).contains("1970"));
    }

    #[test]
    fn the_fixed_clock_does_not_overflow() {
        let clock = FixedClock::new(Timestamp::MAX);
        assert_eq!(clock.at(u64::MAX), stamp(Timestamp::MAX));
    }
}
