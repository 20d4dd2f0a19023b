//! `invalid-dependency`: a `depends_on` of an action that names itself, nothing that exists, or something that comes later.

use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};

use crate::collected::{CalleeBody, CollectedAction};
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::dependencies::{INVALID_DEPENDENCY, depends_on_itself, unknown_dependency};
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;

pub static RULE: Rule = Rule { slugs: &[INVALID_DEPENDENCY], essential: true, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let actions = &model.collected.actions;
    if actions.iter().all(|action| action.depends_on.is_empty()) {
        return;
    }
    let ids: BTreeMap<&str, usize> =
        actions.iter().enumerate().rev().map(|(number, action)| (action.id.value.as_str(), number)).collect();
    let is_skill = |body| matches!(body, CalleeBody::Skill(_));
    for (number, action) in actions.iter().enumerate() {
        let can_name =
            |other: &CollectedAction| other.body == action.body || !is_skill(other.body) && !is_skill(action.body);
        for id in &action.depends_on {
            if id.value == action.id.value {
                findings.report(depends_on_itself(id, model.file));
                continue;
            }
            let found = ids.get(id.value.as_str()).copied().filter(|found| actions.get(*found).is_some_and(can_name));
            let Some(found) = found else {
                let known = || {
                    let earlier = actions.iter().take(number).filter(|other| can_name(other));
                    earlier.map(|other| other.id.value.as_str()).filter(|id| !id.is_empty())
                };
                findings.report(unknown_dependency(id, known, model.file, findings.may_suggest()));
                continue;
            };
            let Some(other) = actions.get(found) else { continue };
            let contains = std::iter::successors(action.parent, |number| actions.get(*number)?.parent);
            let (message, help) = if contains.into_iter().any(|around| around == found) {
                (
                    msg!("`{}` contains this action, so it is not over before this one starts", shortened(&id.value)),
                    "remove it, or write the id of an earlier action",
                )
            } else if found < number {
                continue;
            } else if depends_on(actions, &ids, found, number) {
                (
                    msg!("`{}` depends on this action as well, so neither could start", shortened(&id.value)),
                    "remove one of these dependencies",
                )
            } else {
                (
                    msg!("`{}` comes later: actions run in the order in which they are written", shortened(&id.value)),
                    "move the other action before this one, or remove this dependency",
                )
            };
            let diagnostic = Diagnostic::error(INVALID_DEPENDENCY, message, model.file, id.span).with_help(help);
            findings.report(diagnostic.with_related("the other action", model.file, other.id.span));
        }
    }
}

/// Whether the action `from` depends on `to`, directly or through others.
fn depends_on(actions: &[CollectedAction], ids: &BTreeMap<&str, usize>, from: usize, to: usize) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut pending = vec![from];
    while let Some(number) = pending.pop() {
        if number == to {
            return true;
        }
        let next = actions.get(number).map(|action| action.depends_on.as_slice()).unwrap_or_default();
        let next = next.iter().filter_map(|id| ids.get(id.value.as_str()).copied());
        pending.extend(next.filter(|number| seen.insert(*number)));
    }
    false
}
