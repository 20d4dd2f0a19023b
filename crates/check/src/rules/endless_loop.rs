//! `endless-loop`: routes that lead in a circle in which nobody is listened to.

use crate::edges::graph;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;

const SLUG: &str = "endless-loop";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: false, check };

fn check(facts: &SemanticModel<'_>, findings: &Findings) {
    // What is missing might leave the loop.
    if !facts.whole() || facts.seen.routes.is_empty() && facts.seen.gotos.is_empty() {
        return;
    }
    // Triggers are looked at after every turn, and one that fires leaves the circle (docs/triggers.md).
    if facts.seen.triggers.iter().any(|trigger| trigger.ends || trigger.insert.is_some()) {
        return;
    }
    for mut routes in graph(facts).endless() {
        routes.sort_unstable();
        routes.dedup();
        // The one that leads back stands last.
        let Some((back, others)) = routes.split_last() else { continue };
        findings.report(report(facts, *back, others));
    }
}

fn report(facts: &SemanticModel<'_>, back: Span, others: &[Span]) -> Diagnostic {
    const MOST: usize = 8;
    let message =
        "from here, the conversation loops forever: nothing in the loop waits for an answer, and nothing leaves it";
    let help = "have an action in the loop ask something, give one a `condition`, or change this route; after 100 routes without an answer, the session fails";
    let mut diagnostic = Diagnostic::error(SLUG, message, facts.file, back).with_help(help);
    for other in others.iter().take(MOST) {
        diagnostic = diagnostic.with_related("the loop continues here", facts.file, *other);
    }
    diagnostic
}
