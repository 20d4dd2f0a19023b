//! Parses a quoted string of near-JSON and determines which quote ends it.
//!
//! An unescaped quote belongs to the string if the text after it cannot follow a value. This is a guess, which is used only under
//! these conditions: such quotes occur in pairs, the first of a pair is directly before a word and the second directly after one,
//! none is followed by a colon (which would mean that the string contains a member), and none is followed by another quote that
//! does not end the string. In all other cases the string is rejected.

use crate::reply::repair::characters::{closing, is_quote, is_space, is_word, plain};
use crate::reply::repair::follow::{Lookahead, RepairLocation};
use crate::reply::repair::parser::{Parser, Stop};
use crate::reply::repair::record::RepairKind;

struct Quoted {
    location: RepairLocation,
    start: usize,
    open: char,
    close: char,
    text: String,
    /// The number of unescaped quotes of its own kind inside it.
    raw_quotes: usize,
    /// The number of unescaped quotes inside it that stand for inches.
    inches: usize,
    /// The number of escaped quotes of its own kind inside it.
    escaped_quotes: usize,
    /// The number of open pairs of typographic quotes inside it.
    nested: usize,
    /// The number of typographic opening quotes inside a string with plain quotes that nothing has closed yet.
    unclosed: usize,
    control: bool,
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
        };
        if matches!(open, '"' | '\'') && location != RepairLocation::Key && self.rest().starts_with(doubled(open)) {
            self.bump();
            self.bump();
            self.add_repair(RepairKind::OtherQuotes, start)?;
            if self.look_ahead(self.at, |lookahead| lookahead.continues(location)) {
                return Err(Stop::Rejected("three quotes in a row: it is not clear which one ends the string", start));
            }
            return self.triple_quoted(quoted);
        }
        loop {
            self.take_plain_text(&mut quoted);
            let Some(c) = self.peek() else { return Err(quoted.cut()) };
            match c {
                '\\' => self.take_escape(&mut quoted)?,
                '\0'..='\u{1f}' => self.take_control(&mut quoted, c)?,
                _ if self.ends(&mut quoted, c)? => {
                    self.bump();
                    return quoted.finish();
                }
                _ => self.take_char(&mut quoted, c),
            }
        }
    }

    fn triple_quoted(&mut self, mut quoted: Quoted) -> Result<String, Stop> {
        loop {
            self.take_plain_text(&mut quoted);
            let Some(c) = self.peek() else { return Err(Stop::Rejected("triple quotes are not closed", quoted.start)) };
            match c {
                '\\' => self.take_escape(&mut quoted)?,
                '\0'..='\u{1f}' => self.take_control(&mut quoted, c)?,
                _ if c == quoted.open && self.ends_triple_quoted(c, quoted.location) => {
                    (0..3).for_each(|_| self.bump());
                    return Ok(quoted.text);
                }
                _ => self.take_char(&mut quoted, c),
            }
        }
    }

    fn ends_triple_quoted(&mut self, quote: char, location: RepairLocation) -> bool {
        let triple = self.rest().get(1..).is_some_and(|rest| rest.starts_with(doubled(quote)));
        triple && self.look_ahead(self.at + 3, |lookahead| lookahead.continues(location))
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
                _ if is_closing && quoted.location == RepairLocation::Key && self.is_inside_a_word(c) => {
                    quoted.raw_quotes += 1;
                    self.guessed = true;
                    self.add_repair(RepairKind::RawQuote, self.at).map(|()| false)
                }
                _ if is_closing && (quoted.location == RepairLocation::Key || self.continues(c, quoted.location)) => {
                    Ok(true)
                }
                _ if is_closing && quoted.unclosed > 0 => {
                    quoted.unclosed -= 1;
                    self.guessed = true;
                    self.add_repair(RepairKind::RawQuote, self.at).map(|()| false)
                }
                _ if is_closing => self.take_inner_quote(quoted, c).map(|()| false),
                '„' | '“' if !self.mixed && quoted.open == '"' => {
                    // In German, `“` closes.
                    quoted.unclosed =
                        if c == '“' && quoted.unclosed > 0 { quoted.unclosed - 1 } else { quoted.unclosed + 1 };
                    Ok(false)
                }
                '”' if !self.mixed && quoted.open == '"' => {
                    quoted.unclosed = quoted.unclosed.saturating_sub(1);
                    Ok(false)
                }
                '´' | '\'' if quoted.open == '`' => self.ends_with_other_quote(quoted, c),
                '“' if self.mixed && quoted.open == '"' => {
                    quoted.nested += 1;
                    Ok(false)
                }
                '”' if self.mixed && quoted.open == '"' && quoted.nested > 0 => {
                    if quoted.location != RepairLocation::Key && self.continues(c, quoted.location) {
                        return Err(Stop::Rejected("it is not clear which quote ends the string", self.at));
                    }
                    quoted.nested -= 1;
                    Ok(false)
                }
                // Not in a list, where the text after a comma is too ambiguous.
                '”' if self.mixed && quoted.open == '"' && quoted.location != RepairLocation::Item => {
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
            self.add_repair(RepairKind::OtherQuotes, self.at)?;
        }
        Ok(ends)
    }

    /// Whether the text after `c`, the current character, may follow a value.
    fn continues(&mut self, c: char, location: RepairLocation) -> bool {
        self.look_ahead(self.at + c.len_utf8(), |lookahead| lookahead.continues(location))
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
            let reason = if quoted.location == RepairLocation::Item && !quoted.encloses_words(next, after) {
                Some("a string in a list contains a quote that is not escaped")
            } else if quoted.is_inch_mark(next) && !colon {
                None
            } else if !quoted.can_enclose(next) {
                Some("a quote inside a string is not escaped and does not enclose anything")
            } else if colon {
                Some("a string seems to continue past the next key")
            } else if after == Some(c) {
                let location = quoted.location;
                let last = next == Some(c)
                    && self.look_ahead(after_quote + c.len_utf8(), |lookahead| lookahead.continues(location));
                (!last).then_some("two quotes in a row: it is not clear which one ends the string")
            } else {
                None
            };
            if let Some(reason) = reason {
                return Err(Stop::Rejected(reason, self.at));
            }
            self.check_lookahead_limit()?;
            if quoted.is_inch_mark(next) {
                quoted.inches += 1;
            } else {
                quoted.raw_quotes += 1;
            }
            self.guessed = true;
        }
        self.add_repair(RepairKind::RawQuote, self.at)
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

    /// Decodes an escape. Unknown escapes are unchanged, except for escaped quotes.
    fn take_escape(&mut self, quoted: &mut Quoted) -> Result<(), Stop> {
        let at = self.at;
        self.bump();
        let Some(c) = self.peek() else { return Err(quoted.cut()) };
        let known = match c {
            '"' | '\\' | '/' => Some(c),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'u' => return self.take_code_point(quoted, at),
            _ => None,
        };
        if c == quoted.close {
            quoted.escaped_quotes += 1;
        }
        match known {
            Some(meant) => quoted.text.push(meant),
            None => {
                self.add_repair(RepairKind::OtherEscape, at)?;
                if !matches!(c, '\'' | '`' | '“' | '”' | '‘' | '’' | '「' | '」' | '『' | '』' | '＂') {
                    quoted.text.push('\\');
                }
                if c < ' ' {
                    return Ok(());
                }
                quoted.text.push(c);
            }
        }
        self.bump();
        Ok(())
    }

    /// Decodes `\uXXXX` and the second half of a surrogate pair, starting at the `u`.
    fn take_code_point(&mut self, quoted: &mut Quoted, at: usize) -> Result<(), Stop> {
        let rest = self.rest();
        let Some(hex_unit) = hex_unit(rest) else {
            let digits = rest.chars().skip(1).take_while(char::is_ascii_hexdigit).take(4).count();
            if 1 + digits == rest.len() {
                return Err(quoted.cut());
            }
            self.add_repair(RepairKind::OtherEscape, at)?;
            quoted.text.push_str("\\u");
            self.bump();
            return Ok(());
        };
        let low = || escaped_hex_unit(rest.get(5..)?).filter(|low| (0xDC00..0xE000).contains(low));
        if (0xD800..0xDC00).contains(&hex_unit)
            && rest.len() < 11
            && may_start_escape(rest.get(5..).unwrap_or_default())
        {
            return Err(quoted.cut());
        }
        match (char::from_u32(hex_unit), low()) {
            (Some(c), _) => {
                quoted.text.push(c);
                self.at += 5;
            }
            (None, Some(low)) if hex_unit < 0xDC00 => {
                let c = char::from_u32(0x10000 + ((hex_unit - 0xD800) << 10) + (low - 0xDC00));
                quoted.text.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
                self.at += 11;
            }
            (None, _) => {
                self.add_repair(RepairKind::LoneSurrogate, at)?;
                quoted.text.push(char::REPLACEMENT_CHARACTER);
                self.at += 5;
            }
        }
        Ok(())
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
        beside.is_some_and(is_word)
            && !after.is_some_and(separates)
            && !self.text.trim_end().chars().next_back().is_some_and(separates)
    }

    /// The error for a string that is incomplete at the end of the raw text.
    fn cut(&self) -> Stop {
        // A string that ends like an object probably contains the end of the object.
        let closed = self.text.trim_end_matches(|c| is_space(c) || c == '`').ends_with(['}', '｝']);
        let swallowed = match self.location {
            _ if closed && (self.raw_quotes > 0 || self.open != '"') => true,
            RepairLocation::Key => !self.text.chars().all(|c| is_word(c) || is_space(c)),
            _ => self.raw_quotes > 0 || (self.open != '"' && self.nested > 0),
        };
        if swallowed { Stop::Rejected("it is not clear where the string ends", self.start) } else { Stop::Cut }
    }

    fn finish(self) -> Result<String, Stop> {
        if self.raw_quotes > 0 && (self.raw_quotes + self.escaped_quotes) % 2 == 1 {
            return Err(Stop::Rejected("a quote inside a string is not escaped and has no matching quote", self.start));
        }
        Ok(self.text)
    }
}

const fn doubled(quote: char) -> &'static str {
    if quote == '"' { "\"\"" } else { "''" }
}

fn hex_unit(text: &str) -> Option<u32> {
    let digits = text.get(1..5)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

fn escaped_hex_unit(text: &str) -> Option<u32> {
    hex_unit(text.strip_prefix('\\').filter(|rest| rest.starts_with('u'))?)
}

/// Whether `text`, which extends to the end, may be the start of `\uXXXX`; true if it is empty.
fn may_start_escape(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.strip_prefix('\\') {
        Some(rest) => rest.is_empty() || rest.strip_prefix('u').is_some_and(digits),
        None => text.is_empty(),
    }
}
