//! Where in the text of a `bcc-script.toml` something stands, and what is wrong there.

use bcc_lang::message::message::Message;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Something that cannot be, at a place of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The names that lead to it; a number in a list.
    pub at: Vec<String>,
    pub message: Message,
    pub help: Message,
}

impl ConfigError {
    pub fn new(at: &[&str], message: impl Into<Message>, help: impl Into<Message>) -> Self {
        let at = at.iter().map(|step| (*step).to_owned()).collect();
        Self { at, message: message.into(), help: help.into() }
    }
}

/// How a table such as `[models.main]` is written: names of other letters than ASCII stand in quotes.
pub fn table_of(of: &str, name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if bare { format!("[{of}.{name}]") } else { format!("[{of}.\"{name}\"]") }
}

/// A `bcc-script.toml` that is TOML, with its places.
pub struct ConfigSource<'text>(Spanned<DeTable<'text>>);

impl<'text> ConfigSource<'text> {
    /// The places of `text`; `None` when it is no TOML.
    pub fn of(text: &'text str) -> Option<Self> {
        DeTable::parse(text).ok().map(Self)
    }

    /// Where the value at `path` stands, in bytes: names of keys, and numbers in lists. A table is told by its name. What is
    /// not there is told by the innermost part that is.
    pub fn span(&self, path: &[String]) -> Range<usize> {
        let (mut span, mut within): (_, Option<&DeValue<'_>>) = (0..0, None);
        for step in path {
            let entry = match within {
                None => self.0.get_ref().get_key_value(step.as_str()),
                Some(DeValue::Table(table)) => table.get_key_value(step.as_str()),
                Some(DeValue::Array(list)) => {
                    let Some(entry) = step.parse().ok().and_then(|number: usize| list.get(number)) else { break };
                    (span, within) = (entry.span(), Some(entry.get_ref()));
                    continue;
                }
                Some(_) => None,
            };
            let Some((name, value)) = entry else { break };
            span = if value.get_ref().is_table() { name.span() } else { value.span() };
            within = Some(value.get_ref());
        }
        span
    }

    /// Every text of the file with the names of the keys that lead to it, and its place.
    pub fn texts(&self) -> Vec<(Vec<&str>, &str, Range<usize>)> {
        let mut found = Vec::new();
        walk(self.0.get_ref(), &mut Vec::new(), &mut found);
        found
    }
}

type Text<'a> = (Vec<&'a str>, &'a str, Range<usize>);

fn walk<'a>(table: &'a DeTable<'_>, path: &mut Vec<&'a str>, found: &mut Vec<Text<'a>>) {
    for (name, value) in table {
        path.push(name.get_ref());
        value_of(value, path, found);
        path.pop();
    }
}

fn value_of<'a>(value: &'a Spanned<DeValue<'_>>, path: &mut Vec<&'a str>, found: &mut Vec<Text<'a>>) {
    match value.get_ref() {
        DeValue::String(text) => found.push((path.clone(), text, value.span())),
        DeValue::Table(table) => walk(table, path, found),
        DeValue::Array(list) => {
            for entry in list {
                value_of(entry, path, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_the_names_that_lead_to_it() {
        let text = "models.a = { fallback = [\"b\", \"c\"] }\n[models.b]\nprice = { input = 1 }\n[models.\"c d\".headers]\nX = \"y\"\n";
        let places = ConfigSource::of(text).unwrap();
        let at = |path: &[&str]| {
            let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
            text.get(places.span(&path)).unwrap().to_owned()
        };
        assert_eq!(at(&["models", "a", "fallback", "1"]), "\"c\"");
        assert_eq!(at(&["models", "a"]), "a");
        assert_eq!(at(&["models", "b", "price", "input"]), "1");
        assert_eq!(at(&["models", "b", "price", "output"]), "price");
        assert_eq!(at(&["models", "c d", "headers", "X"]), "\"y\"");
        assert_eq!(at(&["models", "b", "model"]), "b");
        assert_eq!(at(&["nothing"]), "");
        assert!(ConfigSource::of("[broken").is_none());
    }
}
