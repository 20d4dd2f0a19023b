//! `never-set`: a variable that is declared without a value and has no value yet where it is used, on any path of the
//! conversation.
//!
//! `--var` may set a variable of the session: one that nothing writes is an input, and one that is written may have been set
//! before. It is reported only if an operation is null without it. A use that only tests the variable (`x is none`,
//! `{% if x %}`, `x | default('…')`) accepts an empty one. So only uses that show nothing or must fail are reported.

use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::collected::{AssignmentKind, CalleeBody, Definition, Use, UseKind, UseLocation};
use crate::name_table::DeclarationTable;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::expr::operators::Operator;
use bcc_lang::expr::tree::{Argument, ExprKind, ExprNode};
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::yaml::YamlNode as Scalar;
use bcc_lang::value::scopes::Scope;

/// A place in the file: the scalar, and the byte of its text at which a use starts.
type Spot = (*const Scalar, usize);

pub static RULE: Rule = Rule { slugs: &["never-set"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    if !model.is_complete() {
        return;
    }
    let collected = &model.collected;
    let needed = needed_operands(model);
    for (_, places) in model.names().iter() {
        let empty = |definition: &Definition| definition.how == AssignmentKind::Declared && !definition.has_value;
        if !places.defined(collected).any(empty) {
            continue;
        }
        let declarations = places.declarations(collected);
        let writers: Vec<&Definition> = places.defined(collected).filter(|definition| definition.writes()).collect();
        // The table of a phase or of the session may write into an inner scope.
        let written_by_table =
            writers.iter().any(|writer| writer.at.action.is_none() && writer.how == AssignmentKind::Written);
        if written_by_table {
            continue;
        }
        // By the part in which the variable lives: the first tick at which it may have a value.
        let mut written: BTreeMap<CalleeBody, usize> = BTreeMap::new();
        for writer in &writers {
            let first = model.paths().first_reachable(writer.order);
            written.entry(writer.holder()).and_modify(|known| *known = first.min(*known)).or_insert(first);
        }
        let mut in_scalar: HashMap<*const Scalar, usize> = HashMap::new();
        for used in places.used(collected) {
            if let UseLocation::Within(node, _) = &used.place {
                *in_scalar.entry(Arc::as_ptr(node)).or_default() += 1;
            }
        }
        let alone = |used: &Use| match &used.place {
            UseLocation::Within(node, _) => in_scalar.get(&Arc::as_ptr(node)) == Some(&1),
            UseLocation::Whole(_) => true,
        };
        let mut reported: BTreeSet<(CalleeBody, Scope)> = BTreeSet::new();
        for used in places.used(collected).filter(|used| !used.optional && alone(used) && is_needed(used, &needed)) {
            let Some(declared) = never_set(model, used, &declarations, &written) else { continue };
            // Report each declaration once.
            if reported.insert((declared.holder(), declared.to)) {
                findings.report(report(model, used, declared, &writers));
            }
        }
    }
}

/// The declaration of a used name, if the name cannot have a value at that point.
fn never_set<'s>(
    model: &SemanticModel<'_>,
    used: &Use,
    declarations: &DeclarationTable<'s>,
    written: &BTreeMap<CalleeBody, usize>,
) -> Option<&'s Definition> {
    let declared = declarations.visible_from(used.at.body).next()?;
    let not_applicable = declared.has_value || declared.how != AssignmentKind::Declared || declared.to == Scope::Global;
    let may_be_given = declared.to == Scope::Session && (written.is_empty() || used.by != UseKind::Expression);
    if not_applicable || may_be_given {
        return None;
    }
    let body = used.at.body;
    let holders = [Some(CalleeBody::Session), body.phase().map(CalleeBody::Phase), Some(body)];
    let latest = used.latest(&model.collected);
    let before = |holder: CalleeBody| written.get(&holder).is_some_and(|first| *first <= latest);
    (!holders.into_iter().flatten().any(before)).then_some(declared)
}

