//! `required-in-one-round` and `required-without-output`: `required` that can hardly be met, or asks for nothing.

use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;

pub static RULE: Rule = Rule { slugs: &["required-in-one-round", "required-without-output"], essential: false, check };

fn check(facts: &SemanticModel<'_>, findings: &Findings) {
    for action in facts.seen.actions.iter().filter(|action| action.sound) {
        let Some(described) = &action.described else { continue };
        let Some(required) = described.required.first() else { continue };
        if described.outputs == 0 {
            let message = "`required` has no effect here, because the action has no `output`";
            let help = "write under `output` what must be found in the answer, or remove `required`";
            let diagnostic = Diagnostic::warning("required-without-output", message, facts.file, *required);
            findings.report(diagnostic.with_help(help));
        } else if described.listens && described.max_rounds == 1 {
            let message = "`required` can hardly be met: with `max_rounds: 1` the first answer is the only one";
            let help = "raise `max_rounds`, so that the AI can ask again for what is missing, or remove `required`";
            let diagnostic = Diagnostic::warning("required-in-one-round", message, facts.file, *required);
            findings.report(diagnostic.with_help(help));
        }
    }
}
