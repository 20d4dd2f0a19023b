//! `template-language`: texts in one language under prompts in another.

use crate::check::facts::Facts;
use crate::check::rules::rule::Rule;
use crate::check::templates::language;
use crate::script::findings::Findings;

/// The rule.
pub struct TemplateLanguage;

impl Rule for TemplateLanguage {
    fn slugs(&self) -> &'static [&'static str] {
        &["template-language"]
    }

    fn check(&self, facts: &Facts<'_>, findings: &Findings) {
        let Some(script) = facts.script else { return };
        let texts = facts.seen.texts.iter().map(|text| text.text.source());
        let prompts = facts.seen.prompts.iter().map(|prompt| (prompt.name, prompt.version));
        findings.extend(language::check(script, texts, prompts, facts.templates));
    }
}
