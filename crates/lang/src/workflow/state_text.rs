//! The text of a state file in pieces, one for each step, so that an edit costs the same however many steps there are.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use crate::message::ToMessage;
use crate::script::lines::is_alias;
use crate::source::compose::parse;
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::{YamlEntry, YamlNode};
use crate::workflow::edit::{Fragment, MappingPath, UneditableText};
use crate::workflow::status::StateStatus;

/// The number of steps whose texts are kept together.
const BLOCK: usize = 64;

/// Where a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StepPlace {
    /// The position of the step, or of the step with the sub task.
    step: usize,
    is_sub_task: bool,
}

/// What a state file says of a step or a sub task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepProgress {
    pub id: String,
    pub status: StateStatus,
    /// When it last started, if it did.
    pub started_at: Option<String>,
}

impl StepProgress {
    fn of(step: &Value) -> Option<Self> {
        let text = |name: &str| step.get(name).and_then(Value::as_str);
        let status = text("status").map_or(Some(StateStatus::Pending), StateStatus::parse)?;
        Some(Self { id: text("id")?.to_owned(), status, started_at: text("started_at").map(str::to_owned) })
    }
}

#[derive(Clone, Debug, Default)]
pub struct StateText {
    /// The file with `0` in place of all its steps, and the position of that `0`.
    frame: Fragment,
    gap: usize,
    /// The steps, each with the text between it and the next one.
    steps: Vec<(Fragment, String)>,
    /// The text of each [`BLOCK`] of steps, once it was needed: writing a few long texts is as fast as writing one.
    blocks: Vec<OnceLock<String>>,
    places: HashMap<String, StepPlace>,
    /// The ids of the steps, in the order of the file.
    ids: Vec<String>,
}

/// Why progress cannot be written into a state file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
pub enum StateTextError {
    #[error("its steps cannot be told apart: write each of them out, without anchors and aliases")]
    Unseparated,
    #[error("there is no step `{id}`")]
    UnknownStep { id: String },
    #[error(
        "the field `{field}` of `{id}` cannot be changed without changing something else: remove anchors, aliases and tags there"
    )]
    Uneditable { id: String, field: String },
}

impl StateText {
    /// Takes a valid state file apart.
    ///
    /// # Errors
    /// [`StateTextError::Unseparated`].
    pub fn new(file: &Arc<SourceFile>) -> Result<Self, StateTextError> {
        let root = parse(file).root.ok_or(StateTextError::Unseparated)?;
        Self::of(file, &root).ok_or(StateTextError::Unseparated)
    }

    fn of(file: &SourceFile, root: &YamlNode) -> Option<Self> {
        let text = file.text();
        let entry = root.as_mapping()?.iter().find(|entry| entry.key.value == "steps")?;
        let nodes = entry.value.as_sequence().filter(|nodes| !nodes.is_empty() && !is_alias(entry))?;
        let mut state = Self::default();
        let mut at = nodes.first()?.span.start;
        let head = text.get(..at)?;
        for (position, node) in nodes.iter().enumerate() {
            if node.span.start < at {
                return None;
            }
            if let Some((_, between)) = state.steps.last_mut() {
                text.get(at..node.span.start)?.clone_into(between);
            }
            let end = with_comment(text, node.span);
            let line = text.get(..node.span.start)?.rsplit('\n').next().unwrap_or_default();
            state.steps.push((Fragment::new(text.get(node.span.start..end)?, line.chars().count()), String::new()));
            at = end;
            let id = id_of(node)?;
            state.places.insert(id.clone(), StepPlace { step: position, is_sub_task: false });
            state.ids.push(id);
            for task in node.get("sub_tasks").and_then(|tasks| tasks.as_sequence()).unwrap_or_default() {
                state.places.insert(id_of(task)?, StepPlace { step: position, is_sub_task: true });
            }
        }
        state.blocks.resize_with(state.steps.len().div_ceil(BLOCK), OnceLock::new);
        state.gap = head.len();
        state.frame = Fragment::new(format!("{head}0{}", text.get(at..)?), 0);
        state.frame.value()?;
        Some(state)
    }

    /// The step with the sub task `id`, or `id` itself if it is a step.
    pub fn step_of(&self, id: &str) -> Option<&str> {
        self.places.get(id).and_then(|place| self.ids.get(place.step)).map(String::as_str)
    }

