//! Parses an object of near-JSON and records every repair. It needs one pass, with a bounded lookahead at each quote, and supports 128
//! levels.
//!
//! It changes only the syntax; strings are unchanged. Ambiguous input is rejected.

use serde_json::{Map, Value};

use crate::reply::repair::characters::{closing, is_json_space, is_space, is_word, plain};
use crate::reply::repair::follow::{Lookahead, RepairLocation};
use crate::reply::repair::record::{RepairKind, RepairRecord};

/// The maximum nesting depth, as for the other strategies.
const MAX_DEPTH: usize = 128;

const MAX_REPAIRS: usize = 1_000;

/// The maximum lookahead, as a multiple of the length of the text.
const MAX_LOOKAHEAD_FACTOR: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The raw text ended inside a value.
    Cut,
    /// The reason and position at which it cannot be parsed without guessing.
    Rejected(&'static str, usize),
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) repairs: Vec<RepairRecord>,
    /// Whether a typographic quote may end a string that starts with a plain quote.
    pub(super) mixed: bool,
    /// Whether full-width punctuation was used as syntax.
    pub(super) wide: bool,
    /// Whether the end of a string was determined from the text after it; then no quotes may follow the object.
    pub(super) guessed: bool,
    /// Whether a string of one word has no quotes.
    pub(super) bare_text: bool,
    bare_key: bool,
    lookahead: usize,
}

impl<'t> Parser<'t> {
    pub(super) const fn new(text: &'t str, at: usize, mixed: bool) -> Self {
        Self {
            text,
            at,
            repairs: Vec::new(),
            mixed,
            wide: false,
            guessed: false,
            bare_text: false,
            bare_key: false,
            lookahead: 0,
        }
    }

    /// The object at the current position, with or without an opening brace.
    pub(super) fn object(&mut self) -> Result<Map<String, Value>, Stop> {
        let start = self.at;
        let object = match self.peek().map(plain) {
            Some('{') => {
                let doubled = self.brace()?;
                self.members(1, doubled)?
            }
            _ => {
                self.add_repair(RepairKind::MissingBrace, start)?;
                self.members(1, false)?
            }
        };
        let ambiguous = |repair: &RepairRecord| {
            matches!(
                repair.kind,
                RepairKind::MissingComma
                    | RepairKind::MissingValue
                    | RepairKind::UnquotedKey
                    | RepairKind::UnquotedText
                    | RepairKind::RepeatedKey
            )
        };
        if (self.guessed && self.repairs.iter().any(ambiguous)) || (self.bare_key && self.bare_text) {
            return Err(Stop::Rejected("too much is missing to determine where its strings end", start));
        }
        Ok(object)
    }

    /// Rejects a text that requires too much lookahead. Each lookahead ends at one of the next quotes, so this should not happen.
    pub(super) fn check_lookahead_limit(&self) -> Result<(), Stop> {
        if self.lookahead / MAX_LOOKAHEAD_FACTOR > self.text.len() {
            return Err(Stop::Rejected("it requires too much lookahead", self.at));
        }
        Ok(())
    }

    /// The members up to the closing brace. If the raw text ends inside a field of the outermost object, the field is omitted, so that
    /// all returned fields are complete.
    fn members(&mut self, depth: usize, doubled: bool) -> Result<Map<String, Value>, Stop> {
        let mut members = Map::new();
        let mut comma = None;
        let mut bare = false;
        loop {
            let Some(c) = self.token()? else { return self.truncated(members, depth, None) };
            let start = self.at;
            match plain(c) {
                '}' => {
                    self.extra_comma(comma)?;
                    self.punctuation(c)?;
                    if doubled && self.peek() == Some('}') {
                        self.bump();
                    }
                    return Ok(members);
                }
                ',' => {
                    self.extra_comma(comma.or_else(|| members.is_empty().then_some(start)))?;
                    self.punctuation(c)?;
                    comma = Some(start);
                    continue;
                }
                _ if comma.is_none() && !members.is_empty() => {
                    if bare || closing(c).is_none() || !self.look_ahead(start, Lookahead::key_and_colon) {
                        return Err(Stop::Rejected("a comma or a closing brace was expected", start));
                    }
                    self.add_repair(RepairKind::MissingComma, start)?;
                }
                _ => {}
            }
            comma = None;
            let had_bare = std::mem::take(&mut self.bare_text);
            match self.member(depth) {
                Ok((key, value)) => {
                    if members.insert(key, value).is_some() {
                        self.add_repair(RepairKind::RepeatedKey, start)?;
                    }
                }
                Err(Stop::Cut) => return self.truncated(members, depth, Some(start)),
                Err(rejection) => return Err(rejection),
            }
            bare = self.bare_text;
            self.bare_text |= had_bare;
        }
    }

    /// Handles the end of the raw text before the closing brace, inside the field at `field` or between two fields.
    fn truncated(
        &mut self,
        members: Map<String, Value>,
        depth: usize,
        field: Option<usize>,
    ) -> Result<Map<String, Value>, Stop> {
        if depth > 1 {
            return Err(Stop::Cut);
        }
        if let Some(field) = field {
            self.repairs.retain(|repair| repair.at < field);
            self.add_repair(RepairKind::CutField, field)?;
        }
        self.add_repair(RepairKind::CutOff, self.at)?;
        Ok(members)
    }

