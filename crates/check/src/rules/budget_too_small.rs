//! `budget-too-small`: every path through the script exceeds its budget.

use crate::edges::graph;
use crate::graph::NodeWork;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Spanned;

const SLUG: &str = "budget-too-small";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let Some(script) = model.script.filter(|_| model.is_complete()) else { return };
    let Some(budget) = &script.budget else { return };
    let described = |work| match work {
        NodeWork::Action(action) => model.collected.actions.get(action).and_then(|action| action.described.as_ref()),
        _ => None,
    };
    let report =
        |limit: &Option<Spanned<u32>>, least: Option<u64>, message: &dyn Fn(u64) -> Message, help: &'static str| {
            if let (Some(limit), Some(least)) = (limit, least)
                && u64::from(limit.value) < least
            {
                let diagnostic = Diagnostic::warning(SLUG, message(least), model.file, limit.span);
                findings.report(diagnostic.with_help(help));
            }
        };
    if budget.turns.is_some() {
        // Each answer takes at least one turn.
        let turns = |work| described(work).map_or(0, |described| u64::from(described.needs_answer));
        let message = |least: u64| {
            msg!(
                "the shortest path through this script waits for {least} answers, more than the number of turns in its budget"
            )
        };
        report(
            &budget.turns,
            graph(model).cheapest(turns),
            &message,
            "raise it: longer conversations take several times as many",
        );
    }
    if budget.model_calls.is_some() {
        let calls = |work| described(work).map_or(0, |described| u64::from(described.min_calls));
        let message = |least: u64| {
            msg!("the shortest path through this script calls a model {least} times, more than its budget allows")
        };
        report(
            &budget.model_calls,
            graph(model).cheapest(calls),
            &message,
            "raise it: an `ai_ask` of N rounds takes up to N + 1 calls",
        );
    }
    if budget.minutes.is_some() {
        let minutes = |work| match work {
            NodeWork::Topic(phase, topic) => {
                let topic = script.phases.get(phase).and_then(|phase| phase.topics.get(topic));
                topic.and_then(|topic| topic.time_budget.as_ref()).map_or(0, |minutes| u64::from(minutes.value))
            }
            _ => 0,
        };
        let message = |least: u64| {
            msg!(
                "the topics are planned to take {least} minutes in total (`time_budget`), more than the budget of the session"
            )
        };
        report(&budget.minutes, graph(model).cheapest(minutes), &message, "raise it, or give topics less time");
    }
}
