//! Reads an object of near-JSON and records every mend. One pass, a bounded look ahead at each quote, 128 levels.
//!
//! What it may change is syntax; a text comes out as it was written. Where two readings are possible it refuses.

use serde_json::{Map, Value};

use crate::reply::repair::characters::{closing, is_json_space, is_space, is_word, plain};
use crate::reply::repair::follow::{Ahead, RepairLocation};
use crate::reply::repair::record::{RepairKind, RepairRecord};

/// How deep an object may nest, as for the other strategies.
const DEPTH: usize = 128;

/// A reply that needs more mends than these is no reply.
const MOST_MENDS: usize = 1_000;

/// How often the text may be looked at ahead of its turn.
const MOST_LOOKS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The raw text ended inside of what was being read.
    Cut,
    /// Why it cannot be read without guessing, and where.
    Refused(&'static str, usize),
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) mends: Vec<RepairRecord>,
    /// A typographic quote may end a text that a plain one began.
    pub(super) mixed: bool,
    /// Full-width punctuation has been syntax.
    pub(super) wide: bool,
    /// Where a text ends was decided by what follows: nothing may be left over then.
    pub(super) guessed: bool,
    /// A text of one word has no quotes.
    pub(super) bare_text: bool,
    bare_key: bool,
    looked: usize,
}

impl<'t> Parser<'t> {
    pub(super) const fn new(text: &'t str, at: usize, mixed: bool) -> Self {
        Self {
            text,
            at,
            mends: Vec::new(),
            mixed,
            wide: false,
            guessed: false,
            bare_text: false,
            bare_key: false,
            looked: 0,
        }
    }

    /// The object that begins here, with its brace or without.
    pub(super) fn object(&mut self) -> Result<Map<String, Value>, Stop> {
        let begin = self.at;
        let object = match self.peek().map(plain) {
            Some('{') => {
                let doubled = self.brace()?;
                self.members(1, doubled)?
            }
            _ => {
                self.mend(RepairKind::MissingBrace, begin)?;
                self.members(1, false)?
            }
        };
        let loose = |mend: &RepairRecord| {
            matches!(
                mend.kind,
                RepairKind::MissingComma
                    | RepairKind::MissingValue
                    | RepairKind::UnquotedKey
                    | RepairKind::UnquotedText
                    | RepairKind::RepeatedKey
            )
        };
        if (self.guessed && self.mends.iter().any(loose)) || (self.bare_key && self.bare_text) {
            return Err(Stop::Refused("too much is missing to determine where its strings end", begin));
        }
        Ok(object)
    }

    /// Refuses a text that is looked at too often. As every look ends at one of the next quotes, none should be.
    pub(super) fn look_no_further_than_linear(&self) -> Result<(), Stop> {
        if self.looked / MOST_LOOKS > self.text.len() {
            return Err(Stop::Refused("it requires too much lookahead", self.at));
        }
        Ok(())
    }

    /// The members up to the closing brace. The field in which the raw text ends is left out, of the outermost object: what
    /// is kept is whole.
    fn members(&mut self, depth: usize, doubled: bool) -> Result<Map<String, Value>, Stop> {
        let mut members = Map::new();
        let mut comma = None;
        let mut bare = false;
        loop {
            let Some(c) = self.token()? else { return self.cut(members, depth, None) };
            let begin = self.at;
            match plain(c) {
                '}' => {
                    self.extra(comma)?;
                    self.punctuation(c)?;
                    if doubled && self.peek() == Some('}') {
                        self.bump();
                    }
                    return Ok(members);
                }
                ',' => {
                    self.extra(comma.or_else(|| members.is_empty().then_some(begin)))?;
                    self.punctuation(c)?;
                    comma = Some(begin);
                    continue;
                }
                _ if comma.is_none() && !members.is_empty() => {
                    if bare || closing(c).is_none() || !self.look(begin, Ahead::key_and_colon) {
                        return Err(Stop::Refused("a comma or a closing brace was expected", begin));
                    }
                    self.mend(RepairKind::MissingComma, begin)?;
                }
                _ => {}
            }
            comma = None;
            let had_bare = std::mem::take(&mut self.bare_text);
            match self.member(depth) {
                Ok((key, value)) => {
                    if members.insert(key, value).is_some() {
                        self.mend(RepairKind::RepeatedKey, begin)?;
                    }
                }
                Err(Stop::Cut) => return self.cut(members, depth, Some(begin)),
                Err(refused) => return Err(refused),
            }
            bare = self.bare_text;
            self.bare_text |= had_bare;
        }
    }

    /// The end of the raw text before the closing brace, in the field that begins at `field` or between two.
    fn cut(
        &mut self,
        members: Map<String, Value>,
        depth: usize,
        field: Option<usize>,
    ) -> Result<Map<String, Value>, Stop> {
        if depth > 1 {
            return Err(Stop::Cut);
        }
        if let Some(field) = field {
            self.mends.retain(|mend| mend.at < field);
            self.mend(RepairKind::CutField, field)?;
        }
        self.mend(RepairKind::CutOff, self.at)?;
        Ok(members)
    }