    /// What the file says of all steps and sub tasks, in its order.
    pub fn progress(&self) -> Vec<StepProgress> {
        (0..self.steps.len()).flat_map(|position| self.progress_at(position)).collect()
    }

    /// What the file says of a step and its sub tasks.
    pub fn progress_of(&self, step: &str) -> Vec<StepProgress> {
        self.places.get(step).map(|place| self.progress_at(place.step)).unwrap_or_default()
    }

    fn progress_at(&self, position: usize) -> Vec<StepProgress> {
        let Some(step) = self.steps.get(position).and_then(|(step, _)| step.value()) else { return vec![] };
        let tasks = step.get("sub_tasks").and_then(Value::as_array).into_iter().flatten();
        std::iter::once(&step).chain(tasks).filter_map(StepProgress::of).collect()
    }

    /// Sets a field of a step or a sub task. Returns whether it changed.
    ///
    /// # Errors
    /// There is no such step, or its text cannot be edited.
    pub fn set(&mut self, id: &str, field: &str, value: &Value) -> Result<bool, StateTextError> {
        let unknown = || StateTextError::UnknownStep { id: id.to_owned() };
        let place = *self.places.get(id).ok_or_else(unknown)?;
        let (fragment, _) = self.steps.get_mut(place.step).ok_or_else(unknown)?;
        let path = if place.is_sub_task { MappingPath::SubTask(id) } else { MappingPath::Root };
        let edit = fragment.edit(path, field, value, fields_before(field));
        let uneditable = |UneditableText| StateTextError::Uneditable { id: id.to_owned(), field: field.to_owned() };
        let Some(edit) = edit.map_err(uneditable)? else { return Ok(false) };
        fragment.apply(&edit).map_err(uneditable)?;
        if let Some(block) = self.blocks.get_mut(place.step / BLOCK) {
            *block = OnceLock::new();
        }
        Ok(true)
    }

    /// The value of a field of a step or a sub task.
    pub fn get(&self, id: &str, field: &str) -> Option<Value> {
        let place = self.places.get(id)?;
        let value = self.steps.get(place.step)?.0.value()?;
        if !place.is_sub_task {
            return value.get(field).cloned();
        }
        let tasks = value.get("sub_tasks")?.as_array()?;
        tasks.iter().find(|task| is_id(task.get("id"), id))?.get(field).cloned()
    }

    /// Sets a field of the file itself. Returns whether it changed.
    ///
    /// # Errors
    /// Its text cannot be edited.
    pub fn set_top(&mut self, field: &str, value: &Value) -> Result<bool, StateTextError> {
        self.edit_frame(MappingPath::Root, field, value)
    }

    /// Sets a variable. Returns whether it changed.
    ///
    /// # Errors
    /// Its text cannot be edited.
    pub fn set_variable(&mut self, name: &str, value: &Value) -> Result<bool, StateTextError> {
        let variables = self.frame.value().and_then(|frame| frame.get("variables").cloned());
        match variables {
            Some(Value::Object(variables)) => {
                let edited = self.edit_frame(MappingPath::Key("variables"), name, value);
                edited.or_else(|error| self.set_all_variables(variables, (name, value)).ok_or(error))
            }
            _ => self.edit_frame(MappingPath::Root, "variables", &serde_json::json!({ name: value })),
        }
    }

    /// Writes all variables anew, without the anchors that others of them refer to. Returns none, and changes nothing, if steps refer to
    /// them, too.
    fn set_all_variables(&mut self, mut variables: Map<String, Value>, (name, value): (&str, &Value)) -> Option<bool> {
        variables.insert(name.to_owned(), value.clone());
        let value_of = |text: String| Some(parse(&Arc::new(SourceFile::new("", text))).root?.to_json());
        let mut expected = value_of(self.text())?;
        let before = (self.frame.clone(), self.gap);
        let variables = Value::Object(variables);
        let edited = self.edit_frame(MappingPath::Root, "variables", &variables);
        expected.as_object_mut()?.insert("variables".to_owned(), variables);
        if edited.is_ok() && value_of(self.text()).is_some_and(|now| now == expected) {
            return Some(true);
        }
        (self.frame, self.gap) = before;
        None
    }

    pub fn get_top(&self, field: &str) -> Option<Value> {
        self.frame.value()?.get(field).cloned()
    }

