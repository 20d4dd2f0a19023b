//! The pinned script with other actions in one topic, written out whole and checked like any script.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::Value;

use crate::engine::pin::Pinned;
use crate::program::orchestration::edits::{id_of, in_todays_spelling};
use crate::program::program::Program;
use crate::program::recheck::Recheck;
use crate::script::older::todays_spelling;
use crate::source::diagnostic::Diagnostic;
use crate::source::text::SourceFile;
use crate::source::yaml::{Entry, Node, NodeKind, Scalar, ScalarStyle, parse};

/// The script of a session, with all that it is checked against. It is read anew for each plan: plans are few, and a tree
/// that is kept would cost every session its memory.
pub struct PinnedScript(Arc<Pinned>);

impl PinnedScript {
    /// The script of `pinned`.
    pub fn new(pinned: Arc<Pinned>) -> Self {
        Self(pinned)
    }
}

impl Recheck for PinnedScript {
    fn actions(&self, topic: &str) -> Option<Vec<Value>> {
        let root = parse(&self.0.script).root?;
        let (_, actions) = find(&root, topic)?;
        Some(actions.as_sequence()?.iter().map(|action| as_value(action)).collect())
    }

    fn recheck(&self, topic: &str, actions: &[Value]) -> Result<Program, Vec<String>> {
        let root = parse(&self.0.script).root.ok_or_else(|| vec!["the script cannot be read".to_owned()])?;
        let Some((path, list)) = find(&root, topic) else {
            return Err(vec![format!("the script has no topic `{topic}`")]);
        };
        let written = Written { actions, list };
        let mut text = String::with_capacity(self.0.script.text().len());
        written.node(&mut text, &root, Some(&path));
        let file = Arc::new(SourceFile::new(self.0.script.name(), text));
        let (program, found) = Pinned { script: Arc::clone(&file), ..self.0.as_ref().clone() }
            .check(parse(&file))
            .map_err(|error| vec![error.to_string()])?;
        program.ok_or_else(|| {
            let faults: Vec<String> = found.iter().filter(|found| found.is_error()).map(told).collect();
            if faults.is_empty() { vec!["the check gave no program".to_owned()] } else { faults }
        })
    }
}

/// A finding in one line. Where it stands is left out: nobody wrote the text that it stands in.
fn told(found: &Diagnostic) -> String {
    match &found.help {
        Some(help) => format!("{} ({help}) [{}]", found.message, found.rule),
        None => format!("{} [{}]", found.message, found.rule),
    }
}

/// The list of actions of a topic, with the way to it: the index of the child to follow, from the root on.
fn find<'n>(root: &'n Node, topic: &str) -> Option<(Vec<usize>, &'n Node)> {
    let (session, in_session) = child(root, "session")?;
    let (phases, list) = child(in_session, "phases")?;
    for (phase, in_phase) in list.as_sequence()?.iter().enumerate() {
        let Some((topics, list)) = child(in_phase, "topics") else { continue };
        for (index, in_topic) in list.as_sequence().into_iter().flatten().enumerate() {
            let is_it =
                child(in_topic, "topic_id").and_then(|(_, id)| id.as_scalar()).is_some_and(|id| id.text == topic);
            if is_it && let Some((actions, list)) = child(in_topic, "actions") {
                return Some((vec![session, phases, phase, topics, index, actions], list));
            }
        }
    }
    None
}

/// The field of this name, in today's spelling or an older one, with its index.
fn child<'n>(node: &'n Node, name: &str) -> Option<(usize, &'n Node)> {
    let entries = node.as_mapping()?;
    let named = |is_it: &dyn Fn(&Entry) -> bool| entries.iter().position(is_it);
    let index = named(&|entry| entry.key.value == name)
        .or_else(|| named(&|entry| todays_spelling(&entry.key.value).as_deref() == Some(name)))?;
    Some((index, entries.get(index)?.value.as_ref()))
}

/// An action as plans see it.
fn as_value(action: &Node) -> Value {
    let Value::Object(fields) = action.to_json() else { return Value::Null };
    let mut fields = in_todays_spelling(&fields);
    // An id is the text that stands there, whatever number it looks like.
    for name in ["action_id", "action_type"] {
        if let Some(scalar) = child(action, name).and_then(|(_, node)| node.as_scalar()) {
            fields.insert(name.to_owned(), Value::from(scalar.text.as_str()));
        }
    }
    Value::Object(fields)
}

