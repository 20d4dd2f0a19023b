//! Rule levels: a project may set a rule to off, warning or error, unless the rule finds what keeps a script from running.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;

use crate::diagnostics::{near, page};
use bcc_lang::source::diagnostic::{Diagnostic, Severity};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleLevel {
    Off,
    Warn,
    Error,
}

impl RuleLevel {
    /// The level of this name: `off`, `warn`, `error`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "off" => Some(Self::Off),
            "warn" => Some(Self::Warn),
            "error" => Some(Self::Error),
            _ => None,
        }
    }
}

/// The rules whose level differs from their default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleLevels {
    set: BTreeMap<&'static str, RuleLevel>,
}

/// An invalid setting.
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
    /// The rule finds problems that keep scripts from running.
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
    /// Parses the levels of `[rules]` in `bcc-script.toml` and of the command line
    /// (docs/configuration.md). The last level for a rule applies, so pass those of the command line last.
    /// Errors: A rule or level does not exist, or a rule that finds what keeps a script from running is set to less than an
    /// error.
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

    /// Splits `NAME=LEVEL` of the command line into a pair for [`RuleLevels::parse`].
    /// Errors: There is no `=`, or one side of it is empty.
    pub fn pair(text: &str) -> Result<(&str, &str), LevelError> {
        let pair = text.split_once('=').map(|(slug, level)| (slug.trim(), level.trim()));
        let pair = pair.filter(|(slug, level)| !slug.is_empty() && !level.is_empty());
        pair.ok_or_else(|| LevelError::NoPair { text: text.into() })
    }

    /// Removes the findings that are off and sets the severity of the others. Keeps their order. Call this after comments
    /// have silenced findings (`check::allow`), or a comment would seem to silence nothing.
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
            Diagnostic::warning("unknown-target", "", &file, Span::default()),
            Diagnostic::warning("deprecated-placeholder", "", &file, Span::default()),
        ];
        levels.apply(given).into_iter().map(|diagnostic| (diagnostic.rule, diagnostic.severity)).collect()
    }

    #[test]
    fn disabled_rules_are_not_reported_and_levels_are_applied() {
        use Severity::{Error, Warning};
        let levels = RuleLevels::parse([
            ("deprecated-field", "off"),
            ("deprecated-placeholder", "error"),
            ("unknown-target", "error"),
        ]);
        let expected = [("unknown-key", Error), ("unknown-target", Warning), ("deprecated-placeholder", Error)];
        assert_eq!(found(&levels.unwrap()), expected);
        let untouched = found(&RuleLevels::default());
        assert_eq!(untouched.len(), 4);
        assert_eq!(found(&RuleLevels::parse([("deprecated-field", "warn")]).unwrap()), untouched);
    }

    #[test]
    fn the_last_of_two_levels_for_a_rule_applies() {
        let levels = RuleLevels::parse([("deprecated-field", "off"), ("deprecated-field", "error")]).unwrap();
        assert_eq!(found(&levels)[0], ("deprecated-field", Severity::Error));
    }

    #[test]
    fn rules_that_keep_a_script_from_running_stay_errors() {
        for page in DIAGNOSTICS {
            for level in ["off", "warn", "error"] {
                let parsed = RuleLevels::parse([(page.slug, level)]);
                assert_eq!(parsed.is_ok(), page.adjustable || level == "error", "{} {level}", page.slug);
            }
            assert!(page.adjustable || page.severity == Severity::Error, "{}", page.slug);
        }
    }

    #[test]
    fn an_invalid_setting_is_reported_with_help() {
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
