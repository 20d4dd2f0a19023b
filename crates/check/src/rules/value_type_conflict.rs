//! `value-type-conflict`: a variable is set to a value that its declaration does not allow, which fails at run time.

use crate::collected::CalleeBody;
use crate::listing::values;
use crate::name_table::NearestDeclarations;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::message::msg;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;

pub static RULE: Rule = Rule { slugs: &["value-type-conflict"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let collected = &model.collected;
    let mut declarations = NearestDeclarations::of(model.names(), collected);
    for set in &collected.sets {
        if let (None, Some((Some(declared), _))) = (&set.constant, &set.declared)
            && model.never_fits(set.span, *declared)
        {
            let name = shortened(&set.name.value);
            let message = msg!("`{name}` is declared as {} and cannot hold this value", declared.name());
            let help = msg!("give it a value of type {}, or change its `type` where it is declared", declared.name());
            let diagnostic = Diagnostic::error("value-type-conflict", message, model.file, set.span).with_help(help);
            findings.report(match declarations.nearest(&set.name.value, set.at.body) {
                Some(declaration) => diagnostic.with_related("declared here", model.file, declaration.span),
                None => diagnostic,
            });
        }
        let (Some(constant), Some((declared, choices))) = (&set.constant, &set.declared) else { continue };
        if constant.is_null() {
            continue;
        }
        // A table of a phase or of the session may set a variable that a topic declares differently.
        let wide = set.at.action.is_none() && !matches!(set.at.body, CalleeBody::Topic(..) | CalleeBody::Skill(_));
        let places = model.names().places(&set.name.value);
        if wide && places.is_some_and(|places| places.declared.len() > 1) {
            continue;
        }
        let name = shortened(&set.name.value);
        let coerced = match declared {
            Some(declared) => declared.coerce(constant),
            None => Some(constant.clone()),
        };
        let (message, help) = match (coerced, declared) {
            (None, Some(declared)) if let Some(text) = calculation(constant) => (
                msg!("`{name}` is declared as {} and cannot hold this text", declared.name()),
                msg!("if it should be calculated, write `\"{{{{ {text} }}}}\"`"),
            ),
            (None, Some(declared)) => (
                msg!("`{name}` is declared as {} and cannot hold this value", declared.name()),
                msg!("give it a value of type {}, or change its `type` where it is declared", declared.name()),
            ),
            (Some(coerced), _) if !choices.is_empty() && !choices.contains(&coerced) => (
                msg!("this value is not in the `enum` of `{name}`"),
                msg!("use one of {}, or add this value to the `enum`", values(choices)),
            ),
            _ => continue,
        };
        let mut diagnostic = Diagnostic::error("value-type-conflict", message, model.file, set.span).with_help(help);
        if let Some(declaration) = declarations.nearest(&set.name.value, set.at.body) {
            diagnostic = diagnostic.with_related("declared here", model.file, declaration.span);
        }
        findings.report(diagnostic);
    }
}

/// The text of a constant that looks like a calculation: names or numbers with arithmetic operators between them.
fn calculation(constant: &serde_json::Value) -> Option<&str> {
    let text = constant.as_str()?.trim();
    let parts: Vec<&str> = text.split(['+', '-', '*', '/']).map(str::trim).collect();
    let word = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    let named = parts.iter().any(|part| part.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    (parts.len() > 1 && named && parts.iter().all(word)).then_some(text)
}
