//! Fields of a mapping that move below a key of their own: `config:` of an action, `skill:` of a whole file.

use std::ops::RangeInclusive;

use crate::script::legacy::rewrite::{AmbiguousRewrite, Rewrite, is_flow, last_line};
use crate::script::lines::end;
use crate::source::span::Span;
use crate::source::yaml::{YamlEntry, YamlNode};

/// Where a field of the mapping belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belongs {
    Beside,
    Below,
    Anywhere,
}

/// What is put around the fields.
pub struct Wrap<'w> {
    pub key: &'w str,
    /// How many columns deeper the fields stand below it.
    pub by: usize,
    /// Lines that stand so deep already.
    pub kept: Option<RangeInclusive<usize>>,
}

impl Wrap<'_> {
    /// Puts the new key above the fields that belong below it. What stands between them and belongs beside the new key is
    /// moved above it, with the comments right above it. Nothing is changed when no field belongs below it.
    /// Errors: [`AmbiguousRewrite`] where the fields are laid out so that lines cannot be moved.
    pub fn around(
        &self,
        rewrite: &mut Rewrite<'_>,
        node: &YamlNode,
        belongs: &[Belongs],
    ) -> Result<(), AmbiguousRewrite> {
        let entries = node.as_mapping().unwrap_or_default();
        let below = |place: &Belongs| *place == Belongs::Below;
        let (Some(first), Some(last)) = (belongs.iter().position(below), belongs.iter().rposition(below)) else {
            return Ok(());
        };
        let run = entries.get(first..=last).unwrap_or_default();
        let strays: Vec<usize> = (first..=last).filter(|index| belongs.get(*index) == Some(&Belongs::Beside)).collect();
        if is_flow(rewrite.file(), node) {
            self.around_flow(rewrite, entries, run, &strays)
        } else {
            self.around_block(rewrite, entries, first, run, &strays)
        }
    }

    fn around_block(
        &self,
        rewrite: &mut Rewrite<'_>,
        entries: &[YamlEntry],
        first: usize,
        run: &[YamlEntry],
        strays: &[usize],
    ) -> Result<(), AmbiguousRewrite> {
        let file = rewrite.file();
        let (Some(head), Some(tail)) = (run.first(), run.last()) else { return Ok(()) };
        let unsure =
            |entry: &YamlEntry| AmbiguousRewrite::at(entry.key.span, "there is something before this key on its line");
        let (column, begins) = rewrite.column(head.key.span).ok_or_else(|| unsure(head))?;
        for entry in run.iter().skip(1) {
            if rewrite.column(entry.key.span) != Some((column, true)) {
                return Err(unsure(entry));
            }
        }
        let line_of = |entry: &YamlEntry| file.line(entry.key.span.start);
        let before = |index: usize| index.checked_sub(1).and_then(|index| entries.get(index));
        let lead = |rewrite: &Rewrite<'_>, index: usize, entry: &YamlEntry| {
            let above = before(index).map_or(0, |entry| last_line(file, entry));
            let mut line = line_of(entry);
            while line - 1 > above && rewrite.comment_line(line - 1) == Some(column) {
                line -= 1;
            }
            line
        };
        // What stands above the first field of all is about the whole.
        let head_line = if begins && first > 0 { lead(rewrite, first, head) } else { line_of(head) };
        let tail_line = last_line(file, tail);
        let outer = rewrite.deepened(head_line);

        let margin = " ".repeat(column + outer);
        let mut moved = String::new();
        let mut gone: Vec<RangeInclusive<usize>> = Vec::new();
        for index in strays {
            let Some(entry) = entries.get(*index) else { continue };
            let lines = lead(rewrite, *index, entry)..=last_line(file, entry);
            let (Some(from), Some(next)) = (file.line_span(*lines.start()), file.line_span(lines.end() + 1)) else {
                return Err(unsure(entry));
            };
            let region = Span::new(from.start, next.start);
            let text = rewrite.take(region);
            moved += text.strip_prefix(margin.as_str()).ok_or_else(|| unsure(entry))?;
            moved += &margin;
            rewrite.replace(region, "");
            gone.push(lines);
        }

        // A comment above the first field moves below the key with it.
        let place = if head_line == line_of(head) {
            head.key.span.start
        } else {
            file.line_span(head_line).map_or(head.key.span.start, |line| line.start + column)
        };
        rewrite.insert(place, format!("{moved}{}:\n{margin}{}", self.key, " ".repeat(self.by)));
        for line in head_line + 1..=tail_line {
            let kept = self.kept.as_ref().is_some_and(|kept| kept.contains(&line));
            let gone = gone.iter().any(|gone| gone.contains(&line));
            let left = rewrite.comment_line(line).is_some_and(|comment| comment < column);
            if !kept && !gone && !left && !rewrite.is_blank(line) {
                rewrite.deepen(line, self.by);
            }
        }
        // Spaces at the end of a text block, where its line breaks are kept.
        let mut line = tail_line + 1;
        let spaces = |line| file.line_span(line).is_some_and(|span| file.slice(span).trim().is_empty());
        while spaces(line) {
            let kept = self.kept.as_ref().is_some_and(|kept| kept.contains(&line));
            if !kept && !rewrite.is_blank(line) {
                rewrite.deepen(line, self.by);
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
        strays: &[usize],
    ) -> Result<(), AmbiguousRewrite> {
        let file = rewrite.file();
        let (Some(head), Some(tail)) = (run.first(), run.last()) else { return Ok(()) };
        let mut moved = String::new();
        for index in strays {
            let (Some(entry), Some(next)) = (entries.get(*index), entries.get(index + 1)) else { continue };
            let gap = file.slice(Span::new(end(file, entry), next.key.span.start));
            // A comment or a line break behind the comma stays where it is.
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

/// A new key or id beside a key that is written as `written`: JSON wants all of them in quotes.
pub fn in_quotes_of(written: &str, text: &str) -> String {
    if written.starts_with('"') { format!("\"{text}\"") } else { text.to_owned() }
}
