//! `reply-schema`: checks the project's reply schemas, and the templates that specify one.

use bcc_lang::message::ToMessage;
use bcc_lang::message::library::library;
use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::templates::template_set::{TemplateConsumer, own_reply};
use bcc_lang::schema::compiled::Compiled;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::{Diagnostic, Edit};
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::template::loaded::LoadedTemplate;
use bcc_llm::reply::shape::{ReplyShape, ShapeError};

/// The slug of all findings of this module.
const SLUG: &str = "reply-schema";

pub struct Schemas {
    own: BTreeMap<String, (Arc<SourceFile>, Option<Value>)>,
    replies: BTreeMap<&'static str, Value>,
    errors: Vec<Diagnostic>,
}

impl Schemas {
    pub fn read(files: &BTreeMap<String, Arc<SourceFile>>, consumers: &[TemplateConsumer]) -> Self {
        let replies: BTreeMap<&'static str, Value> =
            consumers.iter().filter_map(|consumer| Some((consumer.kind, own_reply(consumer.kind)?))).collect();
        let mut schemas = Self { own: BTreeMap::new(), replies, errors: Vec::new() };
        for (name, file) in files {
            let value = match usable(file) {
                Ok(value) => Some(value),
                Err(error) => {
                    schemas.errors.push(*error);
                    None
                }
            };
            if let (Some(value), Some(own)) = (&value, schemas.replies.get(name.as_str())) {
                let missing = lacking(value, own);
                if !missing.is_empty() {
                    let message = msg!(
                        "this reply schema lacks {}",
                        Message::list(Joint::Item, missing.into_iter().map(Message::text))
                    );
                    let help = msg!("`{name}` reads these fields; add them to the `properties`");
                    schemas.errors.push(Diagnostic::error(SLUG, message, file, Span::default()).with_help(help));
                }
            }
            schemas.own.insert(name.clone(), (Arc::clone(file), value));
        }
        schemas
    }

    pub fn errors(&self) -> &[Diagnostic] {
        &self.errors
    }

    /// The schema of the replies to a template; `None` if it is not usable.
    pub fn reply(&self, loaded: &LoadedTemplate, consumer: &TemplateConsumer) -> Option<&Value> {
        let name = loaded.split().front.output_schema.as_deref().map_or(consumer.kind, base);
        match self.own.get(name) {
            Some((_, value)) => value.as_ref(),
            None => self.replies.get(name),
        }
    }

    pub fn of_template(
        &self,
        loaded: &LoadedTemplate,
        consumer: &TemplateConsumer,
        source: &Arc<SourceFile>,
    ) -> Option<Diagnostic> {
        let cut = loaded.split();
        let name = base(cut.front.output_schema.as_deref()?);
        let written = cut.written.iter().find(|written| written.key == "output_schema")?;
        let span = loaded.span(&written.value);
        let diagnostic =
            |message: Message, help: Message| Diagnostic::error(SLUG, message, source, span).with_help(help);
        let Some(schema) = self.reply(loaded, consumer) else {
            if self.own.contains_key(name) {
                // Its problems are reported in its own file.
                return None;
            }
            let known = self.own.keys().map(String::as_str).chain(self.replies.keys().copied());
            let near = near_miss(name, known);
            let help = near.map_or_else(
                || msg!("add it to the project as `schemas/replies/{name}.json`, or omit `output_schema`"),
                |near| msg!("did you mean `{near}.json`?"),
            );
            let finding = diagnostic(msg!("there is no reply schema `{name}`"), help);
            return Some(match near {
                Some(near) => {
                    let near = format!("{near}.json");
                    finding.with_fix(msg!("write `{near}`"), vec![Edit::replace(span, near)])
                }
                None => finding,
            });
        };
        let missing = lacking(schema, self.replies.get(consumer.kind)?);
        if missing.is_empty() {
            return None;
        }
        let help = msg!("`{}` reads these fields; add them to the schema's `properties`", consumer.kind);
        let finding = diagnostic(
            msg!(
                "the reply schema `{name}` lacks {}",
                Message::list(Joint::Item, missing.into_iter().map(Message::text))
            ),
            help,
        );
        Some(match self.own.get(name) {
            Some((file, _)) => finding.with_related("the schema", file, Span::default()),
            None => finding,
        })
    }
}

fn base(requested: &str) -> &str {
    requested.strip_suffix(".json").unwrap_or(requested)
}

/// The fields of `own` that `schema` lacks.
fn lacking(schema: &Value, own: &Value) -> Vec<String> {
    let names = |schema: &Value| -> Vec<String> {
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let offered = names(schema);
    names(own).into_iter().filter(|name| !offered.contains(name)).collect()
}

/// The schema in a file, or the reason why it cannot describe a reply.
fn usable(file: &Arc<SourceFile>) -> Result<Value, Box<Diagnostic>> {
    let text = file.text().strip_prefix('\u{feff}').unwrap_or(file.text());
    let schema: Value = serde_json::from_str(text).map_err(|error| {
        let line = file.line_span(error.line()).unwrap_or_default();
        let at = line.start + error.column().saturating_sub(1).min(line.len());
        let reason = error.to_string();
        let reason = library(reason.split(" at line ").next().unwrap_or_default());
        let help = "put quotes around every key and text, and a comma between two entries but none after the last one";
        let message = msg!("this reply schema is not valid JSON: {reason}");
        Box::new(Diagnostic::error(SLUG, message, file, Span::new(at, at + 1)).with_help(help))
    })?;
    let diagnostic = |message: Message, path: &str, help: &'static str| {
        Box::new(Diagnostic::error(SLUG, message, file, place(file, path)).with_help(help))
    };
    Compiled::new(&schema).map_err(|error| {
        let message = msg!("this is not a usable JSON Schema: {}", error.message);
        diagnostic(
            message,
            &error.path,
            "`schemas/replies/` of bcc-script shows how the fields of a reply are described",
        )
    })?;
    match ReplyShape::new(&schema, &[]) {
        Ok(_) => Ok(schema),
        Err(ShapeError::Default { path }) => {
            let inside = path.split('/').skip(1).map(|name| format!("/properties/{name}")).collect::<String>();
            let message = msg!("the required field `{}` has no valid `default`", path.trim_start_matches('/'));
            Err(diagnostic(message, &inside, "use `default` to define the value for when the model omits the field"))
        }
        Err(error) => {
            let help = "write `\"type\": \"object\"` and `\"properties\": { … }` with a description of each field";
            Err(diagnostic(error.to_message(), "", help))
        }
    }
}

/// The place of a JSON pointer in a JSON file, which is parsed as YAML.
fn place(file: &Arc<SourceFile>, pointer: &str) -> Span {
    let Some(mut node) = parse(file).root else { return Span::default() };
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let next = match node.as_sequence() {
            Some(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)).cloned(),
            None => node.get(&step).cloned(),
        };
        let Some(next) = next else { break };
        node = next;
    }
    first_line(file, &node)
}

fn first_line(file: &SourceFile, node: &YamlNode) -> Span {
    let end = file.line_span(file.line(node.span.start)).map_or(node.span.end, |line| line.end);
    Span::new(node.span.start, node.span.end.min(end))
}
