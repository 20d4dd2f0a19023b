//! `text-cut-by-comment`: ` #` in a text without quotes begins a comment, and what follows is lost.

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

/// Fields whose value is a text. Behind other keys without a value a comment is a comment.
const TEXT_KEYS: [&str; 6] = ["content", "exit", "tone", "goal", "strategy", "define"];

const HELP: &str = "put quotes around the whole text; if it is a comment, add a space after the `#`";

pub static RULE: Rule = Rule { slugs: &["text-cut-by-comment"], essential: false, check };

fn check(facts: &SemanticModel<'_>, findings: &Findings) {
    let file = facts.file;
    let report = |lost: Span, whole: Option<Span>, message: &'static str| {
        let diagnostic = Diagnostic::warning("text-cut-by-comment", message, file, lost).with_help(HELP);
        // A comment may be meant.
        findings.report(diagnostic.with_fixes(whole.map(|whole| quote(file, whole).only_sure_if(false))));
    };
    // What an alias names stands in one place.
    let mut seen = HashSet::new();
    for fact in &facts.seen.texts {
        let span = fact.node.span;
        let plain = fact.node.as_scalar().is_some_and(|scalar| scalar.style == ScalarStyle::Plain);
        if !plain || span.is_empty() || !seen.insert(span.start) {
            continue;
        }
        let Some(lost) = lost_behind(file, span.end) else { continue };
        let before = file.slice(Span::new(SourceLine::at(file, span.start).span().start, span.start));
        // Inside of brackets nobody can say where the text was meant to end.
        let whole = (!before.contains(['{', '['])).then(|| Span::new(span.start, lost.end));
        report(lost, whole, "` #` starts a comment, so the text ends before it and the rest of the line is lost");
    }
    for lost in empty(file) {
        report(lost, Some(lost), "a `#` after a space starts a comment, so this text is lost and the field is empty");
    }
}

/// The comment that follows at `end` on the line, where it is probably meant as text: no space follows its `#`.
fn lost_behind(file: &SourceFile, end: usize) -> Option<Span> {
    let line = SourceLine::at(file, end).span();
    let rest = file.slice(Span::new(end, line.end));
    let lost = rest.trim();
    let start = end + (rest.len() - rest.trim_start().len());
    // A comment needs white space before it.
    (start > end && is_text(lost)).then(|| Span::new(start, start + lost.len()))
}

/// Whether a comment is probably meant as text.
fn is_text(comment: &str) -> bool {
    let Some(rest) = comment.strip_prefix('#') else { return false };
    let first = rest.chars().next();
    first.is_some_and(|c| c.is_alphanumeric() || "“”《（【".contains(c))
        && !rest.to_ascii_lowercase().starts_with("bcc")
}

/// The comments behind fields of text that have nothing else for a value.
fn empty(file: &Arc<SourceFile>) -> Vec<Span> {
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
        let lost = value.trim_start();
        if !TEXT_KEYS.contains(&key) || lost.len() == value.len() || !is_text(lost) {
            continue;
        }
        let column = body.start - line.start;
        let deeper = |next: SourceLine<'_>| next.content().start - next.span().start > column;
        let below = SourceLine::at(file, line.start).below().find(|next| {
            let text = next.text().trim();
            !text.is_empty() && !text.starts_with('#')
        });
        if !below.is_some_and(deeper) {
            found.push(Span::new(body.end - lost.len(), body.end));
        }
    }
    if found.is_empty() {
        return found;
    }
    // In a text over several lines it is no comment.
    let comments: HashSet<usize> = comments(file).comments.iter().map(|span| span.start).collect();
    found.retain(|lost| comments.contains(&lost.start));
    found
}
