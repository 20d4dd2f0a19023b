//! `template-language`: texts and prompts in different languages.

use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use crate::templates::language;
use bcc_lang::script::findings::Findings;

pub static RULE: Rule = Rule { slugs: &["template-language"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let Some(script) = model.script else { return };
    let texts = model.collected.texts.iter().map(|text| text.text.source());
    let prompts = model.collected.prompts.iter().map(|prompt| (prompt.name, prompt.version));
    findings.extend(language::check(script, texts, prompts, model.templates));
}
