//! Determines with a bounded lookahead whether a quote ends a string or belongs to it.

use crate::reply::repair::bare::is_literal;
use crate::reply::repair::characters::{closing, is_quote, is_space, is_word, plain};

/// The maximum lookahead in bytes, after which a quote counts as part of its string.
const MAX_LOOKAHEAD: usize = 512;

/// The number of letters from which on a word in capital letters may be an extra word.
const SHORTEST_EXTRA_WORD: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepairLocation {
    Key,
    Member,
    Item,
}

/// A lookahead that does not consume the text.
#[derive(Clone)]
pub(super) struct Lookahead<'t> {
    rest: &'t str,
    remaining: usize,
    /// Whether full-width punctuation was used as syntax before, so that a full-width colon may end an unquoted key.
    wide: bool,
    /// Whether the end of the text does not count as a match.
    strict: bool,
    /// Whether a closing parenthesis may end a list.
    pub(super) in_tuple: bool,
    /// Whether every quote is doubled.
    pub(super) doubled: bool,
    /// Whether a word in capital letters may stand between two fields.
    pub(super) may_have_extra_word: bool,
}

#[derive(Clone, Copy, Default)]
struct SkippedSpace {
    space: bool,
    line: bool,
}

impl<'t> Lookahead<'t> {
    pub(super) fn new(text: &'t str, at: usize, wide: bool) -> Self {
        Self {
            rest: text.get(at..).unwrap_or_default(),
            remaining: MAX_LOOKAHEAD,
            wide,
            strict: false,
            in_tuple: false,
            doubled: false,
            may_have_extra_word: false,
        }
    }

    /// The same lookahead, but the end of the text does not count as a match.
    pub(super) const fn strictly(&mut self) -> &mut Self {
        self.strict = true;
        self
    }

    const fn may_end(&self) -> bool {
        self.remaining > 0 && !self.strict
    }

    pub(super) const fn looked(&self) -> usize {
        MAX_LOOKAHEAD - self.remaining
    }

    /// Whether the text at this point may follow a value at `location`, so that a quote before it ends a string.
    pub(super) fn continues(&mut self, location: RepairLocation) -> bool {
        let skipped = self.skip_space();
        let Some(c) = self.peek() else { return self.may_end() };
        match plain(c) {
            '}' if location == RepairLocation::Member => true,
            ']' if location == RepairLocation::Item => true,
            ')' if location == RepairLocation::Item && self.in_tuple => true,
            // A bracket of the wrong kind.
            '}' | ']' => self.closes_everything(),
            ',' => {
                self.bump();
                self.skip_space();
                self.may_follow_a_comma(location)
            }
            '+' => self.joins_a_string(),
            '/' | '#' if skipped.space || self.rest.starts_with("/*") => {
                self.comment_without_quotes() && self.ends_a_value(location)
            }
            '/' if self.rest.starts_with("//") => {
                self.comment_without_quotes() && self.peek() == Some('\n') && self.ends_a_value(location)
            }
            '`' => (skipped.line && self.rest.starts_with("```")) || self.rest.trim_end() == "```",
            '"' if location == RepairLocation::Member && !skipped.space => self.adjacent_key(),
            'A'..='Z' if self.may_have_extra_word && location == RepairLocation::Member && skipped.space => {
                self.extra_word(false)
            }
            _ if location == RepairLocation::Member => skipped.space && closing(c).is_some() && self.key_and_colon(),
            '{' | '[' => skipped.line,
            c if closing(c).is_some() => skipped.line || (skipped.space && self.starts_a_string()),
            _ => skipped.space && self.is_last_number(),
        }
    }

    /// Whether a key of one word follows, without a comma or space before it.
    fn adjacent_key(&mut self) -> bool {
        self.bump();
        let mut letters = 0;
        while self.peek().is_some_and(is_word) {
            self.bump();
            letters += 1;
        }
        if letters == 0 || self.peek() != Some('"') {
            return false;
        }
        self.bump();
        self.after_space() == Some(':')
    }

    /// Whether a quote follows that is directly before a word.
    fn starts_a_string(&mut self) -> bool {
        self.bump();
        self.peek().is_some_and(|c| is_word(c) && c != '.' && c != '-')
    }

