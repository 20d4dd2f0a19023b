//! Reports mistakes in the file of a template: `front-matter`, `empty-template`, `template-syntax`, `missing-include`,
//! `include-outside`, `include-loop`.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::ops::Range;
use std::sync::Arc;

use crate::templates::legacy_engine;
use crate::templates::syntax_errors::{advice, explain};
use bcc_lang::source::diagnostic::{Diagnostic, Edit, Fix};
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::error::{Mistake, MistakeKind, TemplateError};
use bcc_lang::template::loaded::LoadedTemplate;
use bcc_lang::template::text_mistakes::explain_mistake;

/// The help if no specific help applies.
const HELP: &str = "every `{{` needs a `}}`, every `{%` a `%}`, and every `{% if … %}` an `{% endif %}`; to show braces to the model, write `{{ '{{' }}`";

/// The diagnostic for a mistake in `loaded`, whose file is `source`.
pub fn diagnostic(loaded: &LoadedTemplate, error: &TemplateError, source: &Arc<SourceFile>) -> Option<Diagnostic> {
    let mistake = error.mistake.as_deref()?;
    let span = source.clamp(Span::new(mistake.range.start, mistake.range.end));
    let slug = match mistake.kind {
        MistakeKind::FrontMatter => "front-matter",
        MistakeKind::Empty => "empty-template",
        MistakeKind::Syntax => return Some(syntax(loaded, error, mistake, source, span)),
        MistakeKind::Missing => "missing-include",
        MistakeKind::OutsideLayers => "include-outside",
        MistakeKind::Cycle => "include-loop",
    };
    let help = error
        .help
        .clone()
        .unwrap_or_else(|| msg!("`bcc-script schema template` prints what a front matter may contain"));
    Some(with_fix(
        Diagnostic::error(slug, error.message.clone(), source, span).with_help(help.clone()),
        mistake,
        source,
    ))
}

/// Adds a fix that replaces the text, inside its quotes, by what was probably meant.
fn with_fix(diagnostic: Diagnostic, mistake: &Mistake, source: &SourceFile) -> Diagnostic {
    let Some(instead) = &mistake.instead else { return diagnostic };
    let span = diagnostic.span;
    let quoted = span.len() > 2 && source.slice(span).starts_with(['"', '\'']);
    let span = if quoted { Span::new(span.start + 1, span.end - 1) } else { span };
    diagnostic.with_fix(msg!("write `{instead}`"), vec![Edit::replace(span, instead.clone())])
}

fn syntax(
    loaded: &LoadedTemplate,
    error: &TemplateError,
    mistake: &Mistake,
    source: &Arc<SourceFile>,
    span: Span,
) -> Diagnostic {
    let slug = "template-syntax";
    if let Some(help) = &error.help {
        return with_fix(
            Diagnostic::error(slug, error.message.clone(), source, span).with_help(help.clone()),
            mistake,
            source,
        );
    }
    // The remaining errors come from minijinja itself, which provides only their text.
    let message_text = error.message.to_string();
    if message_text.starts_with("there is no ") {
        let help = "check the spelling of the filter or test";
        return Diagnostic::error(slug, error.message.clone(), source, span).with_help(help);
    }
    let body = loaded.split().body;
    let text = source.text().get(body..).unwrap_or_default();
    let range = span.start.max(body) - body..span.end.max(body) - body;
    let in_file = |range: &Range<usize>| Span::new(range.start + body, range.end + body);
    if let Some(found) = explain_mistake(text, range.start) {
        let span = found.range.as_ref().map_or(span, in_file);
        let message = msg!("this template cannot be read: {}", found.message);
        let diagnostic = Diagnostic::error(slug, message, source, span);
        let help = found.help.unwrap_or_else(|| Message::word(HELP));
        let fix = found.repair.map(|repair| Fix {
            title: repair.title,
            edits: repair.edits.iter().map(|(range, text)| Edit::replace(in_file(range), text.clone())).collect(),
            sure: repair.sure,
        });
        return diagnostic.with_help(help).with_fixes(fix);
    }
    if let Some(word) = message_text.strip_prefix("unknown statement ")
        && let Some(diagnostic) = legacy_engine::percent_placeholders(word, source, body)
    {
        return diagnostic;
    }
    if let Some(found) = explain(text, &message_text, &range) {
        let span = in_file(&found.range);
        let diagnostic = Diagnostic::error(slug, found.message, source, span).with_help(found.help);
        let diagnostic = match found.related {
            Some((message, range)) => diagnostic.with_related(message, source, in_file(&range)),
            None => diagnostic,
        };
        return match found.instead {
            Some(instead) => diagnostic.with_fix(msg!("write `{instead}`"), vec![Edit::replace(span, instead.clone())]),
            None => diagnostic,
        };
    }
    let message = msg!("this template cannot be read: {}", error.message);
    let help = advice(text, &message_text, &range).unwrap_or(HELP);
    Diagnostic::error(slug, message, source, span).with_help(help)
}
