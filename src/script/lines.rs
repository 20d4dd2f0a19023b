//! The lines of an entry in the file: what an edit that removes or rewrites it has to know.

use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::Entry;

/// What stands before the key in its line, when that is white space only: the entry begins the line.
pub fn indent<'f>(file: &'f SourceFile, entry: &Entry) -> Option<&'f str> {
    let line = file.line_span(file.line(entry.key.span.start))?;
    let before = file.slice(Span::new(line.start, entry.key.span.start));
    before.trim_matches([' ', '\t']).is_empty().then_some(before)
}

/// The one line of an entry that has it for itself, with the line break behind it. `None` when the value goes on in other
/// lines, or something else, such as a comment, stands in the line.
pub fn own_line(file: &SourceFile, entry: &Entry) -> Option<Span> {
    indent(file, entry)?;
    let number = file.line(entry.key.span.start);
    let end = entry.value.span.end;
    let line = file.line_span(number).filter(|line| line.start <= end && end <= line.end)?;
    let behind = file.slice(Span::new(end, line.end));
    // A text block is one line only when it is empty, and then its header stands in the way.
    behind.trim().is_empty().then_some(())?;
    let next = file.line_span(number + 1).map_or(line.end, |next| next.start);
    Some(Span::new(line.start, next))
}

/// The lines of an entry that has them for itself, however many they are, with the line break behind the last.
pub fn own_lines(file: &SourceFile, entry: &Entry) -> Option<Span> {
    let before = indent(file, entry)?;
    let start = entry.key.span.start - before.len();
    // A text block ends with the line break behind its last line.
    let block = file.slice(Span::new(start, entry.value.span.end)).ends_with('\n');
    let last = file.line(entry.value.span.end) - usize::from(block);
    let end = file.line_span(last)?.end;
    let behind = file.slice(Span::new(entry.value.span.end, end));
    let next = file.line_span(last + 1).map_or(end, |next| next.start);
    behind.trim().is_empty().then(|| Span::new(start, next))
}

/// An entry between the braces of a mapping, with the comma that parts it from the one before it, or of the first from the one
/// behind it. `None` when it is the only one, or more than white space stands beside the comma.
pub fn in_braces(file: &SourceFile, entries: &[Entry], entry: &Entry) -> Option<Span> {
    let at = entries.iter().position(|other| std::ptr::eq(other, entry))?;
    let comma = |before: &Entry, behind: &Entry| {
        file.slice(Span::new(before.value.span.end, behind.key.span.start)).trim_matches(' ') == ","
    };
    if let Some(before) = at.checked_sub(1).and_then(|at| entries.get(at)) {
        return comma(before, entry).then(|| Span::new(before.value.span.end, entry.value.span.end));
    }
    let behind = entries.get(at + 1)?;
    comma(entry, behind).then(|| Span::new(entry.key.span.start, behind.key.span.start))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::yaml::parse;

    #[test]
    fn an_entry_has_its_line_for_itself_or_not() {
        let text = "a: 1\nb: 2 # why\nc: |\n  text\nd: { e: 3 }\n  # end\nf: \"x\n  y\"\ng: 7";
        let file = Arc::new(SourceFile::new("a.yaml", text));
        let root = parse(&file).root.unwrap();
        let lines: Vec<Option<&str>> = root
            .as_mapping()
            .unwrap()
            .iter()
            .map(|entry| own_line(&file, entry).map(|span| file.slice(span)))
            .collect();
        assert_eq!(lines, [Some("a: 1\n"), None, None, Some("d: { e: 3 }\n"), None, Some("g: 7")]);
        let all = |root: &crate::source::yaml::Node| -> Vec<Option<String>> {
            let entries = root.as_mapping().unwrap().iter();
            entries.map(|entry| own_lines(&file, entry).map(|span| file.slice(span).to_owned())).collect()
        };
        let expected = ["a: 1\n", "", "c: |\n  text\n", "d: { e: 3 }\n", "f: \"x\n  y\"\n", "g: 7"]
            .map(|lines| Some(lines.to_owned()));
        let expected: Vec<_> = expected.into_iter().map(|lines| lines.filter(|lines| !lines.is_empty())).collect();
        assert_eq!(all(&root), expected);
        let inner = &root.get("d").unwrap().as_mapping().unwrap()[0];
        assert_eq!((indent(&file, inner), own_line(&file, inner)), (None, None));
    }

    #[test]
    fn an_entry_between_braces_goes_with_its_comma() {
        for (text, expected) in [
            ("{ a: 1, b: 2 , c: \"x, y\" }", [Some("a: 1, "), Some(", b: 2"), None]),
            ("{a: 1,b: 2,c: 3}", [Some("a: 1,"), Some(",b: 2"), Some(",c: 3")]),
            ("{ a: 1,\n  b: 2, # c\n  c: 3 }", [None, None, None]),
        ] {
            let file = Arc::new(SourceFile::new("a.yaml", text));
            let root = parse(&file).root.unwrap();
            let entries = root.as_mapping().unwrap();
            let found: Vec<Option<&str>> =
                entries.iter().map(|entry| in_braces(&file, entries, entry).map(|span| file.slice(span))).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
