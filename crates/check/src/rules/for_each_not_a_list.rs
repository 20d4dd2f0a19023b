//! `for-each-not-a-list`: what `for_each` goes through is something else.

use bcc_lang::message::msg;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::collected::{ExpressionRole, OutputFact};
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::expr::tree::ExprKind;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;
use bcc_lang::value::declared::DeclaredType;

const SLUG: &str = "for-each-not-a-list";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: false, check };

fn check(facts: &SemanticModel<'_>, findings: &Findings) {
    let others = OnceCell::new();
    for list in facts.seen.expressions.iter().filter(|expression| expression.role == ExpressionRole::List) {
        let root = list.expression.root();
        let span = || list.span(facts.file, &root.range);
        match &root.kind {
            ExprKind::Name(name) => {
                let declared = list.declared.get(name).and_then(|(declared, _)| *declared);
                if let Some(output) = others.get_or_init(|| other_types(facts)).get(name.as_str()) {
                    let declared = output.output.declared.map_or("text", DeclaredType::name);
                    let name = shortened(name);
                    let message = msg!("`for_each` iterates over a list, but `{name}` is extracted as {declared}");
                    let help = "write `type: list` in its output, or specify the variable that contains the list";
                    let diagnostic = Diagnostic::error(SLUG, message, facts.file, span()).with_help(help);
                    findings.report(diagnostic.with_related("extracted here", facts.file, output.span));
                }
                let Some(declared) = declared.filter(|declared| *declared != DeclaredType::List) else { continue };
                let message = msg!(
                    "`for_each` iterates over a list, but `{}` is declared as {}",
                    shortened(name),
                    declared.name()
                );
                let help = "declare it with `type: list`, or specify the variable that contains the list";
                findings.report(Diagnostic::error(SLUG, message, facts.file, span()).with_help(help));
            }
            ExprKind::Constant(value) if value.kind() != minijinja::value::ValueKind::Seq => {
                let message = "`for_each` iterates over a list, but this is a single value";
                let help = "specify a variable that contains a list, as in `in: caregivers`";
                findings.report(Diagnostic::error(SLUG, message, facts.file, span()).with_help(help));
            }
            _ => {}
        }
    }
}

/// The name of an output, with one that extracts it, where nothing declares it and every place that gives it a value extracts
/// it as something else than a list.
fn other_types<'f>(facts: &'f SemanticModel<'_>) -> BTreeMap<&'f str, &'f OutputFact> {
    let mut outputs: BTreeMap<&str, Vec<&OutputFact>> = BTreeMap::new();
    for fact in facts.seen.outputs.iter().filter(|_| facts.whole()) {
        outputs.entry(&fact.output.get).or_default().push(fact);
    }
    let other = |fact: &&OutputFact| {
        !fact.output.append && fact.output.declared.is_some_and(|declared| declared != DeclaredType::List)
    };
    outputs.retain(|name, outputs| {
        let places = facts.names().places(name);
        let mut given = places.into_iter().flat_map(|places| places.defined(&facts.seen));
        let known: BTreeSet<Span> = outputs.iter().map(|fact| fact.span).collect();
        outputs.iter().all(other) && given.all(|definition| known.contains(&definition.span))
    });
    outputs.into_iter().filter_map(|(name, outputs)| Some((name, *outputs.first()?))).collect()
}
