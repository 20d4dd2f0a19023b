//! Selects which findings are fixed: those of all rules, or only those of legacy forms.

use bcc_lang::source::diagnostic::Diagnostic;

/// The rules of legacy forms, which `migrate` updates. `run` accepts these forms with a warning, except for the oldest
/// nesting, which only `migrate` reads.
const LEGACY_FORMS: [&str; 7] = [
    "conflicting-spellings",
    "deprecated-field",
    "deprecated-placeholder",
    "older-engine",
    "older-skill-form",
    OLDEST_NESTING,
    ROUNDS_WITHOUT_ANSWER,
];

/// The rule for rounds that nobody answers. Only next to legacy names does it concern a legacy form, which has a safe fix.
const ROUNDS_WITHOUT_ANSWER: &str = "rounds-without-answer";

/// The rule for files in the oldest nesting. Other findings of such a file are unknown until it is fixed.
pub(crate) const OLDEST_NESTING: &str = "oldest-nesting";

/// The rules whose fixes rewrite the whole document: its other errors were hidden before, or have moved.
pub(crate) const WHOLE_DOCUMENTS: [&str; 2] = ["older-skill-form", OLDEST_NESTING];

/// The rules whose safe fixes are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    All,
    LegacyForms,
}

impl Rules {
    pub fn includes(self, rule: &str) -> bool {
        match self {
            Self::All => true,
            Self::LegacyForms => LEGACY_FORMS.contains(&rule),
        }
    }

    /// Whether the finding is to be fixed, by its fix or by hand.
    pub fn concerns(self, finding: &Diagnostic) -> bool {
        let is_legacy = finding.rule != ROUNDS_WITHOUT_ANSWER || finding.fixes.iter().any(|fix| fix.sure);
        self.includes(finding.rule) && (self == Self::All || is_legacy)
    }
}
