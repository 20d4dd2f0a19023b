//! `type-mismatch`, `never-equal`, `constant-condition`, `condition-not-boolean`: type errors in expressions, based on the
//! declarations of their names (docs/language.md "Texts").

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::collected::{AssignmentKind, CollectedExpression, CollectedText, ExpressionRole};
use crate::repairs::fix;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use crate::typing::analysis::analyse;
use crate::typing::finding::{TypeFinding, TypeMistake};
use crate::typing::values::analyse_in_text;
use bcc_lang::expr::tree::{ExprKind, ExprNode};
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::{Diagnostic, Fix};
use bcc_lang::source::locate::locate_bytes;
use bcc_lang::source::yaml::YamlNode;

pub static RULE: Rule = Rule {
    slugs: &["type-mismatch", "never-equal", "constant-condition", "condition-not-boolean"],
    essential: false,
    check,
};

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let shadowed = shadowed(model);
    // For each `condition` action, the last of its cases.
    let mut last_case: BTreeMap<usize, usize> = BTreeMap::new();
    for (number, expression) in model.collected.expressions.iter().enumerate() {
        if let Some(action) = case_of(model, number, expression) {
            last_case.insert(action, number);
        }
    }
    let inserted: BTreeSet<&str> = model.inserts().into_iter().map(|(id, _)| id.value.as_str()).collect();
    for (number, expression) in model.collected.expressions.iter().enumerate() {
        let found = if expression.at.action.is_none()
            && expression.declared.keys().any(|name| shadowed.contains(name.as_str()))
        {
            let mut declared = expression.declared.clone();
            declared.retain(|name, _| !shadowed.contains(name.as_str()));
            analyse(&expression.expression, expression.role, &declared)
        } else {
            analyse(&expression.expression, expression.role, &expression.declared)
        };
        let case = case_of(model, number, expression);
        for found in found {
            let mut diagnostic = diagnostic(model, (&expression.node, expression.start), &found);
            let all = found.range.len() == expression.expression.source().trim().len();
            // An action with `condition: false` may exist only to be inserted elsewhere.
            if found.mistake == TypeMistake::Constant(false)
                && all
                && is_condition_of(model, number, expression, &inserted)
            {
                continue;
            }
            if let (TypeMistake::Constant(true), true, Some(action)) = (found.mistake, all, case) {
                diagnostic =
                    with_unreachable_cases(diagnostic, model, last_case.get(&action).filter(|last| **last > number));
            }
            findings.report(diagnostic);
        }
    }
    for (entry, operations) in model.text_operations().filter(|(entry, _)| !entry.declared.is_empty()) {
        check_text(model, entry, operations, &shadowed, findings);
    }
}

/// Checks the operations of a text.
fn check_text(
    model: &SemanticModel<'_>,
    entry: &CollectedText,
    operations: &[(ExprNode, Range<usize>)],
    shadowed: &BTreeSet<&str>,
    findings: &Findings,
) {
    let source = entry.text.source();
    for (root, place) in operations {
        // A name that the text sets itself, as in `{% for x in … %}`, has any type.
        let is_own = |name: &str, at| {
            entry.text.names().iter().any(|used| used.name == name && used.range.start == at + place.start)
        };
        let is_shadowed = |name: &str| entry.at.action.is_none() && shadowed.contains(name);
        let mut unknown = Vec::new();
        each_name(root, &mut |name, at| {
            if entry.declared.contains_key(name) && (is_shadowed(name) || !is_own(name, at)) {
                unknown.push(name);
            }
        });
        let mut declared = Cow::Borrowed(&entry.declared);
        if !unknown.is_empty() {
            declared.to_mut().retain(|name, _| !unknown.contains(&name.as_str()));
        }
        let is_list = source.get(..place.start).is_some_and(|before| before.trim_end().ends_with(" in"));
        let part = source.get(place.clone()).unwrap_or_default();
        for found in analyse_in_text(part, root, is_list, &declared) {
            findings.report(diagnostic(model, (&entry.node, place.start), &found));
        }
    }
}

/// Calls `visit` with every name in an expression and its start.
fn each_name<'n>(node: &'n ExprNode, visit: &mut dyn FnMut(&'n str, usize)) {
    if let ExprKind::Name(name) = &node.kind {
        visit(name, node.range.start);
    }
    node.each_part(&mut |part| each_name(part, visit));
}

/// Names that are declared in several places. Expressions outside actions (in a trigger, in the routes of a phase) are
/// evaluated at various positions, so it is unknown which declaration applies.
fn shadowed<'a>(model: &'a SemanticModel<'_>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let declared = model
        .collected
        .definitions
        .iter()
        .filter(|definition| definition.how == AssignmentKind::Declared || definition.scope.is_some());
    declared.map(|definition| definition.name.as_str()).filter(|name| !seen.insert(*name)).collect()
}

/// Whether the expression is the condition of an action with one of these ids.
fn is_condition_of(
    model: &SemanticModel<'_>,
    number: usize,
    expression: &CollectedExpression,
    ids: &BTreeSet<&str>,
) -> bool {
    let action = expression.at.action.and_then(|action| model.collected.actions.get(action));
    action.is_some_and(|action| action.condition == Some(number) && ids.contains(action.id.value.as_str()))
}

/// The action of kind `condition` that has the expression as the `when` of a case.
fn case_of(model: &SemanticModel<'_>, number: usize, expression: &CollectedExpression) -> Option<usize> {
    let index = expression.at.action?;
    let action = model.collected.actions.get(index)?;
    let when = action.kind.value == "condition"
        && expression.role == ExpressionRole::Condition
        && action.condition != Some(number);
    when.then_some(index)
}

/// Extends the finding about a case that is always true: names what is never reached.
fn with_unreachable_cases(diagnostic: Diagnostic, model: &SemanticModel<'_>, last: Option<&usize>) -> Diagnostic {
    let help = "write what it does under `else`, after all other cases";
    match last.and_then(|last| model.collected.expressions.get(*last)) {
        Some(last) => {
            let range = 0..last.expression.source().len();
            let span = last.span(model.file, &range);
            let message = msg!("{}, so the cases after it are never reached", diagnostic.message);
            Diagnostic { message, ..diagnostic }.with_help(help).with_related("never reached", model.file, span)
        }
        None => diagnostic.with_help(msg!("{help}; an `else` next to it is never reached", help = Message::word(help))),
    }
}

/// The diagnostic of a finding in the source that starts at a byte of the text of a scalar.
fn diagnostic(model: &SemanticModel<'_>, (node, start): (&YamlNode, usize), found: &TypeFinding) -> Diagnostic {
    let span = locate_bytes(model.file, node, found.range.start + start..found.range.end + start);
    let message = found.message.clone();
    let diagnostic = match found.mistake {
        TypeMistake::Mismatch => Diagnostic::error("type-mismatch", message, model.file, span),
        TypeMistake::NeverEqual | TypeMistake::NotADate => {
            Diagnostic::warning("never-equal", message, model.file, span)
        }
        TypeMistake::Constant(_) => Diagnostic::warning("constant-condition", message, model.file, span),
        TypeMistake::NotBoolean => Diagnostic::error("condition-not-boolean", message, model.file, span),
    };
    let repair = found.repair.as_ref();
    let fix = repair.and_then(|repair| fix(model.file, node, start, repair));
    // If the help describes the fix, it is shown once.
    let fix =
        fix.map(|fix| if found.help.starts_with(&fix.title) { Fix { title: found.help.clone(), ..fix } } else { fix });
    diagnostic.with_help(found.help.clone()).with_fixes(fix)
}
