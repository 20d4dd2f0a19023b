//! What a project makes of the rules: each may be off, a warning or an error, as far as a script can run without it.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;

use crate::diagnostics::{near, page};
use bcc_lang::source::diagnostic::{Diagnostic, Severity};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleLevel {
    Off,
    Warn,
    Error,
}

impl RuleLevel {
    /// The level of this name: `off`, `warn`, `error`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "off" => Some(Self::Off),
            "warn" => Some(Self::Warn),
            "error" => Some(Self::Error),
            _ => None,
        }
    }
}

/// The rules that are set to something else than their page says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleLevels {
    set: BTreeMap<&'static str, RuleLevel>,
}

/// A setting that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
pub enum LevelError {
    #[error("there is no diagnostic `{slug}`")]
    UnknownRule {
        slug: String,
        /// What was probably meant.
        near: Option<&'static str>,
    },
    #[error("`{slug}` cannot be set to `{level}`")]
    UnknownLevel { slug: String, level: String },
    /// The rule finds what keeps scripts from running.
    #[error("`{slug}` cannot be set to `{level}`: a script with this problem cannot run")]
    Fixed { slug: String, level: String },
    #[error("`{text}` does not set a level")]
    NoPair { text: String },
}

impl LevelError {
    pub fn help(&self) -> Message {
        match self {
            Self::UnknownRule { near: Some(near), .. } => msg!("did you mean `{near}`?"),
            Self::UnknownRule { near: None, .. } => msg!("`bcc-script explain` lists all diagnostics"),
            Self::UnknownLevel { .. } => msg!("a level is `off`, `warn` or `error`"),
            Self::Fixed { slug, .. } => {
                msg!(
                    "fix the problem; `bcc-script explain {slug}` describes how, and `bcc-script explain` shows which diagnostics can be set"
                )
            }
            Self::NoPair { .. } => msg!("write a name, `=`, and `off`, `warn` or `error`, as in `unused-variable=off`"),
        }
    }
}

impl RuleLevels {
    /// Levels from names and levels as they are written in `[rules]` of `bcc-script.toml` and on the command line
    /// (docs/configuration.md). Of two for one rule the later one counts: give those of the command line last.
    /// Errors: For a rule or a level that does not exist, and where a rule that finds what keeps a script from running should be
    /// less than an error.
    pub fn parse<A: AsRef<str>, B: AsRef<str>>(pairs: impl IntoIterator<Item = (A, B)>) -> Result<Self, LevelError> {
        let mut set = BTreeMap::new();
        for (slug, level) in pairs {
            let (slug, name) = (slug.as_ref(), level.as_ref());
            let known = page(slug).ok_or_else(|| LevelError::UnknownRule { slug: slug.into(), near: near(slug) })?;
            let level = RuleLevel::named(name)
                .ok_or_else(|| LevelError::UnknownLevel { slug: slug.into(), level: name.into() })?;
            if known.adjustable {
                set.insert(known.slug, level);
            } else if level != RuleLevel::Error {
                return Err(LevelError::Fixed { slug: slug.into(), level: name.into() });
            }
        }
        Ok(Self { set })
    }

    /// `NAME=LEVEL` of the command line as a pair for [`RuleLevels::parse`].
    /// Errors: Where there is no `=`, or nothing on one side of it.
    pub fn pair(text: &str) -> Result<(&str, &str), LevelError> {
        let pair = text.split_once('=').map(|(slug, level)| (slug.trim(), level.trim()));
        let pair = pair.filter(|(slug, level)| !slug.is_empty() && !level.is_empty());
        pair.ok_or_else(|| LevelError::NoPair { text: text.into() })
    }

