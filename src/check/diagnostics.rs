//! The diagnostics that there are, each with its page of `docs/diagnostics/`: what it says, why, wrong, right, how to mend.

use crate::source::diagnostic::Severity;

/// One diagnostic.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The slug: [`crate::source::diagnostic::Diagnostic::rule`].
    pub slug: &'static str,
    /// How much it matters; the most where that differs from case to case.
    pub severity: Severity,
    /// Its page, as markdown.
    pub text: &'static str,
}

/// A missing page does not build.
macro_rules! page {
    ($severity:ident $slug:literal) => {
        Page {
            slug: $slug,
            severity: Severity::$severity,
            text: include_str!(concat!("../../docs/diagnostics/", $slug, ".md")),
        }
    };
}

/// Every diagnostic that checking a script may give, sorted by slug. A new one takes a line here, a page, and a line in the
/// README of the pages; `tests/diagnostics.rs` finds what is missing.
pub static DIAGNOSTICS: &[Page] = &[
    page!(Error "conflicting-fields"),
    page!(Error "conflicting-spellings"),
    page!(Warning "deprecated-field"),
    page!(Warning "deprecated-placeholder"),
    page!(Error "duplicate-id"),
    page!(Error "duplicate-key"),
    page!(Error "duplicate-output"),
    page!(Error "duplicate-variable"),
    page!(Error "empty-document"),
    page!(Error "empty-list"),
    page!(Error "expression-syntax"),
    page!(Error "file-too-large"),
    page!(Error "invalid-id"),
    page!(Error "invalid-name"),
    page!(Error "key-not-text"),
    page!(Error "merge-key"),
    page!(Error "missing-key"),
    page!(Error "not-a-choice"),
    page!(Error "not-a-session"),
    page!(Error "not-supported-yet"),
    page!(Error "not-text"),
    page!(Error "out-of-range"),
    page!(Error "recursive-alias"),
    page!(Error "reply-schema"),
    page!(Error "reply-shape"),
    page!(Error "reserved-name"),
    page!(Error "reserved-output"),
    page!(Error "scope-too-narrow"),
    page!(Error "several-documents"),
    page!(Error "tag-mismatch"),
    page!(Error "text-syntax"),
    page!(Error "too-deep"),
    page!(Error "too-many-nodes"),
    page!(Error "unknown-anchor"),
    page!(Error "unknown-key"),
    page!(Error "unknown-kind"),
    page!(Error "unknown-name"),
    page!(Error "unknown-scheme"),
    page!(Error "unknown-tag"),
    page!(Error "unknown-template"),
    page!(Error "unknown-template-name"),
    page!(Error "wrong-type"),
    page!(Error "yaml-syntax"),
];

/// The diagnostic with this slug.
pub fn page(slug: &str) -> Option<&'static Page> {
    let found = DIAGNOSTICS.binary_search_by(|page| page.slug.cmp(slug));
    found.ok().and_then(|index| DIAGNOSTICS.get(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_found_by_its_slug() {
        assert!(DIAGNOSTICS.is_sorted_by(|a, b| a.slug < b.slug));
        for known in DIAGNOSTICS {
            assert_eq!(page(known.slug).unwrap().slug, known.slug);
        }
        assert!(page("unknown").is_none());
        assert!(page("").is_none());
    }
}
