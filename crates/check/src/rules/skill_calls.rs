//! Calls of skills by actions: `unknown-skill`, `missing-input`, `unknown-input`, `input-type`, `unknown-output`.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};

use crate::callables::Callables;
use crate::collected::{CallBy, CollectedCall};
use crate::library::{SkillInput, SkillOutline};
use crate::listing::and;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Spanned;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::value::declared::DeclaredType;

pub static RULE: Rule = Rule {
    slugs: &["unknown-skill", "missing-input", "unknown-input", "input-type", "unknown-output"],
    essential: true,
    check,
};

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    if model.collected.calls.is_empty() {
        return;
    }
    let callables = model.callables();
    for call in &model.collected.calls {
        match (callables.skill(&call.skill.value), &call.by) {
            (Some(skill), CallBy::Author | CallBy::Kind(_)) => check_call(call, skill, model, findings),
            // The inputs of a hook are only known at run time.
            (Some(_), CallBy::Hook(_) | CallBy::Maybe(_)) => {}
            (None, _) if !callables.is_complete() => {}
            (None, CallBy::Author) => {
                findings.report(unknown(&call.skill, callables, model, findings.may_suggest()));
            }
            (None, CallBy::Kind(kind) | CallBy::Hook(kind) | CallBy::Maybe(kind)) => {
                findings.report(unknown_of_kind(&call.skill, kind, callables, model));
            }
        }
    }
}

fn unknown(id: &Spanned<String>, callables: &Callables<'_>, model: &SemanticModel<'_>, advise: bool) -> Diagnostic {
    let message = msg!("there is no skill `{}`", shortened(&id.value));
    let diagnostic = Diagnostic::error("unknown-skill", message, model.file, id.span);
    if let Some(action) = callables.action(&id.value).and_then(|number| model.collected.actions.get(number)) {
        let help = "this is the id of an action, but `use_skill` calls skills: define it as a skill under `skills:`";
        return diagnostic.with_help(help).with_related("the action", model.file, action.id.span);
    }
    match advise.then(|| near_miss(&id.value, callables.skills())).flatten() {
        Some(near) => diagnostic.with_suggestion(near),
        None if callables.skills().next().is_none() => diagnostic
            .with_help("there are no skills yet: define it under `skills:` in the script, or in a file in skills/"),
        None => diagnostic.with_help(msg!("available skills: {}", and(callables.skills()))),
    }
}

/// Reports a missing skill that bcc-script.toml names.
fn unknown_of_kind(
    id: &Spanned<String>,
    kind: &str,
    callables: &Callables<'_>,
    model: &SemanticModel<'_>,
) -> Diagnostic {
    let message =
        msg!("the action type `{}` runs the skill `{}`, which does not exist", shortened(kind), shortened(&id.value));
    let help = match near_miss(&id.value, callables.skills()) {
        Some(near) => msg!("did you mean `{near}`? The name is set in bcc-script.toml"),
        None => msg!("define the skill in a file in skills/, or set another one in bcc-script.toml"),
    };
    Diagnostic::error("unknown-skill", message, model.file, id.span).with_help(help)
}

fn check_call<'s>(call: &CollectedCall, skill: &'s SkillOutline, model: &SemanticModel<'_>, findings: &Findings) {
    let file = model.file;
    let id = shortened(&skill.id);
    let near = |name: &str, known: &mut dyn Iterator<Item = &'s str>| {
        findings.may_suggest().then(|| near_miss(name, known)).flatten()
    };
    let named: BTreeSet<&str> = call.inputs.iter().map(|input| input.name.value.as_str()).collect();
    let given = |name: &str| named.contains(name);
    let inputs = || skill.inputs.iter().map(|input| input.name.as_str());
    let known: BTreeMap<&str, &SkillInput> = skill.inputs.iter().map(|input| (input.name.as_str(), input)).collect();
    let unknown_inputs: Vec<&Spanned<String>> =
        call.inputs.iter().map(|input| &input.name).filter(|name| !known.contains_key(name.value.as_str())).collect();
    let missing: Vec<_> = skill.inputs.iter().filter(|input| input.needed && !given(&input.name)).collect();
    let mut mistyped = BTreeSet::new();
    for unknown_input in unknown_inputs {
        let message = msg!("the skill `{id}` has no input `{}`", shortened(&unknown_input.value));
        let diagnostic = Diagnostic::error("unknown-input", message, file, unknown_input.span);
        let diagnostic = match near(&unknown_input.value, &mut inputs().filter(|name| !given(name))) {
            Some(near) => {
                mistyped.insert(near);
                diagnostic.with_suggestion(near)
            }
            None if skill.inputs.is_empty() => diagnostic.with_help("the skill has no inputs: remove this line"),
            None => diagnostic.with_help(msg!("its inputs are {}; remove this one", and(inputs()))),
        };
        findings.report(diagnostic.with_related("the skill", &skill.file, skill.span));
    }
    for input in missing.into_iter().filter(|input| !mistyped.contains(input.name.as_str())) {
        let message = msg!("the skill `{id}` requires the input `{}`, which is missing here", shortened(&input.name));
        let under = if call.by == CallBy::Author { "input" } else { "config" };
        let help = msg!("add `{}: …` under `{under}:`, or give it a `value` in the skill", input.name);
        let diagnostic = Diagnostic::error("missing-input", message, file, call.skill.span).with_help(help);
        findings.report(diagnostic.with_related("the input", &skill.file, input.span));
    }
    for given in &call.inputs {
        let input = known.get(given.name.value.as_str());
        if let Some((input, declared)) = input.and_then(|input| Some((input, input.declared?)))
            && (never_fits(&given.value, declared) || model.never_fits(given.value.span, declared))
        {
            let (name, wanted) = (shortened(&input.name), declared.name());
            let message = msg!(
                "the input `{name}` of the skill `{id}` is declared as {wanted}, but this is not a valid {wanted}"
            );
            let help = match declared {
                DeclaredType::Date => msg!("write a valid date, as in 2026-11-21"),
                _ => {
                    Message::word("write a value of this type, or a variable that contains one, as in `\"{{ name }}\"`")
                }
            };
            let diagnostic = Diagnostic::error("input-type", message, file, given.value.span).with_help(help);
            findings.report(diagnostic.with_related("declared here", &skill.file, input.span));
        }
    }
    let outputs = || skill.outputs.iter().map(|output| output.value.as_str());
    let listed: BTreeSet<&str> = outputs().collect();
    for output in call.outputs.iter().filter(|output| !listed.contains(output.value.as_str())) {
        let message = msg!("the skill `{id}` has no output `{}`", shortened(&output.value));
        let diagnostic = Diagnostic::error("unknown-output", message, file, output.span);
        let diagnostic = match near(&output.value, &mut outputs()) {
            Some(near) => diagnostic.with_suggestion(near),
            None if skill.outputs.is_empty() => diagnostic
                .with_help("the skill has no outputs: list it under `outputs:` of the skill, or remove it here"),
            None => diagnostic.with_help(msg!("its outputs are {}", and(outputs()))),
        };
        findings.report(diagnostic.with_related("the skill", &skill.file, skill.span));
    }
}

/// Whether a constant value cannot be coerced to the type. The value of a text with placeholders is unknown.
fn never_fits(value: &YamlNode, declared: DeclaredType) -> bool {
    let written = value.to_json();
    let has_placeholder = value.as_scalar().is_some_and(|scalar| scalar.text.contains('{'));
    !has_placeholder && !written.is_null() && declared.coerce(&written).is_none()
}
