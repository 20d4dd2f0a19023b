//! The fourth strategy, `repair_json`, which parses near-JSON of models and records each repair (docs/replies.md).
//!
//! It changes only the syntax: strings are unchanged, or the reply is rejected. None of the crates that were evaluated guarantees
//! this.

pub mod record;

mod bare;
mod bare_text;
mod characters;
mod encoded;
mod escape;
mod follow;
mod items;
mod parser;
mod quote_error;
#[cfg(test)]
mod tests;
mod text;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::value::digits::Digits;
use serde_json::{Map, Number, Value};

use crate::reply::extract::{closing_brace, is_reply};
use crate::reply::reasoning::after_reasoning;
use crate::reply::repair::characters::{closing, is_quote, is_space, plain};
use crate::reply::repair::follow::Lookahead;
use crate::reply::repair::items::BracketRepair;
use crate::reply::repair::parser::{Parser, Stop};
use crate::reply::repair::quote_error::QuoteReading;
use crate::reply::repair::record::{RepairKind, RepairRecord};
use crate::reply::surroundings;

/// The maximum number of braces in the prose that are tried.
const MAX_BRACES: usize = 64;

/// The maximum number of unclosed braces. Each requires a scan of the rest of the text.
const MAX_UNCLOSED_BRACES: usize = 4;

/// The maximum number of objects that are read.
const MAX_OBJECTS: usize = 16;

const BRACKETS: [char; 8] = ['{', '}', '[', ']', '｛', '｝', '［', '］'];

#[derive(Clone, Debug, PartialEq)]
pub(super) struct RepairedText {
    pub object: Map<String, Value>,
    /// How the numbers of the object were written, where this is certain.
    pub digits: Option<Digits>,
    pub repairs: Vec<RepairRecord>,
    end: usize,
}

