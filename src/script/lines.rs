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
        let inner = &root.get("d").unwrap().as_mapping().unwrap()[0];
        assert_eq!((indent(&file, inner), own_line(&file, inner)), (None, None));
    }
}
