//! `target_variable` and `extraction_prompt`, which together are one item of `output` today (docs/language.md "Texts").

use serde_json::{Map, Value};

use crate::script::legacy::proof::proven_within;
use crate::script::legacy::wrap::in_quotes_of;
use crate::script::lines::{end, indent, is_alias, removal};
use crate::source::diagnostic::Edit;
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::YamlEntry;

/// How far the fields of an item stand to the right of the key of its list.
const DEEPER: &str = "    ";

/// The edits that make an `output` of both, in the mapping at `mapping` that holds `entries`: proven. `None` where they are laid
/// out so that this cannot be done surely.
pub fn as_output(
    file: &SourceFile,
    mapping: Span,
    entries: &[YamlEntry],
    target: &YamlEntry,
    define: Option<&YamlEntry>,
) -> Option<Vec<Edit>> {
    let edits = put_together(file, mapping, target, define)?;
    let mut item = Map::from_iter([("get".to_owned(), target.value.to_json())]);
    item.extend(define.map(|define| ("define".to_owned(), define.value.to_json())));
    let mut expected = without(entries, target, define);
    expected.insert("output".to_owned(), Value::Array(vec![Value::Object(item)]));
    proven_within(file, mapping, entries, &edits, expected).then_some(edits)
}

/// The edits that take both away, where an item of `output` says the same: proven.
pub fn said_again(
    file: &SourceFile,
    mapping: Span,
    entries: &[YamlEntry],
    target: &YamlEntry,
    define: Option<&YamlEntry>,
) -> Option<Vec<Edit>> {
    let both = || [Some(target), define].into_iter().flatten();
    // An alias further down may name what would be taken away.
    let anchored = |entry: &YamlEntry| {
        !is_alias(entry) && file.slice(Span::new(entry.key.span.end, entry.value.span.start)).contains('&')
    };
    (!both().any(anchored)).then_some(())?;
    let edits = both().map(|entry| removal(file, mapping, entry)).collect::<Option<Vec<Edit>>>()?;
    proven_within(file, mapping, entries, &edits, without(entries, target, define)).then_some(edits)
}

/// What the mapping says without the two.
fn without(entries: &[YamlEntry], target: &YamlEntry, define: Option<&YamlEntry>) -> Map<String, Value> {
    let gone =
        |entry: &YamlEntry| std::ptr::eq(entry, target) || define.is_some_and(|define| std::ptr::eq(entry, define));
    let left = entries.iter().filter(|entry| !gone(entry));
    left.map(|entry| (entry.key.value.clone(), entry.value.to_json())).collect()
}

fn put_together(file: &SourceFile, mapping: Span, target: &YamlEntry, define: Option<&YamlEntry>) -> Option<Vec<Edit>> {
    if file.slice(mapping).starts_with('{') {
        return in_braces(file, mapping, target, define);
    }
    let margin = indent(file, target).filter(|margin| !margin.contains('\t'))?;
    let mut edits = vec![Edit::replace(target.key.span, format!("output:\n{margin}  - get"))];
    let last = file.line(end(file, target));
    // What goes on in other lines stands at least as deep as the key did, and must stand deeper than the new one.
    edits.extend(deeper(file, file.line(target.key.span.start) + 1, last));
    let Some(define) = define else { return Some(edits) };
    let (first_of, last_of) = (file.line(define.key.span.start), file.line(end(file, define)));
    (indent(file, define)? == margin).then_some(())?;
    if first_of == last + 1 {
        edits.extend(deeper(file, first_of, first_of));
        edits.push(Edit::replace(define.key.span, "define"));
        edits.extend(deeper(file, first_of + 1, last_of));
        return Some(edits);
    }
    // It stands elsewhere: its lines are moved, comments and all.
    let next = file.line_span(last_of + 1);
    let from = file.line_span(first_of)?;
    let to = file.line_span(last_of)?;
    let behind = Span::new(define.key.span.end, to.end);
    let mut text = format!("\n{margin}{DEEPER}define");
    for (number, line) in file.slice(behind).lines().enumerate() {
        if number > 0 {
            text += "\n";
            text += if line.is_empty() { "" } else { DEEPER };
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

/// What moves these lines to the right.
fn deeper(file: &SourceFile, first: usize, last: usize) -> impl Iterator<Item = Edit> + '_ {
    let lines = (first..=last).filter_map(|line| file.line_span(line));
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(|line| Edit::insert(line.start, DEEPER))
}

fn in_braces(file: &SourceFile, mapping: Span, target: &YamlEntry, define: Option<&YamlEntry>) -> Option<Vec<Edit>> {
    let key = |name: &str| in_quotes_of(file.slice(target.key.span), name);
    let mut behind = String::new();
    let mut edits = vec![Edit::replace(target.key.span, format!("{}: [{{ {}", key("output"), key("get")))];
    if let Some(define) = define {
        let written = file.slice(Span::new(define.key.span.end, end(file, define)));
        // The text of several lines may hold comments, which would not end there.
        (!is_alias(define) && !written.contains('\n')).then_some(())?;
        behind = format!(", {}{written}", key("define"));
        edits.push(removal(file, mapping, define)?);
    }
    let at = end(file, target);
    let touches = edits.iter().any(|edit| edit.span.start < at && at < edit.span.end);
    edits.push(Edit::insert(at, format!("{behind} }}]")));
    (!touches).then_some(edits)
}
