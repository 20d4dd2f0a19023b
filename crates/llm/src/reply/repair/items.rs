//! Parses lists, and brackets that do not match.

use serde_json::Value;

use crate::reply::repair::characters::{closing, is_word, plain};
use crate::reply::repair::follow::{Lookahead, RepairLocation};
use crate::reply::repair::parser::{Parser, Stop};
use crate::reply::repair::record::RepairKind;

/// How the one closing bracket that does not match the opening one is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BracketRepair {
    /// The right closing bracket is missing before it.
    Insert,
    /// It stands for the right one.
    Replace,
    /// It is too much.
    Drop,
}

impl BracketRepair {
    pub(super) const ALL: [Self; 3] = [Self::Insert, Self::Replace, Self::Drop];
}

/// What follows a bracket that does not match.
pub(super) enum AfterBracket {
    /// The current list or object ends here.
    End,
    /// It continues.
    Continue,
}

impl Parser<'_> {
    /// The items up to `close`, after the opening bracket.
    pub(super) fn items(&mut self, depth: usize, close: char) -> Result<Vec<Value>, Stop> {
        let mut items = Vec::new();
        let mut comma = None;
        let mut bare = false;
        loop {
            let before = self.at;
            let c = self.token()?.ok_or(Stop::Cut)?;
            let start = self.at;
            let on_new_line = self.text.get(before..start).is_some_and(|space| space.contains('\n'));
            if self.ellipsis(start, comma.is_some(), items.is_empty())? {
                comma = None;
                continue;
            }
            match plain(c) {
                plain if plain == close => {
                    self.extra_comma(comma.filter(|_| !(close == ')' && items.len() == 1)))?;
                    self.punctuation(c)?;
                    return Ok(items);
                }
                '}' | ']' | ')' => match self.unmatched_bracket(start)? {
                    AfterBracket::End => return Ok(items),
                    AfterBracket::Continue => continue,
                },
                ',' => {
                    self.extra_comma(comma.or_else(|| items.is_empty().then_some(start)))?;
                    self.punctuation(c)?;
                    comma = Some(start);
                    continue;
                }
                _ if comma.is_none() && !items.is_empty() => {
                    // Two words on one line may be one value.
                    let apart = on_new_line || (start > before && !(bare && is_word(c)));
                    if (bare || is_word(c)) && !apart {
                        return Err(Stop::Rejected("a comma or a closing bracket was expected", start));
                    }
                    self.add_repair(RepairKind::MissingComma, start)?;
                }
                _ => {}
            }
            if closing(c).is_some() && self.look_ahead(start, |lookahead| lookahead.strictly().is_plain_key()) {
                // The bracket of a list at the end could be the missing one.
                if items.last().is_some_and(Value::is_array) {
                    return Err(Stop::Rejected("it is not clear where a list or an object ends", start));
                }
                self.missing_bracket(comma.unwrap_or(before), start)?;
                return Ok(items);
            }
            comma = None;
            bare = is_word(c);
            items.push(self.value(depth, RepairLocation::Item)?);
        }
    }

    /// Handles the closing bracket at the current position, which does not match the opening one. Only one such bracket is read; it
    /// can be read in several ways.
    pub(super) fn unmatched_bracket(&mut self, at: usize) -> Result<AfterBracket, Stop> {
        if self.bracket_used {
            return Err(Stop::Rejected("more than one closing bracket does not match", at));
        }
        let Some(repair) = self.bracket else { return Err(Stop::Bracket(at)) };
        self.bracket_used = true;
        let kind = if repair == BracketRepair::Drop { RepairKind::ExtraBracket } else { RepairKind::WrongBracket };
        self.add_repair(kind, at)?;
        if repair != BracketRepair::Insert {
            self.bump();
        }
        Ok(if repair == BracketRepair::Drop { AfterBracket::Continue } else { AfterBracket::End })
    }

    /// Ends a list whose closing bracket is missing at `end`, because a key and a colon follow at `key`.
    fn missing_bracket(&mut self, end: usize, key: usize) -> Result<(), Stop> {
        match self.bracket {
            None => Err(Stop::Bracket(key)),
            Some(BracketRepair::Insert) if !self.bracket_used => {
                self.bracket_used = true;
                self.repairs.retain(|repair| repair.at < end);
                self.at = end;
                self.add_repair(RepairKind::WrongBracket, end)
            }
            Some(_) => Err(Stop::Rejected("it is not clear where a list or an object ends", key)),
        }
    }

    /// Skips `...` or `…` in place of further fields or items, which must stand alone between commas and brackets.
    pub(super) fn ellipsis(&mut self, start: usize, after_comma: bool, is_first: bool) -> Result<bool, Stop> {
        let rest = self.rest();
        let dots = rest.trim_start_matches(['.', '…']);
        let skipped = rest.get(..rest.len() - dots.len()).unwrap_or_default();
        if !(after_comma || is_first) || !(skipped.starts_with("...") || skipped.starts_with('…')) {
            return Ok(false);
        }
        self.at += skipped.len();
        let next = self.token()?.ok_or(Stop::Cut)?;
        // If it is all that there is, the value is unknown.
        if !matches!((plain(next), is_first), (',', _) | ('}' | ']' | ')', false)) {
            return Err(Stop::Rejected("an ellipsis does not stand alone", start));
        }
        self.add_repair(RepairKind::Ellipsis, start)?;
        Ok(true)
    }

    /// The rest of a string that is continued with `+` and another string.
    pub(super) fn joined(&mut self, mut text: String, location: RepairLocation) -> Result<String, Stop> {
        loop {
            let at = self.at;
            let joins = self.look_ahead(at, |lookahead| lookahead.strictly().joins_a_string());
            if !joins {
                return Ok(text);
            }
            // The plus sign, after white space and comments.
            self.token()?;
            self.bump();
            self.token()?;
            self.add_repair(RepairKind::JoinedText, at)?;
            if self.peek().and_then(closing).is_none() {
                return Err(Stop::Rejected("a quote was expected", self.at));
            }
            text.push_str(&self.quoted(location)?);
        }
    }
}

impl Lookahead<'_> {
    /// Whether a plus sign and another string follow.
    pub(super) fn joins_a_string(&mut self) -> bool {
        self.after_space() == Some('+') && {
            self.bump();
            self.skip_block_comment();
            self.after_space().is_some_and(|c| closing(c).is_some())
        }
    }
}
