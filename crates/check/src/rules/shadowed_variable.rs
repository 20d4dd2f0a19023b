//! `shadowed-variable`: one name in two scopes, of which the narrower hides the wider.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;

use crate::collected::{AssignmentKind, CalleeBody, Definition, OutputFact};
use crate::name_table::DeclarationTable;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::value::scopes::Scope;

pub static RULE: Rule = Rule { slugs: &["shadowed-variable"], essential: false, check };

fn check(facts: &SemanticModel<'_>, findings: &Findings) {
    let seen = &facts.seen;
    let mut outputs: BTreeMap<&str, Vec<&OutputFact>> = BTreeMap::new();
    for fact in seen.outputs.iter().filter(|fact| fact.output.scope.is_some()) {
        outputs.entry(&fact.output.get).or_default().push(fact);
    }
    for (name, places) in facts.names().iter().filter(|(_, places)| places.definitions.len() > 1) {
        let declarations = places.declarations(seen);
        // In a skill there is one scope, whatever an output says.
        let wide = |fact: &&&OutputFact| !matches!(fact.at.body, CalleeBody::Skill(_));
        for fact in outputs.get(name).into_iter().flatten().filter(wide) {
            past(facts, fact, &declarations, findings);
        }
        let name = shortened(name);
        for inner in places
            .defined(seen)
            .filter(|definition| matches!(definition.how, AssignmentKind::Declared | AssignmentKind::Element))
        {
            let wider = |outer: &&Definition| outer.to < inner.to;
            let Some(outer) = declarations.seen_from(inner.at.body).find(wider) else { continue };
            let place = named(facts, inner.holder(), inner.to);
            let message = match inner.how {
                AssignmentKind::Element => msg!(
                    "the element `{name}` of `for_each` hides the variable `{name}` of {}",
                    named(facts, outer.holder(), outer.to)
                ),
                _ => msg!(
                    "`{name}` is declared for both {place} and {}: the first hides the second",
                    named(facts, outer.holder(), outer.to)
                ),
            };
            let help = match inner.how {
                AssignmentKind::Element => "give the element another name",
                _ => "give one of them another name; or, if they are meant to be the same, remove this one",
            };
            let diagnostic = Diagnostic::warning("shadowed-variable", message, facts.file, inner.span);
            findings.report(diagnostic.with_help(help).with_related(
                "this is the hidden variable",
                facts.file,
                outer.span,
            ));
        }
    }
}

/// Reports an output that goes past the declaration of its variable.
fn past(facts: &SemanticModel<'_>, fact: &OutputFact, declarations: &DeclarationTable<'_>, findings: &Findings) {
    let (Some(scope), Some(declared)) = (fact.output.scope, declarations.seen_from(fact.at.body).next()) else {
        return;
    };
    if declared.to == scope || declared.how != AssignmentKind::Declared {
        return;
    }
    let name = shortened(&fact.output.get);
    let message = msg!(
        "`{name}` is declared for {}, but this output writes another `{name}`, in the {scope} scope",
        named(facts, declared.holder(), declared.to),
        scope = Message::word(scope.name())
    );
    let help = "omit `scope`: an output is written where its variable is declared; or give it a different name";
    let diagnostic = Diagnostic::warning("shadowed-variable", message, facts.file, fact.span).with_help(help);
    findings.report(diagnostic.with_related("declared here", facts.file, declared.span));
}

fn named(facts: &SemanticModel<'_>, holder: CalleeBody, scope: Scope) -> Message {
    if scope == Scope::Global { msg!("all sessions (`scope: global`)") } else { facts.part_name(holder) }
}
