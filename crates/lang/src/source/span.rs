//! Positions in a file: a range of bytes, and a value with its range.

use std::ops::Range;

/// A range of bytes of a file's text: `start` inclusive, `end` exclusive, both on character boundaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// The bytes from `start` to `end`; a reversed pair becomes the empty span at `start`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end: if end < start { start } else { end } }
    }

    /// The empty span at `byte`, between two characters.
    pub const fn point(byte: usize) -> Self {
        Self { start: byte, end: byte }
    }

    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    pub fn join(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    pub value: T,
    pub span: Span,
}

impl<T> Spanned<T> {
    pub const fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_never_reversed() {
        assert_eq!(Span::new(5, 3), Span::point(5));
        assert_eq!(Span::new(5, 3).len(), 0);
        assert_eq!(Span::new(1, 3).join(Span::new(7, 9)), Span::new(1, 9));
        assert_eq!(Span::new(4, 6).join(Span::point(1)), Span::new(1, 6));
    }
}
