//! Positions in the text of a `bcc-script.toml`, and errors at them.

use bcc_lang::message::message::Message;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An error in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The path of its value: names of keys, and indexes in lists.
    pub path: Vec<String>,
    pub message: Message,
    pub help: Message,
}

impl ConfigError {
    pub fn new(at: &[&str], message: impl Into<Message>, help: impl Into<Message>) -> Self {
        let at = at.iter().map(|step| (*step).to_owned()).collect();
        Self { path: at, message: message.into(), help: help.into() }
    }
}

/// The header of a table, such as `[models.main]`. A name with other characters than ASCII letters, digits, `_` and `-` is quoted.
pub(crate) fn table_header(parent: &str, name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if bare { format!("[{parent}.{name}]") } else { format!("[{parent}.\"{name}\"]") }
}

/// A parsed `bcc-script.toml` with the positions of its values.
pub struct ConfigSource<'text>(Spanned<DeTable<'text>>);

impl<'text> ConfigSource<'text> {
    /// Parses `text`; `None` if it is not TOML.
    pub fn of(text: &'text str) -> Option<Self> {
        DeTable::parse(text).ok().map(Self)
    }

    /// The byte range of the value at `path` (names of keys, and indexes in lists). For a table, the range of its name. If the
    /// value does not exist, the range of its innermost existing parent.
    pub fn span(&self, path: &[String]) -> Range<usize> {
        let (mut span, mut parent): (_, Option<&DeValue<'_>>) = (0..0, None);
        for step in path {
            let entry = match parent {
                None => self.0.get_ref().get_key_value(step.as_str()),
                Some(DeValue::Table(table)) => table.get_key_value(step.as_str()),
                Some(DeValue::Array(list)) => {
                    let Some(entry) = step.parse().ok().and_then(|number: usize| list.get(number)) else { break };
                    (span, parent) = (entry.span(), Some(entry.get_ref()));
                    continue;
                }
                Some(_) => None,
            };
            let Some((name, value)) = entry else { break };
            span = if value.get_ref().is_table() { name.span() } else { value.span() };
            parent = Some(value.get_ref());
        }
        span
    }

    /// All strings of the file, each with the keys of its path, and its byte range.
    pub fn texts(&self) -> Vec<(Vec<&str>, &str, Range<usize>)> {
        let mut found = Vec::new();
        visit_table(self.0.get_ref(), &mut Vec::new(), &mut found);
        found
    }
}

type Text<'a> = (Vec<&'a str>, &'a str, Range<usize>);

fn visit_table<'a>(table: &'a DeTable<'_>, path: &mut Vec<&'a str>, found: &mut Vec<Text<'a>>) {
    for (name, value) in table {
        path.push(name.get_ref());
        visit_value(value, path, found);
        path.pop();
    }
}

fn visit_value<'a>(value: &'a Spanned<DeValue<'_>>, path: &mut Vec<&'a str>, found: &mut Vec<Text<'a>>) {
    match value.get_ref() {
        DeValue::String(text) => found.push((path.clone(), text, value.span())),
        DeValue::Table(table) => visit_table(table, path, found),
        DeValue::Array(list) => {
            for entry in list {
                visit_value(entry, path, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_path() {
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
