//! A notebook action as written by an author. Its fields are read and checked one by one, and become the same JSON that a model
//! would send. The texts of the author in it are rendered when the action runs.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::notebook::action::{NotebookAction, Read, read};
use crate::notebook::error::ActionFieldError;
use crate::notebook::workflow::{MAX_NAME, is_id};
use crate::program::flow::ActionError;
use crate::program::kind::KindChecker;
use crate::program::turn::Turn;
use bcc_lang::script::fields::{Fields, TextField, is_null};
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::yaml::{NodeKind, YamlNode};
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::text::Text;

/// The largest chapter or section number that an author may give.
const MAX_NUMBER: u32 = 100_000;

/// A value that may contain texts of the author.
pub(crate) enum AuthorValue {
    /// A text, rendered when the action runs.
    Text(Text),
    Value(Value),
    List(Vec<AuthorValue>),
    Table(Vec<(String, AuthorValue)>),
}

impl AuthorValue {
    fn value(&self, text: &mut impl FnMut(&Text) -> Result<String, ActionError>) -> Result<Value, ActionError> {
        Ok(match self {
            Self::Text(template) => Value::from(text(template)?),
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
pub(crate) struct AuthorAction {
    kind: &'static str,
    /// The action itself, if no text in it must be rendered.
    read: Option<Box<NotebookAction>>,
    fields: Vec<(String, AuthorValue)>,
}

impl AuthorAction {
    /// The action with its texts rendered.
    /// Errors: A text cannot be rendered, or the result is not a valid action: an empty id, for example.
    pub(crate) fn action(&self, turn: &Turn<'_>) -> Result<NotebookAction, ActionError> {
        if let Some(read) = &self.read {
            return Ok(NotebookAction::clone(read));
        }
        let names: TemplateNames = turn.names(1);
        let value = self.value(&mut |text| turn.text(text, &names))?;
        let id = turn.place.action_id.as_deref().unwrap_or_default();
        match read(&value) {
            Ok(Read::Known(action)) => Ok(*action),
            Ok(Read::Unknown { .. }) => {
                Err(ActionError::failed("no-such-action", msg!("`{id}` is not a notebook action")))
            }
            Err(error) => Err(ActionError::failed("no-such-action", msg!("`{id}`: {}", error.message))),
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

pub(crate) struct ActionReader<'r, 'f> {
    pub fields: &'r Fields<'f>,
    pub checker: &'r mut dyn KindChecker,
    parts: Vec<(String, AuthorValue)>,
    mistakes: usize,
    /// Whether a required field is missing.
    is_incomplete: bool,
}

impl<'r, 'f> ActionReader<'r, 'f> {
    pub(crate) fn new(fields: &'r Fields<'f>, checker: &'r mut dyn KindChecker) -> Self {
        let mistakes = fields.findings().author_errors();
        Self { fields, checker, parts: vec![], mistakes, is_incomplete: false }
    }

    fn put(&mut self, name: &str, part: Option<AuthorValue>) {
        self.parts.extend(part.map(|part| (name.to_owned(), part)));
    }

    pub(crate) fn text(&mut self, name: &'static str) {
        let text = self.fields.text(name).and_then(|field| self.checker.text(&field));
        self.put(name, text.map(AuthorValue::Text));
    }

    pub(crate) fn required_text(&mut self, name: &'static str) {
        let field = self.fields.required_content(name);
        let text = field.and_then(|field| self.checker.text(&field));
        self.is_incomplete |= text.is_none();
        self.put(name, text.map(AuthorValue::Text));
    }

    /// A required text. If `code` is set, it is code, and single braces belong to its language.
    pub(crate) fn required_content(&mut self, name: &'static str, code: bool) {
        if !code {
            return self.required_text(name);
        }
        let field = self.fields.required_content(name);
        let text = field.and_then(|field| self.checker.code(&field));
        self.is_incomplete |= text.is_none();
        self.put(name, text.map(AuthorValue::Text));
    }

    /// Reads one of `choices` and returns it.
    pub(crate) fn choice(&mut self, name: &'static str, choices: &[&'static str]) -> Option<&'static str> {
        let choice = self.fields.choice(name, choices);
        self.put(name, choice.map(|choice| AuthorValue::Value(Value::from(choice))));
        choice
    }

    /// Reads `true` or `false` and returns it.
    pub(crate) fn boolean(&mut self, name: &'static str) -> Option<bool> {
        let boolean = self.fields.boolean(name);
        self.put(name, boolean.map(|boolean| AuthorValue::Value(Value::from(boolean))));
        boolean
    }

    pub(crate) fn texts(&mut self, name: &'static str) {
        let Some(items) = self.fields.list(name) else { return };
        let mut texts = Vec::new();
        for node in items {
            let Some(scalar) = node.as_scalar().filter(|_| !is_null(node)) else {
                let message = msg!("an item of `{name}` must be text, but this is {}", node.describe());
                let diagnostic = Diagnostic::error("wrong-type", message, self.fields.file(), node.span);
                self.fields.findings().report(diagnostic.with_help("write each item as text after its own dash"));
                continue;
            };
            let field = TextField { text: scalar.text.clone(), node: Arc::clone(node) };
            texts.extend(self.checker.text(&field).map(AuthorValue::Text));
        }
        self.put(name, Some(AuthorValue::List(texts)));
    }

    /// Reads `metadata`: the data of a cell other than its text (docs/notebook.md, docs/protocol.md). `runs`: whether it may
    /// contain `should_execute`. Returns whether `should_execute` is true.
    pub(crate) fn metadata(&mut self, runs: bool) -> bool {
        let Some(node) = self.fields.take("metadata") else { return false };
        let mut executes = false;
        let part = self.inner(node, msg!("`metadata` of {}", self.fields.subject()), |inner| {
            for name in ["is_step", "is_chapter", "is_section", "finished_thinking"] {
                inner.boolean(name);
            }
            for name in ["chapter_id", "section_id", "thinking_text", "belongs_to_chapter", "belongs_to_section"] {
                inner.text(name);
            }
            for name in ["chapter_number", "section_number"] {
                let number = inner.fields.integer(name, 1..=MAX_NUMBER);
                inner.put(name, number.map(|number| AuthorValue::Value(Value::from(number))));
            }
            executes = runs && inner.boolean("should_execute") == Some(true);
            let extra = inner.fields.take("extra").and_then(|node| inner.mapping(node, "extra"));
            inner.put("extra", extra);
        });
        self.put("metadata", part);
        executes
    }

    /// A mapping with any content; its texts are not rendered.
    fn mapping(&self, node: &Arc<YamlNode>, name: &str) -> Option<AuthorValue> {
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

    /// Reads a complete plan: `{ name, stages: [{ id, name, goal, description, steps }] }`.
    pub(crate) fn plan(&mut self, name: &'static str) {
        let Some(node) = self.fields.required(name) else {
            self.is_incomplete = true;
            return;
        };
        let part = self.inner(node, msg!("`{name}` of {}", self.fields.subject()), |inner| {
            inner.text("name");
            inner.required_items(
                "stages",
                |name| msg!("a stage of `{name}`"),
                |stage| {
                    stage.id_and_texts();
                    stage.optional_steps();
                },
            );
        });
        self.put(name, part);
    }

    pub(crate) fn steps(&mut self, name: &'static str) {
        self.required_items(name, |name| msg!("a step of `{name}`"), |step| step.id_and_texts());
    }

    /// Reads the fields that stages and steps have in common.
    fn id_and_texts(&mut self) {
        if let Some(field) = self.fields.required_text("id") {
            let (text, span) = (field.text.trim(), field.node.span);
            if is_id(text) {
                self.put("id", Some(AuthorValue::Value(Value::from(text))));
            } else {
                let message =
                    msg!("the id of {} must be one line of at most {MAX_NAME} characters", self.fields.subject());
                let diagnostic = Diagnostic::error("invalid-id", message, self.fields.file(), span);
                self.fields.findings().report(diagnostic.with_help("give it a short name, as in `id: load_data`"));
            }
        }
        for name in ["name", "goal", "description"] {
            self.text(name);
        }
    }

    fn optional_steps(&mut self) {
        if self.fields.has("steps") {
            self.steps("steps");
        } else {
            self.fields.ignore("steps");
        }
    }

    fn required_items(
        &mut self,
        name: &'static str,
        subject: fn(&str) -> Message,
        read: fn(&mut ActionReader<'_, '_>),
    ) {
        let items = self.fields.required_list(name).unwrap_or_default();
        self.is_incomplete |= items.is_empty();
        let mut parts = Vec::new();
        for item in items {
            if let (Some(id), NodeKind::Scalar(_)) = (item.as_scalar(), &item.kind) {
                self.fields.report_bare_name(name, "id", &id.text, item.span);
                continue;
            }
            parts.extend(self.inner(item, subject(name), read));
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
            checker: &mut *self.checker,
            parts: vec![],
            mistakes: self.mistakes,
            is_incomplete: false,
        };
        read(&mut inner);
        let parts = inner.parts;
        fields.finish();
        Some(AuthorValue::Table(parts))
    }

    /// The action, if there were no errors. Errors of the general action reader are reported at the field that they concern.
    pub(crate) fn finish(self, kind: &'static str) -> Option<AuthorAction> {
        let Self { fields, parts, mistakes, is_incomplete, .. } = self;
        if is_incomplete || fields.findings().author_errors() > mistakes {
            return None;
        }
        let template = AuthorAction { kind, read: None, fields: parts };
        // The content of a text with placeholders is known only when it is rendered: a placeholder word replaces it here.
        let mut is_plain = true;
        let mut literal = |text: &Text| {
            is_plain &= text.is_plain();
            Ok(text.plain().unwrap_or("x").to_owned())
        };
        let value = template.value(&mut literal).ok()?;
        let (slug, field, message) = match read(&value) {
            Ok(Read::Known(action)) => match &*action {
                NotebookAction::UpdateWorkflow(plan) if let Err(rejection) = plan.check() => {
                    ("invalid-id", Some("updated_workflow"), rejection.message)
                }
                _ => {
                    let read = Some(action).filter(|_| is_plain);
                    return Some(AuthorAction { read, ..template });
                }
            },
            Ok(Read::Unknown { .. }) => return Some(template),
            Err(ActionFieldError { field, message }) => ("wrong-type", field, message),
        };
        let span = field.and_then(|field| fields.take(field)).map_or(fields.span(), |node| node.span);
        fields.findings().report(Diagnostic::error(slug, message, fields.file(), span));
        None
    }
}
