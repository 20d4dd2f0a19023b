//! `required-in-one-round` and `required-without-output`: a `required` that can hardly be met, or has no effect.

use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;

pub static RULE: Rule = Rule { slugs: &["required-in-one-round", "required-without-output"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    for action in model.collected.actions.iter().filter(|action| action.sound) {
        let Some(described) = &action.described else { continue };
        let Some(required) = described.required.first() else { continue };
        if described.outputs == 0 {
            let message = "`required` has no effect here, because the action has no `output`";
            let help = "write under `output` what must be found in the answer, or remove `required`";
            let diagnostic = Diagnostic::warning("required-without-output", message, model.file, *required);
            findings.report(diagnostic.with_help(help));
        } else if described.needs_answer && described.max_rounds == 1 {
            let message = "`required` can hardly be met: with `max_rounds: 1` the first answer is the only one";
            let help = "raise `max_rounds`, so that the AI can ask again for what is missing, or remove `required`";
            let diagnostic = Diagnostic::warning("required-in-one-round", message, model.file, *required);
            findings.report(diagnostic.with_help(help));
        }
    }
}
