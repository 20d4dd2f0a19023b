//! `shadowed-variable`: a name in two scopes, where the inner variable hides the outer one.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;

use crate::collected::{AssignmentKind, CalleeBody, CollectedOutput, Definition};
use crate::name_table::DeclarationTable;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::value::scopes::Scope;

pub static RULE: Rule = Rule { slugs: &["shadowed-variable"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let collected = &model.collected;
    let mut outputs: BTreeMap<&str, Vec<&CollectedOutput>> = BTreeMap::new();
    for entry in collected.outputs.iter().filter(|entry| entry.output.scope.is_some()) {
        outputs.entry(&entry.output.get).or_default().push(entry);
    }
    for (name, places) in model.names().iter().filter(|(_, places)| places.definitions.len() > 1) {
        let declarations = places.declarations(collected);
        // A skill has one scope, regardless of the scope of an output.
        let outside_skill = |entry: &&&CollectedOutput| !matches!(entry.at.body, CalleeBody::Skill(_));
        for entry in outputs.get(name).into_iter().flatten().filter(outside_skill) {
            check_output(model, entry, &declarations, findings);
        }
        let name = shortened(name);
        for inner in places
            .defined(collected)
            .filter(|definition| matches!(definition.how, AssignmentKind::Declared | AssignmentKind::Element))
        {
            let wider = |outer: &&Definition| outer.to < inner.to;
            let Some(outer) = declarations.visible_from(inner.at.body).find(wider) else { continue };
            let place = scope_name(model, inner.holder(), inner.to);
            let message = match inner.how {
                AssignmentKind::Element => msg!(
                    "the element `{name}` of `for_each` hides the variable `{name}` of {}",
                    scope_name(model, outer.holder(), outer.to)
                ),
                _ => msg!(
                    "`{name}` is declared for both {place} and {}: the first hides the second",
                    scope_name(model, outer.holder(), outer.to)
                ),
            };
            let help = match inner.how {
                AssignmentKind::Element => "give the element another name",
                _ => "give one of them another name; or, if they are meant to be the same, remove this one",
            };
            let diagnostic = Diagnostic::warning("shadowed-variable", message, model.file, inner.span);
            findings.report(diagnostic.with_help(help).with_related(
                "this is the hidden variable",
                model.file,
                outer.span,
            ));
        }
    }
}

/// Reports an output whose scope differs from that of its variable's declaration.
fn check_output(
    model: &SemanticModel<'_>,
    entry: &CollectedOutput,
    declarations: &DeclarationTable<'_>,
    findings: &Findings,
) {
    let (Some(scope), Some(declared)) = (entry.output.scope, declarations.visible_from(entry.at.body).next()) else {
        return;
    };
    if declared.to == scope || declared.how != AssignmentKind::Declared {
        return;
    }
    let name = shortened(&entry.output.get);
    let message = msg!(
        "`{name}` is declared for {}, but this output writes another `{name}`, in the {scope} scope",
        scope_name(model, declared.holder(), declared.to),
        scope = Message::word(scope.name())
    );
    let help = "omit `scope`: an output is written where its variable is declared; or give it a different name";
    let diagnostic = Diagnostic::warning("shadowed-variable", message, model.file, entry.span).with_help(help);
    findings.report(diagnostic.with_related("declared here", model.file, declared.span));
}

fn scope_name(model: &SemanticModel<'_>, holder: CalleeBody, scope: Scope) -> Message {
    if scope == Scope::Global { msg!("all sessions (`scope: global`)") } else { model.part_name(holder) }
}