fn report(model: &SemanticModel<'_>, used: &Use, declared: &Definition, writers: &[&Definition]) -> Diagnostic {
    let name = shortened(&used.name);
    let span = used.place.span(model.file);
    let writer = writers.iter().find(|writer| writer.visible_from(used.at.body));
    let (message, help) = match writer {
        Some(_) => (
            msg!("`{name}` is still empty here: it is set only later"),
            msg!("move the part that sets it before this point, or declare `{name}` with a `value`"),
        ),
        None => (
            msg!("`{name}` is always empty here: nothing in {} gives it a value", model.part_name(declared.holder())),
            msg!("declare `{name}` with a `value`, or extract it in an action before this point"),
        ),
    };
    let help = match used.by {
        UseKind::Text => msg!("{help}; if it may be empty, write `{{{{ {name} | default('…') }}}}`"),
        _ if declared.to == Scope::Session => msg!("{help}; this is not a problem if `--var` always sets it"),
        _ => help,
    };
    let diagnostic = Diagnostic::warning("never-set", message, model.file, span).with_help(help);
    match writer {
        Some(writer) => diagnostic.with_related("it is assigned here", model.file, writer.span),
        None => diagnostic.with_related("declared here, without a value", model.file, declared.span),
    }
}

/// Whether a use is meaningless without a value.
fn is_needed(used: &Use, operands: &BTreeSet<Spot>) -> bool {
    match (&used.place, used.by) {
        (_, UseKind::Field) => true,
        (UseLocation::Within(node, range), UseKind::Text) => {
            let text = node.as_scalar().map(|scalar| scalar.text.as_str()).unwrap_or_default();
            let before = text.get(..range.start).unwrap_or_default().trim_end();
            let after = text.get(range.end..).unwrap_or_default().trim_start();
            let is_legacy = text.get(range.clone()).is_some_and(|placeholder| placeholder.ends_with('}'));
            is_legacy || (before.ends_with("{{") && after.starts_with("}}"))
        }
        (UseLocation::Within(node, range), UseKind::Expression) => operands.contains(&(Arc::as_ptr(node), range.start)),
        _ => false,
    }
}

/// The names that are operands of operators which do not accept null.
fn needed_operands(model: &SemanticModel<'_>) -> BTreeSet<Spot> {
    let mut spots = BTreeSet::new();
    for entry in &model.collected.expressions {
        let mut names = Vec::new();
        operands(entry.expression.root(), &mut names);
        spots.extend(names.into_iter().map(|start| (Arc::as_ptr(&entry.node), start + entry.start)));
    }
    spots
}

fn operands(node: &ExprNode, found: &mut Vec<usize>) {
    let needs = |operator: Operator| !matches!(operator, Operator::Equal | Operator::Unequal | Operator::Concatenate);
    let name = |side: &ExprNode, found: &mut Vec<usize>| {
        if matches!(side.kind, ExprKind::Name(_)) {
            found.push(side.range.start);
        }
    };
    match &node.kind {
        ExprKind::Operation(operator, left, right) => {
            if needs(*operator) {
                name(left, found);
                name(right, found);
            }
            operands(left, found);
            operands(right, found);
        }
        ExprKind::Chain(first, rest) => {
            let mut left: &ExprNode = first;
            operands(first, found);
            for (operator, right) in rest {
                if needs(*operator) {
                    name(left, found);
                    name(right, found);
                }
                operands(right, found);
                left = right;
            }
        }
        // The second operand may not be evaluated.
        ExprKind::And(first, _) | ExprKind::Or(first, _) => operands(first, found),
        ExprKind::Not(inner) => operands(inner, found),
        ExprKind::Negate(inner) => {
            name(inner, found);
            operands(inner, found);
        }
        ExprKind::Choice { test, .. } => operands(test, found),
        ExprKind::Filter(_, of, arguments) => {
            operands(of, found);
            for argument in arguments {
                let (Argument::Plain(node) | Argument::Named(_, node)) = argument;
                operands(node, found);
            }
        }
        _ => {}
    }
}
