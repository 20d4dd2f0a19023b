//! The place where readers and rules put what they find; reading goes on after every mistake.

use std::cell::{Cell, RefCell};

use crate::source::diagnostic::Diagnostic;
use crate::source::span::Span;

/// The slug of what this release cannot run yet.
pub const LATER: &str = "not-supported-yet";

/// Diagnostics in the order in which they were found. Shared by reference: whoever reads a part of a script reports here.
#[derive(Debug, Default)]
pub struct Findings {
    list: RefCell<Vec<Diagnostic>>,
    errors: Cell<usize>,
    mistakes: Cell<usize>,
}

impl Findings {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn report(&self, diagnostic: Diagnostic) {
        self.errors.update(|errors| errors + usize::from(diagnostic.is_error()));
        let mistake = diagnostic.is_error() && diagnostic.rule != LATER;
        self.mistakes.update(|mistakes| mistakes + usize::from(mistake));
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

    /// How many of them are errors of the author: what this release cannot run yet is none.
    pub fn mistakes(&self) -> usize {
        self.mistakes.get()
    }

    pub fn broken(&self) -> BrokenSpans {
        let is_error = |diagnostic: &&Diagnostic| diagnostic.is_error() && diagnostic.rule != LATER;
        BrokenSpans::of(self.list.borrow().iter().filter(is_error).map(|diagnostic| diagnostic.span).collect())
    }

    /// Whether it is still worth looking for a near name: nobody reads the thousandth finding of a file for its advice, and
    /// each search compares a thousand names.
    pub fn may_advise(&self) -> bool {
        self.count() < 1_000
    }

    pub fn count(&self) -> usize {
        self.list.borrow().len()
    }

    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list.into_inner()
    }
}

/// The places of errors, by which what lies inside of one is found.
#[derive(Debug)]
pub struct BrokenSpans {
    /// Their starts, in order, each with the farthest end of all up to it.
    reach: Vec<(usize, usize)>,
}

impl BrokenSpans {
    fn of(mut spans: Vec<Span>) -> Self {
        spans.retain(|span| !span.is_empty());
        spans.sort_unstable();
        let mut end = 0;
        let reach = spans.into_iter().map(|span| {
            end = end.max(span.end);
            (span.start, end)
        });
        Self { reach: reach.collect() }
    }

    /// Whether `span` lies inside of an error.
    pub fn holds(&self, span: Span) -> bool {
        let before = self.reach.partition_point(|(start, _)| *start <= span.start);
        // The farthest end may belong to another error than the nearest start, but that one begins before it too.
        before.checked_sub(1).and_then(|last| self.reach.get(last)).is_some_and(|(_, end)| span.end <= *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_inside_of_an_error_is_found() {
        let broken = BrokenSpans::of(vec![Span::new(10, 20), Span::new(2, 40), Span::new(30, 35), Span::point(50)]);
        for (span, held) in [((10, 20), true), ((36, 40), true), ((36, 41), false), ((0, 1), false), ((50, 50), false)]
        {
            assert_eq!(broken.holds(Span::new(span.0, span.1)), held, "{span:?}");
        }
        assert!(!BrokenSpans::of(vec![]).holds(Span::point(0)));
    }
}
