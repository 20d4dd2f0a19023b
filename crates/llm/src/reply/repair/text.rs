//! Reads a quoted text of near-JSON: what ends it, what belongs to it.
//!
//! A quote that is not escaped belongs to the text when what follows it cannot follow a value. That is a guess, and it is
//! kept only where nothing speaks against it: such quotes come in pairs, the first of a pair touches a word behind it and
//! the second a word before it, none is followed by a colon (then a member was swallowed), none by another quote that does
//! not end the text. In all other cases the text is refused.

use crate::reply::repair::characters::{closing, is_space, is_word, plain};
use crate::reply::repair::follow::{Ahead, RepairLocation};
use crate::reply::repair::parser::{Parser, Stop};
use crate::reply::repair::record::RepairKind;

struct Quoted {
    place: RepairLocation,
    begin: usize,
    open: char,
    close: char,
    text: String,
    /// Quotes of its own kind inside it: not escaped, escaped.
    raw: usize,
    escaped: usize,
    /// Pairs of typographic quotes that are open inside it.
    nested: usize,
    control: bool,
}

impl Parser<'_> {
    /// The quoted text that begins here.
    ///
    /// # Errors
    /// [`Stop::Cut`] when the text ends inside of it; [`Stop::Refused`] when where it ends would be a guess.
    pub(super) fn quoted(&mut self, place: RepairLocation) -> Result<String, Stop> {
        let begin = self.at;
        let Some((open, close)) = self.peek().and_then(|open| Some((open, closing(open)?))) else {
            return Err(Stop::Refused("a quote was expected", begin));
        };
        if open != '"' {
            self.mend(RepairKind::OtherQuotes, begin)?;
        }
        self.bump();
        let text = String::new();
        let mut quoted = Quoted { place, begin, open, close, text, raw: 0, escaped: 0, nested: 0, control: false };
        if matches!(open, '"' | '\'') && place != RepairLocation::Key && self.rest().starts_with(doubled(open)) {
            self.bump();
            self.bump();
            self.mend(RepairKind::OtherQuotes, begin)?;
            if self.look(self.at, |ahead| ahead.continues(place)) {
                return Err(Stop::Refused("three quotes in a row: it is not clear which one ends the string", begin));
            }
            return self.tripled(quoted);
        }
        loop {
            self.plain_run(&mut quoted);
            let Some(c) = self.peek() else { return Err(quoted.cut()) };
            match c {
                '\\' => self.escape(&mut quoted)?,
                '\0'..='\u{1f}' => self.control(&mut quoted, c)?,
                _ if self.ends(&mut quoted, c)? => {
                    self.bump();
                    return quoted.whole();
                }
                _ => self.take_into(&mut quoted, c),
            }
        }
    }

    fn tripled(&mut self, mut quoted: Quoted) -> Result<String, Stop> {
        loop {
            self.plain_run(&mut quoted);
            let Some(c) = self.peek() else { return Err(Stop::Refused("triple quotes are not closed", quoted.begin)) };
            match c {
                '\\' => self.escape(&mut quoted)?,
                '\0'..='\u{1f}' => self.control(&mut quoted, c)?,
                _ if c == quoted.open && self.ends_tripled(c, quoted.place) => {
                    (0..3).for_each(|_| self.bump());
                    return Ok(quoted.text);
                }
                _ => self.take_into(&mut quoted, c),
            }
        }
    }

    fn ends_tripled(&mut self, quote: char, place: RepairLocation) -> bool {
        let triple = self.rest().get(1..).is_some_and(|rest| rest.starts_with(doubled(quote)));
        triple && self.look(self.at + 3, |ahead| ahead.continues(place))
    }

    /// Takes what can mean nothing but itself in one step.
    fn plain_run(&mut self, quoted: &mut Quoted) {
        if quoted.open != '"' {
            return;
        }
        let rest = self.rest();
        // 0xE2 begins the typographic quotes, among others: those are looked at one by one.
        let stops = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\' || (self.mixed && byte == 0xE2);
        let end = rest.bytes().position(stops).unwrap_or(rest.len());
        quoted.text.push_str(rest.get(..end).unwrap_or_default());
        self.at += end;
    }

    fn take_into(&mut self, quoted: &mut Quoted, c: char) {
        quoted.text.push(c);
        self.bump();
    }

    fn control(&mut self, quoted: &mut Quoted, c: char) -> Result<(), Stop> {
        if !quoted.control {
            quoted.control = true;
            self.mend(RepairKind::RawControl, self.at)?;
        }
        self.take_into(quoted, c);
        Ok(())
    }

    /// Whether `c`, which stands here, ends the text.
    fn ends(&mut self, quoted: &mut Quoted, c: char) -> Result<bool, Stop> {
        let own = c == quoted.close;
        if quoted.open == quoted.close {
            return match c {
                _ if own && (quoted.place == RepairLocation::Key || self.continues(c, quoted.place)) => Ok(true),
                _ if own => self.inner(quoted, c).map(|()| false),
                '“' if self.mixed && quoted.open == '"' => {
                    quoted.nested += 1;
                    Ok(false)
                }
                '”' if self.mixed && quoted.open == '"' && quoted.nested > 0 => {
                    if quoted.place != RepairLocation::Key && self.continues(c, quoted.place) {
                        return Err(Stop::Refused("it is not clear which quote ends the string", self.at));
                    }
                    quoted.nested -= 1;
                    Ok(false)
                }
                // In a list too much may follow a comma.
                '”' if self.mixed && quoted.open == '"' && quoted.place != RepairLocation::Item => {
                    self.ends_otherwise(quoted, c)
                }
                _ => Ok(false),
            };
        }
        if own && quoted.nested == 0 {
            if quoted.place == RepairLocation::Key || self.continues(c, quoted.place) {
                return Ok(true);
            }
            return match c {
                '’' if self.is_apostrophe() => Ok(false),
                _ => Err(Stop::Refused("a closing quote inside a string has no opening quote", self.at)),
            };
        }
        if own {
            if quoted.place != RepairLocation::Key && (self.continues(c, quoted.place) || self.before_colon(c)) {
                return Err(Stop::Refused("it is not clear which quote ends the string", self.at));
            }
            quoted.nested -= 1;
            return Ok(false);
        }
        match c {
            // `“content“` and `“content"`, as some type it.
            '“' | '"' if quoted.close == '”' && quoted.nested == 0 && self.ends_otherwise(quoted, c)? => Ok(true),
            _ if c == quoted.open && quoted.place == RepairLocation::Key => {
                Err(Stop::Refused("it is not clear where a key ends", self.at))
            }
            _ if c == quoted.open => {
                quoted.nested += 1;
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Whether `c`, a quote of another kind than the opening one, ends the text.
    fn ends_otherwise(&mut self, quoted: &Quoted, c: char) -> Result<bool, Stop> {
        let ends = match quoted.place {
            RepairLocation::Key => {
                Ahead::new(self.text, self.at + c.len_utf8(), true).after_space().map(plain) == Some(':')
            }
            // Where the text ends early this is no sign.
            place => self.look(self.at + c.len_utf8(), |ahead| ahead.strictly().continues(place)),
        };
        if ends {
            self.guessed = true;
            self.mend(RepairKind::OtherQuotes, self.at)?;
        }
        Ok(ends)
    }

    /// Whether what stands behind `c`, the character here, may follow a value.
    fn continues(&mut self, c: char, place: RepairLocation) -> bool {
        self.look(self.at + c.len_utf8(), |ahead| ahead.continues(place))
    }

    /// Whether a colon that may be syntax stands behind `c`, the character here: then a key ends there.
    fn before_colon(&mut self, c: char) -> bool {
        let after = self.look(self.at + c.len_utf8(), Ahead::after_space);
        after.is_some_and(|after| after == ':' || (self.wide && plain(after) == ':'))
    }

    /// Takes a quote that is not escaped and does not end the text.
    fn inner(&mut self, quoted: &mut Quoted, c: char) -> Result<(), Stop> {
        let apostrophe = c == '\'' && self.is_apostrophe();
        if !apostrophe {
            let behind = self.at + c.len_utf8();
            let next = self.text.get(behind..).and_then(|rest| rest.chars().next());
            let after = self.look(behind, Ahead::after_space);
            let colon = self.before_colon(c);
            let wrong = if quoted.place == RepairLocation::Item {
                Some("a string in a list contains a quote that is not escaped")
            } else if !quoted.touches(next) {
                Some("a quote inside a string is not escaped and does not enclose anything")
            } else if colon {
                Some("a string seems to continue past the next key")
            } else if after == Some(c) {
                let place = quoted.place;
                let last = next == Some(c) && self.look(behind + c.len_utf8(), |ahead| ahead.continues(place));
                (!last).then_some("two quotes in a row: it is not clear which one ends the string")
            } else {
                None
            };
            if let Some(wrong) = wrong {
                return Err(Stop::Refused(wrong, self.at));
            }
            self.look_no_further_than_linear()?;
            quoted.raw += 1;
            self.guessed = true;
        }
        self.mend(RepairKind::RawQuote, self.at)
    }

    /// Whether the quote here stands between two letters, as in `it's`.
    fn is_apostrophe(&self) -> bool {
        let letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
        letter(self.text.get(..self.at).and_then(|before| before.chars().next_back()))
            && letter(self.rest().chars().nth(1))
    }

    /// Takes an escape. One that JSON does not know stays as it is written, unless it is a quote.
    fn escape(&mut self, quoted: &mut Quoted) -> Result<(), Stop> {
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
            'u' => return self.code_point(quoted, at),
            _ => None,
        };
        if c == quoted.close {
            quoted.escaped += 1;
        }
        match known {
            Some(meant) => quoted.text.push(meant),
            None => {
                self.mend(RepairKind::OtherEscape, at)?;
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

    /// Takes `\uXXXX` and the second half of a surrogate pair, from the `u` on.
    fn code_point(&mut self, quoted: &mut Quoted, at: usize) -> Result<(), Stop> {
        let rest = self.rest();
        let Some(unit) = unit(rest) else {
            let digits = rest.chars().skip(1).take_while(char::is_ascii_hexdigit).take(4).count();
            if 1 + digits == rest.len() {
                return Err(quoted.cut());
            }
            self.mend(RepairKind::OtherEscape, at)?;
            quoted.text.push_str("\\u");
            self.bump();
            return Ok(());
        };
        let low = || unit_behind_backslash(rest.get(5..)?).filter(|low| (0xDC00..0xE000).contains(low));
        if (0xD800..0xDC00).contains(&unit) && rest.len() < 11 && is_begun_escape(rest.get(5..).unwrap_or_default()) {
            return Err(quoted.cut());
        }
        match (char::from_u32(unit), low()) {
            (Some(c), _) => {
                quoted.text.push(c);
                self.at += 5;
            }
            (None, Some(low)) if unit < 0xDC00 => {
                let c = char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
                quoted.text.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
                self.at += 11;
            }
            (None, _) => {
                self.mend(RepairKind::LoneSurrogate, at)?;
                quoted.text.push(char::REPLACEMENT_CHARACTER);
                self.at += 5;
            }
        }
        Ok(())
    }
}

impl Quoted {
    /// Whether the next quote inside it touches a word, as quotes do that quote something: the first of a pair `next`, which
    /// stands behind it, the second what stands before it.
    fn touches(&self, next: Option<char>) -> bool {
        if (self.raw + self.escaped) % 2 == 1 {
            return self.text.chars().next_back().is_some_and(|before| !is_space(before));
        }
        next.is_some_and(|next| {
            !is_space(next) && !matches!(plain(next), ',' | ':' | '}' | ']' | ';' | '；' | '+' | '\\')
        })
    }

    /// Why it is not whole where the raw text ends.
    fn cut(&self) -> Stop {
        // A text that ends as an object does has swallowed its end.
        let closed = self.text.trim_end_matches(|c| is_space(c) || c == '`').ends_with(['}', '｝']);
        let swallowed = match self.place {
            _ if closed => true,
            RepairLocation::Key => !self.text.chars().all(|c| is_word(c) || is_space(c)),
            _ => self.raw > 0 || (self.open != '"' && self.nested > 0),
        };
        if swallowed { Stop::Refused("it is not clear where the string ends", self.begin) } else { Stop::Cut }
    }

    fn whole(self) -> Result<String, Stop> {
        if self.raw > 0 && (self.raw + self.escaped) % 2 == 1 {
            return Err(Stop::Refused("a quote inside a string is not escaped and has no matching quote", self.begin));
        }
        Ok(self.text)
    }
}

const fn doubled(quote: char) -> &'static str {
    if quote == '"' { "\"\"" } else { "''" }
}

fn unit(text: &str) -> Option<u32> {
    let digits = text.get(1..5)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

fn unit_behind_backslash(text: &str) -> Option<u32> {
    unit(text.strip_prefix('\\').filter(|rest| rest.starts_with('u'))?)
}

/// Whether `text`, which reaches to the end, may be the beginning of `\uXXXX`; nothing at all may.
fn is_begun_escape(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.strip_prefix('\\') {
        Some(rest) => rest.is_empty() || rest.strip_prefix('u').is_some_and(digits),
        None => text.is_empty(),
    }
}
