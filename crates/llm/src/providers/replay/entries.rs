//! Parses written and recorded replies, and selects the calls that each of them answers.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::model::request::{Purpose, Task};
use crate::providers::replay::recording::{HEADER_KEY, lines};

pub(crate) type Entries = BTreeMap<(Purpose, String), Vec<Entry>>;

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) when: When,
    /// The instance of the action, if it was recorded.
    pub(crate) path: Option<String>,
    pub(crate) text: String,
    pub(crate) after: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// The call at its position in the order.
    InOrder,
    /// Every matching call; `None` matches any value.
    Keyed {
        round: Option<u32>,
        answered: Option<bool>,
    },
    Recorded {
        round: u32,
        call: u32,
    },
}

impl When {
    /// Whether an entry with a key answers `task`.
    pub(crate) fn matches(self, task: &Task) -> bool {
        match self {
            Self::InOrder => false,
            Self::Keyed { round, answered } => {
                round.is_none_or(|round| round == task.round)
                    && answered.is_none_or(|answered| answered == task.answer.is_some())
            }
            Self::Recorded { round, call } => round == task.round && call == task.call,
        }
    }
}

/// Parses written replies (YAML or JSON) or recorded ones (JSON lines).
pub(crate) fn read(text: &str) -> Result<Entries, Message> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let first_line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    match serde_json::from_str::<Value>(first_line) {
        Ok(Value::Object(fields)) if ["purpose", "text", HEADER_KEY].iter().any(|key| fields.contains_key(*key)) => {
            recorded(text)
        }
        _ => written(text),
    }
}

fn recorded(text: &str) -> Result<Entries, Message> {
    let mut entries = Entries::new();
    for line in lines(text)? {
        let (Some(purpose), Some(text), false) = (line.purpose, line.text, line.is_taken_back) else { continue };
        let when = When::Recorded { round: line.round, call: line.call };
        let list = entries.entry((purpose, line.action_id)).or_default();
        let path = line.path;
        // A repeated turn was recorded again: the last reply counts.
        match list.iter_mut().find(|entry| entry.when == when && entry.path == path) {
            Some(earlier) if path.is_some() => earlier.text = text,
            Some(earlier) if earlier.text != text => {
                return Err(msg!("round {}, call {} has two different replies", line.round, line.call));
            }
            Some(_) => {}
            None => list.push(Entry { when, path, text, after: Duration::ZERO }),
        }
    }
    Ok(entries)
}

fn written(text: &str) -> Result<Entries, Message> {
    // `serde_yaml::Value` rejects duplicate keys.
    let document: serde_yaml::Value = serde_yaml::from_str(text).map_err(|error| msg!("not valid YAML: {error}"))?;
    let document = serde_json::to_value(document).map_err(|error| msg!("not plain YAML values: {error}"))?;
    let Value::Object(fields) = document else {
        return Err(msg!("`replies:` is required, with a list of replies for each action"));
    };
    if let Some(unknown) = fields.keys().find(|key| *key != "replies" && !key.starts_with("x-")) {
        return Err(msg!("unknown key `{unknown}`; only `replies` is allowed here"));
    }
    let Some(Value::Object(actions)) = fields.get("replies") else {
        return Err(msg!("`replies` must contain action ids, each with a list of replies"));
    };
    let mut entries = Entries::new();
    for (key, list) in actions {
        let place = format!("`replies.{key}`");
        let (purpose, action) = purpose_and_action(key)?;
        let Value::Array(list) = list else { return Err(msg!("{place} must be a list of replies")) };
        let mut read = Vec::with_capacity(list.len());
        for (index, value) in list.iter().enumerate() {
            read.push(entry(value).map_err(|problem| msg!("entry {} of {place} {problem}", index + 1))?);
        }
        if entries.insert((purpose, action.to_owned()), read).is_some() {
            return Err(msg!("{place} appears twice, once with and once without its purpose"));
        }
    }
    Ok(entries)
}

/// `ask_name`, `monitor:ask_name`.
fn purpose_and_action(key: &str) -> Result<(Purpose, &str), Message> {
    let (purpose, action) = match key.split_once(':') {
        None => (Purpose::Action, key),
        Some((purpose, action)) => {
            let known = || Message::list(Joint::Item, Purpose::ALL.map(|purpose| Message::text(purpose.name())));
            let purpose = Purpose::parse(purpose)
                .ok_or_else(|| msg!("`replies.{key}`: unknown purpose `{purpose}`; the purposes are {}", known()))?;
            (purpose, action)
        }
    };
    if action.is_empty() { Err(msg!("`replies.{key}` does not name an action")) } else { Ok((purpose, action)) }
}

fn entry(value: &Value) -> Result<Entry, Message> {
    match value {
        Value::Null => Err(msg!("is empty; write \"\" for a reply without text")),
        Value::Object(fields) if fields.keys().any(|key| key.starts_with('$')) => {
            let (mut round, mut answered, mut reply, mut after) = (None, None, None, Duration::ZERO);
            for (key, value) in fields {
                match key.as_str() {
                    "$round" => {
                        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
                        round = Some(
                            number
                                .filter(|number| *number > 0)
                                .ok_or_else(|| msg!("has a `$round` that is not a whole number of at least 1"))?,
                        );
                    }
                    "$answered" => {
                        answered =
                            Some(value.as_bool().ok_or_else(|| msg!("has an `$answered` that is not true or false"))?)
                    }
                    "$after_ms" => {
                        let number = value
                            .as_u64()
                            .ok_or_else(|| msg!("has an `$after_ms` that is not a number of milliseconds"))?;
                        after = Duration::from_millis(number);
                    }
                    "reply" => reply = Some(text_of(value)),
                    other => {
                        let known = "$round, $answered, $after_ms and reply";
                        return Err(msg!("has an unknown key `{other}`; the known keys are {known}"));
                    }
                }
            }
            let text = reply
                .ok_or_else(|| msg!("has no `reply`, which must hold the reply when keys such as $round are used"))?;
            let when = match (round, answered) {
                (None, None) => When::InOrder,
                _ => When::Keyed { round, answered },
            };
            Ok(Entry { when, path: None, text, after })
        }
        value => Ok(Entry { when: When::InOrder, path: None, text: text_of(value), after: Duration::ZERO }),
    }
}

/// A string unchanged; any other value as compact JSON, with its keys in the original order.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
