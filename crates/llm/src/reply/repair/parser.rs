//! Parses an object of near-JSON and records every repair. It needs one pass, with a bounded lookahead at each quote, and supports 128
//! levels.
//!
//! It changes only the syntax; strings are unchanged. Ambiguous input is rejected.

use serde_json::{Map, Value};

use crate::reply::repair::characters::{closing, is_json_space, is_space, is_word, plain};
use crate::reply::repair::follow::{Lookahead, RepairLocation};
use crate::reply::repair::items::{AfterBracket, BracketRepair};
use crate::reply::repair::quote_error::{QuoteError, QuoteReading};
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
    /// The closing bracket at this position does not match the opening one, and no repair was chosen.
    Bracket(usize),
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) repairs: Vec<RepairRecord>,
    pub(super) quotes: QuoteReading,
    pub(super) quote_error: QuoteError,
    /// Whether every quote is doubled, as in CSV.
    pub(super) doubled: bool,
    /// The numbers that were read, as written.
    pub(super) numbers: Vec<&'t str>,
    /// Whether full-width punctuation was used as syntax.
    pub(super) wide: bool,
    /// Whether the end of a string was determined from the text after it; then no quotes may follow the object.
    pub(super) guessed: bool,
    /// Whether a string or key ends at a quote of another kind than the one that starts it.
    pub(super) mixed_quotes: bool,
    /// Whether a string of one word has no quotes.
    pub(super) bare_text: bool,
    /// Whether a key contains syntax, so that it may be the rest of a string.
    unlikely_key: bool,
    /// How a bracket that does not match is read.
    pub(super) bracket: Option<BracketRepair>,
    pub(super) bracket_used: bool,
    /// The number of open parentheses.
    pub(super) tuples: usize,
    lookahead: usize,
}

