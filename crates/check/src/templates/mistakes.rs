//! Reports mistakes in the file of a template: `front-matter`, `empty-template`, `template-syntax`, `missing-include`,
//! `include-outside`, `include-loop`.

use bcc_lang::message::msg;
use std::sync::Arc;

use crate::templates::legacy_engine;
use crate::templates::openers::{STATEMENTS, innermost};
use bcc_lang::source::diagnostic::{Diagnostic, Edit};
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::error::{Mistake, MistakeKind, TemplateError};
use bcc_lang::template::loaded::LoadedTemplate;

/// The tags that need no end.
pub(crate) const OTHER_TAGS: [&str; 9] =
    ["else", "elif", "include", "extends", "import", "from", "do", "break", "continue"];

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
    let at_end = message_text.starts_with("unexpected end of input");
    let before = if at_end { source.text().len() } else { span.start.max(body) };
    let before = source.text().get(body..before).unwrap_or_default();
    let open = innermost(before).map(|(name, range)| (name, Span::new(range.start + body, range.end + body)));
    if at_end
        && let Some((name, at)) = open
        && [("{%", "%}"), ("{{", "}}")].iter().all(|(open, close)| before.rfind(close) >= before.rfind(open))
    {
        let message = msg!("the `{name}` that opens here is never closed");
        return Diagnostic::error(slug, message, source, at).with_help(msg!("close it with `{{% end{name} %}}`"));
    }
    if let Some(word) = message_text.strip_prefix("unknown statement ") {
        return legacy_engine::percent_placeholders(word, source, body)
            .unwrap_or_else(|| unknown(word, open, source, span));
    }
    let message = msg!("this template cannot be read: {}", error.message);
    Diagnostic::error(slug, message, source, span).with_help(advice(&message_text))
}

fn unknown(word: &str, open: Option<(&str, Span)>, source: &Arc<SourceFile>, span: Span) -> Diagnostic {
    let slug = "template-syntax";
    let is_known =
        STATEMENTS.iter().any(|name| word.strip_prefix("end") == Some(name)) || ["else", "elif"].contains(&word);
    if is_known {
        let message = msg!("`{{% {word} %}}` does not belong here");
        let diagnostic = Diagnostic::error(slug, message, source, span);
        return match open {
            Some((name, at)) => diagnostic
                .with_help(msg!("the innermost open tag is `{name}`; close it first with `{{% end{name} %}}`"))
                .with_related(msg!("this `{name}` is still open"), source, at),
            None => diagnostic.with_help("no tag is open here: remove this tag, or add the opening tag before it"),
        };
    }
    let ends: Vec<String> = STATEMENTS.iter().map(|name| format!("end{name}")).collect();
    let near = near_miss(word, STATEMENTS.iter().copied().chain(OTHER_TAGS).chain(ends.iter().map(String::as_str)));
    let diagnostic = Diagnostic::error(slug, msg!("there is no tag `{{% {word} %}}`"), source, span);
    match near {
        Some(near) => {
            let diagnostic = diagnostic.with_help(msg!("did you mean `{near}`?"));
            if source.slice(span) == word {
                diagnostic.with_fix(msg!("write `{near}`"), vec![Edit::replace(span, near)])
            } else {
                diagnostic
            }
        }
        None => diagnostic.with_help(
            "a value is written with two braces, `{{ name }}`; tags are `if`, `for`, `set`, `include` and a few more",
        ),
    }
}

/// The help for a template that minijinja cannot read, by its error message.
fn advice(message: &str) -> &'static str {
    let table = [
        ("unexpected `:`", "in JSON that the model should read, put a space between two opening braces: `{ {`"),
        ("unexpected end of variable block", "put a name between the braces, as in `{{ user }}`"),
        ("expected end of variable block", "a placeholder is one name or expression between `{{` and `}}`"),
        ("end of comment", "a comment goes from `{#` to `#}`; to have the model read `{#`, write `{{ '{#' }}`"),
        ("end of raw block", "close `{% raw %}` with `{% endraw %}`"),
        ("end of string", "close the text with the quote that opens it"),
        ("defined twice", "give each `block` of a template its own name"),
        ("must be placed inside a loop", "`break` and `continue` must be between `{% for … %}` and `{% endfor %}`"),
    ];
    table.iter().find(|(part, _)| message.contains(part)).map_or(HELP, |(_, help)| help)
}
