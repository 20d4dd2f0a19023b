//! The list of all diagnostics, each with its pages in `docs/diagnostics/`.

use bcc_lang::message::language::Language;
use bcc_lang::source::diagnostic::Severity;
use bcc_lang::source::near::near_miss;

#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The slug: [`bcc_lang::source::diagnostic::Diagnostic::rule`].
    pub slug: &'static str,
    /// Its severity; the highest one if it varies.
    pub severity: Severity,
    /// Whether a project may switch it off or change its severity, and a comment may silence it. False if the script cannot
    /// run with it: what `run` rejects must not pass `validate`.
    pub adjustable: bool,
    /// Its page in English, as Markdown.
    english: &'static str,
    chinese: &'static str,
}

impl Page {
    /// Its page in a language, as Markdown.
    pub const fn text(&self, language: Language) -> &'static str {
        match language {
            Language::English | Language::Pseudo => self.english,
            Language::Chinese => self.chinese,
        }
    }

    /// The sentence below the title, on one line.
    pub fn summary(&self, language: Language) -> String {
        let body = self.text(language).split_once('\n').map_or("", |(_, body)| body);
        let sentence = body.split("\n## ").next().unwrap_or("");
        sentence.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A missing page is a compile error. `Error` is not adjustable, because the script cannot run; `Warning` is adjustable;
/// `Error lint` is an adjustable error in a script that can run.
macro_rules! page {
    (Error lint $slug:literal) => {
        page!(@ Error, true, $slug)
    };
    (Error $slug:literal) => {
        page!(@ Error, false, $slug)
    };
    (Info $slug:literal) => {
        page!(@ Info, true, $slug)
    };
    (Warning $slug:literal) => {
        page!(@ Warning, true, $slug)
    };
    (@ $severity:ident, $adjustable:literal, $slug:literal) => {
        Page {
            slug: $slug,
            severity: Severity::$severity,
            adjustable: $adjustable,
            english: include_str!(concat!("../../../docs/diagnostics/", $slug, ".md")),
            chinese: include_str!(concat!("../../../docs/diagnostics/", $slug, ".zh.md")),
        }
    };
}

/// All diagnostics of checks, sorted by slug. A new one needs a line here, a page, and a line in the README of the pages;
/// `tests/authoring/diagnostics.rs` finds missing ones.
pub static DIAGNOSTICS: &[Page] = &[
    page!(Error "branch-conflict"),
    page!(Error "broken-configuration"),
    page!(Error "broken-json"),
    page!(Warning "broken-placeholder"),
    page!(Warning "budget-too-small"),
    page!(Warning "chinese-quotes"),
    page!(Error "cleanup-action"),
    page!(Info "code-not-allowed"),
    page!(Error lint "condition-not-boolean"),
    page!(Error "conflicting-fields"),
    page!(Error "conflicting-spellings"),
    page!(Warning "confusable-names"),
    page!(Warning "constant-condition"),
    page!(Warning "deprecated-field"),
    page!(Warning "deprecated-placeholder"),
    page!(Error "duplicate-id"),
    page!(Error "duplicate-key"),
    page!(Error "duplicate-output"),
    page!(Error "duplicate-variable"),
    page!(Error "empty-document"),
    page!(Error "empty-list"),
    page!(Error "empty-template"),
    page!(Error lint "endless-loop"),
    page!(Error "expression-syntax"),
    page!(Error "file-too-large"),
    page!(Error lint "filter-arguments"),
    page!(Error lint "for-each-not-a-list"),
    page!(Error "foreign-document"),
    page!(Warning "fork-without-else"),
    page!(Error "front-matter"),
    page!(Error lint "full-width-pattern"),
    page!(Warning "full-width-separator"),
    page!(Warning "hidden-engine-name"),
    page!(Warning "hidden-variable"),
    page!(Warning "impossible-exit-reason"),
    page!(Error "include-loop"),
    page!(Error "include-outside"),
    page!(Warning "input-left-empty"),
    page!(Error "input-type"),
    page!(Error "insert-itself"),
    page!(Error "invalid-dependency"),
    page!(Error "invalid-id"),
    page!(Error "invalid-name"),
    page!(Error "key-not-text"),
    page!(Warning "loop-never-left"),
    page!(Error "merge-key"),
    page!(Error "missing-include"),
    page!(Error "missing-input"),
    page!(Info "missing-kernel"),
    page!(Error "missing-key"),
    page!(Info "missing-permission"),
    page!(Error "missing-script"),
    page!(Info "missing-server"),
    page!(Warning "never-equal"),
    page!(Warning "never-set"),
    page!(Error "not-a-choice"),
    page!(Error "not-a-session"),
    page!(Error "not-in-branch"),
    page!(Error "not-text"),
    page!(Warning "nothing-to-resume"),
    page!(Warning "null-operand"),
    page!(Error "older-engine"),
    page!(Warning "older-skill-form"),
    page!(Error "oldest-nesting"),
    page!(Error "out-of-range"),
    page!(Error "out-of-scope"),
    page!(Error lint "output-never-set"),
    page!(Warning "output-not-received"),
    page!(Error lint "output-type-conflict"),
    page!(Warning "path-not-permitted"),
    page!(Error "path-outside"),
    page!(Error "recursive-alias"),
    page!(Error "reply-schema"),
    page!(Error "reply-shape"),
    page!(Warning "required-in-one-round"),
    page!(Warning "required-without-output"),
    page!(Error "reserved-name"),
    page!(Error "reserved-output"),
    page!(Warning "role-marker"),
    page!(Warning "rounds-without-answer"),
    page!(Warning "scope-in-skill"),
    page!(Error "scope-too-narrow"),
    page!(Warning "secret"),
    page!(Error "several-documents"),
    page!(Warning "shadowed-variable"),
    page!(Error "shell-variable"),
    page!(Error "skill-cycle"),
    page!(Warning "skipped-without-route"),
    page!(Error "tag-mismatch"),
    page!(Warning "template-lacks-field"),
    page!(Warning "template-language"),
    page!(Error "template-syntax"),
    page!(Warning "text-cut-by-comment"),
    page!(Error "text-syntax"),
    page!(Error "too-deep"),
    page!(Error "too-many-nodes"),
    page!(Error "tool-not-permitted"),
    page!(Warning "trigger-says-nothing"),
    page!(Error lint "type-mismatch"),
    page!(Error "unknown-anchor"),
    page!(Error "unknown-exit-reason"),
    page!(Error "unknown-filter"),
    page!(Error "unknown-function"),
    page!(Error "unknown-in-branch"),
    page!(Error "unknown-input"),
    page!(Error "unknown-insert"),
    page!(Error "unknown-key"),
    page!(Error "unknown-kind"),
    page!(Warning "unknown-metadata"),
    page!(Warning "unknown-model"),
    page!(Error "unknown-name"),
    page!(Error "unknown-output"),
    page!(Error "unknown-scheme"),
    page!(Error "unknown-skill"),
    page!(Error "unknown-skill-file"),
    page!(Error "unknown-tag"),
    page!(Error "unknown-target"),
    page!(Error "unknown-template"),
    page!(Error "unknown-template-name"),
    page!(Error "unknown-test"),
    page!(Error "unknown-test-target"),
    page!(Warning "unknown-tool"),
    page!(Warning "unknown-where-inserted"),
    page!(Warning "unreachable"),
    page!(Error "unreadable-file"),
    page!(Warning "unused-skill"),
    page!(Warning "unused-template"),
    page!(Warning "unused-variable"),
    page!(Warning "useless-allow"),
    page!(Error lint "value-type-conflict"),
    page!(Error "wrong-pattern"),
    page!(Error "wrong-type"),
    page!(Error "yaml-syntax"),
];

/// The diagnostic with this slug.
pub fn page(slug: &str) -> Option<&'static Page> {
    let found = DIAGNOSTICS.binary_search_by(|page| page.slug.cmp(slug));
    found.ok().and_then(|index| DIAGNOSTICS.get(index))
}

/// The slug that an unknown slug probably means.
pub fn near(slug: &str) -> Option<&'static str> {
    near_miss(slug, DIAGNOSTICS.iter().map(|page| page.slug))
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
        let page_of_keys = page("unknown-key").unwrap();
        assert!(page_of_keys.summary(Language::English).ends_with('.'));
        assert!(page_of_keys.summary(Language::Chinese).ends_with('。'));
        assert!(page("unknown").is_none());
        assert!(page("").is_none());
    }
}
