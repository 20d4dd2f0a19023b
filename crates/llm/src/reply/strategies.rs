//! The strategies that parse the text of a model into an object, in order: three, and a fourth if repair is enabled
//! (docs/replies.md).

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::value::digits::Digits;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing::{error, warn};

use crate::reply::extract;
use crate::reply::field::type_name;
use crate::reply::out_of_range::quoted;
use crate::reply::repair;
use crate::reply::repair::record::RepairRecord;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParseStrategy {
    /// The unchanged text: nothing before or after the JSON value, not even white space.
    DirectParse,
    /// The text without leading and trailing white space and byte order marks.
    TrimAndParse,
    /// The only object in a fenced block or in the prose that has fields of the reply.
    ExtractJsonBlock,
    /// The object as near-JSON, with each repair recorded; tried only if repair is enabled.
    RepairJson,
}

impl ParseStrategy {
    /// All strategies, in the order in which they are tried.
    pub const ALL: [Self; 4] = [Self::DirectParse, Self::TrimAndParse, Self::ExtractJsonBlock, Self::RepairJson];

    /// The strategies to try, in order; the last only with `repair`.
    pub fn tried(repair: bool) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |strategy| repair || *strategy != Self::RepairJson)
    }

    /// The name in logs and `debug_info`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DirectParse => "direct_parse",
            Self::TrimAndParse => "trim_and_parse",
            Self::ExtractJsonBlock => "extract_json_block",
            Self::RepairJson => "repair_json",
        }
    }

    /// Its position in the order, starting at 1: `parse_retry_count` of a reply that it parsed.
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }
}

