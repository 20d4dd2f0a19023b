//! Which findings are mended: those of every rule, or those of older forms alone.

/// The rules of older forms, which `migrate` brings to today's. What `run` reads all the same is a warning; the oldest nesting
/// is read by `migrate` alone.
pub const OLDER_FORMS: [&str; 5] =
    ["conflicting-spellings", "deprecated-field", "deprecated-placeholder", "older-skill-form", OLDEST_NESTING];

/// The rule of files in the oldest nesting, of which nothing else can be said before they are mended.
pub const OLDEST_NESTING: &str = "oldest-nesting";

/// The rules whose fixes write a whole document anew: what was wrong in it was hidden before, or stands elsewhere now.
pub const WHOLE_DOCUMENTS: [&str; 2] = ["older-skill-form", OLDEST_NESTING];

/// The rules whose sure fixes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    All,
    OlderForms,
}

impl Rules {
    pub fn have(self, rule: &str) -> bool {
        match self {
            Self::All => true,
            Self::OlderForms => OLDER_FORMS.contains(&rule),
        }
    }
}
