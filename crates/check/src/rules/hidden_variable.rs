//! `hidden-variable`: a variable that seems meant for templates, where the engine provides another value under its name.
//!
//! In texts and expressions of the script such a variable works normally, so it is reported only if none of them uses it.

use bcc_lang::message::msg;
use std::collections::BTreeSet;

use crate::collected::{AssignmentKind, Definition, UseKind};
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;
use bcc_lang::value::scopes::Scope;
use bcc_runtime::program::exchange::PROMPT_NAMES;

/// Whether prompts of all kinds have a value with this name.
pub(crate) fn is_prompt_name(name: &str) -> bool {
    PROMPT_NAMES.contains(&name)
}

pub static RULE: Rule = Rule { slugs: &["hidden-variable"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    if !model.is_complete() {
        return;
    }
    let collected = &model.collected;
    let set: BTreeSet<Span> = collected.sets.iter().map(|set| set.name.span).collect();
    let extracted =
        |definition: &Definition| definition.how != AssignmentKind::Declared && !set.contains(&definition.span);
    for (name, places) in model.names().iter().filter(|(name, _)| is_prompt_name(name)) {
        let own_use = places.used(collected).any(|used| used.by != UseKind::Prompt);
        let is_exported = |definition: &Definition| extracted(definition) || definition.to == Scope::Global;
        if own_use || places.defined(collected).any(is_exported) {
            continue;
        }
        let Some(first) = places.defined(collected).next() else { continue };
        let name = shortened(name);
        let message = msg!(
            "nothing in the script uses `{name}`, and no template can show it: in templates, the engine provides something else under that name"
        );
        let help = match name.as_ref() {
            "tone" | "exit" | "understanding_threshold" => {
                msg!("set `{name}` in the config of the actions that it is intended for, or rename the variable")
            }
            _ => msg!("rename the variable, and use the new name in the template"),
        };
        let diagnostic = Diagnostic::warning("hidden-variable", message, model.file, first.span);
        findings.report(diagnostic.with_help(help));
    }
}
