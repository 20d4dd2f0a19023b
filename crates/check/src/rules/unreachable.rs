//! `unreachable`: phases, topics and actions that no path reaches.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeSet;

use crate::collected::CalleeBody;
use crate::edges::graph;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Spanned;

pub static RULE: Rule = Rule { slugs: &["unreachable"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    // Without routes and `goto`s everything is reachable.
    if !model.is_complete() || model.collected.routes.is_empty() && model.collected.gotos.is_empty() {
        return;
    }
    let graph = graph(model);
    let report = |what: &'static str, id: &Spanned<String>, help: &'static str| {
        let message = msg!("the {what} `{}` is unreachable", shortened(&id.value), what = Message::word(what));
        findings.report(Diagnostic::warning("unreachable", message, model.file, id.span).with_help(help));
    };
    let help = "the part before it always continues elsewhere: add a `goto` that jumps here, or remove it";
    let phases = model.script.map(|script| script.phases.as_slice()).unwrap_or_default();
    // A topic may exist only for actions that are inserted elsewhere.
    let reached = model.collected.actions.iter().enumerate().filter(|(number, _)| graph.reached_action(*number));
    let reached_bodies: BTreeSet<CalleeBody> = reached.map(|(_, action)| action.body).collect();
    let topic_reached = |phase, topic| graph.reached(graph.nodes.topic_in(phase, topic));
    for (number, phase) in phases.iter().enumerate() {
        let phase_reached = graph.reached(graph.nodes.phase_in(number));
        let topics_reached = (0..phase.topics.len())
            .any(|topic| topic_reached(number, topic) || reached_bodies.contains(&CalleeBody::Topic(number, topic)));
        if !phase_reached && !topics_reached {
            report("phase", &phase.id, help);
            continue;
        }
        for (inner, topic) in phase.topics.iter().enumerate() {
            if !topic_reached(number, inner) && !reached_bodies.contains(&CalleeBody::Topic(number, inner)) {
                report("topic", &topic.id, help);
            }
        }
    }
    // Of several consecutive unreachable actions, only the first is reported.
    let mut before: Option<(CalleeBody, Option<usize>, usize)> = None;
    for (number, action) in model.collected.actions.iter().enumerate() {
        if graph.reached_action(number) {
            before = None;
            continue;
        }
        let part_reached = graph.reached(graph.nodes.start_of(action.body));
        let inside = action.parent.is_some_and(|parent| !graph.reached_action(parent));
        let list = (action.body, action.parent, action.block);
        if part_reached && !inside && before != Some(list) {
            let help = "the action before it always continues elsewhere or ends the session: change its routes, or remove this action";
            report("action", &action.id, help);
        }
        if !inside {
            before = Some(list);
        }
    }
}
