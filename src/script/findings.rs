//! The place where readers and rules put what they find; reading goes on after every mistake.

use std::cell::RefCell;

use crate::source::diagnostic::Diagnostic;

/// Diagnostics in the order in which they were found. Shared by reference: whoever reads a part of a script reports here.
#[derive(Debug, Default)]
pub struct Findings {
    list: RefCell<Vec<Diagnostic>>,
}

impl Findings {
    /// An empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one finding.
    pub fn report(&self, diagnostic: Diagnostic) {
        self.list.borrow_mut().push(diagnostic);
    }

    /// Adds several findings.
    pub fn extend(&self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.list.borrow_mut().extend(diagnostics);
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.list.borrow().iter().any(Diagnostic::is_error)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.borrow().len()
    }

    /// Everything found.
    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list.into_inner()
    }
}