    fn edit_frame(&mut self, path: MappingPath<'_>, field: &str, value: &Value) -> Result<bool, StateTextError> {
        let uneditable =
            |UneditableText| StateTextError::Uneditable { id: "the file".to_owned(), field: field.to_owned() };
        let Some(edit) = self.frame.edit(path, field, value, fields_before(field)).map_err(uneditable)? else {
            return Ok(false);
        };
        let before = self.frame.text().len();
        self.frame.apply(&edit).map_err(uneditable)?;
        if edit.span.start <= self.gap {
            self.gap = (self.gap + self.frame.text().len()).saturating_sub(before);
        }
        Ok(true)
    }

    /// Sets all steps that are running to pending: they were entered, but have not begun. Returns whether any was.
    pub fn set_running_to_pending(&mut self) -> bool {
        let ids: Vec<String> = self.places.keys().cloned().collect();
        let mut is_changed = false;
        for id in ids {
            if self.get(&id, "status").is_some_and(|status| status == StateStatus::Running.name()) {
                is_changed |= self.set(&id, "status", &StateStatus::Pending.name().into()).unwrap_or(false);
            }
        }
        is_changed
    }

    /// The text in pieces, in order: for 50,000 steps, about a thousand.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        let frame = self.frame.text();
        let together = |steps: &[(Fragment, String)]| -> String {
            steps.iter().flat_map(|(step, between)| [step.text(), between.as_str()]).collect()
        };
        let blocks = self.blocks.iter().zip(self.steps.chunks(BLOCK));
        let steps = blocks.map(move |(block, steps)| block.get_or_init(|| together(steps)).as_str());
        let (start, end) = (frame.get(..self.gap), frame.get(self.gap + 1..));
        start.into_iter().chain(steps).chain(end)
    }

    /// Whether this is the whole text.
    pub fn is(&self, text: &str) -> bool {
        let mut rest = text;
        self.pieces().all(|piece| rest.strip_prefix(piece).map(|left| rest = left).is_some()) && rest.is_empty()
    }

    pub fn text(&self) -> String {
        self.pieces().collect()
    }
}

/// The end of a step in block style, with a comment in its last line: a field that is added comes after the comment.
fn with_comment(text: &str, span: Span) -> usize {
    let is_flow = text.get(span.range()).is_none_or(|step| step.starts_with('{'));
    let rest = text.get(span.end..).unwrap_or_default();
    let line = rest.split(['\n', '\r']).next().unwrap_or_default();
    if !is_flow && line.trim_start().starts_with('#') { span.end + line.len() } else { span.end }
}

/// The fields after which a field is added.
fn fields_before(field: &str) -> &'static [&'static str] {
    match field {
        "status" => &["type", "name", "id", "workflow_id"],
        "current_step" => &["status", "type", "workflow_id"],
        "variables" => &["current_step", "status", "workflow_id"],
        "started_at" => &["status"],
        "completed_at" => &["started_at", "status"],
        "result" => &["completed_at", "started_at", "status"],
        _ => &[],
    }
}

fn id_of(node: &YamlNode) -> Option<String> {
    let is_id = |entry: &&YamlEntry| entry.key.value == "id";
    let entry = node.as_mapping()?.iter().find(is_id)?;
    entry.value.as_scalar().map(|scalar| scalar.text.clone())
}

