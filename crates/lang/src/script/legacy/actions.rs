//! Rewrites actions of the oldest format, which have `type:` and, next to it, the fields that are now below `config:`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::script::legacy::ids::{as_scalar, is_id};
use crate::script::legacy::names::PartKind;
use crate::script::legacy::nesting::{NestingRewriter, flow_field, item_end};
use crate::script::legacy::parts::{current_key, find, scalar_of};
use crate::script::legacy::rewrite::{AmbiguousRewrite, is_flow};
use crate::script::legacy::wrap::{Placement, Wrap};
use crate::script::lines::end;
use crate::source::span::Span;
use crate::source::yaml::{NodeKind, YamlEntry, YamlNode};

/// Fields at the level of `action_type` (docs/language.md), and names that may stand for them.
pub(crate) const ACTION_LEVEL: [&str; 12] = [
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

/// The indentation of fields below `config:`.
const INDENT: usize = 2;

/// The number of actions of each kind so far in a topic.
pub(crate) type KindCounts = BTreeMap<String, usize>;

impl NestingRewriter<'_> {
    /// Rewrites the actions of a list at `list`, in the topic with the id `topic`.
    pub(crate) fn actions(
        &mut self,
        items: &[Arc<YamlNode>],
        list: Span,
        topic: &str,
        counts: &mut KindCounts,
    ) -> Result<Value, AmbiguousRewrite> {
        let mut rewritten = Vec::new();
        let mut previous_end = list.start;
        for item in items {
            previous_end = item_end(item, previous_end)?;
            rewritten.push(self.action(item, topic, counts)?);
        }
        Ok(Value::Array(rewritten))
    }

    fn action(&mut self, node: &YamlNode, topic: &str, counts: &mut KindCounts) -> Result<Value, AmbiguousRewrite> {
        let entries = node.as_mapping().unwrap_or_default();
        let kind = find(entries, "action_type", &["type"]).and_then(|index| entries.get(index));
        let Some((kind, scalar)) = kind.and_then(|kind| Some((kind, scalar_of(kind)?))) else {
            return Ok(node.to_json());
        };
        let count = counts.entry(scalar.text.clone()).or_default();
        *count += 1;
        let default_id = [topic, &scalar.text].map(|word| word.split_whitespace().collect::<Vec<_>>().join("_"));
        let default_id = default_id.into_iter().filter(|word| is_id(word)).chain([count.to_string()]);
        let default_id = default_id.collect::<Vec<_>>().join("_");

        let mut keys: Vec<String> = entries.iter().map(|entry| entry.key.value.clone()).collect();
        let id = find(entries, "action_id", &["id"]);
        let name = find(entries, "action_name", &["name", "action"]);
        let mut set_key = |index: Option<usize>, name: String| {
            if let Some(key) = index.and_then(|index| keys.get_mut(index)) {
                *key = name;
            }
        };
        if kind.key.value == "type" {
            set_key(entries.iter().position(|entry| std::ptr::eq(entry, kind)), "action_type".to_owned());
        }
        let name_entry = name.and_then(|index| entries.get(index));
        let custom_key = name_entry.map(|entry| format!("x-{}", entry.key.value)).unwrap_or_default();
        let mut replaced = None;
        let mut new_id = None;
        if let Some(written) = id.and_then(|index| entries.get(index)) {
            if written.key.value == "id" {
                set_key(id, "action_id".to_owned());
            }
            if let Some(text) = scalar_of(written).map(|scalar| &scalar.text).filter(|text| !is_id(text)) {
                replaced = self.ids.create(text).map(|created| (written, created));
            }
            set_key(name, custom_key);
        } else if let Some(text) = name_entry.and_then(scalar_of).map(|scalar| &scalar.text) {
            if is_id(text) && self.ids.try_take(text) {
                set_key(name, "action_id".to_owned());
            } else {
                new_id = Some(self.ids.create(text).unwrap_or_else(|| self.ids.unique(default_id)));
                set_key(name, custom_key);
            }
        } else {
            new_id = Some(self.ids.unique(default_id));
        }
        self.rename(entries, &keys);
        match (&new_id, name_entry) {
            (Some(created), Some(name_entry)) => self.add_before(node, name_entry, "action_id", created)?,
            (Some(created), None) => self.add_after(node, kind, created)?,
            (None, _) => {}
        }
        if let Some((entry, created)) = &replaced {
            self.write_id(&entry.value, created);
        }

        let text =
            |index: Option<usize>| index.and_then(|index| entries.get(index)).and_then(scalar_of).map(|s| &s.text);
        let own_id = new_id
            .as_ref()
            .or(replaced.as_ref().map(|(_, created)| created))
            .or_else(|| text(id))
            .or_else(|| text(name));
        if let Some(own_id) = own_id {
            let place = name_entry.or(id.and_then(|index| entries.get(index))).unwrap_or(kind);
            let called = [id, name].into_iter().filter_map(text).map(String::as_str);
            self.names.note(PartKind::Action, own_id, place.value.span, called);
        }

        let placements = placements(entries);
        let mut value = Map::new();
        let mut config = Map::new();
        for (entry, key) in entries.iter().zip(&keys).filter(|(entry, _)| current_key(entry) == "on_exit") {
            value.insert(key.clone(), self.routes(&entry.value)?);
        }
        Wrap { key: "config", indent: INDENT, already_indented: None }.around(&mut self.rewrite, node, &placements)?;
        let last = placements.iter().rposition(|place| *place == Placement::Nested);
        let first = placements.iter().position(|place| *place == Placement::Nested);
        for (index, ((entry, key), place)) in entries.iter().zip(keys).zip(&placements).enumerate() {
            if value.contains_key(&key) {
                continue;
            }
            let rewritten = match &replaced {
                Some((other, rewritten)) if std::ptr::eq(*other, entry) => Value::from(rewritten.as_str()),
                _ => self.inner(&key, &entry.value, topic, counts)?,
            };
            let between = first.is_some_and(|first| first < index) && last.is_some_and(|last| index < last);
            let nested = *place == Placement::Nested || *place == Placement::Either && between;
            if nested {
                config.insert(key, rewritten)
            } else {
                value.insert(key, rewritten)
            };
        }
        if let Some(id) = new_id {
            value.insert("action_id".to_owned(), Value::from(id));
        }
        if !config.is_empty() {
            value.insert("config".to_owned(), Value::Object(config));
        }
        Ok(Value::Object(value))
    }

    /// Rewrites a value of a configuration, which may contain actions and routes.
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
                let mut previous_end = node.span.start;
                let mut rewritten = Vec::new();
                for item in items {
                    previous_end = item_end(item, previous_end)?;
                    let key = if item.as_sequence().is_some() { "actions" } else { "else" };
                    rewritten.push(self.inner(key, item, topic, counts)?);
                }
                Ok(Value::Array(rewritten))
            }
            (NodeKind::Mapping(entries), "config" | "else") => {
                let mut rewritten = Map::new();
                for entry in entries {
                    rewritten
                        .insert(entry.key.value.clone(), self.inner(&entry.key.value, &entry.value, topic, counts)?);
                }
                Ok(Value::Object(rewritten))
            }
            (NodeKind::Scalar(scalar), "goto") => self.route(key, node, &scalar.text),
            (_, "on_exit" | "onExit") => self.routes(node),
            _ => Ok(node.to_json()),
        }
    }

    /// Inserts an id after the kind of an action.
    fn add_after(&mut self, node: &YamlNode, kind: &YamlEntry, id: &str) -> Result<(), AmbiguousRewrite> {
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
                let margin = " ".repeat(column + self.rewrite.added_indent(file.line(kind.key.span.start)));
                self.rewrite.insert(line.end, format!("\n{margin}action_id: {}", as_scalar(id)));
                Ok(())
            }
            None => self.add_before(node, kind, "action_id", id),
        }
    }
}

/// The placement of each field. Nothing moves if there is a `config`: it is unclear which of two fields applies.
fn placements(entries: &[YamlEntry]) -> Vec<Placement> {
    let has_config = entries.iter().any(|entry| entry.key.value == "config");
    let place = |entry: &YamlEntry| match current_key(entry).as_str() {
        key if has_config || ACTION_LEVEL.contains(&key) || key == "action_name" => Placement::Sibling,
        key if key.starts_with("x-") => Placement::Either,
        _ => Placement::Nested,
    };
    entries.iter().map(place).collect()
}
