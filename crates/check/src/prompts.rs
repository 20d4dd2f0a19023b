//! Checks the templates and reply schemas that a script uses.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use serde_json::Value;

use crate::checker::{Checker, RequestedNames};
use crate::collected::{UseKind, UseLocation};
use crate::templates::deduplication::{at_mistake, at_name, at_schema};
use bcc_lang::schema::embedded;
use bcc_lang::script::fields::{Fields, shortened};
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_lang::template::language::PromptLanguage;
use bcc_llm::reply::shape::ReplyShape;
use bcc_runtime::program::kind::KindChecker;
use bcc_runtime::program::prompt::PromptNames;
use bcc_runtime::program::turn::ENGINE_NAMES;

impl Checker<'_> {
    /// Reports a template that does not exist, or that uses a name which is not available to it.
    pub(crate) fn prompt(&mut self, name: &'static str, version: u32, prompt: PromptNames, at: &Fields<'_>) {
        let template = match self.templates.get(name, version) {
            Ok(template) => template,
            Err(error) => {
                if error.file.is_some() && !self.reported_template_errors.insert(error.to_string()) {
                    return;
                }
                // The version is written in the config, or is the default of the kind.
                let span = at.take("version").map_or(at.span(), |node| node.span);
                let mut diagnostic = Diagnostic::error("unknown-template", error.to_message(), self.file, span);
                if let Some(help) = &error.help {
                    diagnostic = diagnostic.with_help(help.clone());
                }
                self.findings.report(at_mistake(diagnostic, self.templates, &error));
                return;
            }
        };
        // A template requires the same names of the author for every action that uses it.
        let requested = match self.template_requests.get(&(name, version)) {
            Some(requested) => Arc::clone(requested),
            None => {
                let is_given = |name: &str| ENGINE_NAMES.into_iter().chain(prompt.given()).any(|known| known == name);
                let (shown, requested): (Vec<_>, Vec<_>) = template.mentioned().partition(|(name, _)| is_given(name));
                for (name, _) in shown {
                    self.used(name, UseLocation::Whole(at.span()), UseKind::Prompt, true, false);
                }
                let requested: RequestedNames =
                    requested.into_iter().map(|(name, needed)| (name.to_owned(), needed)).collect();
                self.template_requests.insert((name, version), Arc::clone(&requested));
                requested
            }
        };
        // Names of extended and included templates must be known too; only its own uses have lines here.
        for (name, needed) in requested.iter() {
            let name = name.as_str();
            if self.known.knows(name) {
                // A name shown by a template counts as used by the script.
                self.used(name, UseLocation::Whole(at.span()), UseKind::Prompt, true, false);
                continue;
            }
            if !needed {
                continue;
            }
            let engine = ENGINE_NAMES.into_iter().chain(prompt.given());
            let used = template.names().iter().find(|used| used.name == name && !used.optional);
            let place = match used {
                Some(used) => Message::text(format!("{}:{}", template.file(), template.line(used))),
                None => msg!("{} (in an included template)", template.file()),
            };
            let message = msg!("the template {place} uses `{}`, which is not known here", shortened(name));
            // Other actions with this template would repeat the same report.
            if !self.reported_template_errors.insert(message.to_string()) {
                continue;
            }
            let help = match near_miss(name, engine.map(|name| -> &str { name }).chain(self.known.names())) {
                Some(near) => msg!("did you mean `{near}` in the template?"),
                None => Message::word(
                    "declare it in the script, or make it optional in the template: `{{ … | default('') }}`",
                ),
            };
            let diagnostic = Diagnostic::error("unknown-template-name", message, self.file, at.span()).with_help(help);
            self.findings.report(at_name(diagnostic, self.templates, &template, name));
        }
    }

    /// The reply schema that the template of a kind specifies, else the kind's own. Reports its errors.
    pub(crate) fn schema_of_reply(&self, kind: &'static str, version: u32, at: &Fields<'_>) -> Option<Value> {
        let template = self.templates.get(kind, version).ok();
        let report = |message: Message, help: Message| {
            let diagnostic = Diagnostic::error("reply-schema", message, self.file, at.span()).with_help(help);
            self.findings.report(at_schema(diagnostic, template.as_ref()));
        };
        let requested = template.as_ref().and_then(|template| template.front().output_schema.as_deref());
        let name = requested.map_or(kind, |requested| requested.strip_suffix(".json").unwrap_or(requested));
        let by = match (&template, requested) {
            (Some(template), Some(_)) => msg!("of the template {}", template.file()),
            _ => msg!("of `{kind}`"),
        };
        let Some(schema) = self.reply_schemas.get(name) else {
            let near = near_miss(name, self.reply_schemas.keys().map(String::as_str));
            let help = near.map_or_else(
                || msg!("put it into the project's schemas/replies/"),
                |near| msg!("did you mean `{near}`?"),
            );
            report(msg!("the reply schema `{name}` {by} does not exist"), help);
            return None;
        };
        let own: Option<Value> = embedded::reply(kind).and_then(|text| serde_json::from_str(text).ok());
        if own.as_ref() == Some(schema) {
            let rules = embedded::reply_rules(kind)?;
            return Some(in_language(rules, self.template_language(kind, version)));
        }
        // A schema of the project may replace the kind's own if it has the fields that the kind reads.
        let names = |schema: &Value| -> Vec<String> {
            schema
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect()
        };
        let offered = names(schema);
        let missing: Vec<String> =
            own.as_ref().map(names).unwrap_or_default().into_iter().filter(|name| !offered.contains(name)).collect();
        if !missing.is_empty() {
            let message = msg!(
                "the reply schema `{name}` {by} lacks {}",
                Message::list(Joint::Item, missing.into_iter().map(Message::text))
            );
            report(message, msg!("`{kind}` reads these fields; add them to the schema's `properties`"));
            return None;
        }
        // Reported here, where the template is known, so that later errors can only be in the outputs of the action.
        if requested.is_some()
            && let Err(error) = ReplyShape::new(schema, &[])
        {
            let message = msg!("the reply schema `{name}` {by} cannot be used: {error}");
            report(message, msg!("fix the schema that the template specifies as its `output_schema`"));
            return None;
        }
        Some(schema.clone())
    }
}

/// A schema of the binary with the default texts in the language of the template.
fn in_language(mut schema: Value, language: PromptLanguage) -> Value {
    match &mut schema {
        Value::String(text) if *text == PromptLanguage::Zh.not_available() => {
            language.not_available().clone_into(text);
        }
        Value::Object(rules) => rules.values_mut().for_each(|rule| *rule = in_language(rule.take(), language)),
        Value::Array(items) => items.iter_mut().for_each(|item| *item = in_language(item.take(), language)),
        _ => {}
    }
    schema
}
