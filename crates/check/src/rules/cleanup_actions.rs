//! `cleanup-action`: an action in `finally` or `compensate` that waits for a person, leaves the list, or has a `compensate` itself.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};

use crate::cleanup::Cleanup;
use crate::collected::{ActionPosition, CollectedAction};
use crate::jump_targets::can_jump;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use crate::skill_questions::certain_action;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::route_parser::RouteTarget;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;

const SLUG: &str = "cleanup-action";

/// The exit reason of actions that wait for a decision.
const APPROVED: &str = "approved";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: true, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let actions = &model.collected.actions;
    if model.collected.cleanup_blocks.is_empty() {
        return;
    }
    let report = |message: Message, span: Span, help: &'static str| {
        findings.report(Diagnostic::error(SLUG, message, model.file, span).with_help(help));
    };
    let inside = |number: usize| {
        let action = actions.get(number)?;
        action.cleanup.map(|cleanup| (action, cleanup))
    };
    for number in 0..actions.len() {
        let Some((action, cleanup)) = inside(number) else { continue };
        let field = cleanup.name();
        if waits(model, action) {
            let message = msg!(
                "`{}` waits for a person, but an action of `{field}` must not wait for anybody",
                shortened(&action.id.value)
            );
            let help = "ask before, and use the answer here; `ai_say` with `delivery: verbatim` can tell what is done";
            report(message, action.kind.span, help);
        }
        let is_nested = model.collected.cleanup_blocks.get(&action.block) == Some(&Cleanup::Compensate)
            && action.parent.and_then(inside).is_some();
        if is_nested {
            let message = msg!(
                "what cleans up is not compensated itself, but `{}` is in a `compensate` inside one",
                shortened(&action.id.value)
            );
            report(message, action.id.span, "move it out, or remove it");
        }
    }
    for call in &model.collected.calls {
        let Some((_, cleanup)) = call.at.action.and_then(inside) else { continue };
        let Some(question) = certain_action(model, call, &|action| waits(model, action)) else { continue };
        let (skill, field) = (shortened(&call.skill.value), cleanup.name());
        let message = msg!(
            "the skill `{skill}` waits for a person (`{}`), but an action of `{field}` must not wait for anybody",
            shortened(&question.id.value)
        );
        report(message, call.skill.span, "ask before, and give the skill the answer as an input");
    }
    let ids: BTreeMap<&str, usize> =
        actions.iter().enumerate().map(|(number, action)| (action.id.value.as_str(), number)).collect();
    let phases = model.script.map(|script| script.phases.as_slice()).unwrap_or_default();
    let topics = phases.iter().flat_map(|phase| phase.topics.iter().map(|topic| &topic.id));
    let parts: BTreeSet<&str> =
        phases.iter().map(|phase| &phase.id).chain(topics).map(|id| id.value.as_str()).collect();
    // Other unreachable targets are reported as unknown.
    let jumps_out = |id: &str, at: ActionPosition| match ids.get(id).filter(|to| can_jump(&model.collected, at, **to)) {
        Some(target) => inside(*target).is_none(),
        None => parts.contains(id),
    };
    let leaves = |at: ActionPosition, target: &RouteTarget| match target {
        RouteTarget::Next | RouteTarget::Resume | RouteTarget::Retry => false,
        RouteTarget::SkipTopic | RouteTarget::SkipPhase | RouteTarget::End | RouteTarget::Fail => true,
        RouteTarget::Goto(id) => jumps_out(id, at),
    };
    let routes =
        model.collected.routes.iter().flat_map(|table| {
            table.on_exit.routes.iter().filter_map(move |route| Some((table.at, route.then.as_ref()?)))
        });
    let mut found: BTreeMap<Span, Cleanup> = BTreeMap::new();
    for (at, then) in routes {
        if let Some((_, cleanup)) = at.action.and_then(inside).filter(|_| leaves(at, &then.value)) {
            found.insert(then.span, cleanup);
        }
    }
    for (id, at) in &model.collected.gotos {
        if let Some((_, cleanup)) = at.action.and_then(inside).filter(|_| jumps_out(&id.value, *at)) {
            found.insert(id.span, cleanup);
        }
    }
    for (span, cleanup) in found {
        let message = msg!("a route out of `{field}` is not followed", field = cleanup.name());
        let help = "where the session continues was decided before: use `next`, `retry`, or a `goto` within the list";
        report(message, span, help);
    }
}

/// Whether the action always waits for an answer or for a decision.
fn waits(model: &SemanticModel<'_>, action: &CollectedAction) -> bool {
    let asks = action.described.as_ref().is_some_and(|described| described.needs_answer);
    asks || model.kind_of(action).is_some_and(|kind| kind.exits().contains(&APPROVED))
}
