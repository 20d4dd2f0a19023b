//! A notebook action as an author writes it: its fields are read and checked one by one, and become the same JSON that a model
//! would send, with the author's texts in it, which are rendered when the action runs.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::notebook::action::{NotebookAction, Read, read};
use crate::notebook::error::ActionFieldError;
use crate::notebook::workflow::{MOST_NAME, is_id};
use crate::program::flow::ActionError;
use crate::program::kind::KindChecker;
use crate::program::turn::Turn;
use bcc_lang::script::fields::{Fields, TextField, is_null};
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::yaml::{NodeKind, YamlNode};
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::text::Text;

/// The largest number of a chapter or a section that an author may give.
const MOST_NUMBER: u32 = 100_000;

/// A value with texts of the author in it.
pub enum AuthorValue {
    /// A text, rendered when the action runs.
    Text(Text),
    Value(Value),
    List(Vec<AuthorValue>),
    Table(Vec<(String, AuthorValue)>),
}

impl AuthorValue {
    fn value(&self, text: &mut impl FnMut(&Text) -> Result<String, ActionError>) -> Result<Value, ActionError> {
        Ok(match self {
            Self::Text(written) => Value::from(text(written)?),
            Self::Value(value) => value.clone(),
            Self::List(items) => items.iter().map(|item| item.value(text)).collect::<Result<_, _>>()?,
            Self::Table(fields) => {
                let field = |(name, part): &(String, Self)| Ok((name.clone(), part.value(text)?));
                Value::Object(fields.iter().map(field).collect::<Result<Map<_, _>, ActionError>>()?)
            }
        })
    }
}

/// An action that was read and checked.
pub struct AuthorAction {
    kind: &'static str,
    /// The action itself, when nothing in it is rendered.
    read: Option<Box<NotebookAction>>,
    fields: Vec<(String, AuthorValue)>,
}

impl AuthorAction {
    /// The action, with its texts as they are now.
    /// Errors: When a text cannot be rendered, or what comes of it is no such action: an id that is empty, say.
    pub fn action(&self, turn: &Turn<'_>) -> Result<NotebookAction, ActionError> {
        if let Some(read) = &self.read {
            return Ok(NotebookAction::clone(read));
        }
        let names: TemplateNames = turn.names(1);
        let value = self.value(&mut |text| turn.text(text, &names))?;
        let id = turn.place.action_id.as_deref().unwrap_or_default();
        match read(&value) {
            Ok(Read::Known(action)) => Ok(*action),
            Ok(Read::Other { .. }) => {
                Err(ActionError::failed("no-such-action", msg!("`{id}` is not a notebook action")))
            }
            Err(fault) => Err(ActionError::failed("no-such-action", msg!("`{id}`: {}", fault.message))),
        }
    }

    fn value(&self, text: &mut impl FnMut(&Text) -> Result<String, ActionError>) -> Result<Value, ActionError> {
        let mut object = Map::new();
        object.insert("action".to_owned(), Value::from(self.kind));
        for (name, part) in &self.fields {
            object.insert(name.clone(), part.value(text)?);
        }
        Ok(Value::Object(object))
    }
}

pub struct ActionReader<'r, 'f> {
    pub fields: &'r Fields<'f>,
    pub checking: &'r mut dyn KindChecker,
    parts: Vec<(String, AuthorValue)>,
    mistakes: usize,
    /// Whether a field is missing that must be there.
    lacks: bool,
}

impl<'r, 'f> ActionReader<'r, 'f> {
    pub fn new(fields: &'r Fields<'f>, checking: &'r mut dyn KindChecker) -> Self {
        let mistakes = fields.findings().mistakes();
        Self { fields, checking, parts: vec![], mistakes, lacks: false }
    }

    fn put(&mut self, name: &str, part: Option<AuthorValue>) {
        self.parts.extend(part.map(|part| (name.to_owned(), part)));
    }

    pub fn text(&mut self, name: &'static str) {
        let text = self.fields.words(name).and_then(|words| self.checking.text(&words));
        self.put(name, text.map(AuthorValue::Text));
    }

