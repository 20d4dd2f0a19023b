//! The lines of an entry in the file, for edits that remove or rewrite it.

use crate::source::diagnostic::Edit;
use crate::source::span::{Span, Spanned};
use crate::source::text::SourceFile;
use crate::source::yaml::YamlEntry;

/// The white space before the key, if the key is the first in its line.
pub fn indent<'f>(file: &'f SourceFile, entry: &YamlEntry) -> Option<&'f str> {
    let line = file.line_span(file.line(entry.key.span.start))?;
    let before = file.slice(Span::new(line.start, entry.key.span.start));
    before.trim_matches([' ', '\t']).is_empty().then_some(before)
}

/// Whether the value is an alias: its target is above.
pub fn is_alias(entry: &YamlEntry) -> bool {
    entry.value.span.start < entry.key.span.end
}

/// The end of an entry in the file: after its value, or after its alias.
pub fn end(file: &SourceFile, entry: &YamlEntry) -> usize {
    if !is_alias(entry) {
        return entry.value.span.end.max(entry.key.span.end);
    }
    let after_key = file.text().get(entry.key.span.end..).unwrap_or_default();
    let Some(star) = after_key.find('*') else { return entry.key.span.end };
    let name = after_key.get(star..).unwrap_or_default();
    let length =
        name.find(|c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}')).unwrap_or(name.len());
    entry.key.span.end + star + length
}

/// The edit that renames a key and keeps its quotes.
pub fn renamed(file: &SourceFile, key: &Spanned<String>, name: &str) -> Edit {
    let text = match file.slice(key.span).chars().next() {
        Some(quote @ ('"' | '\'')) => format!("{quote}{name}{quote}"),
        _ => name.to_owned(),
    };
    Edit::replace(key.span, text)
}

/// The edit that removes an entry from the mapping at `mapping`: its lines, or its part between commas. Comments in its lines
/// are kept. `None` if its lines contain anything else.
pub(crate) fn removal(file: &SourceFile, mapping: Span, entry: &YamlEntry) -> Option<Edit> {
    let end = end(file, entry);
    if file.slice(mapping).starts_with('{') {
        return between_commas(file, Span::new(entry.key.span.start, end));
    }
    let indent = indent(file, entry)?;
    let first = file.line_span(file.line(entry.key.span.start))?;
    let last = file.line(end);
    let line = file.line_span(last).filter(|line| end <= line.end)?;
    let full_span = Span::new(first.start, file.line_span(last + 1).map_or(line.end, |next| next.start));
    let written = file.slice(Span::new(entry.value.span.start, end));
    // A list or a mapping may contain comments. A text contains none, but there may be one before and one after it.
    (entry.value.as_scalar().is_some() || is_alias(entry) || !written.contains('#')).then_some(())?;
    let before = if is_alias(entry) { "" } else { file.slice(Span::new(entry.key.span.end, entry.value.span.start)) };
    let after = file.slice(Span::new(end, line.end)).trim();
    (after.is_empty() || after.starts_with('#')).then_some(())?;
    let comments = before.lines().filter_map(|line| line.find('#').and_then(|hash| line.get(hash..))).chain([after]);
    let kept_comments =
        comments.filter(|comment| !comment.is_empty()).map(|comment| format!("{indent}{}\n", comment.trim_end()));
    Some(Edit::replace(full_span, kept_comments.collect::<String>()))
}

/// The edit that removes a field from a flow mapping, with one comma.
fn between_commas(file: &SourceFile, field: Span) -> Option<Edit> {
    let after = file.text().get(field.end..)?;
    let leading_space = |text: &str| text.len() - text.trim_start().len();
    let next = leading_space(after);
    if after.get(next..)?.starts_with(',') {
        let rest = after.get(next + 1..)?;
        let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        return Some(Edit::replace(Span::new(field.start, field.end + next + 1 + spaces), ""));
    }
    let before = file.text().get(..field.start)?.trim_end();
    let line = before.rsplit(['\n', '\r']).next().unwrap_or_default();
    match after.get(next..)?.starts_with('}') {
        // A comma in a comment does not count.
        true if before.ends_with(',') && !line.contains('#') => {
            Some(Edit::replace(Span::new(before.len() - 1, field.end), ""))
        }
        true if before.ends_with('{') => Some(Edit::replace(field, "")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::compose::parse;
    use crate::source::edits::apply;

    /// The text without the entry `key` of the mapping at `path`, if it can be removed.
    fn without(text: &str, path: Option<&str>, key: &str) -> Option<String> {
        let file = Arc::new(SourceFile::new("a.yaml", text));
        let root = parse(&file).root.unwrap();
        let mapping = path.map_or(&root, |path| root.get(path).unwrap());
        let entry = mapping.as_mapping().unwrap().iter().find(|entry| entry.key.value == key).unwrap();
        apply(text, &[removal(&file, mapping.span, entry)?]).ok()
    }

    #[test]
    fn an_entry_is_removed_with_its_lines_and_its_comments_stay() {
        let text = "a: 1\nb: 2 # why\nc: | # how\n  text\n\n  # text\nd: { e: 3 }\nf: \"x\n  y\"\ng: [ 1, # no\n  2]\nh: &x 7\ni: *x";
        let table = [
            ("a", "a: 1\n", ""),
            ("b", "b: 2 # why\n", "# why\n"),
            ("c", "c: | # how\n  text\n\n  # text\n", "# how\n"),
            ("d", "d: { e: 3 }\n", ""),
            ("f", "f: \"x\n  y\"\n", ""),
            ("i", "i: *x", ""),
        ];
        for (key, removed, remaining) in table {
            assert_eq!(without(text, None, key), Some(text.replace(removed, remaining)), "{key}");
        }
        assert_eq!(without(text, None, "g"), None, "a comment stands inside");
    }

    #[test]
    fn a_field_in_braces_is_removed_with_one_comma() {
        let table = [
            ("m: { a: 1, b: 2 }", "a", Some("m: { b: 2 }")),
            ("m: { a: 1, b: 2 }", "b", Some("m: { a: 1 }")),
            ("m: { b: \"2\" }", "b", Some("m: {  }")),
            ("m: { a: 1,\n  b: [ 2 ],\n}", "b", Some("m: { a: 1,\n  \n}")),
            ("m: { a: 1 # one,\n  , b: 2 }", "b", Some("m: { a: 1 # one,\n   }")),
            ("m: { a: 1, # one,\n  b: 2 }", "b", None),
            ("m: { a: 1, b: 2 # two\n }", "b", None),
        ];
        for (text, key, after) in table {
            assert_eq!(without(text, Some("m"), key).as_deref(), after, "{text}");
        }
    }
}
