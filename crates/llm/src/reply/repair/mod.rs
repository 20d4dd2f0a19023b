//! The fourth strategy, `repair_json`, which parses near-JSON of models and records each repair (docs/replies.md).
//!
//! It changes only the syntax: strings are unchanged, or the reply is rejected. None of the crates that were evaluated guarantees
//! this.

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
use crate::reply::repair::follow::Lookahead;
use crate::reply::repair::parser::{Parser, Stop};
use crate::reply::repair::record::{RepairKind, RepairRecord};

/// The maximum number of braces in the prose that are tried.
const MAX_BRACES: usize = 64;

/// The maximum number of unclosed braces. Each requires a scan of the rest of the text.
const MAX_UNCLOSED_BRACES: usize = 4;

const BRACKETS: [char; 8] = ['{', '}', '[', ']', '｛', '｝', '［', '］'];

struct RepairedText {
    object: Map<String, Value>,
    repairs: Vec<RepairRecord>,
    end: usize,
}

type Rejection = (&'static str, usize);

/// Returns the repaired object in `text`, and the repairs in the order of the text.
///
/// # Errors
/// Why and where it cannot be repaired without guessing; never quotes the text.
pub fn object(text: &str) -> Result<(Map<String, Value>, Vec<RepairRecord>), Message> {
    let reply = after_thinking(text);
    let from = text.len() - reply.len();
    let fenced = fenced_contents(reply).map(|start| from + start).find(|&start| starts_object(text, start));
    let RepairedText { object, mut repairs, .. } = match (in_prose(text, from), fenced) {
        (Some(start), Some(fenced)) if start < fenced => prose_or_fenced_object(text, start, fenced),
        (_, Some(start)) | (Some(start), None) => object_at(text, start),
        (None, None) => return Err(Message::word("there is no object that can be repaired")),
    }
    .map_err(|(reason, at)| msg!("cannot be repaired at byte {at}: {reason}"))?;
    repairs.sort_by_key(|repair| repair.at);
    Ok((object, repairs))
}

/// The object in the fenced block at `fenced`, or the object at `start` if the block is inside one of its strings.
fn prose_or_fenced_object(text: &str, start: usize, fenced: usize) -> Result<RepairedText, Rejection> {
    match object_at(text, start) {
        Ok(repaired) if repaired.end > fenced => Ok(repaired),
        Err(rejection) if closing_brace(text, start).is_none_or(|end| end > fenced) => Err(rejection),
        _ => object_at(text, fenced),
    }
}

/// The start of the object in `text` from byte `from` on, ignoring fences: the first brace followed by a key. Later braces are not
/// tried, because an object inside or after one that cannot be parsed is only a part of the reply.
fn in_prose(text: &str, from: usize) -> Option<usize> {
    let reply = text.get(from..)?;
    let first = from + (reply.len() - reply.trim_start_matches(is_space).len());
    if text.get(first..)?.starts_with(|c| closing(c).is_some()) && starts_object(text, first) {
        return Some(first);
    }
    let mut at = from;
    let mut unclosed = 0;
    for _ in 0..MAX_BRACES {
        let start = at + text.get(at..)?.find(['{', '｛'])?;
        if starts_object(text, start) {
            return Some(start);
        }
        at = match closing_brace(text, start) {
            Some(end) => end,
            // An unclosed brace in the prose.
            None if unclosed < MAX_UNCLOSED_BRACES => {
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

/// Whether an object starts at `start`: a brace followed by a key, a key with a colon, or a string that contains an object.
fn starts_object(text: &str, start: usize) -> bool {
    let rest = text.get(start..).unwrap_or_default();
    let Some(first) = rest.chars().next() else { return false };
    if plain(first) != '{' {
        return encoded::starts(rest)
            || (closing(first).is_some() && Lookahead::new(text, start, true).key_and_colon());
    }
    let inside = rest.get(first.len_utf8()..).unwrap_or_default();
    let mut lookahead = Lookahead::new(inside, 0, true);
    match lookahead.after_space() {
        Some('/' | '#' | ',' | '，' | '\\') => true,
        Some('{') => Lookahead::new(inside, 1, true).after_space().is_some_and(|c| closing(c).is_some()),
        Some(c) if closing(c).is_some() => true,
        Some(_) => lookahead.key_and_colon(),
        None => false,
    }
}

/// The object at `start`. If parsing fails, a second attempt lets typographic quotes end strings that start with plain quotes.
fn object_at(text: &str, start: usize) -> Result<RepairedText, Rejection> {
    if let Some(object) = encoded::object(text.get(start..).unwrap_or_default()) {
        let repairs = vec![RepairRecord { kind: RepairKind::DoubleEncoded, at: start }];
        return Ok(RepairedText { object, repairs, end: text.len() });
    }
    match read(text, start, false) {
        Ok(repaired) if !is_cut(&repaired) => Ok(repaired),
        // In a truncated text, a typographic quote may have ended a string, so that neither result is certain.
        Ok(cut) => match read(text, start, true) {
            Ok(other) if other.object == cut.object => Ok(cut),
            Ok(_) => Err(("it is not clear which quotes end its strings", start)),
            Err(rejected) => Err(rejected),
        },
        Err(rejected) => read(text, start, true).map_err(|_| rejected),
    }
}

fn read(text: &str, start: usize, mixed: bool) -> Result<RepairedText, Rejection> {
    let mut parser = Parser::new(text, start, mixed);
    let object = parser.object().map_err(|stop| match stop {
        Stop::Rejected(reason, at) => (reason, at),
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
    // Quotes followed by brackets remain if the object ended inside one of its strings.
    if rest.find(BRACKETS).and_then(|bracket| rest.get(..bracket)).is_some_and(|before| before.contains(is_quote)) {
        return Err(("its closing brace seems to be inside a string", end));
    }
    let mut lookahead = Lookahead::new(text, end, true);
    if lookahead.after_space().map(plain) == Some(',')
        && Lookahead::new(text, end + comma_bytes(rest), true).key_and_colon()
    {
        return Err(("more fields follow its closing brace", end));
    }
    if let Some(next) = rest.find('{').map(|next| end + next).filter(|&next| starts_object(text, next)) {
        parser.repairs.push(RepairRecord { kind: RepairKind::SeveralObjects, at: next });
    }
    Ok(RepairedText { object, repairs: parser.repairs, end })
}

fn comma_bytes(rest: &str) -> usize {
    let after = rest.trim_start_matches(|c| is_space(c) || plain(c) == ',');
    rest.len() - after.len()
}

fn is_cut(repaired: &RepairedText) -> bool {
    repaired.repairs.iter().any(|repair| repair.kind == RepairKind::CutOff)
}
