//! Characters that a server cut in halves: it escapes each half of a surrogate pair in another event, which no reader of JSON accepts.
//!
//! The halves are replaced by characters that stand for them, so that the JSON can be read, and joined in the text of the reply.

use std::char::{REPLACEMENT_CHARACTER, decode_utf16};

/// The length of an escape, in bytes.
const ESCAPE_BYTES: usize = 6;

/// The first surrogate, which is the first half of the first pair.
const FIRST_HALF: u16 = 0xD800;

/// The character that stands for [`FIRST_HALF`]; the others follow it. They are for private use.
const FIRST_STAND_IN: u32 = 0x10_F000;

/// The JSON with a character instead of each escape of a single half; `None` if there is none.
pub(crate) fn with_stand_ins(json: &[u8]) -> Option<Vec<u8>> {
    let (mut changed, mut is_changed) = (Vec::with_capacity(json.len()), false);
    let mut rest = json;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (before, escape) = rest.split_at(at);
        changed.extend_from_slice(before);
        let first = half_at(escape);
        let second = escape.get(ESCAPE_BYTES..).and_then(half_at);
        let kept = match (first, second) {
            // The character after a backslash never starts another escape.
            (None, _) => 2,
            (Some(first), Some(second)) if is_pair(first, second) => 2 * ESCAPE_BYTES,
            (Some(half), _) => {
                let stand_in = char::from_u32(FIRST_STAND_IN + u32::from(half - FIRST_HALF))?;
                changed.extend_from_slice(stand_in.encode_utf8(&mut [0; 4]).as_bytes());
                is_changed = true;
                rest = escape.get(ESCAPE_BYTES..)?;
                continue;
            }
        };
        let (kept, after) = escape.split_at(kept.min(escape.len()));
        changed.extend_from_slice(kept);
        rest = after;
    }
    changed.extend_from_slice(rest);
    is_changed.then_some(changed)
}

/// The half whose escape starts here.
fn half_at(json: &[u8]) -> Option<u16> {
    let digits = json.strip_prefix(b"\\u")?.get(..4)?;
    let half = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (FIRST_HALF..=0xDFFF).contains(&half).then_some(half)
}

fn is_pair(first: u16, second: u16) -> bool {
    is_first(first) && !is_first(second)
}

fn is_first(half: u16) -> bool {
    half < 0xDC00
}

/// Joins the halves in the pieces of a text.
#[derive(Debug, Default)]
pub(crate) struct HalfJoiner {
    /// The first half at the end of the text so far.
    waiting: Option<u16>,
}

impl HalfJoiner {
    /// The text of the next piece. A half without another one is replaced by U+FFFD.
    pub(crate) fn join(&mut self, piece: &str) -> String {
        let mut text = String::new();
        for c in piece.chars() {
            let half = stands_for(c);
            if let (Some(first), Some(second)) = (self.waiting, half)
                && is_pair(first, second)
            {
                self.waiting = None;
                text.extend(decode_utf16([first, second]).flatten());
                continue;
            }
            text.extend(self.end());
            match half {
                Some(half) if is_first(half) => self.waiting = Some(half),
                Some(_) => text.push(REPLACEMENT_CHARACTER),
                None => text.push(c),
            }
        }
        text
    }

    /// What replaces a half that still waits for the other one.
    pub(crate) fn end(&mut self) -> Option<char> {
        self.waiting.take().map(|_| REPLACEMENT_CHARACTER)
    }
}

/// The half that this character stands for.
fn stands_for(c: char) -> Option<u16> {
    let offset = u16::try_from(u32::from(c).checked_sub(FIRST_STAND_IN)?).ok()?;
    FIRST_HALF.checked_add(offset).filter(|half| *half <= 0xDFFF)
}
