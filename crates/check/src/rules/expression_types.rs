//! `type-mismatch`, `never-equal`, `constant-condition`, `condition-not-boolean`: what can never come right in an expression, by
//! what its names are declared as (docs/language.md "Texts").

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};

use crate::collected::{AssignmentKind, ExpressionFact, ExpressionRole};
use crate::repairs::fix;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use crate::typing::analysis::analyse;
use crate::typing::finding::{TypeFinding, TypeMistake};
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::{Diagnostic, Fix};

pub static RULE: Rule = Rule {
    slugs: &["type-mismatch", "never-equal", "constant-condition", "condition-not-boolean"],
    essential: false,
    check,
};

fn check(facts: &SemanticModel<'_>, findings: &Findings) {
    let shadowed = shadowed(facts);
    // For each `condition` action, the last of its cases.
    let mut last_case: BTreeMap<usize, usize> = BTreeMap::new();
    for (number, expression) in facts.seen.expressions.iter().enumerate() {
        if let Some(action) = case_of(facts, number, expression) {
            last_case.insert(action, number);
        }
    }
    let inserted: BTreeSet<&str> = facts.inserts().into_iter().map(|(id, _)| id.value.as_str()).collect();
    for (number, expression) in facts.seen.expressions.iter().enumerate() {
        let found = if expression.at.action.is_none()
            && expression.declared.keys().any(|name| shadowed.contains(name.as_str()))
        {
            let mut declared = expression.declared.clone();
            declared.retain(|name, _| !shadowed.contains(name.as_str()));
            analyse(&expression.expression, expression.role, &declared)
        } else {
            analyse(&expression.expression, expression.role, &expression.declared)
        };
        let case = case_of(facts, number, expression);
        for found in found {
            let mut diagnostic = diagnostic(facts, expression, &found);
            let all = found.range.len() == expression.expression.source().trim().len();
            // `condition: false` keeps an action for where it is inserted.
            if found.fault == TypeMistake::Constant(false) && all && is_of(facts, number, expression, &inserted) {
                continue;
            }
            if let (TypeMistake::Constant(true), true, Some(action)) = (found.fault, all, case) {
                diagnostic = after_it(diagnostic, facts, last_case.get(&action).filter(|last| **last > number));
            }
            findings.report(diagnostic);
        }
    }
}

/// Names that are declared in several places. What stands beside the actions (a trigger, the routes of a phase) is looked at
/// wherever the session is then, so which of the declarations counts is not known.
fn shadowed<'a>(facts: &'a SemanticModel<'_>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let declared = facts
        .seen
        .definitions
        .iter()
        .filter(|definition| definition.how == AssignmentKind::Declared || definition.scope.is_some());
    declared.map(|definition| definition.name.as_str()).filter(|name| !seen.insert(*name)).collect()
}

/// Whether the expression is the condition of one of these actions.
fn is_of(facts: &SemanticModel<'_>, number: usize, expression: &ExpressionFact, ids: &BTreeSet<&str>) -> bool {
    let action = expression.at.action.and_then(|action| facts.seen.actions.get(action));
    action.is_some_and(|action| action.condition == Some(number) && ids.contains(action.id.value.as_str()))
}

/// The action of kind `condition` of which the expression is the `when` of a case.
fn case_of(facts: &SemanticModel<'_>, number: usize, expression: &ExpressionFact) -> Option<usize> {
    let index = expression.at.action?;
    let action = facts.seen.actions.get(index)?;
    let when = action.kind.value == "condition"
        && expression.role == ExpressionRole::Condition
        && action.condition != Some(number);
    when.then_some(index)
}

/// The finding about a case that always holds says what never happens.
fn after_it(diagnostic: Diagnostic, facts: &SemanticModel<'_>, last: Option<&usize>) -> Diagnostic {
    let help = "write what it does under `else`, after all other cases";
    match last.and_then(|last| facts.seen.expressions.get(*last)) {
        Some(last) => {
            let range = 0..last.expression.source().len();
            let span = last.span(facts.file, &range);
            let message = msg!("{}, so the cases after it are never reached", diagnostic.message);
            Diagnostic { message, ..diagnostic }.with_help(help).with_related("never reached", facts.file, span)
        }
        None => diagnostic.with_help(msg!("{help}; an `else` next to it is never reached", help = Message::word(help))),
    }
}

fn diagnostic(facts: &SemanticModel<'_>, expression: &ExpressionFact, found: &TypeFinding) -> Diagnostic {
    let span = expression.span(facts.file, &found.range);
    let message = found.message.clone();
    let diagnostic = match found.fault {
        TypeMistake::Mismatch => Diagnostic::error("type-mismatch", message, facts.file, span),
        TypeMistake::NeverEqual => Diagnostic::warning("never-equal", message, facts.file, span),
        TypeMistake::Constant(_) => Diagnostic::warning("constant-condition", message, facts.file, span),
        TypeMistake::NotBoolean => Diagnostic::error("condition-not-boolean", message, facts.file, span),
    };
    let repair = found.repair.as_ref();
    let fix = repair.and_then(|repair| fix(facts.file, &expression.node, expression.start, repair));
    // A help that says what the fix does is said once.
    let fix =
        fix.map(|fix| if found.help.begins_with(&fix.title) { Fix { title: found.help.clone(), ..fix } } else { fix });
    diagnostic.with_help(found.help.clone()).with_fixes(fix)
}
