//! `older-engine` in templates: values written as `{%time%}`, and names that are called otherwise here.

use std::sync::Arc;

use crate::templates::openers::STATEMENTS;
use crate::templates::syntax_errors::{OTHER_TAGS, tag_of_chinese_word};
use bcc_lang::message::msg;
use bcc_lang::script::legacy::engine::SLUG;
use bcc_lang::source::diagnostic::{Diagnostic, Edit};
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;

/// The maximum number of names that are listed in a message.
const MAX_LISTED: usize = 5;

/// Names of the older engine that are called otherwise here.
const NAMES: [(&str, &str); 9] = [
    ("information_completeness", "metrics.information_completeness"),
    ("user_engagement", "metrics.user_engagement"),
    ("emotional_intensity", "metrics.emotional_intensity"),
    ("reply_relevance", "metrics.reply_relevance"),
    ("understanding_level", "metrics.understanding_level"),
    ("ai_role", "who"),
    ("用户名", "user"),
    ("来访者名", "user"),
    ("咨询师名", "who"),
];

/// What `name` is called here; `given` are the names of the prompt.
pub(crate) fn current_name(name: &str, given: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let (_, current) = NAMES.iter().find(|(older, _)| *older == name)?;
    let root = current.split('.').next().unwrap_or(current);
    given.into_iter().any(|given| given == root).then_some(*current)
}

/// The finding about all values of a template that are written as tags, if `word` is one of them. `body` is the start of the
/// template in its file.
pub(crate) fn percent_placeholders(word: &str, source: &Arc<SourceFile>, body: usize) -> Option<Diagnostic> {
    let found = placeholders(source, body);
    let (_, first) = found.iter().find(|(name, _)| *name == word)?;
    let mut names: Vec<String> = Vec::new();
    for (name, _) in &found {
        let tag = format!("`{{%{name}%}}`");
        if !names.contains(&tag) {
            names.push(tag);
        }
    }
    let more = if names.len() > MAX_LISTED { ", …" } else { "" };
    names.truncate(MAX_LISTED);
    let (listed, count) = (names.join(", ") + more, found.len());
    let lines = lines(source, found.iter().map(|(_, span)| *span));
    let message = match count {
        1 => msg!("a value is written as a tag, as in an older engine: {listed} (line {lines})"),
        _ => msg!("{count} values are written as tags, as in an older engine: {listed} (lines {lines})"),
    };
    let edits = found.iter().map(|(name, span)| Edit::replace(*span, format!("{{{{ {name} }}}}")));
    let diagnostic = Diagnostic::error(SLUG, message, source, *first);
    let diagnostic = diagnostic.with_help(msg!("write values with two braces, as in `{{{{ {word} }}}}`"));
    Some(diagnostic.with_sure_fix(msg!("write two braces"), edits.collect()))
}

/// The tags that contain only a name, which is no tag and no misspelled one.
fn placeholders(source: &SourceFile, body: usize) -> Vec<(&str, Span)> {
    let text = source.text().get(body..).unwrap_or_default();
    let mut found = Vec::new();
    for (at, _) in text.match_indices("{%") {
        let Some(inside) = text.get(at + 2..).and_then(|rest| rest.split_once("%}")).map(|(inside, _)| inside) else {
            continue;
        };
        let name = inside.trim_matches('-').trim();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let ends: Vec<String> = STATEMENTS.iter().map(|name| format!("end{name}")).collect();
        let tags = || STATEMENTS.iter().copied().chain(OTHER_TAGS).chain(ends.iter().map(String::as_str));
        let is_tag = || {
            tags().any(|tag| tag == name) || near_miss(name, tags()).is_some() || tag_of_chinese_word(name).is_some()
        };
        if is_name && !is_tag() {
            let start = body + at;
            found.push((name, Span::new(start, start + 2 + inside.len() + 2)));
        }
    }
    found
}

/// The lines of these places, as a list.
pub(crate) fn lines(source: &SourceFile, spans: impl Iterator<Item = Span>) -> String {
    let mut lines: Vec<usize> = spans.map(|span| source.line(span.start)).collect();
    lines.dedup();
    let more = if lines.len() > MAX_LISTED { ", …" } else { "" };
    let shown: Vec<String> = lines.iter().take(MAX_LISTED).map(usize::to_string).collect();
    shown.join(", ") + more
}
