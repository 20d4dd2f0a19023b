//! `for-each-not-a-list`: `for_each` iterates over a value that is not a list.

use bcc_lang::message::msg;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::collected::{CollectedOutput, ExpressionRole};
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

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let non_lists = OnceCell::new();
    for list in model.collected.expressions.iter().filter(|expression| expression.role == ExpressionRole::List) {
        let root = list.expression.root();
        let span = || list.span(model.file, &root.range);
        match &root.kind {
            ExprKind::Name(name) => {
                let declared = list.declared.get(name).and_then(|(declared, _)| *declared);
                if let Some(output) = non_lists.get_or_init(|| non_list_outputs(model)).get(name.as_str()) {
                    let declared = output.output.declared.map_or("text", DeclaredType::name);
                    let name = shortened(name);
                    let message = msg!("`for_each` iterates over a list, but `{name}` is extracted as {declared}");
                    let help = "write `type: list` in its output, or specify the variable that contains the list";
                    let diagnostic = Diagnostic::error(SLUG, message, model.file, span()).with_help(help);
                    findings.report(diagnostic.with_related("extracted here", model.file, output.span));
                }
                let Some(declared) = declared.filter(|declared| *declared != DeclaredType::List) else { continue };
                let message = msg!(
                    "`for_each` iterates over a list, but `{}` is declared as {}",
                    shortened(name),
                    declared.name()
                );
                let help = "declare it with `type: list`, or specify the variable that contains the list";
                findings.report(Diagnostic::error(SLUG, message, model.file, span()).with_help(help));
            }
            ExprKind::Constant(value) if value.kind() != minijinja::value::ValueKind::Seq => {
                let message = "`for_each` iterates over a list, but this is a single value";
                let help = "specify a variable that contains a list, as in `in: caregivers`";
                findings.report(Diagnostic::error(SLUG, message, model.file, span()).with_help(help));
            }
            _ => {}
        }
    }
}

/// The undeclared outputs that all writers extract with a type other than list, each with its first extraction.
fn non_list_outputs<'f>(model: &'f SemanticModel<'_>) -> BTreeMap<&'f str, &'f CollectedOutput> {
    let mut outputs: BTreeMap<&str, Vec<&CollectedOutput>> = BTreeMap::new();
    for entry in model.collected.outputs.iter().filter(|_| model.is_complete()) {
        outputs.entry(&entry.output.get).or_default().push(entry);
    }
    let other = |entry: &&CollectedOutput| {
        !entry.output.append && entry.output.declared.is_some_and(|declared| declared != DeclaredType::List)
    };
    outputs.retain(|name, outputs| {
        let places = model.names().places(name);
        let mut given = places.into_iter().flat_map(|places| places.defined(&model.collected));
        let known: BTreeSet<Span> = outputs.iter().map(|entry| entry.span).collect();
        outputs.iter().all(other) && given.all(|definition| known.contains(&definition.span))
    });
    outputs.into_iter().filter_map(|(name, outputs)| Some((name, *outputs.first()?))).collect()
}
