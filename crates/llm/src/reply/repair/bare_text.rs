//! Parses texts without quotes: words, sentences, addresses, times.
//!
//! Such a text may contain no quotes, brackets or colons, except in an address or a time. It ends at the end of the line, at a closing
//! bracket, or at a comma that a key or an item follows; anything else is rejected.

use crate::reply::repair::bare::is_literal;
use crate::reply::repair::characters::{closing, is_quote, is_space, is_word, plain};
use crate::reply::repair::follow::{Lookahead, RepairLocation};
use crate::reply::repair::parser::{Parser, Stop};
use crate::reply::repair::record::RepairKind;

/// The schemes of addresses.
const SCHEMES: [&str; 4] = ["http://", "https://", "ftp://", "mailto:"];

impl Parser<'_> {
    /// The text without quotes at the current position; `None` if it is something else.
    pub(super) fn bare_text(&mut self, location: RepairLocation) -> Result<Option<String>, Stop> {
        let start = self.at;
        let rest = self.rest();
        let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        if !unsigned.starts_with(|c: char| c.is_alphanumeric()) && !rest.starts_with(is_first_mark) {
            return Ok(None);
        }
        let end = if SCHEMES.iter().any(|scheme| rest.starts_with(scheme)) {
            Some(rest.find(|c: char| is_space(c) || is_quote(c) || "{}[],".contains(c)).unwrap_or(rest.len()))
        } else {
            self.end_of_text(rest, location)
        };
        let Some(end) = end else { return Ok(None) };
        if end == rest.len() {
            self.at += end;
            return Err(Stop::Cut);
        }
        let text = rest.get(..end).unwrap_or_default();
        // Only the opening quote is missing.
        let closes = rest.get(end..).is_some_and(|after| after.starts_with('"')) && !text.ends_with(is_space);
        if closes {
            if !self.has_certain_start(start, location) {
                return Ok(None);
            }
            if !self.look_ahead(start + end + 1, |lookahead| lookahead.strictly().continues(location)) {
                return Ok(None);
            }
            self.add_repair(RepairKind::MissingQuote, start)?;
            self.at += end + 1;
            return Ok(Some(text.to_owned()));
        }
        let text = text.trim_end_matches(is_space);
        if location == RepairLocation::Item && text.contains(is_space) && !self.is_one_item(start, text) {
            return Ok(None);
        }
        let is_name = location == RepairLocation::Member
            && text.strip_suffix('.').is_some_and(|name| name.chars().all(char::is_alphabetic));
        let is_part = text.ends_with(['.', '+', '-']) && !text.contains(is_space) && !is_name;
        // A placeholder that the model did not fill in is not a text.
        let is_placeholder = text.starts_with('<') && text.ends_with('>');
        let parentheses = text.matches('(').count() == text.matches(')').count();
        if text.contains("...") || text.contains('…') || is_part || is_placeholder || !parentheses {
            return Ok(None);
        }
        self.add_repair(RepairKind::UnquotedText, start)?;
        self.bare_text = true;
        self.at += text.len();
        Ok(Some(text.to_owned()))
    }

    /// Whether a text without its opening quote starts at `start`, and not before: it follows a colon, an opening bracket, or in a list
    /// the comma after a list or an object. A comma after another item may belong to the text (`1,a"`), and so may the whole item before
    /// it, whose closing quote is then not escaped (`"b",a"`), unless the text starts a line.
    fn has_certain_start(&self, start: usize, location: RepairLocation) -> bool {
        let before = self.text.get(..start).unwrap_or_default();
        let value = before.trim_end_matches(is_space);
        match (location, value.strip_suffix(',').map(|value| value.trim_end_matches(is_space))) {
            (RepairLocation::Item, Some(item)) => {
                let starts_line = before.get(value.len()..).is_some_and(|space| space.contains('\n'));
                item.ends_with(['}', ']', ')']) || (starts_line && !item.ends_with(['[', '(', ',', '/']))
            }
            (RepairLocation::Item, None) => value.ends_with(['[', '(']),
            // A comment, or white space that is written as an escape, may belong to it.
            _ => value.ends_with([':', '=', '>']),
        }
    }

    /// Whether several words in a list are one item: commas separate the items of the list, and no word is a number or a literal.
    fn is_one_item(&self, start: usize, text: &str) -> bool {
        let before = self.text.get(..start).unwrap_or_default().trim_end_matches(is_space);
        let after = self.text.get(start + text.len()..).unwrap_or_default().trim_start_matches(is_space);
        let is_plain = |word: &str| word.starts_with(char::is_alphabetic) && !is_literal(word);
        (before.ends_with(',') || after.starts_with(',')) && text.split(is_space).all(is_plain)
    }

    /// The length of the text that starts `rest`; `None` if its end is not certain.
    fn end_of_text(&mut self, rest: &str, location: RepairLocation) -> Option<usize> {
        let start = self.at;
        let mut before = '\0';
        // The number of characters of a placeholder that follow.
        let mut inside = 0;
        for (offset, c) in rest.char_indices() {
            if inside > 0 {
                inside -= 1;
                before = c;
                continue;
            }
            let after = rest.get(offset + c.len_utf8()..).unwrap_or_default();
            let next = after.chars().next();
            let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
            match c {
                '\n' => return Some(offset),
                '"' if !is_space(before) => return Some(offset),
                '"' => {
                    // A key on the same line, without a comma.
                    let is_key = self.look_ahead(start + offset, |lookahead| lookahead.strictly().key_and_colon());
                    return (is_key && location == RepairLocation::Member).then_some(offset);
                }
                '}' | ']' | '｝' | '］' => return Some(offset),
                ')' if self.tuples > 0 => return Some(offset),
                // Otherwise only a closing quote can end it.
                ',' if !self.ends_at_comma(start + offset, location) => {
                    let quote = after.find(['"', '\\', '\n', '{', '}', '[', ']', ':'])?;
                    if !after.get(quote..)?.starts_with('"') || location == RepairLocation::Item {
                        return None;
                    }
                    let at = start + offset + 1 + quote;
                    let mut is_key = || self.look_ahead(at, |lookahead| lookahead.strictly().key_and_colon());
                    let text = after.get(..quote)?;
                    let ends = !text.ends_with(|c: char| is_space(c) || c == ',') || is_key();
                    // The last comma separates the fields.
                    let length = text.trim_end_matches(is_space).strip_suffix(',').map_or(quote, str::len);
                    return ends.then_some(offset + 1 + length);
                }
                ',' => return Some(offset),
                '，' if self.wide => return self.ends_at_comma(start + offset, location).then_some(offset),
                ':' if is_digit(Some(before)) && is_digit(next) => {}
                '：' if !self.wide => {}
                '\'' if before.is_alphanumeric() && next.is_some_and(char::is_alphanumeric) => {}
                '#' if is_space(before) => return None,
                '/' if after.starts_with('*') => return Some(offset),
                '<' if after.starts_with("!--") => return None,
                '/' if is_space(before) || after.starts_with('/') => return None,
                '(' if is_space(before) && self.tuples == 0 => {}
                '{' | '[' if offset > 0 => inside = placeholder(after)?,
                '{' | '[' | '(' | ':' | '\\' | '=' | ';' | '；' | '：' => return None,
                c if closing(c).is_some() || is_quote(c) => return None,
                _ => {}
            }
            before = c;
        }
        Some(rest.len())
    }

    /// Whether the comma at `at` ends a value: a key follows it, or an item, or a closing bracket.
    fn ends_at_comma(&mut self, at: usize, location: RepairLocation) -> bool {
        let after = at + self.text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        location == RepairLocation::Item
            || self.look_ahead(after, |lookahead| {
                let next = lookahead.after_space();
                next.is_none_or(|c| matches!(plain(c), '}' | ',')) || next == Some('.') || lookahead.comment_or_key()
            })
    }
}

/// The number of characters up to the closing bracket in `after`, which follows an opening bracket; `None` if what is inside could be
/// syntax.
fn placeholder(after: &str) -> Option<usize> {
    let end = after.find(['}', ']'])?;
    let inside = after.get(..end)?;
    let is_words = !inside.is_empty() && inside.chars().all(|c| is_word(c) || c == ' ');
    is_words.then(|| inside.chars().count() + 1)
}

/// Whether `c`, which is not alphanumeric, may start a text without quotes.
const fn is_first_mark(c: char) -> bool {
    matches!(c, '$' | '€' | '£' | '¥' | '@' | '/' | '~' | '<' | '>' | '%' | '&' | '_' | '°' | '§')
}

impl Lookahead<'_> {
    fn comment_or_key(&mut self) -> bool {
        self.after_space().is_some_and(|c| matches!(c, '/' | '#') || closing(c).is_some() || is_word(c))
            && (matches!(self.after_space(), Some('/' | '#')) || self.key_and_colon())
    }
}
