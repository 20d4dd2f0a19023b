//! `endless-loop`: routes that form a loop which never waits for an answer.

use crate::edges::graph;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;

const SLUG: &str = "endless-loop";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    // A missing part might leave the loop.
    if !model.is_complete() || model.collected.routes.is_empty() && model.collected.gotos.is_empty() {
        return;
    }
    // Triggers are evaluated after every turn, and one that fires leaves the loop (docs/triggers.md).
    if model.collected.triggers.iter().any(|trigger| trigger.then.is_some() || trigger.insert.is_some()) {
        return;
    }
    for mut routes in graph(model).endless() {
        routes.sort_unstable();
        routes.dedup();
        // The last route closes the loop.
        let Some((back, others)) = routes.split_last() else { continue };
        findings.report(report(model, *back, others));
    }
}

fn report(model: &SemanticModel<'_>, back: Span, others: &[Span]) -> Diagnostic {
    const MAX_RELATED: usize = 8;
    let message =
        "from here, the conversation loops forever: nothing in the loop waits for an answer, and nothing leaves it";
    let help = "have an action in the loop ask something, give one a `condition`, or change this route; after 100 routes without an answer, the session fails";
    let mut diagnostic = Diagnostic::error(SLUG, message, model.file, back).with_help(help);
    for other in others.iter().take(MAX_RELATED) {
        diagnostic = diagnostic.with_related("the loop continues here", model.file, *other);
    }
    diagnostic
}
