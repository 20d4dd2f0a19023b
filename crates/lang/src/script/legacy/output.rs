//! Converts `target_variable` and `extraction_prompt` to one item of `output` (docs/language.md "Texts").

use serde_json::{Map, Value};

use crate::script::legacy::proof::verify_within;
use crate::script::legacy::wrap::in_quotes_of;
use crate::script::lines::{end, indent, is_alias, removal};
use crate::source::diagnostic::Edit;
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::YamlEntry;

/// The indentation of an item's fields, relative to the key of its list.
const INDENT: &str = "    ";

/// The verified edits that convert both fields to `output`, in the mapping at `mapping` with these `entries`. `None` if their
/// layout does not allow it safely.
pub fn as_output(
    file: &SourceFile,
    mapping: Span,
    entries: &[YamlEntry],
    target: &YamlEntry,
    define: Option<&YamlEntry>,
) -> Option<Vec<Edit>> {
    let edits = combine(file, mapping, target, define)?;
    let mut item = Map::from_iter([("get".to_owned(), target.value.to_json())]);
    item.extend(define.map(|define| ("define".to_owned(), define.value.to_json())));
    let mut expected = without(entries, target, define);
    expected.insert("output".to_owned(), Value::Array(vec![Value::Object(item)]));
    verify_within(file, mapping, entries, &edits, expected).then_some(edits)
}

/// The verified edits that remove both fields, if an item of `output` has the same content.
pub fn remove_duplicate(
    file: &SourceFile,
    mapping: Span,
    entries: &[YamlEntry],
    target: &YamlEntry,
    define: Option<&YamlEntry>,
) -> Option<Vec<Edit>> {
    let both = || [Some(target), define].into_iter().flatten();
    // An alias further down may refer to an anchor that would be removed.
    let anchored = |entry: &YamlEntry| {
        !is_alias(entry) && file.slice(Span::new(entry.key.span.end, entry.value.span.start)).contains('&')
    };
    (!both().any(anchored)).then_some(())?;
    let edits = both().map(|entry| removal(file, mapping, entry)).collect::<Option<Vec<Edit>>>()?;
    verify_within(file, mapping, entries, &edits, without(entries, target, define)).then_some(edits)
}

/// The value of the mapping without the two fields.
fn without(entries: &[YamlEntry], target: &YamlEntry, define: Option<&YamlEntry>) -> Map<String, Value> {
    let removed =
        |entry: &YamlEntry| std::ptr::eq(entry, target) || define.is_some_and(|define| std::ptr::eq(entry, define));
    let remaining = entries.iter().filter(|entry| !removed(entry));
    remaining.map(|entry| (entry.key.value.clone(), entry.value.to_json())).collect()
}

fn combine(file: &SourceFile, mapping: Span, target: &YamlEntry, define: Option<&YamlEntry>) -> Option<Vec<Edit>> {
    if file.slice(mapping).starts_with('{') {
        return in_braces(file, mapping, target, define);
    }
    let margin = indent(file, target).filter(|margin| !margin.contains('\t'))?;
    let mut edits = vec![Edit::replace(target.key.span, format!("output:\n{margin}  - get"))];
    let last = file.line(end(file, target));
    // Continuation lines are at least as deep as the old key, and must be deeper than the new one.
    edits.extend(indent_lines(file, file.line(target.key.span.start) + 1, last));
    let Some(define) = define else { return Some(edits) };
    let (first_of, last_of) = (file.line(define.key.span.start), file.line(end(file, define)));
    (indent(file, define)? == margin).then_some(())?;
    if first_of == last + 1 {
        edits.extend(indent_lines(file, first_of, first_of));
        edits.push(Edit::replace(define.key.span, "define"));
        edits.extend(indent_lines(file, first_of + 1, last_of));
        return Some(edits);
    }
    // It is not adjacent: its lines are moved, with comments.
    let next = file.line_span(last_of + 1);
    let from = file.line_span(first_of)?;
    let to = file.line_span(last_of)?;
    let after_key = Span::new(define.key.span.end, to.end);
    let mut text = format!("\n{margin}{INDENT}define");
    for (number, line) in file.slice(after_key).lines().enumerate() {
        if number > 0 {
            text += "\n";
            text += if line.is_empty() { "" } else { INDENT };
        }
        text += line;
    }
    edits.push(Edit::insert(file.line_span(last)?.end, text));
    match next {
        Some(next) => edits.push(Edit::replace(Span::new(from.start, next.start), "")),
        None => edits.push(Edit::replace(Span::new(file.line_span(first_of.checked_sub(1)?)?.end, to.end), "")),
    }
    Some(edits)
}

/// The edits that indent these lines.
fn indent_lines(file: &SourceFile, first: usize, last: usize) -> impl Iterator<Item = Edit> + '_ {
    let lines = (first..=last).filter_map(|line| file.line_span(line));
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(|line| Edit::insert(line.start, INDENT))
}

fn in_braces(file: &SourceFile, mapping: Span, target: &YamlEntry, define: Option<&YamlEntry>) -> Option<Vec<Edit>> {
    let key = |name: &str| in_quotes_of(file.slice(target.key.span), name);
    let mut suffix = String::new();
    let mut edits = vec![Edit::replace(target.key.span, format!("{}: [{{ {}", key("output"), key("get")))];
    if let Some(define) = define {
        let written = file.slice(Span::new(define.key.span.end, end(file, define)));
        // A value of several lines may contain comments, which would hide the closing brackets.
        (!is_alias(define) && !written.contains('\n')).then_some(())?;
        suffix = format!(", {}{written}", key("define"));
        edits.push(removal(file, mapping, define)?);
    }
    let at = end(file, target);
    let overlaps = edits.iter().any(|edit| edit.span.start < at && at < edit.span.end);
    edits.push(Edit::insert(at, format!("{suffix} }}]")));
    (!overlaps).then_some(edits)
}
