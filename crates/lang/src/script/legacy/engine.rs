//! Finds the fields of an older engine, which had the same phases, topics and actions, and rewrites them (docs/migrate.md).
//! They are not read: the current field is written by `migrate`.

use crate::message::message::Message;
use crate::message::msg;
use std::sync::Arc;

use serde_json::Value;

use crate::script::legacy::engine_action::action_of_key;
use crate::script::legacy::engine_config::ConfigFields;
use crate::script::legacy::ids::Ids;
use crate::script::legacy::nesting::reserve_ids;
use crate::script::legacy::parts::current_key;
use crate::script::legacy::proof::verify_within;
use crate::script::lines::{is_alias, removal, renamed};
use crate::source::diagnostic::{Diagnostic, Edit};
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::{NodeKind, YamlEntry, YamlNode};

pub const SLUG: &str = "older-engine";

/// Fields at the root of a skill file that belong to the author, not to the skill.
const ABOUT_FILE: [&str; 4] = ["name", "version", "author", "technique_type"];

/// A field of the older engine.
#[derive(Clone, Debug)]
pub struct LegacyEngineField {
    /// The field with its value. Other findings about it are consequences.
    pub region: Span,
    pub diagnostic: Diagnostic,
}

/// The fields of the older engine in a script or skill.
pub fn legacy_engine_fields(file: &Arc<SourceFile>, root: &YamlNode) -> Vec<LegacyEngineField> {
    let mut ids = Ids::default();
    reserve_ids(root, &mut ids);
    let mut walk = LegacyEngineWalk { file, ids, found: Vec::new() };
    walk.document(root);
    walk.found
}

pub(crate) struct LegacyEngineWalk<'f> {
    pub file: &'f Arc<SourceFile>,
    pub ids: Ids,
    pub found: Vec<LegacyEngineField>,
}

