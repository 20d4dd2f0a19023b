//! The pinned script with other actions in one topic, written out whole and checked like any script.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::Value;

use crate::pin::Pinned;
use bcc_lang::script::legacy_fields::todays_spelling;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{NodeKind, Scalar, ScalarStyle, YamlEntry, YamlNode};
use bcc_runtime::program::orchestration::edits::{id_of, in_todays_spelling};
use bcc_runtime::program::program::Program;
use bcc_runtime::program::recheck::Recheck;

/// The script of a session, with all that it is checked against. It is read anew for each plan: plans are few, and a tree
/// that is kept would cost every session its memory.
pub struct PinnedScript(Arc<Pinned>);

impl PinnedScript {
    pub fn new(pinned: Arc<Pinned>) -> Self {
        Self(pinned)
    }
}

impl Recheck for PinnedScript {
    fn actions(&self, topic: &str) -> Option<Vec<Value>> {
        let root = parse(&self.0.script).root?;
        let found = find(&root, topic)?;
        Some(found.actions.iter().map(|action| as_value(action)).collect())
    }

    fn recheck(&self, topic: &str, actions: &[Value]) -> Result<Program, Vec<String>> {
        let root = parse(&self.0.script).root.ok_or_else(|| vec!["the script cannot be read".to_owned()])?;
        let found = find(&root, topic).ok_or_else(|| vec![format!("the script has no topic `{topic}`")])?;
        // Where a script allows plans, its check does not know in which order the actions of the topic will run. Here it is
        // known: what now stands before what gives it its value would fail when it runs.
        let mut faults = match self.checked(&root, &found, Some(actions), true) {
            Ok(mut program) => {
                let topics = program.phases.iter_mut().flat_map(|phase| &mut phase.topics);
                for topic in topics.filter(|found| found.id == topic) {
                    topic.strategy.orchestration = found.to_orchestration.is_some();
                }
                return Ok(program);
            }
            Err(faults) => faults,
        };
        // What was wrong in that way before any plan is not the plan's fault.
        let before = self.checked(&root, &found, None, true).err().unwrap_or_default();
        faults.retain(|fault| !before.contains(fault));
        if faults.is_empty() { self.checked(&root, &found, Some(actions), false) } else { Err(faults) }
    }
}

impl PinnedScript {
    /// The program with `actions` in the topic that was found; `None` leaves its own. `settled`: as if the order of its
    /// actions could not change any more.
    fn checked(
        &self,
        root: &YamlNode,
        found: &RecheckedTopic<'_>,
        actions: Option<&[Value]>,
        settled: bool,
    ) -> Result<Program, Vec<String>> {
        let mut ways: Vec<(&[usize], Instead)> = Vec::new();
        ways.extend(actions.map(|_| (found.to_actions.as_slice(), Instead::Actions)));
        ways.extend(found.to_orchestration.as_deref().filter(|_| settled).map(|way| (way, Instead::Off)));
        let mut text = String::with_capacity(self.0.script.text().len());
        Written { actions: actions.unwrap_or_default(), old: found.actions }.node(&mut text, root, &ways);
        let file = Arc::new(SourceFile::new(self.0.script.name(), text));
        let pinned = Pinned { script: Arc::clone(&file), ..self.0.as_ref().clone() };
        let (program, found) = pinned.check(parse(&file)).map_err(|error| vec![error.to_string()])?;
        program.ok_or_else(|| {
            let faults: Vec<String> = found.iter().filter(|found| found.is_error()).map(told).collect();
            if faults.is_empty() { vec![format!("the check produced no program")] } else { faults }
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

/// A topic in the tree of its script. A way is the index of the child to follow, from the root on.
struct RecheckedTopic<'n> {
    actions: &'n [Arc<YamlNode>],
    /// The way to the list of them.
    to_actions: Vec<usize>,
    /// The way to the `orchestration` of its strategy, when that is `on`.
    to_orchestration: Option<Vec<usize>>,
}

fn find<'n>(root: &'n YamlNode, topic: &str) -> Option<RecheckedTopic<'n>> {
    let (session, in_session) = child(root, "session")?;
    let (phases, list) = child(in_session, "phases")?;
    for (phase, in_phase) in list.as_sequence()?.iter().enumerate() {
        let Some((topics, list)) = child(in_phase, "topics") else { continue };
        for (index, found) in list.as_sequence().into_iter().flatten().enumerate() {
            let id = child(found, "topic_id").and_then(|(_, id)| id.as_scalar());
            let Some((actions, list)) = child(found, "actions").filter(|_| id.is_some_and(|id| id.text == topic))
            else {
                continue;
            };
            let way = |below: &[usize]| [&[session, phases, phase, topics, index], below].concat();
            let orchestration = child(found, "strategy").and_then(|(strategy, inner)| {
                let (orchestration, on) = child(inner, "orchestration")?;
                on.as_scalar().filter(|on| on.text == "on").map(|_| way(&[strategy, orchestration]))
            });
            return Some(RecheckedTopic {
                actions: list.as_sequence()?,
                to_actions: way(&[actions]),
                to_orchestration: orchestration,
            });
        }
    }
    None
}

/// The field of this name, in today's spelling or an older one, with its index.
fn child<'n>(node: &'n YamlNode, name: &str) -> Option<(usize, &'n YamlNode)> {
    let entries = node.as_mapping()?;
    let named = |is_it: &dyn Fn(&YamlEntry) -> bool| entries.iter().position(is_it);
    let index = named(&|entry| entry.key.value == name)
        .or_else(|| named(&|entry| todays_spelling(&entry.key.value).as_deref() == Some(name)))?;
    Some((index, entries.get(index)?.value.as_ref()))
}

