//! `fork-without-else`: a `condition` with several `goto`s has no `else`, so that the conversation may continue with what follows it.

use bcc_lang::message::msg;
use std::collections::BTreeMap;

use crate::collected::CollectedAction;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;

const SLUG: &str = "fork-without-else";

/// A single case with a `goto` is a jump that is made or not; of several, the author means that one applies.
const MIN_GOTOS: usize = 2;

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let mut gotos: BTreeMap<usize, usize> = BTreeMap::new();
    for number in model.collected.gotos.iter().filter_map(|(_, at)| at.action) {
        *gotos.entry(number).or_default() += 1;
    }
    let actions = &model.collected.actions;
    for (number, _) in gotos.into_iter().filter(|(_, count)| *count >= MIN_GOTOS) {
        let Some(fork) = actions.get(number) else { continue };
        if !fork.described.as_ref().is_some_and(|described| described.lacks_default) {
            continue;
        }
        let follows = |action: &&CollectedAction| {
            (action.body, action.parent, action.block) == (fork.body, fork.parent, fork.block)
                && action.span.start >= fork.span.end
        };
        let message = match actions.iter().find(follows) {
            Some(next) => msg!(
                "if no case of `{}` applies, the conversation continues with `{}`",
                shortened(&fork.id.value),
                shortened(&next.id.value)
            ),
            None => {
                msg!(
                    "if no case of `{}` applies, the conversation continues with what follows",
                    shortened(&fork.id.value)
                )
            }
        };
        let help = "add an `else:` that says where it continues; null makes a case and its opposite false";
        findings.report(Diagnostic::warning(SLUG, message, model.file, fork.id.span).with_help(help));
    }
}