impl LegacyEngineWalk<'_> {
    fn document(&mut self, root: &YamlNode) {
        let entries = root.as_mapping().unwrap_or_default();
        if let Some(topic) = root.get("topic").filter(|_| root.get("technique_id").is_some()) {
            self.technique(root.span, entries);
            self.actions_of(topic, "topic");
        }
        let Some(session) = root.get("session") else {
            if let Some(skill) = root.get("skill") {
                self.actions_of(skill, "skill");
            }
            return;
        };
        for entry in session.as_mapping().unwrap_or_default().iter().filter(|entry| current_key(entry) == "ai_role") {
            let free = session.get("who").is_none() && entry.value.as_scalar().is_some();
            self.report_renamed(entry, "who", free);
        }
        for skill in items(session, "skills") {
            self.actions_of(skill, "skill");
        }
        for phase in items(session, "phases") {
            for topic in items(phase, "topics") {
                let id = topic.get("topic_id").and_then(|id| id.as_scalar()).map_or("topic", |id| id.text.as_str());
                self.actions_of(topic, id);
            }
        }
    }

    /// The fields at the root of a skill file in the legacy form.
    fn technique(&mut self, span: Span, entries: &[YamlEntry]) {
        let has = |name: &str| entries.iter().any(|entry| current_key(entry) == name);
        for entry in entries {
            match current_key(entry).as_str() {
                "output_variables" => self.report_renamed(entry, "outputs", !has("outputs")),
                "input_parameters" => self.inputs(entry, entries, span),
                key if ABOUT_FILE.contains(&key) => {
                    self.report_kept(
                        entry,
                        entries,
                        msg!("it is kept as your own field; what a file is about goes below `metadata:`"),
                    );
                }
                _ => {}
            }
        }
    }

    /// `input_parameters` with items `{ name, description, required }`: `inputs` with items `{ var, define, value }`.
    fn inputs(&mut self, entry: &YamlEntry, entries: &[YamlEntry], mapping: Span) {
        let free = !entries.iter().any(|entry| entry.key.value == "inputs");
        let edits = free.then(|| self.input_edits(entry)).flatten().filter(|(edits, inputs)| {
            let expected = entries.iter().map(|other| match std::ptr::eq(other, entry) {
                true => ("inputs".to_owned(), inputs.clone()),
                false => (other.key.value.clone(), other.value.to_json()),
            });
            verify_within(self.file, mapping, entries, edits, expected.collect())
        });
        let message = msg!("`{}` is a field of an older engine; here it is `{name}`", entry.key.value, name = "inputs");
        let by_hand =
            msg!("write `inputs:` with items `- {{ var: …, define: … }}`; an input with a `value` may be left out");
        self.report(entry, message, edits.map(|(edits, _)| edits), by_hand);
    }

    fn input_edits(&self, entry: &YamlEntry) -> Option<(Vec<Edit>, Value)> {
        let mut edits = vec![renamed(self.file, &entry.key, "inputs")];
        let mut inputs = Vec::new();
        for item in entry.value.as_sequence()? {
            let fields = item.as_mapping()?;
            let mut input = serde_json::Map::new();
            for field in fields {
                let key = match current_key(field).as_str() {
                    "name" => "var",
                    "description" | "define" => "define",
                    "default" | "default_value" | "value" => "value",
                    "type" => "type",
                    "required" => {
                        let required = field.value.to_json().as_bool()?;
                        if required || fields.iter().any(|field| current_key(field).starts_with("default")) {
                            edits.push(removal(self.file, item.span, field)?);
                        } else {
                            // An input with a value may be left out.
                            edits.push(renamed(self.file, &field.key, "value"));
                            edits.push(Edit::replace(field.value.span, "\"\""));
                            input.insert("value".to_owned(), Value::from(""));
                        }
                        continue;
                    }
                    _ => return None,
                };
                if field.key.value != key {
                    edits.push(renamed(self.file, &field.key, key));
                }
                input.insert(key.to_owned(), field.value.to_json());
            }
            inputs.push(Value::Object(input));
        }
        Some((edits, Value::Array(inputs)))
    }

    /// The actions of a topic or skill.
    fn actions_of(&mut self, part: &YamlNode, id: &str) {
        let mut count = 0;
        for action in items(part, "actions") {
            count += 1;
            self.action(action, id, count);
        }
    }

    fn action(&mut self, node: &YamlNode, topic: &str, number: usize) {
        let Some(entries) = node.as_mapping() else { return };
        if let Some(found) = action_of_key(self, node, entries, topic, number) {
            self.found.push(found);
            return;
        }
        let kind = node.get("action_type").and_then(|kind| kind.as_scalar()).map_or("", |kind| kind.text.as_str());
        let Some(config) = entries.iter().find(|entry| entry.key.value == "config").filter(|entry| !is_alias(entry))
        else {
            return;
        };
        let Some(fields) = config.value.as_mapping() else { return };
        ConfigFields { walk: self, kind, span: config.value.span, entries: fields }.check();
        self.nested(&config.value, topic);
    }

    /// The lists of actions inside a config: `actions`, `cases` and `branches`.
    fn nested(&mut self, node: &YamlNode, topic: &str) {
        match &node.kind {
            NodeKind::Scalar(_) => {}
            NodeKind::Sequence(items) => items.iter().for_each(|item| self.nested(item, topic)),
            NodeKind::Mapping(entries) => {
                for entry in entries {
                    match entry.key.value.as_str() {
                        "actions" => {
                            let actions = entry.value.as_sequence().unwrap_or_default();
                            actions
                                .iter()
                                .enumerate()
                                .for_each(|(index, action)| self.action(action, topic, index + 1));
                        }
                        "cases" | "branches" | "else" => self.nested(&entry.value, topic),
                        _ => {}
                    }
                }
            }
        }
    }

    /// Reports a field with another current name. `free`: whether it can be renamed.
    pub(crate) fn report_renamed(&mut self, entry: &YamlEntry, name: &str, free: bool) {
        let message = msg!("`{}` is a field of an older engine; here it is `{name}`", entry.key.value);
        let edits = free.then(|| vec![renamed(self.file, &entry.key, name)]);
        self.report(entry, message, edits, msg!("keep one of them, under the name `{name}`"));
    }

    /// Reports a field without a counterpart, which is kept as a field of the author.
    pub(crate) fn report_kept(&mut self, entry: &YamlEntry, entries: &[YamlEntry], why: Message) {
        let message = msg!("`{}` is a field of an older engine and has no effect here", entry.key.value);
        let name = format!("x-{}", entry.key.value);
        let free = !entries.iter().any(|other| other.key.value == name);
        let edits = free.then(|| vec![renamed(self.file, &entry.key, &name)]);
        let region = Span::new(entry.key.span.start, entry.value.span.end.max(entry.key.span.end));
        let diagnostic = Diagnostic::error(SLUG, message, self.file, entry.key.span).with_help(why);
        let diagnostic = match edits {
            Some(edits) => diagnostic.with_sure_fix(msg!("rename to `{name}`"), edits),
            None => diagnostic,
        };
        self.found.push(LegacyEngineField { region, diagnostic });
    }

    /// Reports a field. Without edits, `by_hand` is the help.
    pub(crate) fn report(&mut self, entry: &YamlEntry, message: Message, edits: Option<Vec<Edit>>, by_hand: Message) {
        let region = Span::new(entry.key.span.start, entry.value.span.end.max(entry.key.span.end));
        let diagnostic = Diagnostic::error(SLUG, message, self.file, entry.key.span);
        let diagnostic = match edits {
            Some(edits) => diagnostic
                .with_help(msg!(
                    "run `bcc-script migrate --write {}` to convert it to the current format",
                    self.file.name()
                ))
                .with_sure_fix(msg!("convert it to the current format"), edits),
            None => diagnostic.with_help(by_hand),
        };
        self.found.push(LegacyEngineField { region, diagnostic });
    }
}

fn items<'n>(node: &'n YamlNode, key: &str) -> &'n [Arc<YamlNode>] {
    node.get(key).and_then(|list| list.as_sequence()).unwrap_or_default()
}
