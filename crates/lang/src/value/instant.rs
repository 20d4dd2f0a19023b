//! Points in time as events and requests have them: RFC 3339 in UTC with microseconds.

use std::time::Duration;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

/// Reads a point in time: RFC 3339, or a date with or without a time of day (`2026-12-01 09:00`), which is meant in `zone`, or in the zone
/// that it names (`2026-12-01 09:00[Asia/Shanghai]`), if this machine knows it. A date alone is its first moment. Returns it in UTC, or nothing if `text` is no time.
pub fn instant(text: &str, zone: &TimeZone) -> Option<String> {
    let text = text.trim();
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(stamp(moment));
    }
    // The parser of a time of day would ignore the name of the zone.
    if text.contains('[') {
        return Some(stamp(text.parse::<Zoned>().ok()?.timestamp()));
    }
    // A time of day without seconds or with a space is accepted by the parser; a date alone has its own type.
    let local = text.parse::<DateTime>().or_else(|_| text.parse::<Date>().map(DateTime::from)).ok()?;
    Some(stamp(local.to_zoned(zone.clone()).ok()?.timestamp()))
}

/// Whether `text` is a point in time, in whatever time zone.
pub fn is_instant(text: &str) -> bool {
    instant(text, &TimeZone::UTC).is_some()
}

/// The point in time this long after `at`; nothing if `at` is no point in time, or the result is out of range.
pub fn later(at: &str, duration: Duration) -> Option<String> {
    let moment: Timestamp = at.parse().ok()?;
    Some(stamp(moment.checked_add(SignedDuration::try_from(duration).ok()?).ok()?))
}

/// How long it is from `at` to `due`: zero if `due` has come.
pub fn remaining(at: Timestamp, due: &str) -> Option<Duration> {
    let due: Timestamp = due.parse().ok()?;
    Some(Duration::try_from(due.duration_since(at)).unwrap_or(Duration::ZERO))
}

fn stamp(moment: Timestamp) -> String {
    format!("{moment:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_their_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(8));
        for (text, expected) in [
            ("2026-12-01T09:00:00Z", Some("2026-12-01T09:00:00.000000Z")),
            ("2026-12-01T09:00:00+02:00", Some("2026-12-01T07:00:00.000000Z")),
            ("2026-12-01T09:00:00.5Z", Some("2026-12-01T09:00:00.500000Z")),
            (" 2026-12-01 09:00 ", Some("2026-12-01T01:00:00.000000Z")),
            ("2026-12-01T09:00:30", Some("2026-12-01T01:00:30.000000Z")),
            ("2026-12-01", Some("2026-11-30T16:00:00.000000Z")),
            // Known on every machine.
            ("2026-12-01 09:00[UTC]", Some("2026-12-01T09:00:00.000000Z")),
            ("2026-12-01 09:00[-05:00]", Some("2026-12-01T14:00:00.000000Z")),
            ("2026-12-01T09:00:00+02:00[Europe/Berlin]", Some("2026-12-01T07:00:00.000000Z")),
            ("2026-12-01 09:00[Nowhere/Else]", None),
            ("2026-12-01[u-ca=iso8601]", None),
            ("2026-13-01", None),
            ("tomorrow", None),
            ("", None),
        ] {
            assert_eq!(instant(text, &zone).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn durations_are_added_and_measured() {
        let at = "2026-12-01T09:00:00.000000Z";
        let due = later(at, Duration::from_secs(7200)).unwrap();
        assert_eq!(due, "2026-12-01T11:00:00.000000Z");
        let moment: Timestamp = at.parse().unwrap();
        assert_eq!(remaining(moment, &due), Some(Duration::from_secs(7200)));
        assert_eq!(remaining(due.parse().unwrap(), at), Some(Duration::ZERO));
        assert_eq!(later("never", Duration::ZERO), None);
        assert_eq!(later(at, Duration::MAX), None);
    }
}
