//! `text-cut-by-comment`: ` #` in a text without quotes starts a comment, so the rest of the text is lost.

use std::collections::HashSet;
use std::sync::Arc;

use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::comments::comments;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::lines::SourceLine;
use bcc_lang::source::misreading::quote;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::ScalarStyle;

/// Fields whose value is a text. After other keys without a value, a comment is assumed to be intended.
const TEXT_KEYS: [&str; 6] = ["content", "exit", "tone", "goal", "strategy", "define"];

const HELP: &str = "put quotes around the whole text; if it is a comment, add a space after the `#`";

pub static RULE: Rule = Rule { slugs: &["text-cut-by-comment"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let file = model.file;
    let report = |comment: Span, full_text: Option<Span>, message: &'static str| {
        let diagnostic = Diagnostic::warning("text-cut-by-comment", message, file, comment).with_help(HELP);
        // A comment may be intended.
        findings.report(diagnostic.with_fixes(full_text.map(|full_text| quote(file, full_text).only_sure_if(false))));
    };
    // Aliases repeat a text of one place.
    let mut seen = HashSet::new();
    for entry in &model.collected.texts {
        let span = entry.node.span;
        let plain = entry.node.as_scalar().is_some_and(|scalar| scalar.style == ScalarStyle::Plain);
        if !plain || span.is_empty() || !seen.insert(span.start) {
            continue;
        }
        let Some(comment) = comment_after(file, span.end) else { continue };
        let before = file.slice(Span::new(SourceLine::at(file, span.start).span().start, span.start));
        // Inside brackets, the intended end of the text is unknown.
        let full_text = (!before.contains(['{', '['])).then(|| Span::new(span.start, comment.end));
        report(
            comment,
            full_text,
            "` #` starts a comment, so the text ends before it and the rest of the line is lost",
        );
    }
    for comment in comments_in_empty_fields(file) {
        report(
            comment,
            Some(comment),
            "a `#` after a space starts a comment, so this text is lost and the field is empty",
        );
    }
}

/// The comment after `end` on the line, if it is probably meant as text: no space follows its `#`.
fn comment_after(file: &SourceFile, end: usize) -> Option<Span> {
    let line = SourceLine::at(file, end).span();
    let rest = file.slice(Span::new(end, line.end));
    let comment = rest.trim();
    let start = end + (rest.len() - rest.trim_start().len());
    // A comment requires white space before it.
    (start > end && is_text(comment)).then(|| Span::new(start, start + comment.len()))
}

/// Whether a comment is probably meant as text.
fn is_text(comment: &str) -> bool {
    let Some(rest) = comment.strip_prefix('#') else { return false };
    let first = rest.chars().next();
    first.is_some_and(|c| c.is_alphanumeric() || "“”《（【".contains(c))
        && !rest.to_ascii_lowercase().starts_with("bcc")
}

/// The comments after text fields that have no other value.
fn comments_in_empty_fields(file: &Arc<SourceFile>) -> Vec<Span> {
    let mut found = Vec::new();
    let mut number = 1;
    while let Some(line) = file.line_span(number) {
        number += 1;
        let text = file.slice(line);
        if !text.contains(": ") || !text.contains('#') {
            continue;
        }
        let body = SourceLine::at(file, line.start).body();
        let Some((key, value)) = file.slice(body).split_once(':') else { continue };
        let comment = value.trim_start();
        if !TEXT_KEYS.contains(&key) || comment.len() == value.len() || !is_text(comment) {
            continue;
        }
        let column = body.start - line.start;
        let deeper = |next: SourceLine<'_>| next.content().start - next.span().start > column;
        let below = SourceLine::at(file, line.start).below().find(|next| {
            let text = next.text().trim();
            !text.is_empty() && !text.starts_with('#')
        });
        if !below.is_some_and(deeper) {
            found.push(Span::new(body.end - comment.len(), body.end));
        }
    }
    if found.is_empty() {
        return found;
    }
    // In a multi-line text it is not a comment.
    let comments: HashSet<usize> = comments(file).comments.iter().map(|span| span.start).collect();
    found.retain(|comment| comments.contains(&comment.start));
    found
}