/// Writes a tree as JSON, which is YAML. A scalar that is no text is written as its author did: where a text is wanted, `007`
/// is not 7. So is whatever stands unchanged in an action that was given anew.
struct Written<'a> {
    actions: &'a [Value],
    list: &'a Node,
}

impl Written<'_> {
    /// Writes `node`; at the end of `path`, the actions in its place.
    fn node(&self, out: &mut String, node: &Node, path: Option<&[usize]>) {
        if path.is_some_and(<[usize]>::is_empty) {
            return list(out, self.actions.iter(), |out, action| self.action(out, action));
        }
        let below = |index: usize| path.and_then(|path| path.split_first()).filter(|(next, _)| **next == index);
        match &node.kind {
            NodeKind::Scalar(found) => scalar(out, found),
            NodeKind::Sequence(items) => list(out, items.iter().enumerate(), |out, (index, item)| {
                self.node(out, item, below(index).map(|(_, rest)| rest));
            }),
            NodeKind::Mapping(entries) => mapping(
                out,
                entries.iter().enumerate().map(|(index, entry)| (entry.key.value.as_str(), (index, entry))),
                |out, (index, entry)| self.node(out, &entry.value, below(index).map(|(_, rest)| rest)),
            ),
        }
    }

    fn action(&self, out: &mut String, action: &Value) {
        let same = |old: &&Arc<Node>| {
            let id = child(old, "action_id").and_then(|(_, id)| id.as_scalar());
            id.is_some_and(|id| id.text == id_of(action))
        };
        let old = self.list.as_sequence().into_iter().flatten().find(same);
        self.value(out, action, old.map(AsRef::as_ref));
    }

    /// Writes `value`, which may have been `old`.
    fn value(&self, out: &mut String, value: &Value, old: Option<&Node>) {
        if let Some(old) = old.filter(|old| old.to_json() == *value) {
            return self.node(out, old, None);
        }
        match value {
            Value::Object(fields) => {
                mapping(out, fields.iter().map(|(name, field)| (name.as_str(), (name, field))), |out, (name, field)| {
                    self.value(out, field, old.and_then(|old| child(old, name)).map(|(_, old)| old))
                })
            }
            Value::Array(items) => list(out, items.iter().enumerate(), |out, (index, item)| {
                let old = old.and_then(Node::as_sequence).and_then(|items| items.get(index));
                self.value(out, item, old.map(AsRef::as_ref));
            }),
            Value::String(text) => quoted(out, text),
            Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        }
    }
}

fn list<T>(out: &mut String, items: impl Iterator<Item = T>, mut write: impl FnMut(&mut String, T)) {
    out.push('[');
    for (index, item) in items.enumerate() {
        out.push_str(if index == 0 { "" } else { ",\n" });
        write(out, item);
    }
    out.push(']');
}

fn mapping<'k, T>(
    out: &mut String,
    entries: impl Iterator<Item = (&'k str, T)>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push('{');
    for (index, (key, value)) in entries.enumerate() {
        out.push_str(if index == 0 { "" } else { ",\n" });
        quoted(out, key);
        out.push_str(": ");
        write(out, value);
    }
    out.push('}');
}

fn scalar(out: &mut String, scalar: &Scalar) {
    match (&scalar.tag, scalar.value()) {
        (Some(tag), _) => {
            out.push_str("!!");
            out.push_str(tag);
            out.push(' ');
            quoted(out, &scalar.text);
        }
        (None, Value::String(_)) => quoted(out, &scalar.text),
        (None, _) if scalar.style == ScalarStyle::Plain && !scalar.text.is_empty() => out.push_str(&scalar.text),
        (None, value) => out.push_str(&value.to_string()),
    }
}

/// A text in double quotes. What a file of YAML may not hold as it is, is escaped.
fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => escaped(out, character),
            character if character.is_control() => escaped(out, character),
            character => out.push(character),
        }
    }
    out.push('"');
}

fn escaped(out: &mut String, character: char) {
    // Writing to a text does not fail.
    let _ = write!(out, "\\u{:04x}", u32::from(character));
}
