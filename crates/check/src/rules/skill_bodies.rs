//! `output-never-set`: an output of a skill that is never set. `unused-skill`: a skill that is never called.

use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};

use crate::collected::CalleeBody;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;

pub static RULE: Rule = Rule { slugs: &["output-never-set", "unused-skill"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    if model.skills.is_empty() || !model.is_complete() {
        return;
    }
    let mut set: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    for definition in &model.collected.definitions {
        if let CalleeBody::Skill(skill) = definition.at.body {
            set.entry(skill).or_default().insert(&definition.name);
        }
    }
    let mut called: BTreeMap<&str, Vec<CalleeBody>> = BTreeMap::new();
    let calls = model.collected.calls.iter().map(|call| (&call.skill, call.at.body));
    for (id, body) in calls.chain(model.inserts()) {
        called.entry(id.value.as_str()).or_default().push(body);
    }
    for (number, skill) in model.skills.iter().enumerate() {
        let id = shortened(&skill.id.value);
        let empty = BTreeSet::new();
        let known = set.get(&number).unwrap_or(&empty);
        for output in skill.outputs.iter().filter(|output| !known.contains(output.value.as_str())) {
            let message =
                msg!("the skill `{id}` lists the output `{}`, but nothing in the skill sets it", output.value);
            let near = findings.may_suggest().then(|| near_miss(&output.value, known.iter().copied())).flatten();
            let help = match near {
                Some(near) => msg!("did you mean `{near}`? Otherwise, extract or set it in an action"),
                None => msg!("extract or set it in an action of the skill, or remove it from `outputs`"),
            };
            findings.report(Diagnostic::error("output-never-set", message, model.file, output.span).with_help(help));
        }
        let own = CalleeBody::Skill(number);
        let used = called.get(skill.id.value.as_str()).is_some_and(|bodies| bodies.iter().any(|body| *body != own));
        if model.script.is_some() && !used && !skill.id.value.is_empty() {
            let message = msg!("nothing in this script calls the skill `{id}`");
            let help = "call it with `use_skill` or `insert`, move it to skills/ for other scripts, or remove it";
            findings.report(Diagnostic::warning("unused-skill", message, model.file, skill.id.span).with_help(help));
        }
    }
}
