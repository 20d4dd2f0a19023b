//! `branch-conflict`, `not-in-branch` and `unknown-in-branch`: what lists of actions that run at the same time must not do
//! (docs/actions/parallel.md).

use std::collections::{BTreeMap, BTreeSet};

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::route_parser::RouteTarget;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;

use crate::cleanup::Cleanup;
use crate::collected::{AssignmentKind, Collected, CollectedAction, Definition};
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use crate::skill_questions::certain_action;

const CONFLICT: &str = "branch-conflict";
const NOT_HERE: &str = "not-in-branch";
const UNKNOWN: &str = "unknown-in-branch";

pub static RULE: Rule = Rule { slugs: &[CONFLICT, NOT_HERE, UNKNOWN], essential: true, check };

/// Where an action is: an action with branches that contains it, and the number of the branch.
type BranchPlace = (usize, usize);

/// The branches of all actions.
struct Branches<'a> {
    actions: &'a [CollectedAction],
    /// For each action with branches: the numbers of the blocks of its branches, in their order.
    blocks: BTreeMap<usize, Vec<usize>>,
    /// The lists that are a `finally` or a `compensate`: they run outside of branches.
    cleanup: &'a BTreeMap<usize, Cleanup>,
}

impl<'a> Branches<'a> {
    fn of(collected: &'a Collected) -> Self {
        let (actions, cleanup) = (collected.actions.as_slice(), &collected.cleanup_blocks);
        let mut blocks: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for action in actions {
            let Some(parent) = action.parent.filter(|_| !cleanup.contains_key(&action.block)) else { continue };
            if actions.get(parent).is_some_and(is_concurrent) {
                blocks.entry(parent).or_default().insert(action.block);
            }
        }
        let blocks = blocks.into_iter().map(|(action, blocks)| (action, blocks.into_iter().collect())).collect();
        Self { actions, blocks, cleanup }
    }

    /// The branches that contain an action, the innermost first.
    fn around(&self, action: Option<usize>) -> Vec<BranchPlace> {
        let mut found = Vec::new();
        let mut current = action.and_then(|number| self.actions.get(number));
        while let Some(action) = current {
            let Some(parent) = action.parent.filter(|_| !self.cleanup.contains_key(&action.block)) else { break };
            let blocks = self.blocks.get(&parent);
            if let Some(branch) = blocks.and_then(|blocks| blocks.iter().position(|block| *block == action.block)) {
                found.push((parent, branch));
            }
            current = self.actions.get(parent);
        }
        found
    }

    /// Whether an action with this id is in the list of the action `number` or in a list around it, and in the same branch.
    fn reaches(&self, number: usize, id: &str) -> bool {
        let mut current = self.actions.get(number);
        while let Some(action) = current {
            if self.actions.iter().any(|other| other.block == action.block && other.id.value == id) {
                return true;
            }
            let is_outermost = |parent: &usize| {
                self.cleanup.contains_key(&action.block)
                    || self.blocks.get(parent).is_some_and(|blocks| blocks.contains(&action.block))
            };
            current = action.parent.filter(|parent| !is_outermost(parent)).and_then(|parent| self.actions.get(parent));
        }
        false
    }

    /// Whether one branch runs after the other, so that it sees what that one set.
    fn follows(&self, action: usize, branch: usize, other: usize) -> bool {
        let described = self.actions.get(action).and_then(|action| action.described.as_ref());
        let Some(described) = described else { return true };
        let mut seen = BTreeSet::new();
        let mut pending = vec![branch];
        while let Some(branch) = pending.pop() {
            if seen.insert(branch) {
                pending.extend(described.concurrent.get(branch).into_iter().flatten().copied());
            }
        }
        seen.contains(&other)
    }
}

fn is_concurrent(action: &CollectedAction) -> bool {
    action.described.as_ref().is_some_and(|described| !described.concurrent.is_empty())
}

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let branches = Branches::of(&model.collected);
    if branches.blocks.is_empty() {
        return;
    }
    for (number, action) in model.collected.actions.iter().enumerate() {
        if branches.around(Some(number)).is_empty() {
            continue;
        }
        check_kind(model, action, findings);
        check_routes(model, &branches, number, findings);
    }
    check_calls(model, &branches, findings);
    for (id, at) in &model.collected.gotos {
        if !branches.around(at.action).is_empty()
            && !at.action.is_some_and(|action| branches.reaches(action, &id.value))
        {
            report_exit(model, id.span, &RouteTarget::Goto(id.value.clone()), findings);
        }
    }
    check_names(model, &branches, findings);
}