    fn member(&mut self, depth: usize) -> Result<(String, Value), Stop> {
        let key = self.key()?;
        let colon = self.token()?.ok_or(Stop::Cut)?;
        if plain(colon) != ':' {
            return Err(Stop::Refused("a colon was expected after a key", self.at));
        }
        self.punctuation(colon)?;
        match self.token()?.map(plain) {
            Some(',' | '}') => {
                self.mend(RepairKind::MissingValue, self.at)?;
                Ok((key, Value::Null))
            }
            _ => Ok((key, self.value(depth, RepairLocation::Member)?)),
        }
    }

    fn key(&mut self) -> Result<String, Stop> {
        let begin = self.at;
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
            return Err(Stop::Refused("a key was expected", begin));
        }
        // `content": …`: the opening quote alone is missing.
        if self.peek() == Some('"') {
            self.bump();
        } else {
            self.bare_key = true;
        }
        self.mend(RepairKind::UnquotedKey, begin)?;
        Ok(key.to_owned())
    }

    fn value(&mut self, depth: usize, place: RepairLocation) -> Result<Value, Stop> {
        let begin = self.at;
        let c = self.token()?.ok_or(Stop::Cut)?;
        match plain(c) {
            '{' | '[' if depth >= DEPTH => Err(Stop::Refused("it is nested deeper than 128 levels", begin)),
            '{' => {
                let doubled = self.brace()?;
                self.members(depth + 1, doubled).map(Value::Object)
            }
            '[' => {
                self.punctuation(c)?;
                self.items(depth + 1).map(Value::Array)
            }
            _ if closing(c).is_some() => self.quoted(place).map(Value::String),
            _ => self.bare(),
        }
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Value>, Stop> {
        let mut items = Vec::new();
        let mut comma = None;
        let mut bare = false;
        loop {
            let c = self.token()?.ok_or(Stop::Cut)?;
            let begin = self.at;
            match plain(c) {
                ']' => {
                    self.extra(comma)?;
                    self.punctuation(c)?;
                    return Ok(items);
                }
                ',' => {
                    self.extra(comma.or_else(|| items.is_empty().then_some(begin)))?;
                    self.punctuation(c)?;
                    comma = Some(begin);
                    continue;
                }
                _ if comma.is_none() && !items.is_empty() => {
                    if bare || is_word(c) {
                        return Err(Stop::Refused("a comma or a closing bracket was expected", begin));
                    }
                    self.mend(RepairKind::MissingComma, begin)?;
                }
                _ => {}
            }
            comma = None;
            bare = is_word(c);
            items.push(self.value(depth, RepairLocation::Item)?);
        }
    }

    fn brace(&mut self) -> Result<bool, Stop> {
        let begin = self.at;
        if let Some(c) = self.peek() {
            self.punctuation(c)?;
        }
        let doubled = self.peek() == Some('{');
        if doubled {
            self.mend(RepairKind::DoubledBrace, begin)?;
            self.bump();
        }
        Ok(doubled)
    }

    fn extra(&mut self, comma: Option<usize>) -> Result<(), Stop> {
        comma.map_or(Ok(()), |at| self.mend(RepairKind::ExtraComma, at))
    }

    fn punctuation(&mut self, c: char) -> Result<(), Stop> {
        if plain(c) != c {
            self.wide = true;
            self.mend(RepairKind::FullWidth, self.at)?;
        }
        self.bump();
        Ok(())
    }

    /// The next character of syntax, behind white space and comments; nothing at the end of the text or at a closing fence.
    fn token(&mut self) -> Result<Option<char>, Stop> {
        let mut odd = false;
        while let Some(c) = self.peek() {
            let rest = self.rest();
            let literal = ["\\n", "\\r", "\\t"].iter().any(|escape| rest.starts_with(escape));
            if is_json_space(c) {
                self.bump();
            } else if is_space(c) || literal {
                if !odd {
                    self.mend(RepairKind::OtherSpace, self.at)?;
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
        let end = end.ok_or(Stop::Refused("a comment is not closed", self.at))?;
        self.mend(RepairKind::Comment, self.at)?;
        self.at += end;
        Ok(())
    }

    pub(super) fn mend(&mut self, kind: RepairKind, at: usize) -> Result<(), Stop> {
        if self.mends.len() >= MOST_MENDS {
            return Err(Stop::Refused("it needs more than 1000 repairs", at));
        }
        self.mends.push(RepairRecord { kind, at });
        Ok(())
    }

    pub(super) fn look<T>(&mut self, at: usize, mut question: impl FnMut(&mut Ahead<'t>) -> T) -> T {
        let mut ahead = Ahead::new(self.text, at, self.wide);
        let answer = question(&mut ahead);
        self.looked += ahead.looked();
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
