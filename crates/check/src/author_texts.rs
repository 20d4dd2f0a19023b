//! Compiles author texts and code that uses variables.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::checker::Checker;
use crate::collected::{CollectedText, UseKind, UseLocation};
use crate::expressions::unknown_feature;
use crate::placeholders::{ConvertedText, convert_legacy};
use crate::repairs::fix as fix_of;
use crate::templates::syntax_errors::{advice, explain};
use bcc_lang::script::fields::TextField;
use bcc_lang::source::diagnostic::{Diagnostic, Edit, Fix};
use bcc_lang::source::locate::locate_bytes;
use bcc_lang::source::misreading::quote;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{ScalarStyle, YamlNode};
use bcc_lang::template::text::{Text, TextError, TextErrorKind};
use bcc_lang::template::unknown::SourceRepair;
use bcc_runtime::program::turn::ENGINE_NAMES;

/// The help for a text that minijinja cannot read, if no specific help applies.
const TEXT_HELP: &str = "every `{{` needs a `}}`, every `{%` a `%}`, every `{% if … %}` an `{% endif %}`; literal braces are written `{{ '{{' }}`";

impl Checker<'_> {
    /// Compiles an author text; accepts legacy placeholders.
    pub(crate) fn author_text(&mut self, field: &TextField) -> Option<Text> {
        let known = |name: &str| self.known.knows(name) || ENGINE_NAMES.contains(&name);
        let converted = convert_legacy(&field.text, known);
        for (range, today) in &converted.replaced {
            // Of an unknown name, it depends on what follows (`unknown_names`): its fix may be another name.
            // A brace before it may be written in front of the name.
            let name = today.rsplit("{{").next().unwrap_or(today);
            if known(name.trim_matches(['}', ' ']))
                && let Some(diagnostic) = deprecated_placeholder(self.file, &field.node, range, today)
            {
                self.findings.report(diagnostic);
            }
        }
        let text = self.compiled(field, &converted)?;
        let at = self.position();
        let legacy = converted.replaced.into_iter().map(|(range, _)| range).collect();
        let mut declared = BTreeMap::new();
        for name in text.names() {
            if let Some(known) = self.known.declaration(&name.name) {
                declared.entry(name.name.clone()).or_insert_with(|| (known.declared, known.choices.clone()));
            }
        }
        let node = Arc::clone(&field.node);
        self.collected.texts.push(CollectedText { text: text.clone(), node, legacy, at, declared });
        Some(text)
    }

    /// Compiles a text, and records the names that it uses.
    pub(crate) fn compiled(&mut self, field: &TextField, converted: &ConvertedText) -> Option<Text> {
        match self.texts.add(&converted.text) {
            Ok(text) => {
                for name in text.names() {
                    let original = converted.original(&name.range);
                    let older = converted.replaces(&original);
                    let place = UseLocation::Within(Arc::clone(&field.node), original);
                    self.used(&name.name, place, UseKind::Text, name.optional, !older);
                }
                Some(text)
            }
            Err(error) => {
                let diagnostic = self.text_error(field, converted, &error);
                self.findings.report(diagnostic);
                None
            }
        }
    }

    fn text_error(&self, field: &TextField, converted: &ConvertedText, error: &TextError) -> Diagnostic {
        let place = |range: &Range<usize>| locate_bytes(self.file, &field.node, converted.original(range));
        let span = error.range.as_ref().map_or(field.node.span, place);
        let (text, message) = (converted.text.as_str(), error.message.to_string());
        let range = error.range.clone().unwrap_or(text.len()..text.len());
        let is_explained = error.help.is_some() || error.unknown.is_some() || error.kind != TextErrorKind::Syntax;
        if let Some(found) = explain(text, &message, &range).filter(|_| !is_explained) {
            let diagnostic = Diagnostic::error("text-syntax", found.message, self.file, place(&found.range));
            let diagnostic = match found.related {
                Some((message, range)) => diagnostic.with_related(message, self.file, place(&range)),
                None => diagnostic,
            };
            let repair =
                found.instead.map(|instead| SourceRepair::one(msg!("write `{instead}`"), found.range, instead.clone()));
            return diagnostic.with_help(found.help).with_fixes(self.text_fix(field, converted, repair.as_ref()));
        }
        let advice = || Message::word(advice(text, &message, &range).unwrap_or(TEXT_HELP));
        let help = error.help.clone().unwrap_or_else(advice);
        let diagnostic = match error.unknown {
            Some(what) => unknown_feature(what, error.message.clone(), self.file, span),
            None => {
                let message = msg!("this text cannot be read: {}", error.message);
                Diagnostic::error("text-syntax", message, self.file, span)
            }
        };
        diagnostic.with_help(help).with_fixes(self.text_fix(field, converted, error.repair.as_deref()))
    }

    fn text_fix(&self, field: &TextField, converted: &ConvertedText, repair: Option<&SourceRepair>) -> Option<Fix> {
        let repair = repair.filter(|_| converted.replaced.is_empty());
        repair.and_then(|repair| fix_of(self.file, &field.node, 0, repair))
    }
}

/// The finding for a legacy placeholder: `today` is how it is written.
pub(crate) fn deprecated_placeholder(
    file: &Arc<SourceFile>,
    node: &YamlNode,
    range: &Range<usize>,
    today: &str,
) -> Option<Diagnostic> {
    let scalar = node.as_scalar()?;
    let older = scalar.text.get(range.clone())?;
    let span = locate_bytes(file, node, range.clone());
    let message = msg!("`{older}` is a deprecated spelling of `{today}`");
    let diagnostic = Diagnostic::warning("deprecated-placeholder", message, file, span);
    let replace = vec![Edit::replace(span, today)];
    let (help, edits) = if scalar.style == ScalarStyle::Plain && range.start == 0 {
        // YAML reads a plain text that starts with `{` as a mapping.
        let all = file.slice(node.span);
        let edits = match all.strip_prefix(older) {
            // A text with both kinds of quotes is rewritten.
            Some(rest) if all.contains(['"', '\\']) && all.contains('\'') => {
                vec![Edit::replace(node.span, format!("'{today}{}'", rest.replace('\'', "''")))]
            }
            _ => quote(file, node.span).edits.into_iter().chain(replace).collect(),
        };
        (msg!("write `{today}`, and put quotes around the whole text"), edits)
    } else {
        (msg!("write `{today}`"), replace)
    };
    let diagnostic = diagnostic.with_help(help.clone());
    // If its place in the text is unknown, the span is that of the complete text.
    let is_located = span != node.span || file.slice(span) == older;
    Some(if is_located { diagnostic.with_sure_fix(help, edits) } else { diagnostic })
}
