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
use crate::reply::repair::marks::{closing, is_quote, is_space, plain};
use crate::reply::repair::mend::{Mend, Repair};
use crate::reply::repair::parser::{Parser, Stop};

/// How many braces of the prose are passed over.
const BRACES: usize = 64;

/// How many of them may never close. Each costs one look at the rest of the text.
const UNCLOSED_BRACES: usize = 4;

const BRACKETS: [char; 8] = ['{', '}', '[', ']', '｛', '｝', '［', '］'];

type Mended = (Map<String, Value>, Vec<Repair>);

/// The object in `text`, mended, and what was mended in the order of the text.
///
/// # Errors
/// Why it cannot be mended without guessing, and where; never quotes the text.
pub fn object(text: &str) -> Result<Mended, String> {
    let reply = after_thinking(text);
    let skipped = text.len() - reply.len();
    let start = place(text, skipped).ok_or("there is no object that could be mended")?;
    let (object, mut mends) =
        object_at(text, start).map_err(|(why, at)| format!("cannot be mended at byte {at}: {why}"))?;
    mends.sort_by_key(|mend| mend.at);
    Ok((object, mends))
}

/// Where the object begins in `text` from byte `from` on: behind the first fence with one, or else at the first brace of the
/// prose that a key follows. No other place is tried: what can be read behind an object that cannot is a part of it.
fn place(text: &str, from: usize) -> Option<usize> {
    let reply = text.get(from..)?;
    if let Some(fenced) = fenced_contents(reply).map(|start| from + start).find(|&start| begins(text, start)) {
        return Some(fenced);
    }
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
        Some('{') => begins(text, start + first.len_utf8()),
        Some(c) if closing(c).is_some() => true,
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
        // Of a text that was cut, the second reading tells whether a quote in it may have been the last.
        Ok(_) => read(text, start, true),
        Err(refused) => read(text, start, true).map_err(|_| refused),
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
    // Quotes and then brackets are what is left when the object ended inside of one of its own texts.
    if rest.find(BRACKETS).and_then(|bracket| rest.get(..bracket)).is_some_and(|before| before.contains(is_quote)) {
        return Err(("its closing brace seems to stand in a text", end));
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
