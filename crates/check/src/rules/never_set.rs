//! `never-set`: a variable that is declared without a value and has none yet where it is used, whichever way the
//! conversation went.
//!
//! `--var` may give a variable of the session: one that nothing writes at all is an input, and one that is written may have
//! come so before; only where an expression fails without it is it spoken of. What is only asked for (`x is none`,
//! `{% if x %}`, `x | default('…')`) may well be empty. So only uses are reported that show nothing, or that must fail.

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

/// A place in the file: the scalar, and the byte of its text at which a use begins.
type Spot = (*const Scalar, usize);

pub static RULE: Rule = Rule { slugs: &["never-set"], essential: false, check };

fn check(facts: &SemanticModel<'_>, findings: &Findings) {
    if !facts.whole() {
        return;
    }
    let seen = &facts.seen;
    let needed = needed_operands(facts);
    for (_, places) in facts.names().iter() {
        let empty = |definition: &Definition| definition.how == AssignmentKind::Declared && !definition.has_value;
        if !places.defined(seen).any(empty) {
            continue;
        }
        let declarations = places.declarations(seen);
        let writers: Vec<&Definition> = places.defined(seen).filter(|definition| definition.writes()).collect();
        // The table of a phase or of the session may write into a narrower scope.
        let anywhere = writers.iter().any(|writer| writer.at.action.is_none() && writer.how == AssignmentKind::Written);
        if anywhere {
            continue;
        }
        // By the part that holds what is written: from when on it may be there.
        let mut written: BTreeMap<CalleeBody, usize> = BTreeMap::new();
        for writer in &writers {
            let first = facts.paths().first(writer.order);
            written.entry(writer.holder()).and_modify(|known| *known = first.min(*known)).or_insert(first);
        }
        let mut in_scalar: HashMap<*const Scalar, usize> = HashMap::new();
        for used in places.used(seen) {
            if let UseLocation::Within(node, _) = &used.place {
                *in_scalar.entry(Arc::as_ptr(node)).or_default() += 1;
            }
        }
        let alone = |used: &Use| match &used.place {
            UseLocation::Within(node, _) => in_scalar.get(&Arc::as_ptr(node)) == Some(&1),
            UseLocation::Whole(_) => true,
        };
        let mut told: BTreeSet<(CalleeBody, Scope)> = BTreeSet::new();
        for used in places.used(seen).filter(|used| !used.optional && alone(used) && is_needed(used, &needed)) {
            let Some(declared) = never(facts, used, &declarations, &written) else { continue };
            // One report says it.
            if told.insert((declared.holder(), declared.to)) {
                findings.report(report(facts, used, declared, &writers));
            }
        }
    }
}

/// The declaration of what is used, when it cannot have got a value by then.
fn never<'s>(
    facts: &SemanticModel<'_>,
    used: &Use,
    declarations: &DeclarationTable<'s>,
    written: &BTreeMap<CalleeBody, usize>,
) -> Option<&'s Definition> {
    let declared = declarations.seen_from(used.at.body).next()?;
    let outside = declared.has_value || declared.how != AssignmentKind::Declared || declared.to == Scope::Global;
    let given = declared.to == Scope::Session && (written.is_empty() || used.by != UseKind::Expression);
    if outside || given {
        return None;
    }
    let body = used.at.body;
    let holders = [Some(CalleeBody::Session), body.phase().map(CalleeBody::Phase), Some(body)];
    let latest = used.latest(&facts.seen);
    let before = |holder: CalleeBody| written.get(&holder).is_some_and(|first| *first <= latest);
    (!holders.into_iter().flatten().any(before)).then_some(declared)
}

fn report(facts: &SemanticModel<'_>, used: &Use, declared: &Definition, writers: &[&Definition]) -> Diagnostic {
    let name = shortened(&used.name);
    let span = used.place.span(facts.file);
    let writer = writers.iter().find(|writer| writer.seen_from(used.at.body));
    let (message, help) = match writer {
        Some(_) => (
            msg!("`{name}` is still empty here: it is set only later"),
            msg!("move the part that sets it before this point, or declare `{name}` with a `value`"),
        ),
        None => (
            msg!("`{name}` is always empty here: nothing in {} gives it a value", facts.part_name(declared.holder())),
            msg!("declare `{name}` with a `value`, or extract it in an action before this point"),
        ),
    };
    let help = match used.by {
        UseKind::Text => msg!("{help}; if it may be empty, write `{{{{ {name} | default('…') }}}}`"),
        _ if declared.to == Scope::Session => msg!("{help}; this is not a problem if `--var` always sets it"),
        _ => help,
    };
    let diagnostic = Diagnostic::warning("never-set", message, facts.file, span).with_help(help);
    match writer {
        Some(writer) => diagnostic.with_related("it is assigned here", facts.file, writer.span),
        None => diagnostic.with_related("declared here, without a value", facts.file, declared.span),
    }
}

/// Whether a use makes no sense without a value.
fn is_needed(used: &Use, operands: &BTreeSet<Spot>) -> bool {
    match (&used.place, used.by) {
        (_, UseKind::Field) => true,
        (UseLocation::Within(node, range), UseKind::Text) => {
            let text = node.as_scalar().map(|scalar| scalar.text.as_str()).unwrap_or_default();
            let before = text.get(..range.start).unwrap_or_default().trim_end();
            let after = text.get(range.end..).unwrap_or_default().trim_start();
            let whole = text.get(range.clone()).is_some_and(|older| older.ends_with('}'));
            whole || (before.ends_with("{{") && after.starts_with("}}"))
        }
        (UseLocation::Within(node, range), UseKind::Expression) => operands.contains(&(Arc::as_ptr(node), range.start)),
        _ => false,
    }
}

/// The names that stand at the side of an operator which null cannot meet.
fn needed_operands(facts: &SemanticModel<'_>) -> BTreeSet<Spot> {
    let mut spots = BTreeSet::new();
    for fact in &facts.seen.expressions {
        let mut names = Vec::new();
        operands(fact.expression.root(), &mut names);
        spots.extend(names.into_iter().map(|start| (Arc::as_ptr(&fact.node), start + fact.start)));
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
        // What stands behind may never be looked at.
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