impl<'t> Parser<'t> {
    pub(super) const fn new(text: &'t str, at: usize, quotes: QuoteReading, bracket: Option<BracketRepair>) -> Self {
        Self {
            text,
            at,
            repairs: Vec::new(),
            quotes,
            quote_error: QuoteError { found: false, no_comma: false, is_key: false },
            doubled: false,
            numbers: Vec::new(),
            wide: false,
            guessed: false,
            mixed_quotes: false,
            bare_text: false,
            unlikely_key: false,
            bracket,
            bracket_used: false,
            tuples: 0,
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
                    | RepairKind::MissingColon
                    | RepairKind::MissingValue
                    | RepairKind::MissingQuote
                    | RepairKind::WrongBracket
                    | RepairKind::ExtraBracket
                    | RepairKind::Ellipsis
                    | RepairKind::JoinedText
                    | RepairKind::UnquotedKey
                    | RepairKind::UnquotedText
                    | RepairKind::RepeatedKey
            )
        };
        let starts_inside = self.repairs.iter().any(|repair| repair.kind == RepairKind::MissingBrace);
        let has = |kind: RepairKind| self.repairs.iter().any(|repair| repair.kind == kind);
        let no_opening_quote = has(RepairKind::MissingQuote) && !self.quote_error.found;
        let is_unlikely = (self.unlikely_key && (self.guessed || starts_inside || no_opening_quote))
            || (has(RepairKind::MissingQuote)
                && [
                    RepairKind::DoubleEncoded,
                    RepairKind::FullWidth,
                    RepairKind::OtherSpace,
                    RepairKind::WrongBracket,
                    RepairKind::ExtraBracket,
                ]
                .into_iter()
                .any(has));
        let is_mixed = self.mixed_quotes && (has(RepairKind::RawQuote) || has(RepairKind::DoubleEncoded));
        if is_unlikely || is_mixed || (self.guessed && self.repairs.iter().any(ambiguous)) {
            return Err(Stop::Rejected("too much is missing to determine where its strings end", start));
        }
        self.check_quote_error(start)?;
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
            let before = self.at;
            let Some(c) = self.token()? else { return self.truncated(members, depth, None) };
            let start = self.at;
            if self.ellipsis(start, comma.is_some(), members.is_empty())? {
                comma = None;
                continue;
            }
            // After a comma, or at the end of a field.
            if !members.is_empty()
                && self.look_ahead(start, |lookahead| lookahead.strictly().extra_word(comma.is_some()))
            {
                self.add_repair(RepairKind::ExtraWord, start)?;
                self.skip_word();
                continue;
            }
            match plain(c) {
                ']' | ')' => match self.unmatched_bracket(start)? {
                    AfterBracket::End => return Ok(members),
                    AfterBracket::Continue => continue,
                },
                // The next object of a list, so that this one has no closing brace.
                '{' if depth > 1 && !members.is_empty() => {
                    return match self.unmatched_bracket(start)? {
                        AfterBracket::End if self.bracket == Some(BracketRepair::Insert) => Ok(members),
                        _ => Err(Stop::Rejected("a key was expected", start)),
                    };
                }
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
                    let on_new_line = self.text.get(before..start).is_some_and(|space| space.contains('\n'));
                    let is_key = closing(c).is_some() || on_new_line;
                    if (bare && start == before) || !is_key || !self.look_ahead(start, Lookahead::key_and_colon) {
                        return Err(Stop::Rejected("a comma or a closing brace was expected", start));
                    }
                    self.add_repair(RepairKind::MissingComma, start)?;
                }
                _ => {}
            }
            comma = None;
            let had_bare = std::mem::take(&mut self.bare_text);
            let had_unlikely_key = std::mem::take(&mut self.unlikely_key);
            let member = self.member(depth);
            let is_unlikely = self.unlikely_key;
            // Of a field that is cut off, only the keys that lead to its end count.
            self.unlikely_key |= had_unlikely_key && (depth == 1 || member.is_ok());
            match member {
                Ok((key, value)) => {
                    if members.insert(key, value).is_some() {
                        self.add_repair(RepairKind::RepeatedKey, start)?;
                    }
                }
                // The rest of the text may have been taken for a key.
                Err(Stop::Cut) if is_unlikely => {
                    return Err(Stop::Rejected("it is not clear where a key ends", start));
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
        let was_quoted = self.peek().and_then(closing).is_some();
        let key = self.key()?;
        let after_key = self.at;
        let colon = self.token()?.ok_or(Stop::Cut)?;
        let is_colon = colon == ':' || (self.wide && plain(colon) == ':');
        if was_quoted && key.ends_with(':') && !(is_colon && self.at == after_key) {
            return Err(Stop::Rejected("it is not clear where a key ends", after_key));
        }
        match plain(colon) {
            ':' => self.punctuation(colon)?,
            '=' => {
                self.add_repair(RepairKind::MissingColon, self.at)?;
                self.bump();
                if self.peek() == Some('>') {
                    self.bump();
                }
            }
            // A value without quotes after a key without quotes would be one text.
            _ if key.is_empty() => return Err(Stop::Rejected("a colon was expected after a key", self.at)),
            c if closing(c).is_some() || (was_quoted && self.starts_number_or_literal()) => {
                self.add_repair(RepairKind::MissingColon, after_key)?;
            }
            _ => return Err(Stop::Rejected("a colon was expected after a key", self.at)),
        }
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
            let quoted = self.quoted(RepairLocation::Key);
            if let Some(key) = self.unclosed_key(start)? {
                return Ok(key);
            }
            let key = self.without_line_ends(quoted?, start);
            self.unlikely_key |= key.contains(['{', '}', '[', ']', ',', ':', '\n']);
            return Ok(key);
        }
        if self.peek() == Some('\\') {
            return self.escaped_quoted(RepairLocation::Key);
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
        if matches!(self.peek(), Some('"' | '\'')) {
            // A full-width comma before it may belong to it.
            if self.text.get(..start).is_some_and(|before| before.trim_end_matches(is_space).ends_with('，')) {
                return Err(Stop::Rejected("a key was expected", start));
            }
            self.bump();
        }
        self.add_repair(RepairKind::UnquotedKey, start)?;
        Ok(key.to_owned())
    }

    pub(super) fn value(&mut self, depth: usize, location: RepairLocation) -> Result<Value, Stop> {
        let start = self.at;
        let c = self.token()?.ok_or(Stop::Cut)?;
        match plain(c) {
            '{' | '[' | '(' if depth >= MAX_DEPTH => Err(Stop::Rejected("it is nested deeper than 128 levels", start)),
            '{' => {
                let doubled = self.brace()?;
                self.members(depth + 1, doubled).map(Value::Object)
            }
            '[' => {
                self.punctuation(c)?;
                self.items(depth + 1, ']').map(Value::Array)
            }
            '(' => {
                self.add_repair(RepairKind::Tuple, start)?;
                self.bump();
                self.tuples += 1;
                let items = self.items(depth + 1, ')')?;
                self.tuples -= 1;
                Ok(Value::Array(items))
            }
            _ if closing(c).is_some() => {
                let text = self.quoted(location)?;
                self.joined(text, location).map(Value::String)
            }
            '\\' => self.escaped_quoted(location).map(Value::String),
            _ => self.bare(depth, location),
        }
    }

    /// `key`, whose opening quote is at `start`, without unescaped line ends and spaces next to its quotes, if it is a name.
    fn without_line_ends(&self, key: String, start: usize) -> String {
        let raw = self.text.get(start..self.at).unwrap_or_default();
        let name = key.trim_matches(is_json_space);
        let is_name = !name.is_empty() && name.chars().all(is_word);
        if is_name && raw.contains('\n') && !raw.contains('\\') { name.to_owned() } else { key }
    }

    fn skip_word(&mut self) {
        let rest = self.rest();
        self.at += rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
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

    pub(super) fn extra_comma(&mut self, comma: Option<usize>) -> Result<(), Stop> {
        comma.map_or(Ok(()), |at| self.add_repair(RepairKind::ExtraComma, at))
    }

    pub(super) fn punctuation(&mut self, c: char) -> Result<(), Stop> {
        if plain(c) != c {
            self.wide = true;
            self.add_repair(RepairKind::FullWidth, self.at)?;
        }
        self.bump();
        Ok(())
    }

    /// The next character after white space and comments; `None` at the end of the text or at a closing fence.
    pub(super) fn token(&mut self) -> Result<Option<char>, Stop> {
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
        let end = if rest.starts_with("/*") {
            rest.find("*/").map(|end| end + 2)
        } else {
            // On the last line, a comment that has no closing bracket in it would end the text.
            rest.find('\n').or_else(|| end_of_last_comment(rest))
        };
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
        lookahead.in_tuple = self.tuples > 0;
        lookahead.doubled = self.doubled;
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

/// The length of the comment that starts `rest`, which has no line end: up to a closing bracket, unless it may contain fields.
fn end_of_last_comment(rest: &str) -> Option<usize> {
    let end = rest.find(['}', ']'])?;
    rest.get(..end)?.trim_start_matches(['/', '#']).chars().all(|c| is_word(c) || is_json_space(c)).then_some(end)
}
