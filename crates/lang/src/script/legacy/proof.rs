//! Verifies edits before they are offered: the edited text is parsed and compared with the expected value.

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

/// Whether the edits turn the file into one that parses as `expected` without diagnostics and keeps all comments.
pub fn verify(file: &SourceFile, edits: &[Edit], expected: &Value) -> bool {
    let Ok(text) = apply(file.text(), edits) else { return false };
    let edited = Arc::new(SourceFile::new(file.name(), text));
    let parsed = parse(&edited);
    parsed.diagnostics.is_empty()
        && parsed.root.is_some_and(|root| root.to_json() == *expected)
        && sorted_comments(&edited) == sorted_comments(file)
}

/// Whether the edits turn a mapping with these entries into one that parses as `expected` and keeps the comments of its
/// lines. Only its own lines are parsed again, because a file may have thousands of such mappings. If these lines alone do
/// not parse as they do in the file, as with an alias of something above, the result is `false`.
pub(crate) fn verify_within(
    file: &SourceFile,
    mapping: Span,
    entries: &[YamlEntry],
    edits: &[Edit],
    expected: Map<String, Value>,
) -> bool {
    let first = file.line_span(file.line(mapping.start)).map_or(mapping.start, |line| line.start);
    let is_flow = file.slice(mapping).starts_with('{');
    let end = if is_flow { mapping.end } else { end_of_lines(file, mapping.start, entries) };
    // Text before the mapping in its line is unrelated, but its width counts.
    let margin: String = file.slice(Span::new(first, mapping.start)).chars().map(|_| ' ').collect();
    let part = SourceFile::new(file.name(), margin.clone() + file.slice(Span::new(mapping.start, end)));
    let relative = |at: usize| match at {
        at if at == first => Some(0),
        at if at <= end => Some(at.checked_sub(mapping.start)? + margin.len()),
        _ => None,
    };
    let shifted = |edit: &Edit| {
        Some(Edit::replace(Span::new(relative(edit.span.start)?, relative(edit.span.end)?), edit.text.clone()))
    };
    let Some(shifted) = edits.iter().map(shifted).collect::<Option<Vec<Edit>>>() else { return false };
    let current: Map<String, Value> =
        entries.iter().map(|entry| (entry.key.value.clone(), entry.value.to_json())).collect();
    verify(&part, &[], &Value::Object(current)) && verify(&part, &shifted, &Value::Object(expected))
}

/// The end of the lines of a block mapping, including empty lines after it, which may belong to its last text.
fn end_of_lines(file: &SourceFile, start: usize, entries: &[YamlEntry]) -> usize {
    let last = entries.iter().map(|entry| end(file, entry)).max().unwrap_or(start);
    let at_line_start = |at: usize| file.line_span(file.line(at)).is_some_and(|line| line.start == at);
    let mut line = file.line(last) - usize::from(last > start && at_line_start(last));
    while file.line_span(line + 1).is_some_and(|next| file.slice(next).trim().is_empty()) {
        line += 1;
    }
    file.line_span(line + 1).map_or(file.text().len(), |next| next.start)
}

/// The comments, sorted, so that their positions do not matter.
fn sorted_comments(file: &SourceFile) -> Vec<&str> {
    let mut found: Vec<&str> = comments(file).comments.iter().map(|span| file.slice(*span)).collect();
    found.sort_unstable();
    found
}
