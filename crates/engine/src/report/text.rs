//! Durations and excerpts in reports.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use jiff::Timestamp;

use crate::report::contents::OutputExcerpt;

/// The maximum number of bytes of an output in a report.
const MAX_OUTPUT_BYTES: usize = 4 * 1024;

/// The maximum number of characters of a message in a report.
const MAX_MESSAGE_CHARACTERS: usize = 1_000;

/// The milliseconds between two times; none if one is no time, or if the clock went back.
pub(crate) fn between(from: &str, to: &str) -> Option<u64> {
    let (from, to) = (from.parse::<Timestamp>().ok()?, to.parse::<Timestamp>().ok()?);
    u64::try_from(to.as_millisecond().saturating_sub(from.as_millisecond())).ok()
}

/// A duration for people, in its two largest units.
pub(crate) fn duration(ms: u64) -> Message {
    let (seconds, minutes, hours, days) = (ms / 1_000, ms / 60_000, ms / 3_600_000, ms / 86_400_000);
    match ms {
        0..1_000 => msg!("{ms} ms"),
        1_000..60_000 => msg!("{seconds}.{tenth} s", tenth = ms % 1_000 / 100),
        60_000..3_600_000 => msg!("{minutes} min {seconds} s", seconds = seconds % 60),
        3_600_000..86_400_000 => msg!("{hours} h {minutes} min", minutes = minutes % 60),
        _ => msg!("{days} d {hours} h", hours = hours % 24),
    }
}

/// The end of an output of which the program wrote `bytes` bytes. `is_whole` says whether `text` is all of it: masks make it shorter, and
/// then nothing of it is missing.
pub(crate) fn excerpt(text: &str, bytes: u64, is_whole: bool) -> OutputExcerpt {
    let bytes = if is_whole && !text.is_empty() { length(text) } else { bytes };
    let mut start = text.len().saturating_sub(MAX_OUTPUT_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let text = text.get(start..).unwrap_or_default().to_owned();
    OutputExcerpt { left_out: bytes.saturating_sub(length(&text)), text }
}

fn length(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

/// The start of a message, and the number of characters that are left out.
pub(crate) fn shortened(text: &str) -> (String, u64) {
    let count = text.chars().count();
    let start: String = text.chars().take(MAX_MESSAGE_CHARACTERS).collect();
    (start, u64::try_from(count.saturating_sub(MAX_MESSAGE_CHARACTERS)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_its_two_largest_units() {
        let table = [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_099, "1.0 s"),
            (59_999, "59.9 s"),
            (61_000, "1 min 1 s"),
            (3_660_000, "1 h 1 min"),
            (90_000_000, "1 d 1 h"),
        ];
        for (ms, expected) in table {
            assert_eq!(duration(ms).to_string(), expected);
        }
    }

    #[test]
    fn an_excerpt_is_the_end_and_counts_what_is_left_out() {
        let text = format!("{}é{}", "a".repeat(10), "b".repeat(MAX_OUTPUT_BYTES - 1));
        let found = excerpt(&text, text.len() as u64, true);
        assert_eq!((found.text.len(), found.left_out), (MAX_OUTPUT_BYTES - 1, 12), "no half characters");
        assert_eq!(excerpt("all", 3, true), OutputExcerpt { text: "all".into(), left_out: 0 });
        assert_eq!(excerpt("is ***", 14, true).left_out, 0, "a mask leaves nothing out");
        assert_eq!(excerpt("the end", 20, false).left_out, 13, "the store does not have all of it");
        assert_eq!(excerpt("", 9, true).left_out, 9, "an output that was not stored");
        assert_eq!(shortened(&"好".repeat(1_003)).1, 3);
    }

    #[test]
    fn a_clock_that_went_back_gives_no_duration() {
        assert_eq!(between("2026-11-21T20:00:00Z", "2026-11-21T20:00:01.5Z"), Some(1_500));
        assert_eq!(between("2026-11-21T20:00:01Z", "2026-11-21T20:00:00Z"), None);
        assert_eq!(between("", "2026-11-21T20:00:00Z"), None);
    }
}
