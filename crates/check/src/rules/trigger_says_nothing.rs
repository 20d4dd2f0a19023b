//! `trigger-says-nothing`: what a trigger inserts says nothing to the person (docs/triggers.md).

use bcc_lang::message::msg;
use std::collections::BTreeSet;

use crate::callables::can_insert;
use crate::collected::CalleeBody;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::route_parser::RouteTarget;
use bcc_lang::source::diagnostic::Diagnostic;

const SLUG: &str = "trigger-says-nothing";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    // With a `goto`, its target may speak instead; `end` needs no words.
    let resumes = |then: &RouteTarget| *then == RouteTarget::Resume;
    let triggers = model.collected.triggers.iter();
    let resuming = triggers.filter(|trigger| trigger.then.as_ref().is_none_or(|then| resumes(&then.value)));
    let inserts: Vec<_> = resuming.filter_map(|trigger| trigger.insert.as_ref()).collect();
    // A value that is set may lead to more through a table of changes.
    let changes = model.collected.routes.iter().any(|table| table.is_on_change);
    if inserts.is_empty() || changes || !model.is_complete() || !model.callables().is_complete() {
        return;
    }
    for id in inserts.into_iter().filter(|id| is_silent(model, &id.value)) {
        let message = msg!("the trigger inserts `{}`, which says nothing to the person", shortened(&id.value));
        let help =
            "insert something that speaks, such as an `ai_say`; with `then: end`, the session is completed instead";
        findings.report(Diagnostic::warning(SLUG, message, model.file, id.span).with_help(help));
    }
}

/// What is inserted or called, as far as it was followed.
#[derive(Default)]
struct Reached<'m> {
    seen: BTreeSet<&'m str>,
    /// The skills that must still be followed.
    pending: Vec<&'m str>,
    kinds: BTreeSet<&'m str>,
    /// Whether a route may continue at another part of the script.
    leaves: bool,
}

/// Whether nothing that runs because of the insertion of this skill or action can say anything. False if this is not known.
fn is_silent(model: &SemanticModel<'_>, id: &str) -> bool {
    let callables = model.callables();
    let mut reached = Reached::default();
    match callables.skill(id) {
        Some(skill) => reached.pending.push(&skill.id),
        None => match callables.action(id) {
            Some(number) => reached.action(model, number),
            None => return false,
        },
    }
    while let Some(id) = reached.pending.pop() {
        let Some(skill) = callables.skill(id) else { return false };
        if !reached.seen.insert(&skill.id) {
            continue;
        }
        reached.kinds.extend(skill.kinds.iter().map(String::as_str));
        reached.leaves |= skill.leaves.topic || skill.leaves.phase || skill.leaves.session;
        // An insertion that is no skill is an action of the skill itself, whose kind is known.
        let called =
            skill.calls.iter().filter(|call| call.reason.is_none() || callables.skill(&call.id.value).is_some());
        reached.pending.extend(called.map(|call| call.id.value.as_str()));
    }
    let is_mute = |name: &&str| model.kinds.iter().any(|kind| kind.name() == *name && !kind.may_speak());
    !reached.leaves && reached.kinds.iter().all(is_mute)
}

impl<'m> Reached<'m> {
    /// Adds an action of the script, with the actions in it.
    fn action(&mut self, model: &'m SemanticModel<'_>, number: usize) {
        let (callables, actions) = (model.callables(), &model.collected.actions);
        let mut inside = BTreeSet::from([number]);
        let mut pending = vec![number];
        while let Some(number) = pending.pop() {
            let Some(action) = actions.get(number) else { continue };
            self.kinds.insert(&action.kind.value);
            // A nested action comes after the one that contains it.
            let nested = actions.iter().enumerate().filter(|(_, nested)| nested.parent == Some(number));
            let mut found: Vec<usize> = nested.map(|(number, _)| number).collect();
            for route in action.on_exit.iter().flat_map(|table| &table.routes) {
                let target = route.then.as_ref().map(|then| &then.value);
                self.leaves |= target.is_some_and(|target| !matches!(target, RouteTarget::Next | RouteTarget::Resume));
                let Some(id) = &route.insert else { continue };
                if callables.skill(&id.value).is_some() {
                    self.pending.push(&id.value);
                } else if let Some(other) = callables.action(&id.value) {
                    found.extend(actions.get(other).filter(|to| can_insert(CalleeBody::Session, to)).map(|_| other));
                }
            }
            pending.extend(found.into_iter().filter(|number| inside.insert(*number)));
        }
        let calls = model.collected.calls.iter();
        let called = calls.filter(|call| call.at.action.is_some_and(|action| inside.contains(&action)));
        self.pending.extend(called.map(|call| call.skill.value.as_str()));
        self.leaves |= model.collected.gotos.iter().any(|(_, at)| at.action.is_some_and(|at| inside.contains(&at)));
    }
}
