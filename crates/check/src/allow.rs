//! Applies comments that silence findings: `# bcc: allow(slug)` in a script, `<!-- bcc: allow(slug) -->` in a template.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::allow_comments::{Allow, YAML, meant, of_template, read_all};
use crate::diagnostics::{near, page};
use bcc_lang::source::comments::{LongText, comments};
use bcc_lang::source::diagnostic::{Diagnostic, Edit, Severity, sort};
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;

/// The text that every silencing comment contains.
const MARKER: &[u8] = b"bcc";

/// Removes the findings of one file that its comments silence, and reports comments that silence nothing (`useless-allow`).
/// Pass all findings, including those of rules that the project switches off (`Levels::apply` comes later).
///
/// A comment at the end of a line applies to findings that start on that line; a comment on its own line applies to the next
/// line that is neither empty nor a comment. A finding inside a multi-line text also counts as starting at the `|` or `>` of
/// that text, because comments are not possible inside. Only findings that may be switched off can be silenced
/// (`Page::adjustable`). Findings about other files are kept. In `.md` files the comments of templates apply.
pub fn allow(file: &Arc<SourceFile>, diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    if memchr::memmem::find(file.text().as_bytes(), MARKER).is_none() {
        return diagnostics;
    }
    let (allows, texts) = read_comments(file);
    if allows.is_empty() {
        return diagnostics;
    }
    let mut silenced: BTreeMap<(usize, &str), Vec<(usize, usize)>> = BTreeMap::new();
    for (index, allow) in allows.iter().enumerate() {
        for (number, name) in allow.names.iter().enumerate() {
            let target = allow.target.zip(page(file.slice(*name)).filter(|page| page.adjustable));
            if let Some((line, page)) = target {
                silenced.entry((line, page.slug)).or_default().push((index, number));
            }
        }
    }
    // A file that cannot run was not checked completely: the silenced finding may appear once the file is fixed.
    let broken =
        diagnostics.iter().any(|found| found.is_error() && !page(found.rule).is_some_and(|page| page.adjustable));
    let mut used: Vec<(usize, usize)> = Vec::new();
    let mut remaining = diagnostics;
    remaining.retain(|found| {
        if found.file.name() != file.name() {
            return true;
        }
        let line = file.line(found.span.start);
        let text = texts.get(texts.partition_point(|text| text.last < line)).filter(|text| text.first <= line);
        let lines = [Some(line), text.map(|text| text.line)];
        let by: Vec<_> =
            lines.iter().flatten().filter_map(|line| silenced.get(&(*line, found.rule))).flatten().collect();
        used.extend(by.iter().copied());
        by.is_empty()
    });
    used.sort_unstable();
    let useless = allows.iter().enumerate().flat_map(|(index, allow)| {
        let unused = |number: usize| !broken && used.binary_search(&(index, number)).is_err();
        check_names(file, allow, unused)
    });
    remaining.extend(useless.collect::<Vec<_>>());
    sort(&mut remaining);
    remaining
}

fn read_comments(file: &SourceFile) -> (Vec<Allow>, Vec<LongText>) {
    let is_template = file.name().rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("md"));
    if is_template {
        return (read_all(file, of_template(file)), Vec::new());
    }
    let found = comments(file);
    (read_all(file, found.comments.into_iter().map(|span| (span, YAML)).collect()), found.texts)
}

/// The problems of a comment, name by name.
fn check_names(file: &Arc<SourceFile>, allow: &Allow, unused: impl Fn(usize) -> bool) -> Vec<Diagnostic> {
    if allow.names.is_empty() {
        return vec![malformed(file, allow)];
    }
    let check_name = |(number, span): (usize, &Span)| {
        let slug = file.slice(*span);
        let warn = |message: Message, help: &'static str| {
            Diagnostic::warning("useless-allow", message, file, *span).with_help(help)
        };
        let diagnostic = match page(slug) {
            None => {
                let message = msg!("there is no diagnostic `{slug}`");
                Diagnostic::warning("useless-allow", message, file, *span)
                    .with_suggestion_or(near(slug), || msg!("`bcc-script explain` lists all diagnostics"))
            }
            Some(page) if !page.adjustable => warn(
                msg!("`{slug}` cannot be silenced: a script with this problem cannot run"),
                "fix the problem, and remove this",
            ),
            // What depends on the machine may be found elsewhere.
            Some(page) if page.severity != Severity::Info && unused(number) => match allow.target {
                Some(line) => warn(
                    msg!("there is no `{slug}` on line {line}, so nothing is silenced"),
                    "remove this, or move it to the end of the line that it applies to, or to a separate line above that line",
                ),
                None => warn(
                    msg!("there is nothing below this comment, so no `{slug}` is silenced"),
                    "remove this, or move it above the line that it applies to, or to the end of that line",
                ),
            },
            Some(_) => return None,
        };
        Some(diagnostic.with_fix(msg!("remove `{slug}`"), vec![without_name(file, allow, number)]))
    };
    allow.names.iter().enumerate().filter_map(check_name).collect()
}

fn malformed(file: &Arc<SourceFile>, allow: &Allow) -> Diagnostic {
    let message = "this comment does not have the form of a comment that silences diagnostics, so it has no effect";
    let form = allow.form.comment_for("name");
    let help = msg!("write `{form}`; separate several names with commas");
    let found = Diagnostic::warning("useless-allow", message, file, allow.comment).with_help(help);
    let names = meant(file, allow);
    let known = !names.is_empty() && names.iter().all(|name| page(name).is_some());
    let found = if known {
        let text = allow.form.comment_for(&names.join(", "));
        found.with_fix(msg!("write `{text}`"), vec![Edit::replace(allow.comment, text)])
    } else {
        found
    };
    found.with_fix("remove the comment", vec![without_comment(file, allow)])
}

/// Removes one name, or the complete comment if it is the only one.
fn without_name(file: &SourceFile, allow: &Allow, number: usize) -> Edit {
    let name = |number: Option<usize>| number.and_then(|number| allow.names.get(number)).copied();
    let (before, current, next) = (name(number.checked_sub(1)), name(Some(number)), name(Some(number + 1)));
    match (before, current, next) {
        (_, Some(current), Some(next)) => Edit::replace(Span::new(current.start, next.start), ""),
        (Some(before), Some(current), None) => Edit::replace(Span::new(before.end, current.end), ""),
        _ => without_comment(file, allow),
    }
}

/// Removes the comment: with its line if it is alone there, else with the white space before it.
fn without_comment(file: &SourceFile, allow: &Allow) -> Edit {
    let number = file.line(allow.comment.start);
    let Some(line) = file.line_span(number) else { return Edit::replace(allow.comment, "") };
    if allow.alone {
        let end = file.line_span(number + 1).map_or(line.end, |next| next.start);
        return Edit::replace(Span::new(line.start, end), "");
    }
    let before = file.slice(Span::new(line.start, allow.comment.start));
    Edit::replace(Span::new(line.start + before.trim_end().len(), allow.comment.end), "")
}

#[cfg(test)]
mod tests;
