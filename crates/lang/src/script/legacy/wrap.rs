//! Moves fields of a mapping below a new key: `config:` of an action, `skill:` of a whole file.

use std::ops::RangeInclusive;

use crate::script::legacy::rewrite::{AmbiguousRewrite, Rewrite, is_flow, last_line};
use crate::script::lines::end;
use crate::source::span::Span;
use crate::source::yaml::{YamlEntry, YamlNode};

/// Where a field of the mapping goes, relative to the new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    Sibling,
    Nested,
    Either,
}

/// A new key around fields.
pub(crate) struct Wrap<'w> {
    pub key: &'w str,
    /// How many columns the fields are indented.
    pub indent: usize,
    /// Lines that already have that indentation.
    pub already_indented: Option<RangeInclusive<usize>>,
}

impl Wrap<'_> {
    /// Inserts the new key above the fields that belong below it. Fields between them that belong next to the new key move
    /// above it, with the comments directly above them. Nothing changes if no field belongs below it.
    /// Errors: [`AmbiguousRewrite`] if the layout does not allow lines to be moved.
    pub(crate) fn around(
        &self,
        rewrite: &mut Rewrite<'_>,
        node: &YamlNode,
        placements: &[Placement],
    ) -> Result<(), AmbiguousRewrite> {
        let entries = node.as_mapping().unwrap_or_default();
        let is_nested = |place: &Placement| *place == Placement::Nested;
        let (Some(first), Some(last)) = (placements.iter().position(is_nested), placements.iter().rposition(is_nested))
        else {
            return Ok(());
        };
        let run = entries.get(first..=last).unwrap_or_default();
        let siblings: Vec<usize> =
            (first..=last).filter(|index| placements.get(*index) == Some(&Placement::Sibling)).collect();
        if is_flow(rewrite.file(), node) {
            self.around_flow(rewrite, entries, run, &siblings)
        } else {
            self.around_block(rewrite, entries, first, run, &siblings)
        }
    }

    fn around_block(
        &self,
        rewrite: &mut Rewrite<'_>,
        entries: &[YamlEntry],
        first: usize,
        run: &[YamlEntry],
        siblings: &[usize],
    ) -> Result<(), AmbiguousRewrite> {
        let file = rewrite.file();
        let (Some(head), Some(tail)) = (run.first(), run.last()) else { return Ok(()) };
        let ambiguous =
            |entry: &YamlEntry| AmbiguousRewrite::at(entry.key.span, "there is something before this key on its line");
        let (column, starts_line) = rewrite.column(head.key.span).ok_or_else(|| ambiguous(head))?;
        for entry in run.iter().skip(1) {
            if rewrite.column(entry.key.span) != Some((column, true)) {
                return Err(ambiguous(entry));
            }
        }
        let line_of = |entry: &YamlEntry| file.line(entry.key.span.start);
        let before = |index: usize| index.checked_sub(1).and_then(|index| entries.get(index));
        let first_line = |rewrite: &Rewrite<'_>, index: usize, entry: &YamlEntry| {
            let above = before(index).map_or(0, |entry| last_line(file, entry));
            let mut line = line_of(entry);
            while line - 1 > above && rewrite.comment_line(line - 1) == Some(column) {
                line -= 1;
            }
            line
        };
        // A comment above the first field of the mapping is about the whole mapping.
        let head_line = if starts_line && first > 0 { first_line(rewrite, first, head) } else { line_of(head) };
        let tail_line = last_line(file, tail);
        let outer = rewrite.added_indent(head_line);

        let margin = " ".repeat(column + outer);
        let mut moved = String::new();
        let mut moved_lines: Vec<RangeInclusive<usize>> = Vec::new();
        for index in siblings {
            let Some(entry) = entries.get(*index) else { continue };
            let lines = first_line(rewrite, *index, entry)..=last_line(file, entry);
            let (Some(from), Some(next)) = (file.line_span(*lines.start()), file.line_span(lines.end() + 1)) else {
                return Err(ambiguous(entry));
            };
            let region = Span::new(from.start, next.start);
            let text = rewrite.take(region);
            moved += text.strip_prefix(margin.as_str()).ok_or_else(|| ambiguous(entry))?;
            moved += &margin;
            rewrite.replace(region, "");
            moved_lines.push(lines);
        }

        // A comment above the first field moves below the key with it.
        let place = if head_line == line_of(head) {
            head.key.span.start
        } else {
            file.line_span(head_line).map_or(head.key.span.start, |line| line.start + column)
        };
        rewrite.insert(place, format!("{moved}{}:\n{margin}{}", self.key, " ".repeat(self.indent)));
        for line in head_line + 1..=tail_line {
            let is_indented = self.already_indented.as_ref().is_some_and(|lines| lines.contains(&line));
            let is_moved = moved_lines.iter().any(|lines| lines.contains(&line));
            let is_outdented = rewrite.comment_line(line).is_some_and(|comment| comment < column);
            if !is_indented && !is_moved && !is_outdented && !rewrite.is_blank(line) {
                rewrite.indent_line(line, self.indent);
            }
        }
        // Blank lines at the end of a text block that keeps its trailing line breaks.
        let mut line = tail_line + 1;
        let only_spaces = |line| file.line_span(line).is_some_and(|span| file.slice(span).trim().is_empty());
        while only_spaces(line) {
            let is_indented = self.already_indented.as_ref().is_some_and(|lines| lines.contains(&line));
            if !is_indented && !rewrite.is_blank(line) {
                rewrite.indent_line(line, self.indent);
            }
            line += 1;
        }
        Ok(())
    }

    fn around_flow(
        &self,
        rewrite: &mut Rewrite<'_>,
        entries: &[YamlEntry],
        run: &[YamlEntry],
        siblings: &[usize],
    ) -> Result<(), AmbiguousRewrite> {
        let file = rewrite.file();
        let (Some(head), Some(tail)) = (run.first(), run.last()) else { return Ok(()) };
        let mut moved = String::new();
        for index in siblings {
            let (Some(entry), Some(next)) = (entries.get(*index), entries.get(index + 1)) else { continue };
            let gap = file.slice(Span::new(end(file, entry), next.key.span.start));
            // A comment or a line break after the comma stays in place.
            let after = gap.find(',').map(|comma| comma + 1);
            let after = after.map(|comma| {
                let rest = gap.get(comma..).unwrap_or_default();
                comma + (rest.len() - rest.trim_start_matches([' ', '\t']).len())
            });
            let comma =
                after.ok_or_else(|| AmbiguousRewrite::at(entry.key.span, "there is no comma after this field"))?;
            moved += &rewrite.take(Span::new(entry.key.span.start, end(file, entry)));
            moved += ", ";
            rewrite.replace(Span::new(entry.key.span.start, end(file, entry) + comma), "");
        }
        let key = in_quotes_of(file.slice(head.key.span), self.key);
        rewrite.insert(head.key.span.start, format!("{moved}{key}: {{ "));
        rewrite.insert(end(file, tail), " }");
        Ok(())
    }
}

/// A new key or id with the quotes of the key `written`: JSON needs quotes everywhere.
pub(crate) fn in_quotes_of(written: &str, text: &str) -> String {
    if written.starts_with('"') { format!("\"{text}\"") } else { text.to_owned() }
}