impl fmt::Display for ParseStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ParseFailure {
    pub strategy: ParseStrategy,
    /// The reason and position (columns and offsets in bytes), never the text itself.
    pub error: Message,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ParsedReply {
    pub object: Map<String, Value>,
    /// How the numbers of the object were written.
    pub digits: Option<Digits>,
    pub strategy: ParseStrategy,
    pub failures: Vec<ParseFailure>,
    /// The repairs of the fourth strategy; empty for the others.
    pub repairs: Vec<RepairRecord>,
}

/// Parses the object in `raw`, with `repair` also near-JSON. `own` are the fields of the reply: an object in a longer text without any
/// of them is not the reply; if `own` is empty, every object qualifies. Each failed strategy is logged as a warning, the failure of all
/// strategies as an error; the text itself is logged at debug level only. JSON nested deeper than 128 levels is rejected.
///
/// # Errors
/// One [`ParseFailure`] per strategy. A JSON value that is not an object counts as a failure.
pub fn parse(raw: &str, own: &[&str], repair: bool) -> Result<ParsedReply, Vec<ParseFailure>> {
    let mut failures = Vec::new();
    for strategy in ParseStrategy::tried(repair) {
        match apply(strategy, raw, own, &failures) {
            Ok(parsed) => {
                if !failures.is_empty() {
                    warn!(%strategy, parse_retry_count = strategy.number(), "the reply was read by a later strategy");
                }
                return Ok(ParsedReply { failures, ..parsed });
            }
            Err(error) => {
                warn!(%strategy, %error, "a strategy could not read the reply");
                failures.push(ParseFailure { strategy, error });
            }
        }
    }
    let strategies = ParseStrategy::tried(repair).map(ParseStrategy::name).collect::<Vec<_>>().join(", ");
    let final_error = failures.last().map_or_else(Message::default, |failure| failure.error.clone());
    error!(%strategies, %final_error, "no strategy could read the reply");
    Err(failures)
}

/// The object that one strategy finds, without the failures of those before it.
fn apply(strategy: ParseStrategy, raw: &str, own: &[&str], failures: &[ParseFailure]) -> Result<ParsedReply, Message> {
    let found = |object, digits, repairs| ParsedReply { object, digits, strategy, failures: Vec::new(), repairs };
    let (object, digits) = match strategy {
        ParseStrategy::DirectParse => parse_object(raw),
        ParseStrategy::TrimAndParse => {
            let trimmed = raw.trim_matches(is_padding);
            match failures.last() {
                // Nothing to trim: the same text would fail again.
                Some(direct) if trimmed.len() == raw.len() => Err(direct.error.clone()),
                _ => parse_object(trimmed),
            }
        }
        ParseStrategy::ExtractJsonBlock => extract::object(raw, own),
        ParseStrategy::RepairJson => {
            let repaired = repair::repaired(raw, own)?;
            return Ok(found(repaired.object, repaired.digits, repaired.repairs));
        }
    }?;
    Ok(found(object, digits, Vec::new()))
}

fn is_padding(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

fn parse_object(text: &str) -> Result<(Map<String, Value>, Option<Digits>), Message> {
    if text.starts_with(is_padding) {
        return Err(Message::word("whitespace or a byte order mark precedes the JSON value"));
    }
    if text.ends_with(is_padding) {
        return Err(Message::word("whitespace or a byte order mark follows the JSON value"));
    }
    if text.starts_with('{') {
        let object = serde_json::from_str(text).or_else(|error| {
            let quoted = quoted(text).and_then(|text| serde_json::from_str(&text).ok());
            quoted.ok_or_else(|| error.to_message())
        })?;
        return Ok((object, Digits::of_json(text)));
    }
    // Not an object: report its type. (Deserializing a map would give an error that quotes the text.)
    match serde_json::from_str::<Value>(text) {
        Ok(value) => Err(msg!("the JSON value is a {}, not an object", Message::word(type_name(&value)))),
        Err(error) => Err(error.to_message()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_tried_in_order_and_the_first_that_works_wins() {
        let table = [
            (r#"{"a":1}"#, 1),
            ("{}", 1),
            (" {\"a\":1}", 2),
            ("{\"a\":1}\n", 2),
            ("\u{feff}{\"a\":1}", 2),
            ("\u{feff} \r\n\t{\"a\":1}\u{3000}\u{feff}", 2),
            ("好的：{\"a\":1}", 3),
            ("```json\n{\"a\":1}\n```", 3),
        ];
        for (raw, number) in table {
            let parsed = parse(raw, &[], false).unwrap();
            assert_eq!(parsed.strategy.number(), number, "{raw:?}");
            assert_eq!(parsed.failures.len() + 1, usize::from(number), "{raw:?}");
            for (failure, strategy) in parsed.failures.iter().zip(ParseStrategy::ALL) {
                assert_eq!(failure.strategy, strategy, "{raw:?}");
            }
        }
    }

    #[test]
    fn a_text_without_an_object_fails_every_strategy() {
        for raw in ["", " ", "null", "5", "\"text\"", "[1]", "hello", "{", "{\"a\":1", "\u{feff}", "}{", "```json\n```"]
        {
            let failures = parse(raw, &[], false).unwrap_err();
            let tried: Vec<_> = failures.iter().map(|failure| failure.strategy).collect();
            assert_eq!(tried, ParseStrategy::tried(false).collect::<Vec<_>>(), "{raw:?}");
            assert!(failures.iter().all(|failure| !failure.error.is_empty()), "{raw:?}");
        }
    }

    #[test]
    fn a_failure_has_a_reason_and_never_quotes_the_text() {
        let texts = [
            "\"秘密4711\"",
            "4711471147",
            "[\"秘密4711\"]",
            "{\"秘密4711\":4711,}",
            "秘密4711 {\"秘密4711\": 秘密4711}",
            "{\"秘密4711\":\"\\ud800\"}",
            "```json\n{\"秘密4711\":'秘密4711'}\n```",
        ];
        for raw in texts {
            for failure in parse(raw, &[], false).unwrap_err() {
                assert!(
                    !failure.error.to_string().contains("4711") && !failure.error.to_string().contains("秘密"),
                    "{raw}: {}",
                    failure.error
                );
            }
        }
        assert_eq!(parse("[1]", &[], false).unwrap_err()[0].error, "the JSON value is a list, not an object");
        assert_eq!(
            parse(" {}", &[], false).unwrap().failures[0].error,
            "whitespace or a byte order mark precedes the JSON value"
        );
    }

    #[test]
    fn nesting_beyond_the_limit_is_rejected_without_stack_overflow() {
        for depth in [200, 100_000] {
            let raw = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
            let failures = parse(&raw, &[], false).unwrap_err();
            assert!(failures[0].error.to_string().contains("recursion limit"), "{}", failures[0].error);
        }
    }
}
