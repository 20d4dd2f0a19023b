//! One line of a file as a person sees it: indentation, list marks, key, value.
//!
//! The parts are guessed from the line alone, for messages about files that could not be parsed; the tree is never built from
//! them.

use crate::source::span::Span;
use crate::source::text::SourceFile;

/// How many lines above an error are searched for its cause.
const MAX_LOOK_BACK: usize = 50;

/// A line without its break.
#[derive(Clone, Copy)]
pub struct SourceLine<'f> {
    file: &'f SourceFile,
    number: usize,
    span: Span,
    text: &'f str,
}

impl<'f> SourceLine<'f> {
    pub fn at(file: &'f SourceFile, byte: usize) -> Self {
        let number = file.line(byte);
        Self::number(file, number).unwrap_or(Self { file, number, span: Span::point(byte), text: "" })
    }

    fn number(file: &'f SourceFile, number: usize) -> Option<Self> {
        let span = file.line_span(number)?;
        Some(Self { file, number, span, text: file.slice(span) })
    }

    /// The lines above that are neither empty nor comments, the nearest first; a limited number.
    pub(crate) fn above(self) -> impl Iterator<Item = Self> {
        let first = self.number.saturating_sub(MAX_LOOK_BACK).max(1);
        (first..self.number)
            .rev()
            .filter_map(move |number| Self::number(self.file, number))
            .filter(SourceLine::has_content)
    }

    /// The lines below, including comments and empty ones, the nearest first; a limited number.
    pub fn below(self) -> impl Iterator<Item = Self> {
        (self.number + 1..=self.number + MAX_LOOK_BACK).map_while(move |number| Self::number(self.file, number))
    }

    /// The lines of this part of a file that are not empty, in order.
    pub(crate) fn within(file: &'f SourceFile, span: Span) -> impl Iterator<Item = Self> {
        let last = file.line(span.end.saturating_sub(1).max(span.start));
        (file.line(span.start)..=last)
            .map_while(move |number| Self::number(file, number))
            .filter(SourceLine::has_content)
    }

    /// Whether the line directly above is a comment.
    pub(crate) fn follows_comment(&self) -> bool {
        let above = self.number.checked_sub(1).and_then(|number| Self::number(self.file, number));
        above.is_some_and(|line| line.text.trim_start().starts_with('#'))
    }

    fn has_content(&self) -> bool {
        let text = self.text.trim();
        !text.is_empty() && !text.starts_with('#')
    }

    /// Whether the line seems to continue a text: a less indented line above it has a value, or starts a text of several lines,
    /// or has no colon.
    pub(crate) fn in_text(self) -> bool {
        let mut column = self.indentation().len();
        self.above().any(|line| {
            // After a dash a mapping starts; text there belongs to the dash.
            let body = line.colon().map_or(line.indentation().end, |_| line.body().start);
            let outer = body - line.span().start;
            if outer >= column {
                return false;
            }
            column = outer;
            !line.value().is_empty()
        })
    }

    pub fn span(&self) -> Span {
        self.span
    }

    pub fn text(&self) -> &'f str {
        self.text
    }

    /// The spaces and tabs at the start of the line.
    pub(crate) fn indentation(&self) -> Span {
        let blank = self.text.len() - self.text.trim_start_matches([' ', '\t']).len();
        Span::new(self.span.start, self.span.start + blank)
    }

    /// The text after the indentation, without trailing white space.
    pub fn content(&self) -> Span {
        let start = self.indentation().end;
        Span::new(start, self.span.start + self.text.trim_end().len())
    }

    /// The content after any `- ` at its start.
    pub fn body(&self) -> Span {
        let mut span = self.content();
        while let Some(rest) = self.file.slice(span).strip_prefix('-') {
            let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            if blank == 0 {
                break;
            }
            span.start += 1 + blank;
        }
        span
    }

    /// The byte of the colon after the first key: a `:` followed by white space or the end of the line, outside quotes.
    pub(crate) fn colon(&self) -> Option<usize> {
        let body = self.body();
        let mut quote = None;
        let mut characters = self.file.slice(body).char_indices().peekable();
        while let Some((offset, character)) = characters.next() {
            match (quote, character) {
                (None, '"' | '\'') if offset == 0 => quote = Some(character),
                (Some(open), _) if open == character => quote = None,
                (None, '#') if offset == 0 => return None,
                (None, ':') if characters.peek().is_none_or(|(_, next)| matches!(next, ' ' | '\t')) => {
                    return Some(body.start + offset);
                }
                _ => {}
            }
        }
        None
    }

    /// The text after the colon, or the body if there is none, without a trailing comment.
    pub(crate) fn value(&self) -> Span {
        let body = self.body();
        let start = self.colon().map_or(body.start, |colon| colon + 1);
        let text = self.file.slice(Span::new(start, body.end));
        let start = start + (text.len() - text.trim_start().len());
        without_comment(self.file, Span::new(start.min(body.end), body.end))
    }

    /// The key before the colon; empty if there is none.
    pub(crate) fn key(&self) -> &'f str {
        let start = self.body().start;
        self.colon().map_or("", |colon| self.file.slice(Span::new(start, colon)).trim_end())
    }
}

/// `span` without a trailing comment and the white space before it.
pub(crate) fn without_comment(file: &SourceFile, span: Span) -> Span {
    let text = file.slice(span);
    let quoted = text.starts_with(['"', '\'']);
    let end = if quoted { text.len() } else { text.find(" #").unwrap_or(text.len()) };
    let content = text.get(..end).unwrap_or(text).trim_end();
    Span::new(span.start, span.start + content.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_into_its_parts() {
        let table = [
            ("a: b", "a: b", "a", "b"),
            ("  - - 名: 张 三  # note", "名: 张 三  # note", "名", "张 三"),
            ("\"a: b\": c", "\"a: b\": c", "\"a: b\"", "c"),
            ("key:", "key:", "key", ""),
            ("http://x", "http://x", "", "http://x"),
            ("-x", "-x", "", "-x"),
            ("-", "-", "", "-"),
            ("", "", "", ""),
            ("# a: b", "# a: b", "", "# a: b"),
            ("名：张: 三", "名：张: 三", "名：张", "三"),
        ];
        for (text, body, key, value) in table {
            let file = SourceFile::new("a.yaml", text);
            let line = SourceLine::at(&file, 0);
            let parts = (file.slice(line.body()), line.key(), file.slice(line.value()));
            assert_eq!(parts, (body, key, value), "{text:?}");
        }
    }

    #[test]
    fn lines_above_skip_comments_and_empty_lines() {
        let file = SourceFile::new("a.yaml", "a:\n\n# x\n  b:\n c\n");
        let above: Vec<_> = SourceLine::at(&file, 13).above().map(|line| line.text()).collect();
        assert_eq!(above, ["  b:", "a:"]);
    }
}
