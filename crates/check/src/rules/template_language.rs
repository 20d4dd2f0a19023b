//! `template-language`: texts in one language under prompts in another.

use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use crate::templates::language;
use bcc_lang::script::findings::Findings;

pub static RULE: Rule = Rule { slugs: &["template-language"], essential: false, check };

fn check(facts: &SemanticModel<'_>, findings: &Findings) {
    let Some(script) = facts.script else { return };
    let texts = facts.seen.texts.iter().map(|text| text.text.source());
    let prompts = facts.seen.prompts.iter().map(|prompt| (prompt.name, prompt.version));
    findings.extend(language::check(script, texts, prompts, facts.templates));
}
