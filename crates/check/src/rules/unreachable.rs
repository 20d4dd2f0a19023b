//! `unreachable`: phases, topics and actions to which no way leads.

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

fn check(facts: &SemanticModel<'_>, findings: &Findings) {
    // Without routes and `goto`s everything follows on something else.
    if !facts.whole() || facts.seen.routes.is_empty() && facts.seen.gotos.is_empty() {
        return;
    }
    let graph = graph(facts);
    let report = |what: &'static str, id: &Spanned<String>, help: &'static str| {
        let message = msg!("the {what} `{}` is unreachable", shortened(&id.value), what = Message::word(what));
        findings.report(Diagnostic::warning("unreachable", message, facts.file, id.span).with_help(help));
    };
    let behind = "the part before it always continues elsewhere: add a `goto` that jumps here, or remove it";
    let phases = facts.script.map(|script| script.phases.as_slice()).unwrap_or_default();
    // A topic may be there only to keep actions that are inserted elsewhere.
    let reached = facts.seen.actions.iter().enumerate().filter(|(number, _)| graph.reached_action(*number));
    let kept: BTreeSet<CalleeBody> = reached.map(|(_, action)| action.body).collect();
    let topic_reached = |phase, topic| graph.reached(graph.nodes.topic_in(phase, topic));
    for (number, phase) in phases.iter().enumerate() {
        let enters = graph.reached(graph.nodes.phase_in(number));
        let any = (0..phase.topics.len())
            .any(|topic| topic_reached(number, topic) || kept.contains(&CalleeBody::Topic(number, topic)));
        if !enters && !any {
            report("phase", &phase.id, behind);
            continue;
        }
        for (inner, topic) in phase.topics.iter().enumerate() {
            if !topic_reached(number, inner) && !kept.contains(&CalleeBody::Topic(number, inner)) {
                report("topic", &topic.id, behind);
            }
        }
    }
    // Of several that follow on one another, the first is told.
    let mut before: Option<(CalleeBody, Option<usize>, usize)> = None;
    for (number, action) in facts.seen.actions.iter().enumerate() {
        if graph.reached_action(number) {
            before = None;
            continue;
        }
        let part_reached = graph.reached(graph.nodes.begin(action.body));
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