    /// The findings as they are to be told: without those that are off, with the severity that is set. Their order stays. Set
    /// after comments have silenced theirs (`check::allow`), or a comment would seem to silence nothing.
    pub fn apply(&self, diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
        if self.set.is_empty() {
            return diagnostics;
        }
        let set = |mut diagnostic: Diagnostic| {
            diagnostic.severity = match self.set.get(diagnostic.rule) {
                Some(RuleLevel::Off) => return None,
                Some(RuleLevel::Warn) => Severity::Warning,
                Some(RuleLevel::Error) => Severity::Error,
                None => diagnostic.severity,
            };
            Some(diagnostic)
        };
        diagnostics.into_iter().filter_map(set).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::diagnostics::DIAGNOSTICS;
    use bcc_lang::source::span::Span;
    use bcc_lang::source::text::SourceFile;

    fn found(levels: &RuleLevels) -> Vec<(&'static str, Severity)> {
        let file = Arc::new(SourceFile::new("a.yaml", "x"));
        let given = vec![
            Diagnostic::warning("deprecated-field", "", &file, Span::default()),
            Diagnostic::error("unknown-key", "", &file, Span::default()),
            Diagnostic::warning("not-supported-yet", "", &file, Span::default()),
            Diagnostic::warning("deprecated-placeholder", "", &file, Span::default()),
        ];
        levels.apply(given).into_iter().map(|diagnostic| (diagnostic.rule, diagnostic.severity)).collect()
    }

    #[test]
    fn what_is_off_is_not_told_and_what_is_set_counts_as_that() {
        use Severity::{Error, Warning};
        let levels = RuleLevels::parse([
            ("deprecated-field", "off"),
            ("deprecated-placeholder", "error"),
            ("not-supported-yet", "error"),
        ]);
        let expected = [("unknown-key", Error), ("not-supported-yet", Warning), ("deprecated-placeholder", Error)];
        assert_eq!(found(&levels.unwrap()), expected);
        let untouched = found(&RuleLevels::default());
        assert_eq!(untouched.len(), 4);
        assert_eq!(found(&RuleLevels::parse([("deprecated-field", "warn")]).unwrap()), untouched);
    }

    #[test]
    fn of_two_levels_for_one_rule_the_later_counts() {
        let levels = RuleLevels::parse([("deprecated-field", "off"), ("deprecated-field", "error")]).unwrap();
        assert_eq!(found(&levels)[0], ("deprecated-field", Severity::Error));
    }

    #[test]
    fn what_keeps_a_script_from_running_stays_an_error() {
        for page in DIAGNOSTICS {
            for level in ["off", "warn", "error"] {
                let parsed = RuleLevels::parse([(page.slug, level)]);
                assert_eq!(parsed.is_ok(), page.adjustable || level == "error", "{} {level}", page.slug);
            }
            assert!(page.adjustable || page.severity == Severity::Error, "{}", page.slug);
        }
    }

    #[test]
    fn a_wrong_setting_is_told_with_what_to_do() {
        let table = [
            ("deprecated_field=off", "there is no diagnostic `deprecated_field`", "did you mean `deprecated-field`?"),
            ("xyz=off", "there is no diagnostic `xyz`", "`bcc-script explain` lists"),
            ("deprecated-field=no", "`deprecated-field` cannot be set to `no`", "`off`, `warn` or `error`"),
            ("deprecated-field=Off", "cannot be set to `Off`", "`off`, `warn` or `error`"),
            ("unknown-kind=off", "`unknown-kind` cannot be set to `off`: a script", "explain unknown-kind"),
            ("unknown-kind=warn", "cannot run", "fix the problem"),
            ("deprecated-field", "`deprecated-field` does not set a level", "`unused-variable=off`"),
            ("=off", "`=off` does not set a level", "`=`"),
        ];
        for (text, message, help) in table {
            let error = RuleLevels::pair(text).and_then(|pair| RuleLevels::parse([pair])).unwrap_err();
            assert!(error.to_string().contains(message), "{text}: {error}");
            assert!(error.help().to_string().contains(help), "{text}: {}", error.help());
        }
    }
}
