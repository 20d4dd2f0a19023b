//! What follows a quote inside a text: does it end the text, or belong to it? Looks a bounded way ahead.

use crate::reply::repair::characters::{closing, is_quote, is_space, is_word, plain};

/// How many bytes are looked at before a quote counts as part of its text.
const FAR: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepairLocation {
    Key,
    Member,
    Item,
}

/// A look at what comes, without taking it.
pub(super) struct Ahead<'t> {
    rest: &'t str,
    left: usize,
    /// Full-width punctuation has been syntax before, so a full-width colon may end a bare key.
    wide: bool,
    /// Whether the end of the text is something that may follow.
    strict: bool,
}

#[derive(Clone, Copy, Default)]
struct Passed {
    space: bool,
    line: bool,
}

impl<'t> Ahead<'t> {
    pub(super) fn new(text: &'t str, at: usize, wide: bool) -> Self {
        Self { rest: text.get(at..).unwrap_or_default(), left: FAR, wide, strict: false }
    }

    /// The same look, for which the text must not end before it is answered.
    pub(super) const fn strictly(&mut self) -> &mut Self {
        self.strict = true;
        self
    }

    const fn may_end(&self) -> bool {
        self.left > 0 && !self.strict
    }

    pub(super) const fn looked(&self) -> usize {
        FAR - self.left
    }

    /// Whether a quote before this point ends the text that stands at `place`: behind it comes what may follow a value.
    pub(super) fn continues(&mut self, place: RepairLocation) -> bool {
        let passed = self.space();
        let Some(c) = self.peek() else { return self.may_end() };
        match plain(c) {
            '}' => place == RepairLocation::Member,
            ']' => place == RepairLocation::Item,
            ',' => {
                self.bump();
                self.space();
                self.may_follow_a_comma(place)
            }
            '/' | '#' if passed.space => self.comment_without_quotes() && self.ends_a_value(place),
            '`' => passed.line && self.rest.starts_with("```"),
            _ if place == RepairLocation::Member => passed.space && closing(c).is_some() && self.key_and_colon(),
            _ => passed.line && (closing(c).is_some() || matches!(plain(c), '{' | '[')),
        }
    }

    /// Whether a key with its colon comes: the text may end inside of it.
    pub(super) fn key_and_colon(&mut self) -> bool {
        let Some(first) = self.peek() else { return self.may_end() };
        if let Some(close) = closing(first) {
            self.bump();
            return self.key_behind_its_quote(close);
        }
        if !is_word(first) {
            return false;
        }
        while self.peek().is_some_and(is_word) {
            self.bump();
        }
        if self.peek() == Some('"') {
            self.bump();
        }
        self.space();
        self.peek().map_or(self.may_end(), |c| c == ':' || (self.wide && plain(c) == ':'))
    }

    /// Whether a key goes on here, up to `close`, or to a typographic quote, and a colon.
    fn key_behind_its_quote(&mut self, close: char) -> bool {
        loop {
            let Some(c) = self.peek() else { return self.may_end() };
            self.bump();
            if c == '\\' {
                self.bump();
            } else if c == close || matches!(c, '“' | '”' | '"') {
                self.space();
                let colon = self.peek().map_or(self.may_end(), |c| plain(c) == ':');
                if colon || c == close {
                    return colon;
                }
            }
        }
    }

    pub(super) fn after_space(&mut self) -> Option<char> {
        self.space();
        self.peek()
    }

    fn may_follow_a_comma(&mut self, place: RepairLocation) -> bool {
        let Some(c) = self.peek() else { return self.may_end() };
        let comment = self.rest.starts_with("//") || self.rest.starts_with("/*") || c == '#';
        match plain(c) {
            ',' => true,
            _ if comment => true,
            '}' => place == RepairLocation::Member,
            ']' => place == RepairLocation::Item,
            '{' | '[' | '-' => place == RepairLocation::Item,
            c if place == RepairLocation::Item => closing(c).is_some() || is_word(c),
            _ => self.key_and_colon(),
        }
    }

    fn ends_a_value(&mut self, place: RepairLocation) -> bool {
        self.space();
        match self.peek().map(plain) {
            Some(',') => true,
            Some('}') => place == RepairLocation::Member,
            Some(']') => place == RepairLocation::Item,
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
            if !block && c == '\n' {
                return true;
            }
            if is_quote(c) {
                return false;
            }
            self.bump();
        }
        false
    }

    fn space(&mut self) -> Passed {
        let mut passed = Passed::default();
        while let Some(c) = self.peek() {
            if is_space(c) {
                passed = Passed { space: true, line: passed.line || c == '\n' };
            } else if c == '\\' && self.rest.get(1..2).is_some_and(|next| matches!(next, "n" | "r" | "t")) {
                passed = Passed { space: true, line: passed.line || self.rest.starts_with("\\n") };
                self.bump();
            } else {
                break;
            }
            self.bump();
        }
        passed
    }

    /// The next character; nothing at the end of the text, and none beyond the bound.
    fn peek(&self) -> Option<char> {
        if self.left == 0 { None } else { self.rest.chars().next() }
    }

    fn bump(&mut self) {
        let Some(c) = self.peek() else { return };
        self.left = self.left.saturating_sub(c.len_utf8());
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
    }
}
