//! Actions of the oldest form: `type:`, and beside it the fields that stand below `config:` today.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::script::legacy::ids::{as_scalar, is_id};
use crate::script::legacy::names::PartKind;
use crate::script::legacy::nesting::{NestingRewriter, behind, flow_field};
use crate::script::legacy::parts::{find, today, words};
use crate::script::legacy::rewrite::{AmbiguousRewrite, is_flow};
use crate::script::legacy::wrap::{Belongs, Wrap};
use crate::script::lines::end;
use crate::source::span::Span;
use crate::source::yaml::{NodeKind, YamlEntry, YamlNode};

/// What stands beside `action_type` (docs/language.md), and what may be meant as such.
const BESIDE: [&str; 12] = [
    "action_type",
    "action_id",
    "condition",
    "on_exit",
    "on_interrupted",
    "config",
    "type",
    "id",
    "name",
    "action",
    "when",
    "if",
];

/// How far the fields below `config:` stand to the right of it.
const STEP: usize = 2;

/// How many actions of each kind a topic has so far.
pub type KindCounts = BTreeMap<String, usize>;

impl NestingRewriter<'_> {
    /// The actions of a list that begins at `list`, in the topic whose id is `topic`.
    pub fn actions(
        &mut self,
        items: &[Arc<YamlNode>],
        list: Span,
        topic: &str,
        counts: &mut KindCounts,
    ) -> Result<Value, AmbiguousRewrite> {
        let mut made = Vec::new();
        let mut above = list.start;
        for item in items {
            above = behind(item, above)?;
            made.push(self.action(item, topic, counts)?);
        }
        Ok(Value::Array(made))
    }

    fn action(&mut self, node: &YamlNode, topic: &str, counts: &mut KindCounts) -> Result<Value, AmbiguousRewrite> {
        let entries = node.as_mapping().unwrap_or_default();
        let kind = find(entries, "action_type", &["type"]).and_then(|index| entries.get(index));
        let Some((kind, scalar)) = kind.and_then(|kind| Some((kind, words(kind)?))) else { return Ok(node.to_json()) };
        let count = counts.entry(scalar.text.clone()).or_default();
        *count += 1;
        let unnamed = [topic, &scalar.text].map(|word| word.split_whitespace().collect::<Vec<_>>().join("_"));
        let unnamed = unnamed.into_iter().filter(|word| is_id(word)).chain([count.to_string()]);
        let unnamed = unnamed.collect::<Vec<_>>().join("_");

        let mut keys: Vec<String> = entries.iter().map(|entry| entry.key.value.clone()).collect();
        let id = find(entries, "action_id", &["id"]);
        let name = find(entries, "action_name", &["name", "action"]);
        let mut call = |index: Option<usize>, name: String| {
            if let Some(key) = index.and_then(|index| keys.get_mut(index)) {
                *key = name;
            }
        };
        if kind.key.value == "type" {
            call(entries.iter().position(|entry| std::ptr::eq(entry, kind)), "action_type".to_owned());
        }
        let own = name.and_then(|index| entries.get(index));
        let aside = own.map(|entry| format!("x-{}", entry.key.value)).unwrap_or_default();
        let mut replaced = None;
        let mut new_id = None;
        if let Some(written) = id.and_then(|index| entries.get(index)) {
            if written.key.value == "id" {
                call(id, "action_id".to_owned());
            }
            if let Some(text) = words(written).map(|scalar| &scalar.text).filter(|text| !is_id(text)) {
                replaced = self.ids.made(text).map(|made| (written, made));
            }
            call(name, aside);
        } else if let Some(text) = own.and_then(words).map(|scalar| &scalar.text) {
            if is_id(text) && self.ids.takes(text) {
                call(name, "action_id".to_owned());
            } else {
                new_id = Some(self.ids.made(text).unwrap_or_else(|| self.ids.unique(unnamed)));
                call(name, aside);
            }
        } else {
            new_id = Some(self.ids.unique(unnamed));
        }
        self.rename(entries, &keys);
        match (&new_id, own) {
            (Some(made), Some(own)) => self.add_before(node, own, "action_id", made)?,
            (Some(made), None) => self.add_behind(node, kind, made)?,
            (None, _) => {}
        }
        if let Some((entry, made)) = &replaced {
            self.say(&entry.value, made);
        }

        let text = |index: Option<usize>| index.and_then(|index| entries.get(index)).and_then(words).map(|s| &s.text);
        let own_id =
            new_id.as_ref().or(replaced.as_ref().map(|(_, made)| made)).or_else(|| text(id)).or_else(|| text(name));
        if let Some(own_id) = own_id {
            let place = own.or(id.and_then(|index| entries.get(index))).unwrap_or(kind);
            let called = [id, name].into_iter().filter_map(text).map(String::as_str);
            self.names.note(PartKind::Action, own_id, place.value.span, called);
        }

        let belongs = belongs(entries);
        let mut value = Map::new();
        let mut config = Map::new();
        for (entry, key) in entries.iter().zip(&keys).filter(|(entry, _)| today(entry) == "on_exit") {
            value.insert(key.clone(), self.routes(&entry.value)?);
        }
        Wrap { key: "config", by: STEP, kept: None }.around(&mut self.rewrite, node, &belongs)?;
        let last = belongs.iter().rposition(|place| *place == Belongs::Below);
        let first = belongs.iter().position(|place| *place == Belongs::Below);
        for (index, ((entry, key), place)) in entries.iter().zip(keys).zip(&belongs).enumerate() {
            if value.contains_key(&key) {
                continue;
            }
            let made = match &replaced {
                Some((other, made)) if std::ptr::eq(*other, entry) => Value::from(made.as_str()),
                _ => self.inner(&key, &entry.value, topic, counts)?,
            };
            let between = first.is_some_and(|first| first < index) && last.is_some_and(|last| index < last);
            let below = *place == Belongs::Below || *place == Belongs::Anywhere && between;
            if below {
                config.insert(key, made)
            } else {
                value.insert(key, made)
            };
        }
        if let Some(made) = new_id {
            value.insert("action_id".to_owned(), Value::from(made));
        }
        if !config.is_empty() {
            value.insert("config".to_owned(), Value::Object(config));
        }
        Ok(Value::Object(value))
    }

    /// A value of a configuration: actions may stand in it, and routes.
    fn inner(
        &mut self,
        key: &str,
        node: &YamlNode,
        topic: &str,
        counts: &mut KindCounts,
    ) -> Result<Value, AmbiguousRewrite> {
        match (&node.kind, key) {
            (NodeKind::Sequence(items), "actions") => self.actions(items, node.span, topic, counts),
            (NodeKind::Sequence(items), "cases" | "branches") => {
                let mut above = node.span.start;
                let mut made = Vec::new();
                for item in items {
                    above = behind(item, above)?;
                    let key = if item.as_sequence().is_some() { "actions" } else { "else" };
                    made.push(self.inner(key, item, topic, counts)?);
                }
                Ok(Value::Array(made))
            }
            (NodeKind::Mapping(entries), "config" | "else") => {
                let mut made = Map::new();
                for entry in entries {
                    made.insert(entry.key.value.clone(), self.inner(&entry.key.value, &entry.value, topic, counts)?);
                }
                Ok(Value::Object(made))
            }
            (NodeKind::Scalar(scalar), "goto") => self.route(key, node, &scalar.text),
            (_, "on_exit" | "onExit") => self.routes(node),
            _ => Ok(node.to_json()),
        }
    }

    /// Puts an id behind the kind of an action.
    fn add_behind(&mut self, node: &YamlNode, kind: &YamlEntry, id: &str) -> Result<(), AmbiguousRewrite> {
        let file = self.rewrite.file();
        let at = end(file, kind);
        if is_flow(file, node) {
            self.rewrite.insert(at, format!(", {}", flow_field(file.slice(kind.key.span), "action_id", id)));
            return Ok(());
        }
        let line = file.line_span(file.line(at)).unwrap_or(Span::point(at));
        let rest = file.slice(Span::new(at, line.end)).trim_start();
        match self.rewrite.column(kind.key.span).filter(|_| rest.is_empty() || rest.starts_with('#')) {
            Some((column, _)) => {
                let margin = " ".repeat(column + self.rewrite.deepened(file.line(kind.key.span.start)));
                self.rewrite.insert(line.end, format!("\n{margin}action_id: {}", as_scalar(id)));
                Ok(())
            }
            None => self.add_before(node, kind, "action_id", id),
        }
    }
}

/// Where each field of an action belongs. Beside a `config` nothing is moved: which of two fields holds is not known.
fn belongs(entries: &[YamlEntry]) -> Vec<Belongs> {
    let has_config = entries.iter().any(|entry| entry.key.value == "config");
    let place = |entry: &YamlEntry| match today(entry).as_str() {
        key if has_config || BESIDE.contains(&key) || key == "action_name" => Belongs::Beside,
        key if key.starts_with("x-") => Belongs::Anywhere,
        _ => Belongs::Below,
    };
    entries.iter().map(place).collect()
}
