//! `scope-in-skill`: an output in a skill that seems meant for the caller, although a skill has its own scope.
//! `input-left-empty`: an inserted skill, which receives no inputs.
//! `output-not-received`: outputs of a skill that is only inserted, so that no caller receives them.

use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};

use crate::collected::CalleeBody;
use crate::library::{SkillInput, SkillOutline};
use crate::listing::and;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::script::Script;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::{Span, Spanned};
use bcc_lang::value::scopes::Scope;

pub static RULE: Rule =
    Rule { slugs: &["input-left-empty", "output-not-received", "scope-in-skill"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    for entry in &model.collected.outputs {
        let CalleeBody::Skill(number) = entry.at.body else { continue };
        let Some(scope) = entry.output.scope.filter(|scope| *scope != Scope::Topic) else { continue };
        let name = shortened(&entry.output.get);
        let message = msg!("`scope: {scope}` has no effect in a skill: variables that a skill sets stay in the skill");
        let listed = model
            .skills
            .get(number)
            .is_some_and(|skill| skill.outputs.iter().any(|output| output.value == entry.output.get));
        let help = match listed {
            true => msg!("remove `scope`; a caller gets `{name}` through `output:` of its `use_skill`"),
            false => msg!(
                "remove `scope`, list `{name}` under `outputs:` of the skill, and get it through `output:` of a `use_skill`"
            ),
        };
        findings.report(Diagnostic::warning("scope-in-skill", message, model.file, entry.span).with_help(help));
    }
    let inserts = model.inserts();
    if inserts.is_empty() {
        return;
    }
    let idle = idle_inputs(model);
    let own: BTreeMap<Span, usize> =
        model.skills.iter().enumerate().map(|(number, skill)| (skill.id.span, number)).collect();
    let called: BTreeSet<&str> = model.collected.calls.iter().map(|call| call.skill.value.as_str()).collect();
    // An orchestrated topic may call it.
    let is_orchestrated = model.script.is_some_and(Script::is_orchestrated);
    let mut empty: BTreeMap<&str, Vec<&SkillInput>> = BTreeMap::new();
    for (id, _) in inserts {
        let Some(skill) = model.callables().skill(&id.value) else { continue };
        // A skill in a file may have callers in other scripts.
        let here = own.get(&skill.span).filter(|_| skill.is_at(model.file, skill.span));
        let outputs = here.and_then(|number| model.skills.get(*number)).map(|skill| skill.outputs.as_slice());
        if let Some(outputs @ [first, ..]) = outputs
            && !called.contains(id.value.as_str())
            && !is_orchestrated
        {
            findings.report(not_received(id, outputs, first.span, model));
        }
        let empty = empty.entry(&id.value).or_insert_with(|| {
            let own = own.get(&skill.span).filter(|_| skill.is_at(model.file, skill.span));
            let needed = skill.inputs.iter().filter(|input| input.needed);
            needed.filter(|input| own.is_none_or(|own| !idle.contains(&(*own, input.name.as_str())))).collect()
        });
        if !empty.is_empty() {
            findings.report(left_empty(id, skill, empty, model));
        }
    }
}

/// The inputs of the document's skills whose value is never required.
fn idle_inputs<'f>(model: &'f SemanticModel<'_>) -> BTreeSet<(usize, &'f str)> {
    let skill = |body| match body {
        CalleeBody::Skill(number) => Some(number),
        _ => None,
    };
    let needed = model.collected.uses.iter().filter(|used| !used.optional);
    let needed: BTreeSet<(usize, &str)> =
        needed.filter_map(|used| Some((skill(used.at.body)?, used.name.as_str()))).collect();
    let skills = model.skills.iter().enumerate();
    let inputs = skills
        .flat_map(|(number, skill)| skill.inputs.iter().map(move |input| (number, input.declaration.name.as_str())));
    // An unreadable part may need it.
    inputs.filter(|input| model.is_complete() && !needed.contains(input)).collect()
}

fn left_empty(
    id: &Spanned<String>,
    skill: &SkillOutline,
    empty: &[&SkillInput],
    model: &SemanticModel<'_>,
) -> Diagnostic {
    let names = || empty.iter().map(|input| input.name.as_str());
    let (names, skill_id) = (and(names()), shortened(&skill.id));
    let (message, help) = match empty {
        [_] => (
            msg!("the input {names} of the skill `{skill_id}` is empty here: an inserted skill receives no inputs"),
            "give the input a `value` in the skill, or call the skill with `use_skill`, which has `input:`",
        ),
        _ => (
            msg!("the inputs {names} of the skill `{skill_id}` are empty here: an inserted skill receives no inputs"),
            "give the inputs a `value` in the skill, or call the skill with `use_skill`, which has `input:`",
        ),
    };
    let mut diagnostic = Diagnostic::warning("input-left-empty", message, model.file, id.span).with_help(help);
    for input in empty.iter().take(3) {
        diagnostic = diagnostic.with_related("the input", &skill.file, input.span);
    }
    diagnostic
}

fn not_received(
    id: &Spanned<String>,
    outputs: &[Spanned<String>],
    first: Span,
    model: &SemanticModel<'_>,
) -> Diagnostic {
    let (names, skill) = (and(outputs.iter().map(|output| output.value.as_str())), shortened(&id.value));
    let message = match outputs {
        [_] => msg!("the output {names} of the skill `{skill}` is lost here: an inserted skill has no caller"),
        _ => msg!("the outputs {names} of the skill `{skill}` are lost here: an inserted skill has no caller"),
    };
    let help =
        "insert an action of this script that calls the skill: a `use_skill`, which has `output:`; or remove `outputs`";
    Diagnostic::warning("output-not-received", message, model.file, id.span).with_help(help).with_related(
        "the outputs",
        model.file,
        first,
    )
}
