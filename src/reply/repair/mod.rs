//! The fourth strategy, `repair_json`: near-JSON as models write it, each mend recorded (LANGUAGE.md section 8).
//!
//! It changes syntax only: a text comes out as it was written, or the reply is refused. No crate that we tried keeps that
//! promise.

pub mod mend;

mod bare;
mod encoded;
mod follow;
mod marks;
mod parser;
#[cfg(test)]
mod tests;
mod text;

use serde_json::{Map, Value};

use crate::reply::extract::{after_thinking, closing_brace, fenced_contents};
use crate::reply::repair::follow::Ahead;
use crate::reply::repair::marks::{is_quote, is_space, plain};
use crate::reply::repair::mend::{Mend, Repair};
use crate::reply::repair::parser::{Parser, Stop};

/// How many places of a text are tried. Each costs one reading of the rest.
const PLACES: usize = 8;

/// How many braces of the prose are passed over.
const BRACES: usize = 64;

type Mended = (Map<String, Value>, Vec<Repair>);

/// The object in `text`, mended, and what was mended in the order of the text.
///
/// # Errors
/// Why it cannot be mended without guessing, and where; never quotes the text.
pub fn object(text: &str) -> Result<Mended, String> {
    let reply = after_thinking(text);
    let skipped = text.len() - reply.len();
    let mut refusal = None;
    for start in places(text, skipped) {
        match object_at(text, start) {
            Ok((object, mut mends)) => {
                mends.sort_by_key(|mend| mend.at);
                return Ok((object, mends));
            }
            Err((why, at)) => refusal = refusal.or_else(|| Some(format!("cannot be mended at byte {at}: {why}"))),
        }
    }
    Err(refusal.unwrap_or_else(|| "there is no object that could be mended".to_owned()))
}

/// Where an object may begin in `text` from byte `from` on: behind each fence, or else at the first brace of the prose that
/// a key follows, and behind it.
fn places(text: &str, from: usize) -> Vec<usize> {
    let reply = text.get(from..).unwrap_or_default();
    let fenced: Vec<usize> =
        fenced_contents(reply).map(|start| from + start).filter(|&start| begins(text, start)).take(PLACES).collect();
    if !fenced.is_empty() {
        return fenced;
    }
    let first = from + (reply.len() - reply.trim_start_matches(is_space).len());
    if text.get(first..).is_some_and(|reply| reply.starts_with(is_quote)) && begins(text, first) {
        return vec![first];
    }
    let mut places = Vec::new();
    let mut at = from;
    for _ in 0..BRACES {
        let Some(found) = text.get(at..).and_then(|rest| rest.find(['{', '｛'])) else { break };
        let start = at + found;
        if begins(text, start) {
            places.push(start);
        }
        match closing_brace(text, start) {
            Some(end) if places.len() < PLACES => at = end,
            None if places.is_empty() => at = start + 1,
            // What follows may be a part of the object that begins here.
            _ => break,
        }
        while !text.is_char_boundary(at) {
            at += 1;
        }
    }
    places
}

/// Whether an object begins at `start`: a brace with a key behind it, a key with its colon, or a text that holds one.
fn begins(text: &str, start: usize) -> bool {
    let rest = text.get(start..).unwrap_or_default();
    let Some(first) = rest.chars().next() else { return false };
    if plain(first) != '{' {
        return encoded::begins(rest) || (is_quote(first) && Ahead::new(text, start, true).key_and_colon());
    }
    let inside = rest.get(first.len_utf8()..).unwrap_or_default();
    let mut ahead = Ahead::new(inside, 0, plain(first) != first);
    match ahead.after_space() {
        Some('/' | '#' | ',' | '，' | '\\') => true,
        Some('{') => begins(text, start + first.len_utf8()),
        Some(c) if is_quote(c) => true,
        Some(_) => ahead.key_and_colon(),
        None => false,
    }
}

/// The object that begins at `start`; a second reading lets typographic quotes end texts that plain ones began.
fn object_at(text: &str, start: usize) -> Result<Mended, (&'static str, usize)> {
    if let Some(object) = encoded::object(text.get(start..).unwrap_or_default()) {
        return Ok((object, vec![Repair { kind: Mend::DoubleEncoded, at: start }]));
    }
    match read(text, start, false) {
        Ok((object, mends)) if !is_cut(&mends) => Ok((object, mends)),
        first => match read(text, start, true) {
            Ok((object, mends)) if !is_cut(&mends) || first.is_err() => Ok((object, mends)),
            _ => first,
        },
    }
}

fn read(text: &str, start: usize, mixed: bool) -> Result<Mended, (&'static str, usize)> {
    let mut parser = Parser::new(text, start, mixed);
    let object = parser.object().map_err(|stop| match stop {
        Stop::Refused(why, at) => (why, at),
        Stop::Cut => ("the text ends too early", text.len()),
    })?;
    if object.is_empty() {
        return Err(("nothing is left of it", start));
    }
    let end = parser.at;
    let rest = parser.rest();
    if parser.guessed && rest.contains(is_quote) {
        return Err(("it is not clear which quotes end its texts", start));
    }
    let mut ahead = Ahead::new(text, end, true);
    if ahead.after_space().map(plain) == Some(',') && Ahead::new(text, end + comma(rest), true).key_and_colon() {
        return Err(("more fields stand behind its closing brace", end));
    }
    if let Some(next) = rest.find('{').map(|next| end + next).filter(|&next| begins(text, next)) {
        parser.mends.push(Repair { kind: Mend::SeveralObjects, at: next });
    }
    Ok((object, parser.mends))
}

/// Behind the comma that `rest` begins with.
fn comma(rest: &str) -> usize {
    let behind = rest.trim_start_matches(|c| is_space(c) || plain(c) == ',');
    rest.len() - behind.len()
}

fn is_cut(mends: &[Repair]) -> bool {
    mends.iter().any(|mend| mend.kind == Mend::CutOff)
}
