//! Parses objects in which one quote is missing or doubled.
//!
//! With such a quote, the quotes after it can be read in two ways. It is repaired only if all other readings fail, if it is the only
//! one, and if nothing else in the object requires a guess ([`Parser::check_quote_error`]).

use crate::reply::repair::characters::{is_quote, is_space, is_word, plain};
use crate::reply::repair::follow::{Lookahead, RepairLocation};
use crate::reply::repair::parser::{Parser, Stop};
use crate::reply::repair::record::RepairKind;
use crate::reply::repair::text::Quoted;

/// How quotes are read. A later way is tried only if those before it fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuoteReading {
    /// The quote that ends a string is of the kind that starts it.
    Matching,
    /// A typographic quote may also end a string that starts with a plain quote.
    Mixed,
    /// As [`Self::Matching`], but one quote is missing or doubled.
    OneError,
}

/// The quote that is missing or doubled.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuoteError {
    pub(super) found: bool,
    /// Whether the comma after the string is missing too.
    pub(super) no_comma: bool,
    /// Whether it is the closing quote of a key, so that its value may have no quotes either.
    pub(super) is_key: bool,
}

impl Parser<'_> {
    fn may_repair_quote_error(&self) -> bool {
        self.quotes == QuoteReading::OneError && !self.quote_error.found
    }

    fn add_quote_error(&mut self, kind: RepairKind, at: usize) -> Result<(), Stop> {
        self.quote_error.found = true;
        self.add_repair(kind, at)
    }

    /// Rejects an object with a quote that is wrong in which anything else is uncertain.
    pub(super) fn check_quote_error(&self, start: usize) -> Result<(), Stop> {
        if self.quotes != QuoteReading::OneError {
            return Ok(());
        }
        let certain = |kind: RepairKind| {
            matches!(
                kind,
                RepairKind::CutOff
                    | RepairKind::ExtraComma
                    | RepairKind::MissingComma
                    | RepairKind::MissingQuote
                    | RepairKind::UnquotedText
                    | RepairKind::ExtraQuote
                    | RepairKind::RawQuote
                    | RepairKind::OtherQuotes
                    | RepairKind::FullWidth
                    | RepairKind::OtherSpace
                    | RepairKind::Comment
                    | RepairKind::OtherWord
                    | RepairKind::NoValue
                    | RepairKind::OtherNumber
                    | RepairKind::RawControl
                    | RepairKind::OtherEscape
            )
        };
        let count = |kind: RepairKind| self.repairs.iter().filter(|repair| repair.kind == kind).count();
        let is_certain = self.quote_error.found
            && !self.guessed
            && self.repairs.iter().all(|repair| certain(repair.kind))
            && count(RepairKind::UnquotedText) <= usize::from(self.quote_error.is_key)
            && count(RepairKind::MissingComma) <= usize::from(self.quote_error.no_comma)
            && count(RepairKind::MissingQuote) + count(RepairKind::ExtraQuote) + count(RepairKind::RawQuote) == 1
            && (count(RepairKind::RawQuote) == 0 || count(RepairKind::CutOff) == 0);
        if is_certain { Ok(()) } else { Err(Stop::Rejected("it is not clear which quote is missing", start)) }
    }

    /// Handles the current quote `c`, which does not end the string by itself. Returns whether the string ends there.
    ///
    /// # Errors
    /// [`Stop::Rejected`] when this is not the only error.
    pub(super) fn repair_quote_error(&mut self, quoted: &mut Quoted, c: char) -> Result<bool, Stop> {
        if self.quote_error.found {
            return Err(Stop::Rejected("it is not clear which quote is missing", self.at));
        }
        if let Some(separator) = self.unclosed_text(quoted.start, quoted.location) {
            quoted.text.truncate(quoted.text.len().saturating_sub(separator));
            quoted.unclosed_end = true;
            let end = self.at - separator;
            self.quote_error.no_comma = self.text.get(end..self.at).is_some_and(|separator| !separator.contains(','));
            self.at = end;
            // The line end of the separator does not belong to the string.
            self.repairs.retain(|repair| repair.at < end);
            return self.add_quote_error(RepairKind::MissingQuote, quoted.start).map(|()| true);
        }
        if quoted.escaped_quotes == 0
            && quoted.location == RepairLocation::Member
            && self.is_single_quote(c, &quoted.text)
        {
            return self.add_quote_error(RepairKind::RawQuote, self.at).map(|()| false);
        }
        Err(Stop::Rejected("it is not clear which quote is missing", self.at))
    }

    /// The number of bytes before the current quote that separate it from a string without its closing quote, which started at
    /// `start`: a comma, a line end, or both. The quote starts the next key or item. `None` if it does not.
    fn unclosed_text(&mut self, start: usize, location: RepairLocation) -> Option<usize> {
        let raw = self.text.get(start..self.at)?;
        let before_space = raw.trim_end_matches(is_space);
        let line = raw.get(before_space.len()..)?.find('\n');
        let comma = before_space.ends_with(',');
        // Spaces before the comma or the line end may belong to the text.
        let kept = match before_space.strip_suffix(',') {
            Some(kept) => kept,
            None => raw.get(..before_space.len() + line?)?,
        };
        let (separator, line) = (raw.get(kept.len()..)?, line.is_some());
        // With brackets or quotes, it could contain JSON.
        let ends_unclear = kept.ends_with(|c| is_quote(c) || matches!(c, '\\' | ','));
        if kept.len() <= 1 || ends_unclear || kept.contains(['{', '}', '[', ']']) {
            return None;
        }
        let starts_next = match location {
            RepairLocation::Key => false,
            RepairLocation::Member => {
                (comma || line) && self.look_ahead(self.at, |lookahead| lookahead.strictly().is_plain_key())
            }
            // On one line, the commas of a list could be part of the text.
            RepairLocation::Item => {
                let next = self.rest().chars().nth(1);
                line && !kept.contains('\n') && next.is_some_and(|next| is_word(next) && next != '.')
            }
        };
        starts_next.then_some(separator.len())
    }

    /// Whether the current quote `c` in a field, which does not end its string `text`, is the only one inside it, so that the string
    /// is certain without a matching quote: `a "b c`, `a" b`, `a"b`. It must be next to a word and not next to punctuation.
    fn is_single_quote(&mut self, c: char, text: &str) -> bool {
        let punctuation =
            |c: char| is_quote(c) || matches!(plain(c), ',' | ':' | ';' | '；' | '{' | '}' | '[' | ']' | '+' | '\\');
        let next = self.rest().chars().nth(1);
        let after = self.look_ahead(self.at + c.len_utf8(), Lookahead::after_space);
        let before = text.trim_end_matches(is_space).chars().next_back();
        let is_beside_word = next.is_some_and(char::is_alphanumeric) || text.ends_with(char::is_alphanumeric);
        is_beside_word && !before.is_none_or(punctuation) && !after.is_none_or(punctuation)
    }

    /// Goes back to the colon of a key without its closing quote, whose opening quote is at `start`: `"a: 1, "b": 2`. Returns the
    /// key; `None` if it is not such a key.
    pub(super) fn unclosed_key(&mut self, start: usize) -> Result<Option<String>, Stop> {
        if !self.may_repair_quote_error() || self.look_ahead(self.at, Lookahead::after_space).map(plain) == Some(':') {
            return Ok(None);
        }
        let inside = self.text.get(start..).unwrap_or_default().trim_start_matches(is_quote);
        let end = inside.find(|c: char| !is_word(c)).unwrap_or(inside.len());
        let (key, after) = inside.split_at_checked(end).unwrap_or_default();
        if key.is_empty() || !after.trim_start_matches(is_space).starts_with(':') {
            return Ok(None);
        }
        self.at = self.text.len() - after.len();
        self.repairs.retain(|repair| repair.at < start);
        self.quote_error.is_key = true;
        self.add_quote_error(RepairKind::MissingQuote, start)?;
        Ok(Some(key.to_owned()))
    }

    /// Skips the second of two quotes that start a string: `""a"`. The first is at `start`.
    pub(super) fn skip_doubled_open(
        &mut self,
        open: char,
        start: usize,
        location: RepairLocation,
    ) -> Result<bool, Stop> {
        if open != '"'
            || !self.may_repair_quote_error()
            || self.peek() != Some(open)
            || location == RepairLocation::Item
        {
            return Ok(false);
        }
        let after = self.at + open.len_utf8();
        let next = self.text.get(after..).and_then(|rest| rest.chars().next());
        let is_empty =
            (location != RepairLocation::Key && !next.is_some_and(is_word)) || self.ends_string(after, location);
        if is_empty || next == Some(open) {
            return Ok(false);
        }
        self.bump();
        self.add_quote_error(RepairKind::ExtraQuote, start)?;
        Ok(true)
    }

    /// Whether the current quote `c` ends the key `text`, and the next one, which is skipped, is one too many: `"a"":`. At the end of a
    /// text, it could belong to the text.
    pub(super) fn ends_doubled_key(&mut self, c: char, text: &str, location: RepairLocation) -> Result<bool, Stop> {
        if c != '"' || !self.may_repair_quote_error() || text.is_empty() || location != RepairLocation::Key {
            return Ok(false);
        }
        let (at, after) = (self.at, self.at + c.len_utf8());
        let is_doubled = self.text.get(after..).is_some_and(|rest| rest.starts_with(c));
        if !is_doubled || !self.ends_string(after + c.len_utf8(), location) {
            return Ok(false);
        }
        self.bump();
        self.add_quote_error(RepairKind::ExtraQuote, at)?;
        Ok(true)
    }
}

impl Lookahead<'_> {
    /// Whether a key without punctuation and a colon follow.
    pub(super) fn is_plain_key(&mut self) -> bool {
        if self.after_space() != Some('"') {
            return false;
        }
        self.bump();
        let mut length = 0;
        while let Some(c) = self.next_word_character() {
            self.bump();
            length += c.len_utf8();
        }
        length > 0 && self.after_space() == Some('"') && {
            self.bump();
            self.after_space() == Some(':')
        }
    }
}