    /// Whether a number follows, and after it a comma or the end of the list.
    fn is_last_number(&mut self) -> bool {
        if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
            return false;
        }
        while self.peek().is_some_and(|c| c.is_ascii_digit() || c == '.') {
            self.bump();
        }
        self.skip_space();
        self.peek().map_or(self.may_end(), |_| self.ends_a_value(RepairLocation::Item))
    }

    /// Whether brackets of any kind follow, and after them another field or the end of the text.
    fn closes_everything(&mut self) -> bool {
        while self.peek().is_some_and(|c| matches!(plain(c), '}' | ']')) {
            self.bump();
            self.skip_space();
        }
        let Some(c) = self.peek() else { return self.may_end() };
        if plain(c) != ',' {
            return self.rest.starts_with("```");
        }
        self.bump();
        self.skip_space();
        self.peek().is_some_and(|c| matches!(plain(c), '{' | '[')) || self.key_and_colon()
    }

    pub(super) fn skip_block_comment(&mut self) {
        self.skip_space();
        if self.rest.starts_with("/*") {
            self.comment_without_quotes();
        }
    }

    /// Whether a key and a colon follow; the text may end inside the key.
    pub(super) fn key_and_colon(&mut self) -> bool {
        let Some(first) = self.peek() else { return self.may_end() };
        if let Some(close) = closing(first) {
            self.bump();
            self.skip_doubled(first);
            return self.quoted_key_and_colon(close);
        }
        if !is_word(first) {
            return false;
        }
        while self.next_word_character().is_some() {
            self.bump();
        }
        // `a":`
        if matches!(self.peek(), Some('"' | '\'')) {
            self.bump();
        }
        self.skip_space();
        self.peek().map_or(self.may_end(), |c| c == ':' || (self.wide && plain(c) == ':'))
    }

    /// Whether the rest of a key follows, up to `close` or a typographic quote, and then a colon.
    fn quoted_key_and_colon(&mut self, close: char) -> bool {
        loop {
            let Some(c) = self.peek() else { return self.may_end() };
            self.bump();
            if c == '\\' {
                self.bump();
            } else if self.doubled && c == close {
                self.skip_doubled(c);
                return self.after_space() == Some(':');
            } else if c == close || matches!(c, '“' | '”' | '"' | '´') {
                self.skip_space();
                let colon = self.peek().map_or(self.may_end(), |c| plain(c) == ':');
                if colon || c == close {
                    return colon;
                }
            }
        }
    }

    fn skip_doubled(&mut self, quote: char) {
        if self.doubled && self.peek() == Some(quote) {
            self.bump();
        }
    }

    pub(super) fn after_space(&mut self) -> Option<char> {
        self.skip_space();
        self.peek()
    }

    fn may_follow_a_comma(&mut self, location: RepairLocation) -> bool {
        let Some(c) = self.peek() else { return self.may_end() };
        let comment = self.rest.starts_with("//") || self.rest.starts_with("/*") || c == '#';
        match plain(c) {
            ',' => true,
            _ if comment => true,
            '.' | '…' if self.ellipsis_and_end() => true,
            '}' => location == RepairLocation::Member,
            ']' => location == RepairLocation::Item,
            ')' => location == RepairLocation::Item && self.in_tuple,
            '{' | '[' | '-' => location == RepairLocation::Item,
            c if location == RepairLocation::Item => closing(c).is_some() || is_word(c),
            c if self.may_have_extra_word && c.is_ascii_uppercase() => {
                self.clone().extra_word(true) || self.key_and_colon()
            }
            _ => self.key_and_colon(),
        }
    }

    /// Whether a word in capital letters follows that belongs to no field, such as `COMMENT`, and then, with `before_key`, a key in
    /// quotes and its colon, or otherwise a comma or the closing brace.
    pub(super) fn extra_word(&mut self, before_key: bool) -> bool {
        let end = self.rest.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(self.rest.len());
        let word = self.rest.get(..end).unwrap_or_default();
        // A short word could be a value: `YES`.
        if word.len() < SHORTEST_EXTRA_WORD || is_literal(word) {
            return false;
        }
        word.chars().for_each(|_| self.bump());
        let space = self.skip_space().space;
        if before_key { space && self.is_plain_key() } else { self.ends_a_value(RepairLocation::Member) }
    }

    pub(super) fn next_word_character(&self) -> Option<char> {
        self.peek().filter(|&c| is_word(c))
    }

    /// Whether `...` or `…` follows, and after it a comma or a closing bracket.
    fn ellipsis_and_end(&mut self) -> bool {
        let is_ellipsis = self.rest.starts_with("...") || self.rest.starts_with('…');
        while self.peek().is_some_and(|c| matches!(c, '.' | '…')) {
            self.bump();
        }
        self.skip_space();
        is_ellipsis && self.peek().is_some_and(|c| matches!(plain(c), ',' | '}' | ']' | ')'))
    }

    fn ends_a_value(&mut self, location: RepairLocation) -> bool {
        self.skip_space();
        match self.peek().map(plain) {
            Some(',') => true,
            Some('}') => location == RepairLocation::Member,
            Some(']') => location == RepairLocation::Item,
            Some(')') => location == RepairLocation::Item && self.in_tuple,
            _ => false,
        }
    }

    fn comment_without_quotes(&mut self) -> bool {
        let block = self.rest.starts_with("/*");
        if !block && !self.rest.starts_with("//") && !self.rest.starts_with('#') {
            return false;
        }
        while let Some(c) = self.peek() {
            if block && self.rest.starts_with("*/") {
                self.bump();
                self.bump();
                return true;
            }
            // The comment of the last line ends at a bracket.
            if !block && (c == '\n' || (matches!(c, '}' | ']') && !self.rest.contains('\n'))) {
                return true;
            }
            if is_quote(c) {
                return false;
            }
            self.bump();
        }
        false
    }

    fn skip_space(&mut self) -> SkippedSpace {
        let mut skipped = SkippedSpace::default();
        while let Some(c) = self.peek() {
            if is_space(c) {
                skipped = SkippedSpace { space: true, line: skipped.line || c == '\n' };
            } else if c == '\\' && self.rest.get(1..2).is_some_and(|next| matches!(next, "n" | "r" | "t")) {
                skipped = SkippedSpace { space: true, line: skipped.line || self.rest.starts_with("\\n") };
                self.bump();
            } else {
                break;
            }
            self.bump();
        }
        skipped
    }

    /// The next character; `None` at the end of the text or of the lookahead.
    fn peek(&self) -> Option<char> {
        if self.remaining == 0 { None } else { self.rest.chars().next() }
    }

    pub(super) fn bump(&mut self) {
        let Some(c) = self.peek() else { return };
        self.remaining = self.remaining.saturating_sub(c.len_utf8());
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
    }
}
