//! Reads comments that silence findings, such as `# bcc: allow(slug)`, in scripts and templates.

use std::sync::LazyLock;

use regex::Regex;

use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;

/// The delimiters of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) open: &'static str,
    pub(crate) close: &'static str,
}

/// `# …` up to the end of the line.
pub(crate) const YAML: Form = Form { open: "#", close: "" };

/// The comments of a template: those of Markdown, and those of the template language, which are not sent to the model.
pub(crate) const TEMPLATE: [Form; 2] = [Form { open: "<!--", close: "-->" }, Form { open: "{#", close: "#}" }];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allow {
    /// The complete comment.
    pub(crate) comment: Span,
    pub(crate) form: Form,
    /// Whether its line contains nothing else.
    pub(crate) alone: bool,
    /// The line to whose findings it applies; `None` if no line follows.
    pub(crate) target: Option<usize>,
    /// The names in it. Empty if it is malformed.
    pub(crate) names: Vec<Span>,
}

impl Form {
    /// The comment that silences these names.
    pub(crate) fn comment_for(self, names: &str) -> String {
        let space = if self.close.is_empty() { "" } else { " " };
        format!("{} bcc: allow({names}){space}{}", self.open, self.close)
    }
}

/// The content of a silencing comment: the list, and optionally a reason after it.
static WELL_FORMED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*bcc:\s*allow\(([^(),]+(?:,[^(),]+)*)\)(?:\s.*)?$").ok());

/// The content of a malformed comment that was probably meant to silence.
static MEANT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*bcc\s*[:-]?\s*([a-z]+)\s*[(\[:]?\s*([^()\[\]]*)").ok());

/// The comments of a file that are meant to silence findings, in order.
pub(crate) fn read_all(file: &SourceFile, comments: Vec<(Span, Form)>) -> Vec<Allow> {
    let mut found: Vec<Allow> = Vec::new();
    // In reverse order: a comment has the same target as the comment directly below it.
    for (comment, form) in comments.into_iter().rev() {
        let next = found.iter().next_back().filter(|next| next.alone);
        let next = next.map(|next| (file.line(next.comment.start), next.target));
        found.extend(read(file, comment, form, next));
    }
    found.reverse();
    found
}

/// Reads a comment; `None` if it is not a silencing comment. `next` is the line and the target of the next comment that is
/// alone on its line.
fn read(file: &SourceFile, comment: Span, form: Form, next: Option<(usize, Option<usize>)>) -> Option<Allow> {
    let inner = Span::new(comment.start + form.open.len(), comment.end.saturating_sub(form.close.len()));
    let text = file.slice(inner);
    let names = match WELL_FORMED.as_ref()?.captures(text).and_then(|found| found.get(1)) {
        Some(list) => names(list.as_str(), inner.start + list.start()),
        None => {
            let ascii = half_width(text);
            let verb = MEANT.as_ref()?.captures(&ascii)?.get(1)?.as_str().to_owned();
            if verb != "allow" && near_miss(&verb, ["allow"]).is_none() {
                return None;
            }
            Vec::new()
        }
    };
    let line = file.line(comment.start);
    let whole_line = file.line_span(line)?;
    let before = file.slice(Span::new(whole_line.start, comment.start));
    let after = file.slice(Span::new(comment.end, whole_line.end));
    let alone = before.trim().is_empty() && after.trim().is_empty();
    let target = if alone { below(file, line, form, next) } else { Some(line) };
    Some(Allow { comment, form, alone, target, names })
}

fn names(list: &str, start: usize) -> Vec<Span> {
    let mut at = start;
    let parts = list.split(',').map(|part| {
        let name = part.trim();
        let from = at + (part.len() - part.trim_start().len());
        at += part.len() + 1;
        Span::new(from, from + name.len())
    });
    parts.filter(|name| !name.is_empty()).collect()
}

/// The names that a malformed comment probably means, for example one with full-width punctuation.
pub(crate) fn meant(file: &SourceFile, allow: &Allow) -> Vec<String> {
    let text = file.slice(allow.comment);
    let text = text.strip_prefix(allow.form.open).unwrap_or(text);
    let ascii = half_width(text.strip_suffix(allow.form.close).unwrap_or(text));
    let found = MEANT.as_ref().and_then(|meant| meant.captures(&ascii)?.get(2).map(|list| list.as_str().to_owned()));
    let list = found.unwrap_or_default();
    list.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Replaces Chinese punctuation by its ASCII equivalent.
fn half_width(text: &str) -> String {
    let half = |c: char| match c {
        '：' => ':',
        '（' | '【' | '［' => '(',
        '）' | '】' | '］' => ')',
        '，' | '、' | '；' => ',',
        '　' => ' ',
        other => other,
    };
    text.chars().map(half).collect()
}

/// The next line that is neither empty nor only a comment.
fn below(file: &SourceFile, line: usize, form: Form, next: Option<(usize, Option<usize>)>) -> Option<usize> {
    let forms: &[Form] = if form == YAML { &[YAML] } else { &TEMPLATE };
    let is_comment = |text: &str| forms.iter().any(|form| text.starts_with(form.open) && text.ends_with(form.close));
    let mut number = line + 1;
    loop {
        if let Some((_, target)) = next.filter(|(line, _)| *line == number) {
            return target;
        }
        let text = file.slice(file.line_span(number)?).trim();
        if !text.is_empty() && !is_comment(text) {
            return Some(number);
        }
        number += 1;
    }
}

/// The single-line comments of a template.
pub(crate) fn of_template(file: &SourceFile) -> Vec<(Span, Form)> {
    let text = file.text();
    let mut found = Vec::new();
    for form in TEMPLATE {
        let mut from = 0;
        while let Some(open) = text.get(from..).and_then(|rest| rest.find(form.open)).map(|at| from + at) {
            let end = file.line_span(file.line(open)).map_or(open, |line| line.end);
            let inside = open + form.open.len();
            let close = text.get(inside..end).and_then(|rest| rest.find(form.close));
            // If this comment is not closed on its line, later ones on the line are not closed either.
            from = close.map_or(end.max(inside), |close| inside + close + form.close.len());
            if close.is_some() {
                found.push((Span::new(open, from), form));
            }
        }
    }
    found.sort_unstable_by_key(|(span, _)| *span);
    found
}
