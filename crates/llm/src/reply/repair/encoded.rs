//! Parses an object that is encoded as a JSON string: `"{\"a\": 1}"`, with or without the outer quotes.

use serde_json::{Map, Value};

use crate::reply::repair::characters::{is_word, plain};
use crate::reply::repair::follow::{Lookahead, RepairLocation};
use crate::reply::repair::parser::{Parser, Stop};
use crate::reply::repair::record::RepairKind;
use crate::reply::repair::text::doubled;

/// A quote that was escaped as if it were inside a string.
const QUOTE: &str = "\\\"";

impl Parser<'_> {
    /// The string at the current position whose quotes are escaped: `\"a\"`. Its own escapes are escaped once more.
    pub(super) fn escaped_quoted(&mut self, location: RepairLocation) -> Result<String, Stop> {
        let start = self.at;
        let Some(inside) = self.rest().strip_prefix(QUOTE) else {
            return Err(Stop::Rejected("a value was expected", start));
        };
        let from = start + QUOTE.len();
        let is_escaped = |at: usize| inside.get(..at).is_some_and(|before| before.ends_with('\\'));
        let end = inside.match_indices(QUOTE).map(|(at, _)| at).find(|&at| !is_escaped(at));
        let Some(end) = end.filter(|&end| self.ends_escaped(from + end + QUOTE.len(), location)) else {
            return Err(Stop::Rejected("it is not clear where the string ends", start));
        };
        let text = inside.get(..end).unwrap_or_default().replace("\\\\", "\\");
        let text = serde_json::from_str(&format!("\"{text}\""));
        self.at = from + end + QUOTE.len();
        self.add_repair(RepairKind::DoubleEncoded, start)?;
        text.map_err(|_| Stop::Rejected("it is not clear where the string ends", start))
    }

    /// Whether the quote before the current position is doubled because the object was a field of a CSV file: `""a"": ""b""`. Then all
    /// of its quotes are. The first key shows it.
    ///
    /// # Errors
    /// [`Stop::Rejected`] when only some quotes are doubled.
    pub(super) fn starts_doubled(&mut self, open: char, location: RepairLocation) -> Result<bool, Stop> {
        let rest = self.rest();
        let is_doubled = matches!(open, '"' | '\'') && rest.starts_with(open);
        if location == RepairLocation::Key && !self.doubled && is_doubled {
            let inside = rest.trim_start_matches(open);
            let end = inside.find(|c| !is_word(c)).unwrap_or(inside.len());
            let after = inside.get(end..).and_then(|rest| rest.strip_prefix(doubled(open)));
            self.doubled = end > 0 && after.is_some_and(|after| after.trim_start().starts_with(':'));
        }
        if self.doubled && !is_doubled {
            return Err(Stop::Rejected("only some of its quotes are doubled", self.at));
        }
        Ok(self.doubled)
    }

    fn ends_escaped(&mut self, at: usize, location: RepairLocation) -> bool {
        let next = self.look_ahead(at, Lookahead::after_space).map(plain);
        match location {
            RepairLocation::Key => next == Some(':'),
            RepairLocation::Member => matches!(next, None | Some(',' | '}')),
            RepairLocation::Item => matches!(next, None | Some(',' | ']')),
        }
    }
}

pub(super) fn starts(text: &str) -> bool {
    let inside = text.strip_prefix('"').unwrap_or(text);
    let Some(inside) = without_space(inside).strip_prefix('{') else { return false };
    without_space(inside).starts_with("\\\"")
}

/// The object at the start of `text`, if it is encoded twice and complete, and its length there.
pub(super) fn object(text: &str) -> Option<(Map<String, Value>, usize)> {
    if !starts(text) {
        return None;
    }
    let (inside, length) = if text.starts_with('"') {
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<String>();
        (stream.next()?.ok()?, stream.byte_offset())
    } else {
        let end = text.rfind('}')?;
        let body = text.get(..=end)?;
        // Line ends between tokens may be unescaped. Inside strings they are invalid and are not removed.
        let body = body.replace('\r', "\\r").replace('\n', "\\n");
        (serde_json::from_str::<String>(&format!("\"{body}\"")).ok()?, text.len())
    };
    Some((serde_json::from_str(inside.trim()).ok()?, length))
}

/// `text` without leading white space, which may be written as escapes.
fn without_space(text: &str) -> &str {
    let mut rest = text;
    loop {
        let trimmed = rest.trim_start();
        let stripped = ["\\n", "\\r", "\\t"].iter().find_map(|escape| trimmed.strip_prefix(escape));
        match stripped {
            Some(stripped) => rest = stripped,
            None => return trimmed,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::reply::repair::repaired;

    #[test]
    fn an_escaped_quote_of_an_object_whose_quotes_are_doubled_is_doubled_too() {
        let object =
            repaired("{\"\"a\"\":\"\"b \\\"\"c\\\"\"\"\",\"\"d\"\":[\"\"\"\",\"\"e\"\"]}", &[]).unwrap().object;
        assert_eq!(serde_json::Value::Object(object), serde_json::json!({ "a": "b \"c\"", "d": ["", "e"] }));
    }
}
