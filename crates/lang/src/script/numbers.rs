//! Numbers of fields, in words.

use crate::message::message::Message;
use crate::message::msg;
use std::ops::RangeInclusive;

/// What a number of a field must be; `written` is what stands there instead, when it is a whole number.
pub fn whole_number(range: &RangeInclusive<u32>, written: Option<u64>) -> Message {
    // Nobody thinks of the largest number that fits, unless theirs is larger.
    match (*range.end(), written) {
        (u32::MAX, written) if written.is_none_or(|written| written <= u64::from(u32::MAX)) => {
            msg!("a whole number of at least {}", range.start())
        }
        (end, _) => msg!("a whole number from {} to {end}", range.start()),
    }
}
