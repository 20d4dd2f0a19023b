//! The templates and reply schemas that a script needs, as far as they concern the script.

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
use bcc_llm::reply::shape::ReplyShape;
use bcc_runtime::program::prompt::PromptOf;
use bcc_runtime::program::turn::ENGINE_NAMES;

impl Checker<'_> {
    /// Reports a template that does not exist, or that uses a name which it does not get.
    pub(crate) fn prompt(&mut self, name: &'static str, version: u32, prompt: PromptOf, at: &Fields<'_>) {
        let template = match self.templates.get(name, version) {
            Ok(template) => template,
            Err(error) => {
                if error.file.is_some() && !self.faults_of_templates.insert(error.to_string()) {
                    return;
                }
                // Asked for by number, or the one that the kind always takes.
                let span = at.take("version").map_or(at.span(), |node| node.span);
                let mut diagnostic = Diagnostic::error("unknown-template", error.to_message(), self.file, span);
                if let Some(help) = &error.help {
                    diagnostic = diagnostic.with_help(help.clone());
                }
                self.findings.report(at_mistake(diagnostic, self.templates, &error));
                return;
            }
        };
        // What is asked of the author is the same for every action that takes the template.
        let asked = match self.asked_by_templates.get(&(name, version)) {
            Some(asked) => Arc::clone(asked),
            None => {
                let is_given = |name: &str| ENGINE_NAMES.into_iter().chain(prompt.given()).any(|known| known == name);
                let (shown, asked): (Vec<_>, Vec<_>) = template.mentioned().partition(|(name, _)| is_given(name));
                for (name, _) in shown {
                    self.used(name, UseLocation::Whole(at.span()), UseKind::Prompt, true, false);
                }
                let asked: RequestedNames = asked.into_iter().map(|(name, needed)| (name.to_owned(), needed)).collect();
                self.asked_by_templates.insert((name, version), Arc::clone(&asked));
                asked
            }
        };
        // Also what it extends or includes must be known; only its own uses have lines here.
        for (name, needed) in asked.iter() {
            let name = name.as_str();
            if self.known.knows(name) {
                // What a template shows, the script uses.
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
            // Other actions with this template would only say the same again.
            if !self.faults_of_templates.insert(message.to_string()) {
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

    /// The reply schema that a kind's template asks for, else the kind's own; reports what is wrong with it.
    pub(crate) fn schema_of_reply(&self, kind: &'static str, version: u32, at: &Fields<'_>) -> Option<Value> {
        let template = self.templates.get(kind, version).ok();
        let report = |message: Message, help: Message| {
            let diagnostic = Diagnostic::error("reply-schema", message, self.file, at.span()).with_help(help);
            self.findings.report(at_schema(diagnostic, template.as_ref()));
        };
        let asked = template.as_ref().and_then(|template| template.front().output_schema.as_deref());
        let name = asked.map_or(kind, |asked| asked.strip_suffix(".json").unwrap_or(asked));
        let by = match (&template, asked) {
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
        // One of the project may stand in for the kind's own, as long as it has what the kind reads.
        let own: Option<Value> = embedded::reply(kind).and_then(|text| serde_json::from_str(text).ok());
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
        // Reported here, where the template is known, so that an action's outputs are all that can be wrong with the rest.
        if asked.is_some()
            && let Err(error) = ReplyShape::new(schema, &[])
        {
            let message = msg!("the reply schema `{name}` {by} cannot be used: {error}");
            report(message, msg!("fix the schema that the template specifies as its `output_schema`"));
            return None;
        }
        Some(schema.clone())
    }
}