/// Whether an id in JSON is this one. Ids that look like numbers are texts in a state file.
fn is_id(found: Option<&Value>, id: &str) -> bool {
    match found {
        Some(Value::String(text)) => text == id,
        Some(other) => {
            let written = other.to_string();
            written == id
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(text: &str) -> StateText {
        StateText::new(&Arc::new(SourceFile::new("a", text))).unwrap()
    }

    const YAML: &str = "\
# release
workflow_id: w # id
status: pending
steps:
  # first
  - id: a # one
    status: pending # soon
  - {id: b, status: pending}

  - id: p
    sub_tasks:
      - id: p1
        status: pending
variables:
  n: 1 # count
";

    #[test]
    fn edits_change_only_what_they_set() {
        let mut text = state(YAML);
        assert_eq!(text.text(), YAML);
        assert!(text.set("a", "status", &json!("completed")).unwrap());
        assert!(text.set("a", "completed_at", &json!("2026-01-01T00:00:00Z")).unwrap());
        assert!(text.set("b", "status", &json!("running")).unwrap());
        assert!(text.set("p1", "status", &json!("failed")).unwrap());
        assert!(text.set_top("status", &json!("running")).unwrap());
        assert!(text.set_top("current_step", &json!("b")).unwrap());
        assert!(text.set_variable("n", &json!(2)).unwrap());
        assert!(text.set_variable("m", &json!("x")).unwrap());
        assert!(!text.set("a", "status", &json!("completed")).unwrap());
        let expected = YAML
            .replace("status: pending # soon", "status: completed # soon\n    completed_at: \"2026-01-01T00:00:00Z\"")
            .replace("{id: b, status: pending}", "{id: b, status: running}")
            .replace("- id: p1\n        status: pending", "- id: p1\n        status: failed")
            .replace("status: pending\nsteps", "status: running\ncurrent_step: b\nsteps")
            .replace("  n: 1 # count\n", "  n: 2 # count\n  m: x\n");
        assert_eq!(text.text(), expected);
        assert_eq!(text.get("p1", "status"), Some(json!("failed")));
        assert_eq!(text.step_of("p1"), Some("p"));
        assert_eq!(text.get_top("status"), Some(json!("running")));
    }

    #[test]
    fn json_keeps_its_form() {
        let pretty = "{\n  \"steps\": [\n    {\n      \"id\": \"a\"\n    },\n    {\"id\": \"b\", \"status\": \"pending\"}\n  ],\n  \"workflow_id\": \"w\"\n}\n";
        let mut text = state(pretty);
        text.set("a", "status", &json!("completed")).unwrap();
        text.set("b", "status", &json!("running")).unwrap();
        text.set_top("status", &json!("running")).unwrap();
        text.set_top("current_step", &json!("b")).unwrap();
        text.set_variable("x", &json!({"y": 1})).unwrap();
        let expected = pretty
            .replace("\"id\": \"a\"", "\"id\": \"a\",\n      \"status\": \"completed\"")
            .replace("\"pending\"", "\"running\"")
            .replace(
                "\"workflow_id\": \"w\"",
                "\"workflow_id\": \"w\",\n  \"status\": \"running\",\n  \"current_step\": \"b\",\n  \"variables\": {\n    \"x\": {\n      \"y\": 1\n    }\n  }",
            );
        assert_eq!(text.text(), expected);
    }

    #[test]
    fn variables_of_every_form_are_written() {
        let head = "workflow_id: w\nvariables:\n";
        let steps = "steps:\n  - id: a\n";
        for (variables, expected) in [
            ("  log: |\n    one\n    two\n  n: 1\n", "  log: done\n  n: 1\n"),
            ("  log: >2-\n     one\n\n  n: 1\n", "  log: done\n\n  n: 1\n"),
            ("  n: &n 1\n  log: *n\n  m: *n\n", "  n: &n 1\n  log: done\n  m: *n\n"),
            ("  log: &n 1\n  m: *n\n", "  {\"log\": \"done\", \"m\": 1}\n"),
            ("  n: 1\n  log: |\n    one\n", "  n: 1\n  log: done\n"),
        ] {
            let mut text = state(&format!("{head}{variables}{steps}"));
            assert!(text.set_variable("log", &json!("done")).unwrap(), "{variables}");
            assert_eq!(text.text(), format!("{head}{expected}{steps}"));
            assert!(text.set_top("status", &json!("running")).unwrap(), "{variables}");
        }
        let shared = format!("{head}  log: &n x\nsteps:\n  - id: a\n    name: *n\n");
        let mut text = state(&shared);
        assert!(matches!(text.set_variable("log", &json!(1)), Err(StateTextError::Uneditable { .. })));
        assert_eq!(text.text(), shared);
    }

    #[test]
    fn steps_that_share_text_are_refused() {
        let shared = "workflow_id: w\nsteps:\n  - &s {id: a}\n  - *s\n";
        assert_eq!(StateText::new(&Arc::new(SourceFile::new("a", shared))).unwrap_err(), StateTextError::Unseparated);
        let mut text = state("workflow_id: w\nsteps:\n  - id: a\n    status: &p pending\n  - id: b\n    status: *p\n");
        assert!(matches!(text.set("a", "status", &json!("running")), Err(StateTextError::Uneditable { .. })));
        assert!(matches!(text.set("c", "status", &json!(1)), Err(StateTextError::UnknownStep { .. })));
    }
}