/// Reports an action whose kind cannot be part of a branch.
fn check_kind(model: &SemanticModel<'_>, action: &CollectedAction, findings: &Findings) {
    if model.kind_of(action).is_none_or(|kind| kind.runs_in_branches()) {
        return;
    }
    let message = msg!("an action of kind `{}` cannot be part of a branch", shortened(&action.kind.value));
    let help = "branches neither talk to the user nor use the notebook: move the action before or after the `parallel`";
    findings.report(Diagnostic::error(NOT_HERE, message, model.file, action.kind.span).with_help(help));
}

/// Reports calls of skills that ask the user: they fail their branch.
fn check_calls(model: &SemanticModel<'_>, branches: &Branches<'_>, findings: &Findings) {
    let asks = |action: &CollectedAction| action.described.as_ref().is_some_and(|described| described.needs_answer);
    for call in model.collected.calls.iter().filter(|call| !branches.around(call.at.action).is_empty()) {
        let Some(question) = certain_action(model, call, &asks) else { continue };
        let message = msg!(
            "the skill `{}` asks the user (`{}`), which is not possible in a branch",
            shortened(&call.skill.value),
            shortened(&question.id.value)
        );
        let help = "ask before the `parallel`, and give the skill the answer as an input";
        findings.report(Diagnostic::error(NOT_HERE, message, model.file, call.skill.span).with_help(help));
    }
}

/// Reports routes that lead out of the branch of an action.
fn check_routes(model: &SemanticModel<'_>, branches: &Branches<'_>, number: usize, findings: &Findings) {
    let table = branches.actions.get(number).and_then(|action| action.on_exit.as_ref());
    for route in table.iter().flat_map(|table| &table.routes) {
        let Some(then) = &route.then else { continue };
        let leaves = match &then.value {
            RouteTarget::SkipTopic | RouteTarget::SkipPhase | RouteTarget::End => true,
            RouteTarget::Goto(id) => !branches.reaches(number, id),
            RouteTarget::Next | RouteTarget::Resume | RouteTarget::Retry | RouteTarget::Fail => false,
        };
        if leaves {
            report_exit(model, then.span, &then.value, findings);
        }
    }
}

fn report_exit(model: &SemanticModel<'_>, span: Span, target: &RouteTarget, findings: &Findings) {
    let message = msg!("`{}` leads out of the branch", shortened(&target.to_string()));
    let help = "a branch ends with its last action, or fails with `fail`; a route of the `parallel` itself can lead elsewhere: `on_exit: { branch_failed: … }`";
    findings.report(Diagnostic::error(NOT_HERE, message, model.file, span).with_help(help));
}

/// Reports names that two branches set, and names that a branch needs from another one.
fn check_names(model: &SemanticModel<'_>, branches: &Branches<'_>, findings: &Findings) {
    let collected = &model.collected;
    let mut written: BTreeMap<(usize, &str), BTreeMap<usize, &Definition>> = BTreeMap::new();
    for definition in collected.definitions.iter().filter(|definition| definition.how == AssignmentKind::Written) {
        for (action, branch) in branches.around(definition.at.action) {
            written.entry((action, &definition.name)).or_default().entry(branch).or_insert(definition);
        }
    }
    for ((action, name), by) in &written {
        let mut earlier: Vec<usize> = Vec::new();
        for (branch, definition) in by {
            let conflicts = |other: &&usize| {
                !branches.follows(*action, *branch, **other) && !branches.follows(*action, **other, *branch)
            };
            if let Some(other) = earlier.iter().find(conflicts).and_then(|other| by.get(other)) {
                let line = model.file.line(other.span.start);
                let message = msg!("two branches that run at the same time set `{}`", shortened(name));
                let help = msg!(
                    "line {line} sets it, too: use two names, or let one branch follow the other with `depends_on`"
                );
                findings.report(Diagnostic::error(CONFLICT, message, model.file, definition.span).with_help(help));
            }
            earlier.push(*branch);
        }
    }
    for used in &collected.uses {
        for (action, branch) in branches.around(used.at.action) {
            let Some(by) = written.get(&(action, used.name.as_str())) else { continue };
            let is_seen = |other: &usize| branches.follows(action, branch, *other);
            let before = collected.definitions.iter().filter(|definition| {
                definition.name == used.name && !branches.around(definition.at.action).iter().any(|(a, _)| *a == action)
            });
            let known_outside = before.into_iter().any(|definition| match definition.how {
                AssignmentKind::Declared => definition.has_value,
                _ => definition.order < used.order,
            });
            if used.optional || known_outside || by.keys().any(is_seen) {
                continue;
            }
            let message: Message =
                msg!("`{}` has no value in this branch: only another branch sets it", shortened(&used.name));
            let help = "branches do not see what others set until all have ended; `depends_on` lets this branch follow the other one";
            let diagnostic = Diagnostic::error(UNKNOWN, message, model.file, used.place.span(model.file));
            findings.report(diagnostic.with_help(help));
        }
    }
}
