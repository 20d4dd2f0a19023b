//! Checks the pinned script with other actions in one topic, by writing and checking the complete script.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::Value;

use crate::pin::Pinned;
use bcc_lang::script::legacy_fields::current_spelling;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{NodeKind, Scalar, ScalarStyle, YamlEntry, YamlNode};
use bcc_runtime::program::orchestration::edits::{id_of, with_current_names};
use bcc_runtime::program::program::Program;
use bcc_runtime::program::recheck::Recheck;

/// The script of a session, with the documents for its check. It is parsed for each plan: plans are rare, and a stored tree would
/// use memory in every session.
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
        // If a script allows plans, its check does not know the order of the actions of the topic. Here the order is known: an
        // action before the one that sets its variables would fail at run time.
        let mut errors = match self.checked(&root, &found, Some(actions), true) {
            Ok(mut program) => {
                let topics = program.phases.iter_mut().flat_map(|phase| &mut phase.topics);
                for topic in topics.filter(|found| found.id == topic) {
                    topic.strategy.orchestration = found.orchestration_path.is_some();
                }
                return Ok(program);
            }
            Err(errors) => errors,
        };
        // Errors that the script had before any plan are not reported.
        let before = self.checked(&root, &found, None, true).err().unwrap_or_default();
        errors.retain(|error| !before.contains(error));
        if errors.is_empty() { self.checked(&root, &found, Some(actions), false) } else { Err(errors) }
    }
}

impl PinnedScript {
    /// Checks the script with `actions` in the topic; `None` keeps the original ones. `settled`: with the orchestration of the
    /// topic turned off, so that the order of its actions is fixed.
    fn checked(
        &self,
        root: &YamlNode,
        found: &RecheckedTopic<'_>,
        actions: Option<&[Value]>,
        settled: bool,
    ) -> Result<Program, Vec<String>> {
        let mut edits: Vec<(&[usize], Replacement)> = Vec::new();
        edits.extend(actions.map(|_| (found.actions_path.as_slice(), Replacement::Actions)));
        edits.extend(found.orchestration_path.as_deref().filter(|_| settled).map(|path| (path, Replacement::Off)));
        let mut text = String::with_capacity(self.0.script.text().len());
        ScriptWriter { actions: actions.unwrap_or_default(), old: found.actions }.node(&mut text, root, &edits);
        let file = Arc::new(SourceFile::new(self.0.script.name(), text));
        let pinned = Pinned { script: Arc::clone(&file), ..self.0.as_ref().clone() };
        let (program, found) = pinned.check(parse(&file)).map_err(|error| vec![error.to_string()])?;
        program.ok_or_else(|| {
            let errors: Vec<String> = found.iter().filter(|found| found.is_error()).map(finding_line).collect();
            if errors.is_empty() { vec![format!("the check produced no program")] } else { errors }
        })
    }
}

/// A finding in one line, without its position, because the text is generated.
fn finding_line(found: &Diagnostic) -> String {
    match &found.help {
        Some(help) => format!("{} ({help}) [{}]", found.message, found.rule),
        None => format!("{} [{}]", found.message, found.rule),
    }
}

/// A topic in the tree of its script. A path consists of the indexes of the children from the root.
struct RecheckedTopic<'n> {
    actions: &'n [Arc<YamlNode>],
    /// The path of the list of actions.
    actions_path: Vec<usize>,
    /// The path of `orchestration` in the strategy, if it is `on`.
    orchestration_path: Option<Vec<usize>>,
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
            let path = |below: &[usize]| [&[session, phases, phase, topics, index], below].concat();
            let orchestration = child(found, "strategy").and_then(|(strategy, inner)| {
                let (orchestration, on) = child(inner, "orchestration")?;
                on.as_scalar().filter(|on| on.text == "on").map(|_| path(&[strategy, orchestration]))
            });
            return Some(RecheckedTopic {
                actions: list.as_sequence()?,
                actions_path: path(&[actions]),
                orchestration_path: orchestration,
            });
        }
    }
    None
}

/// The field of this name, in the current or a legacy spelling, with its index.
fn child<'n>(node: &'n YamlNode, name: &str) -> Option<(usize, &'n YamlNode)> {
    let entries = node.as_mapping()?;
    let position = |is_it: &dyn Fn(&YamlEntry) -> bool| entries.iter().position(is_it);
    let index = position(&|entry| entry.key.value == name)
        .or_else(|| position(&|entry| current_spelling(&entry.key.value).as_deref() == Some(name)))?;
    Some((index, entries.get(index)?.value.as_ref()))
}

/// An action in the form that plans use.
fn as_value(action: &YamlNode) -> Value {
    let Value::Object(fields) = action.to_json() else { return Value::Null };
    let mut fields = with_current_names(&fields);
    // An id is always text, even if it looks like a number.
    for name in ["action_id", "action_type"] {
        if let Some(scalar) = child(action, name).and_then(|(_, node)| node.as_scalar()) {
            fields.insert(name.to_owned(), Value::from(scalar.text.as_str()));
        }
    }
    Value::Object(fields)
}

/// Writes a tree as JSON, which is valid YAML. A scalar that is not a string keeps its original spelling: as a string, `007` is
/// not 7. Unchanged parts of replaced actions keep their spelling as well.
struct ScriptWriter<'a> {
    /// The actions that are written at [`Replacement::Actions`].
    actions: &'a [Value],
    /// The original actions.
    old: &'a [Arc<YamlNode>],
}

/// The replacement for the node at the end of a path.
#[derive(Clone, Copy)]
enum Replacement {
    Actions,
    Off,
}

/// The edits below the child of this index, with their remaining paths.
fn edits_below<'p>(edits: &[(&'p [usize], Replacement)], index: usize) -> Vec<(&'p [usize], Replacement)> {
    let rest = |(path, replacement): &(&'p [usize], Replacement)| {
        let (next, rest) = path.split_first()?;
        (*next == index).then_some((rest, *replacement))
    };
    edits.iter().filter_map(rest).collect()
}

impl ScriptWriter<'_> {
    /// Writes `node` with these edits.
    fn node(&self, out: &mut String, node: &YamlNode, edits: &[(&[usize], Replacement)]) {
        match edits.iter().find(|(path, _)| path.is_empty()) {
            Some((_, Replacement::Actions)) => {
                return list(out, self.actions.iter(), |out, action| self.action(out, action));
            }
            Some((_, Replacement::Off)) => return quoted(out, "off"),
            None => {}
        }
        let below = |index: usize| edits_below(edits, index);
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

    /// Writes `value`; unchanged parts of `old` keep their spelling.
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

/// A text in double quotes. Characters that YAML does not permit are escaped.
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
    // Writing to a string does not fail.
    let _ = write!(out, "\\u{:04x}", u32::from(character));
}
