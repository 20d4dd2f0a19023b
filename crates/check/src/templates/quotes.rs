//! `missing-include` for a file name without quotes: `{% include part.md %}` reads a variable `part`.

use bcc_lang::message::msg;
use std::sync::Arc;

use bcc_lang::source::diagnostic::{Diagnostic, Edit};
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::loaded::LoadedTemplate;
use bcc_lang::template::uses::Target;

/// The statements that include another template.
const STATEMENTS: [&str; 4] = ["include", "extends", "import", "from"];

/// The place of a file name without quotes in such a statement.
pub fn unquoted(loaded: &LoadedTemplate, target: &Target) -> Option<Span> {
    if target.name.is_some() {
        return None;
    }
    let statement = loaded.span(&target.name_range);
    let text = loaded.source().slice(statement);
    let mut words = text.split_whitespace().skip_while(|word| !STATEMENTS.contains(word)).skip(1);
    let word = words.next()?.trim_end_matches("%}").trim_end_matches('-');
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let stem = word.strip_suffix(".md").filter(|stem| !stem.is_empty() && stem.chars().all(plain))?;
    let start = statement.start + text.find(word)?;
    Some(Span::new(start, start + stem.len() + ".md".len()))
}

pub fn check(loaded: &LoadedTemplate, source: &Arc<SourceFile>) -> Vec<Diagnostic> {
    let diagnostic = |span: Span| {
        let quoted = format!("\"{}\"", source.slice(span));
        Diagnostic::error("missing-include", "this file name is not in quotes", source, span)
            .with_help("without quotes, it is read as the name of a variable")
            .with_sure_fix(msg!("write `{quoted}`"), vec![Edit::replace(span, quoted.clone())])
    };
    loaded.uses().targets.iter().filter_map(|target| unquoted(loaded, target)).map(diagnostic).collect()
}

/// Whether the name at `span` is a part of a file name without quotes.
pub fn is_part(loaded: &LoadedTemplate, span: Span) -> bool {
    let mut names = loaded.uses().targets.iter().filter_map(|target| unquoted(loaded, target));
    names.any(|name| name.start <= span.start && span.end <= name.end)
}
