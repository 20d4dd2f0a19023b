//! `template-language`: texts in one language under prompts in another.

use crate::facts::Facts;
use crate::rules::rule::Rule;
use crate::templates::language;
use bcc_lang::script::findings::Findings;

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