/// An action as plans see it.
fn as_value(action: &YamlNode) -> Value {
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
    /// The actions that are written at [`Instead::Actions`].
    actions: &'a [Value],
    /// Those of the author.
    old: &'a [Arc<YamlNode>],
}

/// What is written at the end of a way.
#[derive(Clone, Copy)]
enum Instead {
    Actions,
    Off,
}

/// What is left of the ways that lead through the child of this index.
fn onward<'w>(ways: &[(&'w [usize], Instead)], index: usize) -> Vec<(&'w [usize], Instead)> {
    let rest = |(way, instead): &(&'w [usize], Instead)| {
        let (next, rest) = way.split_first()?;
        (*next == index).then_some((rest, *instead))
    };
    ways.iter().filter_map(rest).collect()
}

impl Written<'_> {
    /// Writes `node`; at the end of each of `ways`, what is said there in its place.
    fn node(&self, out: &mut String, node: &YamlNode, ways: &[(&[usize], Instead)]) {
        match ways.iter().find(|(way, _)| way.is_empty()) {
            Some((_, Instead::Actions)) => {
                return list(out, self.actions.iter(), |out, action| self.action(out, action));
            }
            Some((_, Instead::Off)) => return quoted(out, "off"),
            None => {}
        }
        let below = |index: usize| onward(ways, index);
        match &node.kind {
            NodeKind::Scalar(found) => scalar(out, found),
            NodeKind::Sequence(items) => list(out, items.iter().enumerate(), |out, (index, item)| {
                self.node(out, item, &below(index));
            }),
            NodeKind::Mapping(entries) => mapping(
                out,
                entries.iter().enumerate().map(|(index, entry)| (entry.key.value.as_str(), (index, entry))),
                |out, (index, entry)| self.node(out, &entry.value, &below(index)),
            ),
        }
    }

    fn action(&self, out: &mut String, action: &Value) {
        let same = |old: &&Arc<YamlNode>| {
            let id = child(old, "action_id").and_then(|(_, id)| id.as_scalar());
            id.is_some_and(|id| id.text == id_of(action))
        };
        let old = self.old.iter().find(same);
        self.value(out, action, old.map(AsRef::as_ref));
    }

    /// Writes `value`, which may have been `old`.
    fn value(&self, out: &mut String, value: &Value, old: Option<&YamlNode>) {
        if let Some(old) = old.filter(|old| old.to_json() == *value) {
            return self.node(out, old, &[]);
        }
        match value {
            Value::Object(fields) => {
                mapping(out, fields.iter().map(|(name, field)| (name.as_str(), (name, field))), |out, (name, field)| {
                    self.value(out, field, old.and_then(|old| child(old, name)).map(|(_, old)| old))
                })
            }
            Value::Array(items) => list(out, items.iter().enumerate(), |out, (index, item)| {
                let old = old.and_then(YamlNode::as_sequence).and_then(|items| items.get(index));
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