    fn member(&mut self, depth: usize) -> Result<(String, Value), Stop> {
        let key = self.key()?;
        let colon = self.token()?.ok_or(Stop::Cut)?;
        if plain(colon) != ':' {
            return Err(Stop::Rejected("a colon was expected after a key", self.at));
        }
        self.punctuation(colon)?;
        match self.token()?.map(plain) {
            Some(',' | '}') => {
                self.add_repair(RepairKind::MissingValue, self.at)?;
                Ok((key, Value::Null))
            }
            _ => Ok((key, self.value(depth, RepairLocation::Member)?)),
        }
    }

    fn key(&mut self) -> Result<String, Stop> {
        let start = self.at;
        if self.peek().and_then(closing).is_some() {
            return self.quoted(RepairLocation::Key);
        }
        let rest = self.rest();
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let key = rest.get(..end).unwrap_or_default();
        self.at += end;
        if end == rest.len() && end > 0 {
            return Err(Stop::Cut);
        }
        if !key.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$')) {
            return Err(Stop::Rejected("a key was expected", start));
        }
        // `content": …`: only the opening quote is missing.
        if self.peek() == Some('"') {
            self.bump();
        } else {
            self.bare_key = true;
        }
        self.add_repair(RepairKind::UnquotedKey, start)?;
        Ok(key.to_owned())
    }

    fn value(&mut self, depth: usize, location: RepairLocation) -> Result<Value, Stop> {
        let start = self.at;
        let c = self.token()?.ok_or(Stop::Cut)?;
        match plain(c) {
            '{' | '[' if depth >= MAX_DEPTH => Err(Stop::Rejected("it is nested deeper than 128 levels", start)),
            '{' => {
                let doubled = self.brace()?;
                self.members(depth + 1, doubled).map(Value::Object)
            }
            '[' => {
                self.punctuation(c)?;
                self.items(depth + 1).map(Value::Array)
            }
            _ if closing(c).is_some() => self.quoted(location).map(Value::String),
            _ => self.bare(),
        }
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Value>, Stop> {
        let mut items = Vec::new();
        let mut comma = None;
        let mut bare = false;
        loop {
            let c = self.token()?.ok_or(Stop::Cut)?;
            let start = self.at;
            match plain(c) {
                ']' => {
                    self.extra_comma(comma)?;
                    self.punctuation(c)?;
                    return Ok(items);
                }
                ',' => {
                    self.extra_comma(comma.or_else(|| items.is_empty().then_some(start)))?;
                    self.punctuation(c)?;
                    comma = Some(start);
                    continue;
                }
                _ if comma.is_none() && !items.is_empty() => {
                    if bare || is_word(c) {
                        return Err(Stop::Rejected("a comma or a closing bracket was expected", start));
                    }
                    self.add_repair(RepairKind::MissingComma, start)?;
                }
                _ => {}
            }
            comma = None;
            bare = is_word(c);
            items.push(self.value(depth, RepairLocation::Item)?);
        }
    }

    fn brace(&mut self) -> Result<bool, Stop> {
        let start = self.at;
        if let Some(c) = self.peek() {
            self.punctuation(c)?;
        }
        let doubled = self.peek() == Some('{');
        if doubled {
            self.add_repair(RepairKind::DoubledBrace, start)?;
            self.bump();
        }
        Ok(doubled)
    }

    fn extra_comma(&mut self, comma: Option<usize>) -> Result<(), Stop> {
        comma.map_or(Ok(()), |at| self.add_repair(RepairKind::ExtraComma, at))
    }

    fn punctuation(&mut self, c: char) -> Result<(), Stop> {
        if plain(c) != c {
            self.wide = true;
            self.add_repair(RepairKind::FullWidth, self.at)?;
        }
        self.bump();
        Ok(())
    }

    /// The next character after white space and comments; `None` at the end of the text or at a closing fence.
    fn token(&mut self) -> Result<Option<char>, Stop> {
        let mut odd = false;
        while let Some(c) = self.peek() {
            let rest = self.rest();
            let literal = ["\\n", "\\r", "\\t"].iter().any(|escape| rest.starts_with(escape));
            if is_json_space(c) {
                self.bump();
            } else if is_space(c) || literal {
                if !odd {
                    self.add_repair(RepairKind::OtherSpace, self.at)?;
                }
                odd = true;
                self.at += if literal { 2 } else { c.len_utf8() };
            } else if c == '#' || rest.starts_with("//") || rest.starts_with("/*") {
                self.comment()?;
            } else if rest.starts_with("```") {
                return Ok(None);
            } else {
                return Ok(Some(c));
            }
        }
        Ok(None)
    }

    fn comment(&mut self) -> Result<(), Stop> {
        let rest = self.rest();
        let end = if rest.starts_with("/*") { rest.find("*/").map(|end| end + 2) } else { rest.find('\n') };
        let end = end.ok_or(Stop::Rejected("a comment is not closed", self.at))?;
        self.add_repair(RepairKind::Comment, self.at)?;
        self.at += end;
        Ok(())
    }

    pub(super) fn add_repair(&mut self, kind: RepairKind, at: usize) -> Result<(), Stop> {
        if self.repairs.len() >= MAX_REPAIRS {
            return Err(Stop::Rejected("it needs more than 1000 repairs", at));
        }
        self.repairs.push(RepairRecord { kind, at });
        Ok(())
    }

    pub(super) fn look_ahead<T>(&mut self, at: usize, mut check: impl FnMut(&mut Lookahead<'t>) -> T) -> T {
        let mut lookahead = Lookahead::new(self.text, at, self.wide);
        let answer = check(&mut lookahead);
        self.lookahead += lookahead.looked();
        answer
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn bump(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }
}
