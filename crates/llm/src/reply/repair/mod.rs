//! The fourth strategy, `repair_json`: near-JSON as models write it, each mend recorded (docs/replies.md).
//!
//! It changes syntax only: a text comes out as it was written, or the reply is refused. No crate that we tried keeps that
//! promise.

pub mod record;

mod bare;
mod characters;
mod encoded;
mod follow;
mod parser;
#[cfg(test)]
mod tests;
mod text;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Map, Value};

use crate::reply::extract::{after_thinking, closing_brace, fenced_contents};
use crate::reply::repair::characters::{closing, is_quote, is_space, plain};
use crate::reply::repair::follow::Ahead;
use crate::reply::repair::parser::{Parser, Stop};
use crate::reply::repair::record::{RepairKind, RepairRecord};

const BRACES: usize = 64;

/// How many of them may never close. Each costs one look at the rest of the text.
const UNCLOSED_BRACES: usize = 4;

const BRACKETS: [char; 8] = ['{', '}', '[', ']', '｛', '｝', '［', '］'];

struct RepairedText {
    object: Map<String, Value>,
    mends: Vec<RepairRecord>,
    end: usize,
}

type Refusal = (&'static str, usize);

/// The object in `text`, mended, and what was mended in the order of the text.
///
/// # Errors
/// Why it cannot be mended without guessing, and where; never quotes the text.
pub fn object(text: &str) -> Result<(Map<String, Value>, Vec<RepairRecord>), Message> {
    let reply = after_thinking(text);
    let from = text.len() - reply.len();
    let fenced = fenced_contents(reply).map(|start| from + start).find(|&start| begins(text, start));
    let RepairedText { object, mut mends, .. } = match (in_prose(text, from), fenced) {
        (Some(start), Some(fenced)) if start < fenced => around_or_behind(text, start, fenced),
        (_, Some(start)) | (Some(start), None) => object_at(text, start),
        (None, None) => return Err(Message::word("there is no object that can be repaired")),
    }
    .map_err(|(why, at)| msg!("cannot be repaired at byte {at}: {why}"))?;
    mends.sort_by_key(|mend| mend.at);
    Ok((object, mends))
}

/// The object in the fenced block at `fenced`, unless that block stands in a text of the object that begins at `start`.
fn around_or_behind(text: &str, start: usize, fenced: usize) -> Result<RepairedText, Refusal> {
    match object_at(text, start) {
        Ok(mended) if mended.end > fenced => Ok(mended),
        Err(refusal) if closing_brace(text, start).is_none_or(|end| end > fenced) => Err(refusal),
        _ => object_at(text, fenced),
    }
}

/// Where the object begins in `text` from byte `from` on, without regard to fences: at the first brace that a key follows. No
/// later one is tried: what can be read inside or behind an object that cannot is a part.
fn in_prose(text: &str, from: usize) -> Option<usize> {
    let reply = text.get(from..)?;
    let first = from + (reply.len() - reply.trim_start_matches(is_space).len());
    if text.get(first..)?.starts_with(|c| closing(c).is_some()) && begins(text, first) {
        return Some(first);
    }
    let mut at = from;
    let mut unclosed = 0;
    for _ in 0..BRACES {
        let start = at + text.get(at..)?.find(['{', '｛'])?;
        if begins(text, start) {
            return Some(start);
        }
        at = match closing_brace(text, start) {
            Some(end) => end,
            // A brace of the prose that never closes.
            None if unclosed < UNCLOSED_BRACES => {
                unclosed += 1;
                start + 1
            }
            None => return None,
        };
        while !text.is_char_boundary(at) {
            at += 1;
        }
    }
    None
}

/// Whether an object begins at `start`: a brace with a key behind it, a key with its colon, or a text that holds one.
fn begins(text: &str, start: usize) -> bool {
    let rest = text.get(start..).unwrap_or_default();
    let Some(first) = rest.chars().next() else { return false };
    if plain(first) != '{' {
        return encoded::begins(rest) || (closing(first).is_some() && Ahead::new(text, start, true).key_and_colon());
    }
    let inside = rest.get(first.len_utf8()..).unwrap_or_default();
    let mut ahead = Ahead::new(inside, 0, true);
    match ahead.after_space() {
        Some('/' | '#' | ',' | '，' | '\\') => true,
        Some('{') => Ahead::new(inside, 1, true).after_space().is_some_and(|c| closing(c).is_some()),
        Some(c) if closing(c).is_some() => true,
        Some(_) => ahead.key_and_colon(),
        None => false,
    }
}

/// The object that begins at `start`; a second reading lets typographic quotes end texts that plain ones began.
fn object_at(text: &str, start: usize) -> Result<RepairedText, Refusal> {
    if let Some(object) = encoded::object(text.get(start..).unwrap_or_default()) {
        let mends = vec![RepairRecord { kind: RepairKind::DoubleEncoded, at: start }];
        return Ok(RepairedText { object, mends, end: text.len() });
    }
    match read(text, start, false) {
        Ok(mended) if !is_cut(&mended) => Ok(mended),
        // Where a text was cut that a typographic quote in it may have ended, neither reading is sure.
        Ok(cut) => match read(text, start, true) {
            Ok(other) if other.object == cut.object => Ok(cut),
            Ok(_) => Err(("it is not clear which quotes end its strings", start)),
            Err(refused) => Err(refused),
        },
        Err(refused) => read(text, start, true).map_err(|_| refused),
    }
}

fn read(text: &str, start: usize, mixed: bool) -> Result<RepairedText, Refusal> {
    let mut parser = Parser::new(text, start, mixed);
    let object = parser.object().map_err(|stop| match stop {
        Stop::Refused(why, at) => (why, at),
        Stop::Cut => ("the text ends too early", text.len()),
    })?;
    if object.is_empty() {
        return Err(("nothing is left of it after the repair", start));
    }
    let end = parser.at;
    let rest = parser.rest();
    if parser.guessed && rest.contains(is_quote) {
        return Err(("it is not clear which quotes end its strings", start));
    }
    // Quotes and then brackets are what is left when the object ended inside of one of its own texts.
    if rest.find(BRACKETS).and_then(|bracket| rest.get(..bracket)).is_some_and(|before| before.contains(is_quote)) {
        return Err(("its closing brace seems to be inside a string", end));
    }
    let mut ahead = Ahead::new(text, end, true);
    if ahead.after_space().map(plain) == Some(',') && Ahead::new(text, end + comma(rest), true).key_and_colon() {
        return Err(("more fields follow its closing brace", end));
    }
    if let Some(next) = rest.find('{').map(|next| end + next).filter(|&next| begins(text, next)) {
        parser.mends.push(RepairRecord { kind: RepairKind::SeveralObjects, at: next });
    }
    Ok(RepairedText { object, mends: parser.mends, end })
}

fn comma(rest: &str) -> usize {
    let behind = rest.trim_start_matches(|c| is_space(c) || plain(c) == ',');
    rest.len() - behind.len()
}

fn is_cut(mended: &RepairedText) -> bool {
    mended.mends.iter().any(|mend| mend.kind == RepairKind::CutOff)
}
