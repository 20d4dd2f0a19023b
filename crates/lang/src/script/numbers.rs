//! Describes number ranges in messages.

use crate::message::message::Message;
use crate::message::msg;
use std::ops::RangeInclusive;

/// The number that a field requires; `written` is the whole number given instead, if there is one.
pub(crate) fn whole_number(range: &RangeInclusive<u32>, written: Option<u64>) -> Message {
    // The maximum of `u32` is only mentioned if the given number exceeds it.
    match (*range.end(), written) {
        (u32::MAX, written) if written.is_none_or(|written| written <= u64::from(u32::MAX)) => {
            msg!("a whole number of at least {}", range.start())
        }
        (end, _) => msg!("a whole number from {} to {end}", range.start()),
    }
}
