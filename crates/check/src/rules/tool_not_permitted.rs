//! `tool-not-permitted`: an action calls a tool that `tools` of the script does not list.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeSet, VecDeque};

use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::script::Script;
use bcc_lang::script::tools::BUILT_IN_TOOLS;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Spanned;
use bcc_runtime::effects::tools::matches;

const SLUG: &str = "tool-not-permitted";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: true, check };

/// A skill uses the tools of the script that calls it, so only scripts are checked.
fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let Some(script) = model.script else { return };
    for tool in model.collected.actions.iter().flat_map(|action| &action.described).flat_map(|known| &known.tools) {
        if !is_permitted(script, &tool.value) {
            let message = msg!("the script does not permit the tool `{}`", shortened(&tool.value));
            let diagnostic = Diagnostic::error(SLUG, message, model.file, tool.span);
            // The name of a tool that exists is no mistake.
            let is_known = BUILT_IN_TOOLS.contains(&tool.value.as_str());
            let near = near_miss(&tool.value, patterns(script)).filter(|_| !is_known);
            findings.report(diagnostic.with_help(help(script, &tool.value, near)).with_replacement(near));
        }
    }
    check_skills(model, script, findings);
}

/// Checks the skills of files that the script reaches.
fn check_skills(model: &SemanticModel<'_>, script: &Script, findings: &Findings) {
    let callables = model.callables();
    let calls = model.collected.calls.iter().map(|call| &call.skill);
    let inserts = model.inserts();
    let mut pending: VecDeque<(Spanned<String>, String)> =
        calls.chain(inserts.iter().map(|(id, _)| *id)).map(|id| (id.clone(), id.value.clone())).collect();
    let mut seen = BTreeSet::new();
    while let Some((place, id)) = pending.pop_front() {
        let Some(skill) = callables.skill(&id).filter(|_| seen.insert(id.clone())) else { continue };
        pending.extend(skill.calls.iter().map(|call| (place.clone(), call.id.value.clone())));
        // The actions of the document itself are checked where they are.
        let is_own = skill.file.name() == model.file.name();
        let Some(tool) = skill.tools.iter().find(|tool| !is_own && !is_permitted(script, tool)) else { continue };
        let (shown, tool) = (shortened(&id), shortened(tool));
        let message = msg!("the skill `{shown}` calls the tool `{tool}`, which the script does not permit");
        let diagnostic = Diagnostic::error(SLUG, message, model.file, place.span);
        let diagnostic = diagnostic.with_help(help(script, &tool, None));
        findings.report(diagnostic.with_related("the skill", &skill.file, skill.span));
    }
}

fn help(script: &Script, tool: &str, near: Option<&str>) -> Message {
    match near {
        Some(near) => msg!("did you mean `{near}`?"),
        None if script.tools.is_empty() => msg!("add `tools: [{tool}]` to the script"),
        None => msg!("add `{tool}` to `tools` of the script"),
    }
}

fn patterns(script: &Script) -> impl Iterator<Item = &str> {
    script.tools.iter().map(|tool| tool.pattern.value.as_str())
}

fn is_permitted(script: &Script, tool: &str) -> bool {
    patterns(script).any(|pattern| matches(pattern, tool))
}
