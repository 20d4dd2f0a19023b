//! The texts of the lines of running steps: times, and what fits into a terminal.

use std::time::Duration;

use jiff::tz::TimeZone;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use bcc_engine::clock::{in_zone, now};
use bcc_lang::source::render::visible::visible_line;

/// A time of the store in the time zone of the machine: the hour, and the day if it is another one.
pub fn local_time(stamp: &str) -> String {
    let zone = TimeZone::system();
    match in_zone(stamp, &zone) {
        Some(time) if time.date() == now().to_zoned(zone).date() => time.strftime("%H:%M:%S").to_string(),
        Some(time) => time.strftime("%Y-%m-%d %H:%M").to_string(),
        None => visible_line(stamp),
    }
}

/// A time of the store in the time zone of the machine, with its offset, as lists show it.
pub fn minute(stamp: &str) -> String {
    with_offset(stamp, "%Y-%m-%d %H:%M (UTC%:z)")
}

/// [`minute`] with seconds.
pub fn second(stamp: &str) -> String {
    with_offset(stamp, "%Y-%m-%d %H:%M:%S (UTC%:z)")
}

fn with_offset(stamp: &str, format: &str) -> String {
    let time = in_zone(stamp, &TimeZone::system());
    time.map_or_else(|| visible_line(stamp), |time| time.strftime(format).to_string())
}

/// `line` in at most so many columns.
pub fn shortened(line: &str, columns: usize) -> String {
    let mut shown = String::new();
    for character in line.chars() {
        if shown.width() + character.width().unwrap_or_default() + 1 > columns {
            shown.push('…');
            return shown;
        }
        shown.push(character);
    }
    shown
}

/// A duration for people: `0.4s`, `12s`, `3m 05s`, `2h 10m`.
pub fn shown_time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{seconds}.{}s", time.subsec_millis() / 100),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_into_the_terminal() {
        assert_eq!(shortened("部署到服务器  1.0s", 8), "部署到…");
        assert_eq!(shortened("abc", 4), "abc");
        assert_eq!(shortened("abcd", 4), "abc…");
    }

    #[test]
    fn times_are_short() {
        let times = [400, 9_990, 12_000, 185_000, 7_800_000].map(|ms| shown_time(Duration::from_millis(ms)));
        assert_eq!(times, ["0.4s", "9.9s", "12s", "3m 05s", "2h 10m"]);
    }
}