    pub fn required_text(&mut self, name: &'static str) {
        let words = self.fields.required_words(name).and_then(|words| self.filled(name, words));
        let text = words.and_then(|words| self.checking.text(&words));
        self.lacks |= text.is_none();
        self.put(name, text.map(AuthorValue::Text));
    }

    /// A text that must be there, and that is code where `code` says so: single braces are then those of its language.
    pub fn required_content(&mut self, name: &'static str, code: bool) {
        if !code {
            return self.required_text(name);
        }
        let words = self.fields.required_words(name).and_then(|words| self.filled(name, words));
        let text = words.and_then(|words| self.checking.code(&words));
        self.lacks |= text.is_none();
        self.put(name, text.map(AuthorValue::Text));
    }

    /// A text in which something stands.
    fn filled(&self, name: &'static str, words: TextField) -> Option<TextField> {
        if !words.text.trim().is_empty() {
            return Some(words);
        }
        let message = msg!("`{name}` of {} is empty", self.fields.what());
        let diagnostic = Diagnostic::error("missing-key", message, self.fields.file(), words.node.span);
        self.fields.findings().report(diagnostic.with_help(msg!("write something after `{name}:`")));
        None
    }

    /// One of a few words. Gives which.
    pub fn choice(&mut self, name: &'static str, choices: &[&'static str]) -> Option<&'static str> {
        let choice = self.fields.choice(name, choices);
        self.put(name, choice.map(|choice| AuthorValue::Value(Value::from(choice))));
        choice
    }

    /// `true` or `false`. Gives which.
    pub fn truth(&mut self, name: &'static str) -> Option<bool> {
        let truth = self.fields.boolean(name);
        self.put(name, truth.map(|truth| AuthorValue::Value(Value::from(truth))));
        truth
    }

    pub fn texts(&mut self, name: &'static str) {
        let Some(items) = self.fields.list(name) else { return };
        let mut texts = Vec::new();
        for node in items {
            let Some(scalar) = node.as_scalar().filter(|_| !is_null(node)) else {
                let message = msg!("an item of `{name}` must be text, but this is {}", node.describe());
                let diagnostic = Diagnostic::error("wrong-type", message, self.fields.file(), node.span);
                self.fields.findings().report(diagnostic.with_help("write each item as text after its own dash"));
                continue;
            };
            let words = TextField { text: scalar.text.clone(), node: Arc::clone(node) };
            texts.extend(self.checking.text(&words).map(AuthorValue::Text));
        }
        self.put(name, Some(AuthorValue::List(texts)));
    }

    /// `metadata`: what stands beside the text of a cell (docs/notebook.md, docs/protocol.md). `runs`: whether
    /// `should_execute` may stand there. Gives whether it says so.
    pub fn metadata(&mut self, runs: bool) -> bool {
        let Some(node) = self.fields.take("metadata") else { return false };
        let mut executes = false;
        let part = self.inner(node, msg!("`metadata` of {}", self.fields.what()), |inner| {
            for name in ["is_step", "is_chapter", "is_section", "finished_thinking"] {
                inner.truth(name);
            }
            for name in ["chapter_id", "section_id", "thinking_text", "belongs_to_chapter", "belongs_to_section"] {
                inner.text(name);
            }
            for name in ["chapter_number", "section_number"] {
                let number = inner.fields.integer(name, 1..=MOST_NUMBER);
                inner.put(name, number.map(|number| AuthorValue::Value(Value::from(number))));
            }
            executes = runs && inner.truth("should_execute") == Some(true);
            let extra = inner.fields.take("extra").and_then(|node| inner.free(node, "extra"));
            inner.put("extra", extra);
        });
        self.put("metadata", part);
        executes
    }

    /// A mapping with whatever in it; its texts are not rendered.
    fn free(&self, node: &Arc<YamlNode>, name: &str) -> Option<AuthorValue> {
        if node.as_mapping().is_some() {
            return Some(AuthorValue::Value(node.to_json()));
        }
        let message = msg!("`{name}` must be a mapping, but this is {}", node.describe());
        let diagnostic = Diagnostic::error("wrong-type", message, self.fields.file(), node.span);
        self.fields
            .findings()
            .report(diagnostic.with_help("write each of its fields on its own line, as `name: value`"));
        None
    }

    /// A whole plan: `{ name, stages: [{ id, name, goal, description, steps }] }`.
    pub fn plan(&mut self, name: &'static str) {
        let Some(node) = self.fields.required(name) else {
            self.lacks = true;
            return;
        };
        let part = self.inner(node, msg!("`{name}` of {}", self.fields.what()), |inner| {
            inner.text("name");
            inner.items("stages", "stage", |stage| {
                stage.about();
                stage.items("steps", "step", |step| step.about());
            });
        });
        self.put(name, part);
    }

    pub fn steps(&mut self, name: &'static str) {
        self.required_items(name, "step", |step| step.about());
    }

    /// What a stage and a step tell of themselves.
    fn about(&mut self) {
        if let Some(words) = self.fields.required_words("id") {
            let (text, span) = (words.text.trim(), words.node.span);
            if is_id(text) {
                self.put("id", Some(AuthorValue::Value(Value::from(text))));
            } else {
                let message =
                    msg!("the id of {} must be one line of at most {MOST_NAME} characters", self.fields.what());
                let diagnostic = Diagnostic::error("invalid-id", message, self.fields.file(), span);
                self.fields.findings().report(diagnostic.with_help("give it a short name, as in `id: load_data`"));
            }
        }
        for name in ["name", "goal", "description"] {
            self.text(name);
        }
    }

    fn items(&mut self, name: &'static str, what: &'static str, read: fn(&mut ActionReader<'_, '_>)) {
        if what == "stage" || self.fields.has(name) {
            self.required_items(name, what, read);
        } else {
            self.fields.ignore(name);
        }
    }

    fn required_items(&mut self, name: &'static str, what: &'static str, read: fn(&mut ActionReader<'_, '_>)) {
        let items = self.fields.required_list(name).unwrap_or_default();
        self.lacks |= items.is_empty();
        let mut parts = Vec::new();
        for item in items {
            if let (Some(id), NodeKind::Scalar(_)) = (item.as_scalar(), &item.kind) {
                self.fields.name_alone(name, "id", &id.text, item.span);
                continue;
            }
            parts.extend(self.inner(item, msg!("a {what} of `{name}`", what = Message::word(what)), read));
        }
        self.put(name, Some(AuthorValue::List(parts)));
    }

    fn inner(
        &mut self,
        node: &YamlNode,
        what: Message,
        read: impl FnOnce(&mut ActionReader<'_, '_>),
    ) -> Option<AuthorValue> {
        let fields = Fields::of(node, what, self.fields.file(), self.fields.findings())?;
        let mut inner = ActionReader {
            fields: &fields,
            checking: &mut *self.checking,
            parts: vec![],
            mistakes: self.mistakes,
            lacks: false,
        };
        read(&mut inner);
        let parts = inner.parts;
        fields.finish();
        Some(AuthorValue::Table(parts))
    }

    /// The action, when nothing was wrong. What the reader of actions says of it is reported where it stands.
    pub fn finish(self, kind: &'static str) -> Option<AuthorAction> {
        let Self { fields, parts, mistakes, lacks, .. } = self;
        if lacks || fields.findings().mistakes() > mistakes {
            return None;
        }
        let written = AuthorAction { kind, read: None, fields: parts };
        // What a text with placeholders becomes is seen when it is rendered: until then a word stands for it.
        let mut all_plain = true;
        let mut literal = |text: &Text| {
            all_plain &= text.is_plain();
            Ok(text.plain().unwrap_or("x").to_owned())
        };
        let value = written.value(&mut literal).ok()?;
        let (slug, field, message) = match read(&value) {
            Ok(Read::Known(action)) => match &*action {
                NotebookAction::UpdateWorkflow(plan) if let Err(refusal) = plan.check() => {
                    ("invalid-id", Some("updated_workflow"), refusal.message)
                }
                _ => {
                    let read = Some(action).filter(|_| all_plain);
                    return Some(AuthorAction { read, ..written });
                }
            },
            Ok(Read::Other { .. }) => return Some(written),
            Err(ActionFieldError { field, message }) => ("wrong-type", field, message),
        };
        let span = field.and_then(|field| fields.take(field)).map_or(fields.span(), |node| node.span);
        fields.findings().report(Diagnostic::error(slug, message, fields.file(), span));
        None
    }
}
