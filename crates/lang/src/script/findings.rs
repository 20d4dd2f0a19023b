//! Collects the diagnostics of readers and rules; reading continues after an error.

use std::cell::{Cell, RefCell};

use crate::source::diagnostic::Diagnostic;
use crate::source::span::Span;

/// Diagnostics in the order in which they were found. Shared by reference between all readers of a script.
#[derive(Debug, Default)]
pub struct Findings {
    list: RefCell<Vec<Diagnostic>>,
    errors: Cell<usize>,
    author_errors: Cell<usize>,
}

impl Findings {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn report(&self, diagnostic: Diagnostic) {
        self.errors.update(|errors| errors + usize::from(diagnostic.is_error()));
        let mistake = diagnostic.is_error();
        self.author_errors.update(|mistakes| mistakes + usize::from(mistake));
        self.list.borrow_mut().push(diagnostic);
    }

    pub fn extend(&self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        diagnostics.into_iter().for_each(|diagnostic| self.report(diagnostic));
    }

    pub fn has_errors(&self) -> bool {
        self.errors() > 0
    }

    pub fn errors(&self) -> usize {
        self.errors.get()
    }

    /// The number of errors of the author, without features that are not supported yet.
    pub fn author_errors(&self) -> usize {
        self.author_errors.get()
    }

    pub fn error_spans(&self) -> BrokenSpans {
        let is_error = |diagnostic: &&Diagnostic| diagnostic.is_error();
        BrokenSpans::new(self.list.borrow().iter().filter(is_error).map(|diagnostic| diagnostic.span).collect())
    }

    /// Whether to search for similar names: with this many findings the advice has no use, and each search compares many names.
    pub fn may_suggest(&self) -> bool {
        self.count() < 1_000
    }

    pub fn count(&self) -> usize {
        self.list.borrow().len()
    }

    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list.into_inner()
    }
}

/// The spans of errors, to check whether another span lies inside one.
#[derive(Debug)]
pub struct BrokenSpans {
    /// The start of each span, in order, with the largest end of all spans up to it.
    reach: Vec<(usize, usize)>,
}

impl BrokenSpans {
    fn new(mut spans: Vec<Span>) -> Self {
        spans.retain(|span| !span.is_empty());
        spans.sort_unstable();
        let mut end = 0;
        let reach = spans.into_iter().map(|span| {
            end = end.max(span.end);
            (span.start, end)
        });
        Self { reach: reach.collect() }
    }

    /// Whether `span` lies inside an error.
    pub fn contains(&self, span: Span) -> bool {
        let before = self.reach.partition_point(|(start, _)| *start <= span.start);
        // The largest end may belong to a span other than the last one, but that span starts before `span` too.
        before.checked_sub(1).and_then(|last| self.reach.get(last)).is_some_and(|(_, end)| span.end <= *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_inside_an_error_are_found() {
        let broken = BrokenSpans::new(vec![Span::new(10, 20), Span::new(2, 40), Span::new(30, 35), Span::point(50)]);
        for (span, expected) in
            [((10, 20), true), ((36, 40), true), ((36, 41), false), ((0, 1), false), ((50, 50), false)]
        {
            assert_eq!(broken.contains(Span::new(span.0, span.1)), expected, "{span:?}");
        }
        assert!(!BrokenSpans::new(vec![]).contains(Span::point(0)));
    }
}
