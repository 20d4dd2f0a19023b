//! Parses a quoted string of near-JSON and determines which quote ends it.
//!
//! An unescaped quote belongs to the string if the text after it cannot follow a value. This is a guess, which is used only under
//! these conditions: such quotes occur in pairs, the first of a pair is directly before a word and the second directly after one,
//! none is followed by a colon (which would mean that the string contains a member), and none is followed by another quote that
//! does not end the string. In all other cases the string is rejected.

use crate::reply::repair::characters::{closing, is_quote, is_space, is_word, plain};
use crate::reply::repair::follow::{Lookahead, RepairLocation};
use crate::reply::repair::parser::{Parser, Stop};
use crate::reply::repair::quote_error::QuoteReading;
use crate::reply::repair::record::RepairKind;

pub(super) struct Quoted {
    pub(super) location: RepairLocation,
    pub(super) start: usize,
    open: char,
    pub(super) close: char,
    pub(super) text: String,
    /// The number of unescaped quotes of its own kind inside it.
    raw_quotes: usize,
    /// The number of unescaped quotes inside it that stand for inches.
    inches: usize,
    /// The number of escaped quotes of its own kind inside it.
    pub(super) escaped_quotes: usize,
    /// The number of open pairs of typographic quotes inside it.
    nested: usize,
    /// The number of typographic opening quotes inside a string with plain quotes that nothing has closed yet.
    pub(super) unclosed: usize,
    control: bool,
    /// The length of the text before its first unescaped quote.
    before_quotes: usize,
    /// Whether it ends without a closing quote.
    pub(super) unclosed_end: bool,
    doubled_open: bool,
}