type Rejection = (&'static str, usize);

/// Returns the repaired object in `text` that has a field of the reply (`own`; if it is empty, every object qualifies), and the
/// repairs in the order of the text.
///
/// # Errors
/// Why and where it cannot be repaired without guessing; never quotes the text.
pub(super) fn repaired(text: &str, own: &[&str]) -> Result<RepairedText, Message> {
    let reply = after_reasoning(text);
    let rejected = |(reason, at): Rejection| msg!("cannot be repaired at byte {at}: {reason}");
    let mut prose = String::new();
    let mut found: Option<RepairedText> = None;
    let mut at = text.len() - reply.len();
    let mut objects = 0;
    while let Some(start) = next_object(text, at) {
        objects += 1;
        if objects > MAX_OBJECTS {
            return Err(rejected(("too many objects follow each other", start)));
        }
        prose.push_str(text.get(at..start).unwrap_or_default());
        prose.push(surroundings::OBJECT);
        let repaired = object_at(text, start).map_err(rejected)?;
        at = repaired.end;
        let is_rest = is_cut(&repaired) && (found.is_none() || !repaired.object.is_empty());
        if !is_reply(&repaired.object, own) && !is_rest {
            continue;
        }
        match &mut found {
            None => found = Some(repaired),
            Some(first) if first.object == repaired.object => {
                first.repairs.push(RepairRecord { kind: RepairKind::SeveralObjects, at: start });
            }
            Some(_) => return Err(rejected(("another object with other values follows", start))),
        }
    }
    let Some(RepairedText { object, digits, mut repairs, end }) = found else {
        return Err(Message::word("there is no object that can be repaired"));
    };
    let rest = text.get(at..).unwrap_or_default();
    prose.push_str(rest);
    if let Some(reason) = surroundings::contradiction(&prose, own) {
        return Err(rejected((reason, end)));
    }
    if rest.trim_start().starts_with(['}', '｝']) {
        repairs.push(RepairRecord { kind: RepairKind::ExtraBracket, at });
    }
    let is_structural = |repair: &RepairRecord| {
        matches!(repair.kind, RepairKind::CutOff | RepairKind::WrongBracket | RepairKind::ExtraBracket)
    };
    if repairs.iter().any(is_structural) && object.values().any(|value| contains_field(value, own)) {
        return Err(rejected(("a field of the reply is inside another one: a closing bracket may be missing", end)));
    }
    let has = |kind: RepairKind| repairs.iter().any(|repair| repair.kind == kind);
    if has(RepairKind::RepeatedKey)
        && [RepairKind::WrongBracket, RepairKind::MissingColon, RepairKind::MissingComma].into_iter().any(has)
    {
        return Err(rejected(("a key is repeated, so that another object may have started", end)));
    }
    repairs.sort_by_key(|repair| repair.at);
    Ok(RepairedText { object, digits, repairs, end })
}

/// Whether one of the objects in `value` has a field of the reply.
fn contains_field(value: &Value, own: &[&str]) -> bool {
    match value {
        Value::Object(members) => {
            members.iter().any(|(key, value)| own.contains(&key.as_str()) || contains_field(value, own))
        }
        Value::Array(items) => items.iter().any(|item| contains_field(item, own)),
        _ => false,
    }
}

/// The start of the next object in `text` from byte `from` on: the first brace followed by a key. Braces inside one that is not the
/// start of an object are skipped.
fn next_object(text: &str, from: usize) -> Option<usize> {
    let reply = text.get(from..)?;
    let first = from + (reply.len() - reply.trim_start_matches(is_space).len());
    // Only at the beginning: an object without its opening brace.
    let is_first = text.get(..from).is_some_and(|before| !before.contains('{'));
    if is_first && text.get(first..)?.starts_with(|c| closing(c).is_some()) && starts_object(text, first) {
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
        Some('}' | '｝' | ']') | None => true,
        Some(_) => lookahead.key_and_colon(),
    }
}

/// The object at `start`. If parsing fails, its quotes are read in other ways ([`QuoteReading`]).
fn object_at(text: &str, start: usize) -> Result<RepairedText, Rejection> {
    if let Some((object, length)) = encoded::object(text.get(start..).unwrap_or_default()) {
        let end = start + length;
        // The text that contains the object is a field or an item of something larger.
        if Lookahead::new(text, end, true).after_space().is_some_and(|c| matches!(plain(c), ',' | ':' | '}' | ']')) {
            return Err(("more follows its closing brace", end));
        }
        let repairs = vec![RepairRecord { kind: RepairKind::DoubleEncoded, at: start }];
        return Ok(RepairedText { object, digits: None, repairs, end });
    }
    match read(text, start, QuoteReading::Matching) {
        Ok(repaired) if !is_cut(&repaired) => Ok(repaired),
        // In a truncated text, a typographic quote may have ended a string, so that neither result is certain.
        Ok(cut) => match read(text, start, QuoteReading::Mixed) {
            Ok(other) if other.object == cut.object => Ok(cut),
            Ok(_) => Err(("it is not clear which quotes end its strings", start)),
            Err(rejected) => Err(rejected),
        },
        // A reading that drops a field at the end may have taken the rest of the text for it.
        Err(rejected) => read(text, start, QuoteReading::Mixed)
            .and_then(|other| if drops_field(&other) { Err(rejected) } else { Ok(other) })
            .or_else(|_| read_once(text, start, QuoteReading::OneError, None))
            .map_err(|_| rejected),
    }
}

/// Reads the object at `start`. A closing bracket that does not match the opening one can be read in several ways; the object is
/// accepted only if all complete readings have the same value.
fn read(text: &str, start: usize, quotes: QuoteReading) -> Result<RepairedText, Rejection> {
    let unclear = match read_once(text, start, quotes, None) {
        Ok(repaired) => return Ok(repaired),
        Err(Stop::Bracket(at)) => at,
        Err(stop) => return Err(rejection(stop, text)),
    };
    let readings = BracketRepair::ALL.map(|repair| read_once(text, start, quotes, Some(repair)));
    let mut possible = readings.into_iter().filter_map(Result::ok);
    let ambiguous = Err(("it is not clear where a list or an object ends", unclear));
    let Some(first) = possible.next() else { return ambiguous };
    let mut best = first;
    for other in possible {
        match (is_cut(&best), is_cut(&other)) {
            // A text that is also truncated is less likely.
            (false, true) => {}
            (true, false) => best = other,
            _ if other.object != best.object => return ambiguous,
            _ => {}
        }
    }
    Ok(best)
}

fn rejection(stop: Stop, text: &str) -> Rejection {
    match stop {
        Stop::Rejected(reason, at) => (reason, at),
        Stop::Cut => ("the text ends too early", text.len()),
        Stop::Bracket(at) => ("it is not clear where a list or an object ends", at),
    }
}

fn read_once(
    text: &str,
    start: usize,
    quotes: QuoteReading,
    bracket: Option<BracketRepair>,
) -> Result<RepairedText, Stop> {
    let mut parser = Parser::new(text, start, quotes, bracket);
    let object = parser.object()?;
    let end = parser.at;
    let rest = parser.rest();
    let reject = |reason, at| Err(Stop::Rejected(reason, at));
    let is_complete = !parser.repairs.iter().any(|repair| repair.kind == RepairKind::CutOff);
    if object.is_empty() && is_complete && !parser.repairs.is_empty() && bracket.is_none() {
        return reject("nothing is left of it after the repair", start);
    }
    if parser.guessed && rest.contains(is_quote) {
        return reject("it is not clear which quotes end its strings", start);
    }
    // Quotes followed by brackets remain if the object ended inside one of its strings.
    if rest.find(BRACKETS).and_then(|bracket| rest.get(..bracket)).is_some_and(|before| before.contains(is_quote)) {
        return reject("its closing brace seems to be inside a string", end);
    }
    let mut lookahead = Lookahead::new(text, end, true);
    let next = lookahead.after_space().map(plain);
    // With a bracket that does not match, anything after the object may belong to it.
    if bracket.is_some() && matches!(next, Some(',' | '}' | ']' | ':')) {
        return reject("more follows its closing brace", end);
    }
    if next == Some(',') && Lookahead::new(text, end + comma_bytes(rest), true).strictly().key_and_colon() {
        return reject("more fields follow its closing brace", end);
    }
    let digits = digits_of(&object, &parser.numbers);
    Ok(RepairedText { object, digits, repairs: parser.repairs, end })
}

/// The digits of the numbers in `object`, which were read from `written` in this order; `None` if they do not agree, for example
/// because a key was repeated.
fn digits_of(object: &Map<String, Value>, written: &[&str]) -> Option<Digits> {
    fn take<'w>(value: &Value, written: &mut impl Iterator<Item = &'w str>) -> Result<Option<Digits>, Disagreement> {
        Ok(match value {
            Value::Number(number) => {
                let text = written.next().ok_or(Disagreement)?;
                let digits = Digits::of_json(text);
                let is_same =
                    digits.is_none() || serde_json::from_str::<Number>(text).is_ok_and(|read| read == *number);
                if is_same { digits } else { return Err(Disagreement) }
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| take(item, written)).collect::<Result<Vec<_>, _>>()?;
                Digits::of_items(items)
            }
            Value::Object(fields) => take_fields(fields, written)?,
            _ => None,
        })
    }
    fn take_fields<'w>(
        fields: &Map<String, Value>,
        written: &mut impl Iterator<Item = &'w str>,
    ) -> Result<Option<Digits>, Disagreement> {
        let fields = fields.iter().map(|(key, field)| Ok((key.clone(), take(field, written)?)));
        Ok(Digits::of_fields(fields.collect::<Result<Vec<_>, _>>()?))
    }
    if written.iter().all(|text| Digits::of_json(text).is_none()) {
        return None;
    }
    let mut written = written.iter().copied();
    let digits = take_fields(object, &mut written).ok()?;
    if written.next().is_none() { digits } else { None }
}

/// The numbers of a value are not those that were read.
struct Disagreement;

fn comma_bytes(rest: &str) -> usize {
    let after = rest.trim_start_matches(|c| is_space(c) || plain(c) == ',');
    rest.len() - after.len()
}

fn drops_field(repaired: &RepairedText) -> bool {
    repaired.repairs.iter().any(|repair| repair.kind == RepairKind::CutField)
}

fn is_cut(repaired: &RepairedText) -> bool {
    repaired.repairs.iter().any(|repair| repair.kind == RepairKind::CutOff)
}
