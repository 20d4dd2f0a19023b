//! The proof that edits do what they should and nothing else: what they make is read again before they are offered.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::script::lines::end;
use crate::source::comments::comments;
use crate::source::compose::parse;
use crate::source::diagnostic::Edit;
use crate::source::edits::apply;
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::YamlEntry;

/// Whether the edits turn the file into one that YAML reads without any finding as `expected`, with all the comments.
pub fn proven(file: &SourceFile, edits: &[Edit], expected: &Value) -> bool {
    let Ok(text) = apply(file.text(), edits) else { return false };
    let made = Arc::new(SourceFile::new(file.name(), text));
    let parsed = parse(&made);
    parsed.diagnostics.is_empty()
        && parsed.root.is_some_and(|root| root.to_json() == *expected)
        && commented(&made) == commented(file)
}

/// Whether the edits turn a mapping with these entries into one that YAML reads as `expected`, with all the comments of its
/// lines. Only its own lines are read again, for a file may hold thousands of such mappings; where they alone do not say the
/// same as in the file, as with an alias of something above, nothing is proven.
pub fn proven_within(
    file: &SourceFile,
    mapping: Span,
    entries: &[YamlEntry],
    edits: &[Edit],
    expected: Map<String, Value>,
) -> bool {
    let first = file.line_span(file.line(mapping.start)).map_or(mapping.start, |line| line.start);
    let is_flow = file.slice(mapping).starts_with('{');
    let end = if is_flow { mapping.end } else { behind_the_lines(file, mapping.start, entries) };
    // What stands before it in its line is about another thing; its columns count.
    let margin: String = file.slice(Span::new(first, mapping.start)).chars().map(|_| ' ').collect();
    let part = SourceFile::new(file.name(), margin.clone() + file.slice(Span::new(mapping.start, end)));
    let moved = |at: usize| match at {
        at if at == first => Some(0),
        at if at <= end => Some(at.checked_sub(mapping.start)? + margin.len()),
        _ => None,
    };
    let inside =
        |edit: &Edit| Some(Edit::replace(Span::new(moved(edit.span.start)?, moved(edit.span.end)?), edit.text.clone()));
    let Some(inside) = edits.iter().map(inside).collect::<Option<Vec<Edit>>>() else { return false };
    let now: Map<String, Value> =
        entries.iter().map(|entry| (entry.key.value.clone(), entry.value.to_json())).collect();
    proven(&part, &[], &Value::Object(now)) && proven(&part, &inside, &Value::Object(expected))
}

/// Where the lines of a mapping in block style end, with the empty ones behind them, which may belong to its last text.
fn behind_the_lines(file: &SourceFile, start: usize, entries: &[YamlEntry]) -> usize {
    let last = entries.iter().map(|entry| end(file, entry)).max().unwrap_or(start);
    let begins = |at: usize| file.line_span(file.line(at)).is_some_and(|line| line.start == at);
    let mut line = file.line(last) - usize::from(last > start && begins(last));
    while file.line_span(line + 1).is_some_and(|next| file.slice(next).trim().is_empty()) {
        line += 1;
    }
    file.line_span(line + 1).map_or(file.text().len(), |next| next.start)
}

/// The comments, in an order that does not depend on their places.
fn commented(file: &SourceFile) -> Vec<&str> {
    let mut found: Vec<&str> = comments(file).comments.iter().map(|span| file.slice(*span)).collect();
    found.sort_unstable();
    found
}