impl Parser<'_> {
    /// The quoted string at the current position.
    ///
    /// # Errors
    /// [`Stop::Cut`] when the text ends inside the string; [`Stop::Rejected`] when its end is ambiguous.
    pub(super) fn quoted(&mut self, location: RepairLocation) -> Result<String, Stop> {
        let start = self.at;
        let Some((open, close)) = self.peek().and_then(|open| Some((open, closing(open)?))) else {
            return Err(Stop::Rejected("a quote was expected", start));
        };
        if open != '"' {
            self.add_repair(RepairKind::OtherQuotes, start)?;
        }
        self.bump();
        let text = String::new();
        let mut quoted = Quoted {
            location,
            start,
            open,
            close,
            text,
            raw_quotes: 0,
            inches: 0,
            escaped_quotes: 0,
            nested: 0,
            unclosed: 0,
            control: false,
            before_quotes: usize::MAX,
            unclosed_end: false,
            doubled_open: false,
        };
        if self.starts_doubled(open, location)? {
            self.bump();
            self.add_repair(RepairKind::DoubleEncoded, start)?;
            return self.repeated_quotes(quoted, 2);
        }
        quoted.doubled_open = self.skip_doubled_open(open, start, location)?;
        if matches!(open, '"' | '\'') && location != RepairLocation::Key && self.rest().starts_with(doubled(open)) {
            self.bump();
            self.bump();
            self.add_repair(RepairKind::OtherQuotes, start)?;
            if self.look_ahead(self.at, |lookahead| lookahead.continues(location)) {
                return Err(Stop::Rejected("three quotes in a row: it is not clear which one ends the string", start));
            }
            return self.repeated_quotes(quoted, 3);
        }
        loop {
            self.take_plain_text(&mut quoted);
            let Some(c) = self.peek() else { return Err(quoted.cut(self.wide)) };
            match c {
                '\\' => self.take_escape(&mut quoted)?,
                '\0'..='\u{1f}' => self.take_control(&mut quoted, c)?,
                _ if self.ends(&mut quoted, c)? => {
                    if !quoted.unclosed_end {
                        if quoted.location == RepairLocation::Item && quoted.control && self.may_start_item(c) {
                            return Err(Stop::Rejected("it is not clear where the string ends", quoted.start));
                        }
                        self.bump();
                    }
                    return quoted.finish();
                }
                _ => self.take_char(&mut quoted, c),
            }
        }
    }

    /// The rest of a string enclosed by two or three quotes on each side.
    fn repeated_quotes(&mut self, mut quoted: Quoted, count: usize) -> Result<String, Stop> {
        loop {
            self.take_plain_text(&mut quoted);
            let Some(c) = self.peek() else { return Err(Stop::Rejected("triple quotes are not closed", quoted.start)) };
            match c {
                '\\' => {
                    self.take_escape(&mut quoted)?;
                    // The escaped quote is doubled as well.
                    if count == 2 && quoted.text.ends_with(quoted.open) && self.peek() == Some(quoted.open) {
                        self.bump();
                    }
                }
                '\0'..='\u{1f}' => self.take_control(&mut quoted, c)?,
                _ if c == quoted.open && self.ends_repeated(c, count, quoted.location) => {
                    (0..count).for_each(|_| self.bump());
                    return Ok(quoted.text);
                }
                _ if c == quoted.open && count == 2 => {
                    return Err(Stop::Rejected("it is not clear where the string ends", quoted.start));
                }
                _ => self.take_char(&mut quoted, c),
            }
        }
    }

    fn ends_repeated(&mut self, quote: char, count: usize, location: RepairLocation) -> bool {
        let is_repeated = self.rest().chars().take(count).filter(|&c| c == quote).count() == count;
        is_repeated && self.ends_string(self.at + count * quote.len_utf8(), location)
    }

    /// Whether the text at `after`, after a quote, may follow a key or value.
    pub(super) fn ends_string(&mut self, after: usize, location: RepairLocation) -> bool {
        match location {
            RepairLocation::Key => self.look_ahead(after, Lookahead::after_space).map(plain) == Some(':'),
            _ => self.look_ahead(after, |lookahead| lookahead.continues(location)),
        }
    }

    /// Consumes characters without special meaning in one step.
    fn take_plain_text(&mut self, quoted: &mut Quoted) {
        if quoted.open != '"' {
            return;
        }
        let rest = self.rest();
        // 0xE2 is the first byte of typographic quotes, among others, which are handled individually.
        let stops = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\' || byte == 0xE2;
        let end = rest.bytes().position(stops).unwrap_or(rest.len());
        quoted.text.push_str(rest.get(..end).unwrap_or_default());
        self.at += end;
    }

    fn take_char(&mut self, quoted: &mut Quoted, c: char) {
        quoted.text.push(c);
        self.bump();
    }

    fn take_control(&mut self, quoted: &mut Quoted, c: char) -> Result<(), Stop> {
        if !quoted.control {
            quoted.control = true;
            self.add_repair(RepairKind::RawControl, self.at)?;
        }
        self.take_char(quoted, c);
        Ok(())
    }

    /// Whether `c`, the current character, ends the string.
    fn ends(&mut self, quoted: &mut Quoted, c: char) -> Result<bool, Stop> {
        let is_closing = c == quoted.close;
        if quoted.open == quoted.close {
            return match c {
                _ if is_closing && self.ends_doubled_key(c, &quoted.text, quoted.location)? => Ok(true),
                _ if is_closing && quoted.location == RepairLocation::Key && self.is_inside_a_word(c) => {
                    quoted.raw_quotes += 1;
                    self.guessed = true;
                    self.add_repair(RepairKind::RawQuote, self.at).map(|()| false)
                }
                _ if is_closing && (quoted.location == RepairLocation::Key || self.continues_after(c, quoted)) => {
                    Ok(true)
                }
                _ if is_closing && quoted.unclosed > 0 => {
                    quoted.unclosed -= 1;
                    self.guessed = true;
                    self.add_repair(RepairKind::RawQuote, self.at).map(|()| false)
                }
                _ if is_closing && self.quotes == QuoteReading::OneError => self.repair_quote_error(quoted, c),
                _ if is_closing => self.take_inner_quote(quoted, c).map(|()| false),
                '„' | '“' if self.quotes != QuoteReading::Mixed && quoted.open == '"' => {
                    // In German, `“` closes.
                    quoted.unclosed =
                        if c == '“' && quoted.unclosed > 0 { quoted.unclosed - 1 } else { quoted.unclosed + 1 };
                    Ok(false)
                }
                '”' if self.quotes != QuoteReading::Mixed && quoted.open == '"' => {
                    quoted.unclosed = quoted.unclosed.saturating_sub(1);
                    Ok(false)
                }
                '´' | '\'' if quoted.open == '`' => self.ends_with_other_quote(quoted, c),
                '“' if self.quotes == QuoteReading::Mixed && quoted.open == '"' => {
                    quoted.nested += 1;
                    Ok(false)
                }
                '”' if self.quotes == QuoteReading::Mixed && quoted.open == '"' && quoted.nested > 0 => {
                    if quoted.location != RepairLocation::Key && self.continues(c, quoted.location) {
                        return Err(Stop::Rejected("it is not clear which quote ends the string", self.at));
                    }
                    quoted.nested -= 1;
                    Ok(false)
                }
                // Not in a list, where the text after a comma is too ambiguous.
                '”' if self.quotes == QuoteReading::Mixed
                    && quoted.open == '"'
                    && quoted.location != RepairLocation::Item =>
                {
                    self.ends_with_other_quote(quoted, c)
                }
                _ => Ok(false),
            };
        }
        if is_closing && quoted.nested == 0 {
            if quoted.location == RepairLocation::Key || self.continues(c, quoted.location) {
                return Ok(true);
            }
            return match c {
                '’' if self.is_apostrophe() => Ok(false),
                _ => Err(Stop::Rejected("a closing quote inside a string has no opening quote", self.at)),
            };
        }
        if is_closing {
            if quoted.location != RepairLocation::Key && (self.continues(c, quoted.location) || self.is_before_colon(c))
            {
                return Err(Stop::Rejected("it is not clear which quote ends the string", self.at));
            }
            quoted.nested -= 1;
            return Ok(false);
        }
        match c {
            // `“content“` and `“content"` are common typing errors.
            '“' | '”' | '"'
                if matches!(quoted.open, '“' | '„')
                    && !(c == '"' && self.has_escaped_quote(quoted.start))
                    && quoted.nested == 0
                    && self.ends_with_other_quote(quoted, c)? =>
            {
                Ok(true)
            }
            _ if c == quoted.open && quoted.location == RepairLocation::Key => {
                Err(Stop::Rejected("it is not clear where a key ends", self.at))
            }
            _ if c == quoted.open => {
                quoted.nested += 1;
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Whether an escaped plain quote is between `start` and the current position, so that plain quotes may enclose the string.
    fn has_escaped_quote(&self, start: usize) -> bool {
        self.text.get(start..self.at).is_some_and(|text| text.contains("\\\""))
    }

    /// Whether `c`, a quote of another kind than the opening one, ends the string.
    fn ends_with_other_quote(&mut self, quoted: &Quoted, c: char) -> Result<bool, Stop> {
        let ends = match quoted.location {
            RepairLocation::Key => {
                Lookahead::new(self.text, self.at + c.len_utf8(), true).after_space().map(plain) == Some(':')
            }
            // In a truncated text this is no evidence.
            location => self.look_ahead(self.at + c.len_utf8(), |lookahead| lookahead.strictly().continues(location)),
        };
        if ends {
            self.guessed = true;
            self.mixed_quotes = true;
            self.add_repair(RepairKind::OtherQuotes, self.at)?;
        }
        Ok(ends)
    }

    /// Whether the text after `c`, the current character, may follow a value.
    fn continues(&mut self, c: char, location: RepairLocation) -> bool {
        self.look_ahead(self.at + c.len_utf8(), |lookahead| lookahead.continues(location))
    }

    /// As [`Self::continues`]; also a word before the next key may follow, unless quotes inside the string make it uncertain.
    fn continues_after(&mut self, c: char, quoted: &Quoted) -> bool {
        let is_certain = quoted.raw_quotes == 0 && quoted.unclosed == 0;
        self.look_ahead(self.at + c.len_utf8(), |lookahead| {
            lookahead.may_have_extra_word = is_certain;
            lookahead.continues(quoted.location)
        })
    }

    /// Whether a colon that may be syntax follows `c`, the current character, so that a key ends there.
    fn is_before_colon(&mut self, c: char) -> bool {
        let after = self.look_ahead(self.at + c.len_utf8(), Lookahead::after_space);
        after.is_some_and(|after| after == ':' || (self.wide && plain(after) == ':'))
    }

    /// Handles an unescaped quote that does not end the string.
    fn take_inner_quote(&mut self, quoted: &mut Quoted, c: char) -> Result<(), Stop> {
        let apostrophe = c == '\'' && self.is_apostrophe();
        if !apostrophe {
            let after_quote = self.at + c.len_utf8();
            let next = self.text.get(after_quote..).and_then(|rest| rest.chars().next());
            let after = self.look_ahead(after_quote, Lookahead::after_space);
            let colon = self.is_before_colon(c);
            let is_before_end = after == Some(c) && next != after && self.ends_after_space(c, quoted);
            let after_words = after.filter(|_| !is_before_end);
            let reason = if quoted.location == RepairLocation::Item && !quoted.encloses_words(next, after_words) {
                Some("a string in a list contains a quote that is not escaped")
            } else if quoted.is_inch_mark(next) && !colon {
                None
            } else if !quoted.can_enclose(next) {
                Some("a quote inside a string is not escaped and does not enclose anything")
            } else if colon {
                Some("a string seems to continue past the next key")
            } else if after == Some(c) && !(is_before_end && quoted.location == RepairLocation::Item) {
                let location = quoted.location;
                let last = next == Some(c)
                    && self.look_ahead(after_quote + c.len_utf8(), |lookahead| lookahead.continues(location));
                (!last).then_some("two quotes in a row: it is not clear which one ends the string")
            } else {
                None
            };
            if let Some(reason) = reason {
                // The last quote of the text: the string is only incomplete.
                if quoted.raw_quotes > 0 && !self.text.get(after_quote..).is_some_and(|rest| rest.contains(is_syntax)) {
                    self.at = self.text.len();
                    return Err(quoted.cut(self.wide));
                }
                return Err(Stop::Rejected(reason, self.at));
            }
            self.check_lookahead_limit()?;
            quoted.before_quotes = quoted.before_quotes.min(quoted.text.len());
            if quoted.is_inch_mark(next) {
                quoted.inches += 1;
            } else {
                quoted.raw_quotes += 1;
            }
            self.guessed = true;
        }
        self.add_repair(RepairKind::RawQuote, self.at)
    }

    /// Whether the current quote `c` may start an item instead of ending the one before, whose closing quote is then missing: it is the
    /// first character of its line, and the next quote on this line may end an item.
    fn may_start_item(&mut self, c: char) -> bool {
        if !self.text.get(..self.at).is_some_and(|before| before.trim_end_matches([' ', '\t']).ends_with('\n')) {
            return false;
        }
        let inside = self.at + c.len_utf8();
        let line = self.text.get(inside..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let mut escaped = false;
        let end = line.find(|other| {
            let is_quote = other == c && !escaped;
            escaped = other == '\\' && !escaped;
            is_quote
        });
        end.is_some_and(|end| self.ends_string(inside + end + c.len_utf8(), RepairLocation::Item))
    }

    /// Whether another quote `c` follows the current one after spaces, and ends the string.
    fn ends_after_space(&mut self, c: char, quoted: &Quoted) -> bool {
        let inside = self.rest().get(c.len_utf8()..).unwrap_or_default();
        let space = inside.len() - inside.trim_start_matches(' ').len();
        let end = self.at + c.len_utf8() + space;
        space > 0 && self.look_ahead(end + c.len_utf8(), |lookahead| lookahead.strictly().continues(quoted.location))
    }

    /// Whether `c`, the current character, is between two characters of words.
    fn is_inside_a_word(&self, c: char) -> bool {
        let word = |c: Option<char>| c.is_some_and(char::is_alphabetic);
        word(self.text.get(..self.at).and_then(|before| before.chars().next_back()))
            && word(self.text.get(self.at + c.len_utf8()..).and_then(|after| after.chars().next()))
    }

    /// Whether the current quote is between two letters, as in `it's`.
    fn is_apostrophe(&self) -> bool {
        let letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
        letter(self.text.get(..self.at).and_then(|before| before.chars().next_back()))
            && letter(self.rest().chars().nth(1))
    }
}

impl Quoted {
    /// Whether the next inner quote is adjacent to a word: the first of a pair to the character after it, `next`, the second to the
    /// character before it.
    fn can_enclose(&self, next: Option<char>) -> bool {
        if (self.raw_quotes + self.escaped_quotes) % 2 == 1 {
            return self.text.chars().next_back().is_some_and(|before| !is_space(before));
        }
        next.is_some_and(|next| {
            !is_space(next) && !matches!(plain(next), ',' | ':' | '}' | ']' | ';' | '；' | '+' | '\\')
        })
    }

    /// Whether the next quote stands for inches: it is after a digit and before a space, and no quote before it is open.
    fn is_inch_mark(&self, next: Option<char>) -> bool {
        self.location == RepairLocation::Member
            && (self.raw_quotes + self.escaped_quotes).is_multiple_of(2)
            && self.text.ends_with(|c: char| c.is_ascii_digit())
            && next.is_some_and(is_space)
    }

    /// Whether the next inner quote of an item is part of a pair around words, and not next to a comma, which may separate items.
    fn encloses_words(&self, next: Option<char>, after: Option<char>) -> bool {
        let separates = |c: char| matches!(plain(c), ',' | '、' | ';' | '；') || is_quote(c);
        let before = self.text.chars().next_back();
        let is_second = (self.raw_quotes + self.escaped_quotes) % 2 == 1;
        let beside = if is_second { before } else { next };
        let mut last = self.text.trim_end().chars().rev();
        let is_after_separator = match last.next() {
            // Items would be separated by a comma between two quotes.
            Some(',') if !is_second && self.escaped_quotes == 0 => last.find(|&c| !is_space(c)).is_none_or(separates),
            last => last.is_some_and(separates),
        };
        beside.is_some_and(is_word) && !after.is_some_and(separates) && !is_after_separator
    }

    /// The error for a string that is incomplete at the end of the raw text.
    pub(super) fn cut(&self, wide: bool) -> Stop {
        // With unescaped quotes, it may contain other fields, unless there is no colon after them.
        let colon = |c: char| c == ':' || (wide && plain(c) == ':');
        let may_contain_fields =
            self.raw_quotes > 0 && self.text.get(self.before_quotes..).is_none_or(|text| text.contains(colon));
        // A string that ends like an object probably contains the end of the object.
        let closed = self.text.trim_end_matches(|c| is_space(c) || c == '`').ends_with(['}', '｝']);
        let is_end = self.text.chars().all(|c| is_space(c) || matches!(plain(c), '}' | ']' | '`'));
        let swallowed = match self.location {
            _ if closed && (may_contain_fields || self.open != '"' || is_end) => true,
            RepairLocation::Key => !self.text.chars().all(|c| is_word(c) || is_space(c)),
            _ => may_contain_fields || (self.open != '"' && self.nested > 0),
        };
        if swallowed { Stop::Rejected("it is not clear where the string ends", self.start) } else { Stop::Cut }
    }

    fn finish(self) -> Result<String, Stop> {
        if self.doubled_open && self.text.contains(['"', '“', '”', '„', '«', '»']) {
            return Err(Stop::Rejected("two quotes in a row: it is not clear which one starts the string", self.start));
        }
        // An escaped quote does not match one that could be a doubled quote, or that could separate items.
        let at_edge =
            self.before_quotes == 0 || self.text.ends_with(self.close) || self.location == RepairLocation::Item;
        if self.raw_quotes % 2 == 1 && (self.escaped_quotes.is_multiple_of(2) || at_edge) {
            return Err(Stop::Rejected("a quote inside a string is not escaped and has no matching quote", self.start));
        }
        Ok(self.text)
    }
}

pub(super) const fn doubled(quote: char) -> &'static str {
    if quote == '"' { "\"\"" } else { "''" }
}

/// Whether `c` may belong to another field.
const fn is_syntax(c: char) -> bool {
    is_quote(c) || matches!(c, ':' | '：')
}
