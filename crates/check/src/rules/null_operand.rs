//! `null-operand`: an operation on a variable that may be null, and so may be null itself: the person did not answer, or nobody gave it.
//!
//! Only comparisons, arithmetic, `not in` and `not` are reported: `x | length > 0` and `x in […]` are right for null, too. A use that tests for
//! null in the same expression or text, or in the condition of its action, is not reported, nor one after an action that certainly sets the variable. What is always
//! empty is reported by `never-set`.

use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::collected::{ActionPosition, AssignmentKind, Collected, Definition, ExpressionRole, Use, UseLocation};
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::expr::eval::NULL_FILTERS;
use bcc_lang::expr::operators::Operator;
use bcc_lang::expr::tree::{ExprKind, ExprNode, balanced};
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::value::compare::Family;
use bcc_lang::value::scopes::Scope;

/// What the result of an operation is used for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// It decides, as in a `condition` or `{% if … %}`, or is a part of something else in a text.
    Condition,
    /// It is a value, as in `set`.
    Value,
    /// It is all that is written into a text: `{{ … }}`.
    Text,
}

/// An operation as it is written, and its purpose.
type Operation = (String, Purpose);

/// A place in the file: the scalar, and the byte of its text at which a use starts.
type Spot = (*const YamlNode, usize);

pub static RULE: Rule = Rule { slugs: &["null-operand"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    if !model.is_complete() {
        return;
    }
    let operations = unguarded_operations(model);
    for (_, places) in model.names().iter() {
        let first = places
            .used(&model.collected)
            .filter(|used| !used.optional)
            .filter_map(|used| Some((used, operations.get(&spot(used)?)?)))
            .find(|(used, _)| may_be_null(model, used));
        if let Some((used, operation)) = first {
            findings.report(report(model, used, operation));
        }
    }
}

fn spot(used: &Use) -> Option<Spot> {
    match &used.place {
        UseLocation::Within(node, range) => Some((Arc::as_ptr(node), range.start)),
        UseLocation::Whole(_) => None,
    }
}

/// Whether the variable can, but need not, have a value where it is used.
fn may_be_null(model: &SemanticModel<'_>, used: &Use) -> bool {
    let collected = &model.collected;
    let Some(places) = model.names().places(&used.name) else { return false };
    let declarations = places.declarations(collected);
    let declared = declarations.visible_from(used.at.body).next();
    if declared.is_some_and(|declared| declared.has_value || declared.how != AssignmentKind::Declared) {
        return false;
    }
    let writers: Vec<&Definition> =
        places.defined(collected).filter(|found| found.writes() && found.visible_from(used.at.body)).collect();
    let is_certain = |writer: &&Definition| {
        writer.how == AssignmentKind::Element || (writer.order <= used.order && certainly_sets(collected, writer))
    };
    if writers.iter().any(is_certain) {
        return false;
    }
    let latest = used.latest(collected);
    let has_writer = writers.iter().any(|writer| model.paths().first_reachable(writer.earliest(collected)) <= latest);
    // `--var` or an earlier session of the user may give it.
    let is_input = declared
        .is_some_and(|declared| declared.to == Scope::Global || (declared.to == Scope::Session && writers.is_empty()));
    has_writer || is_input
}

/// Whether a variable has a value after the action that writes it: a `set`, or an output without which the action does not exit.
fn certainly_sets(collected: &Collected, writer: &Definition) -> bool {
    let Some(action) = writer.at.action.and_then(|number| collected.actions.get(number)) else { return false };
    if action.conditional || action.parent.is_some() {
        return false;
    }
    let mut outputs = collected.outputs.iter().filter(|found| found.at.action == writer.at.action);
    let is_required = outputs.any(|found| found.output.get == writer.name && found.output.required);
    // `required` of the action applies to all its outputs.
    let requires_all = action.described.as_ref().is_some_and(|described| !described.required.is_empty());
    action.kind.value == "set" || is_required || requires_all
}

fn report(model: &SemanticModel<'_>, used: &Use, (operation, purpose): &Operation) -> Diagnostic {
    let name = shortened(&used.name);
    let operation = shortened(operation);
    let (message, help) = match purpose {
        Purpose::Condition => (
            msg!("`{name}` may be null here; then `{operation}` is null, too, and a condition counts as false"),
            msg!("test it first (`{name} is not none and …`), or give it a value: `{name} | default(…)`"),
        ),
        Purpose::Value => (
            msg!("`{name}` may be null here; then `{operation}` is null, too"),
            msg!(
                "run the action only with a value (`condition: {name} is not none`), or give it one: `{name} | default(…)`"
            ),
        ),
        Purpose::Text => (
            msg!("`{name}` may be null here; then `{operation}` is null, too, and nothing is written"),
            msg!(
                "write it only with a value (`{{% if {name} is not none %}}…{{% endif %}}`), or give it one: `{name} | default(…)`"
            ),
        ),
    };
    Diagnostic::warning("null-operand", message, model.file, used.place.span(model.file)).with_help(help)
}

/// The operations on names that are not tested for null in the same expression or text, by the place of the name.
fn unguarded_operations(model: &SemanticModel<'_>) -> BTreeMap<Spot, Operation> {
    let collected = &model.collected;
    let mut found = BTreeMap::new();
    for (number, entry) in collected.expressions.iter().enumerate() {
        let mut walk = Walk { source: entry.expression.source(), operands: Vec::new() };
        walk.visit(entry.expression.root(), &non_null_at(collected, &entry.at, Some(number)));
        let purpose = if entry.role == ExpressionRole::Value { Purpose::Value } else { Purpose::Condition };
        let spot = |at: usize| (Arc::as_ptr(&entry.node), at + entry.start);
        found.extend(walk.operands.into_iter().map(|(_, at, text)| (spot(at), (text, purpose))));
    }
    for (entry, operations) in model.text_operations() {
        let source = entry.text.source();
        let mut operands = Vec::new();
        let guarded = non_null_at(collected, &entry.at, None);
        for (root, range) in operations {
            let mut walk = Walk { source: source.get(range.clone()).unwrap_or_default(), operands: Vec::new() };
            walk.visit(root, &guarded);
            let before = source.get(..range.start).unwrap_or_default().trim_end().trim_end_matches(['-', '+', '(']);
            let mut decisive = BTreeSet::new();
            if before.trim_end().ends_with("{{") {
                decisive_operands(root, &mut decisive);
            }
            let purpose = |at: usize| if decisive.contains(&at) { Purpose::Text } else { Purpose::Condition };
            operands.extend(
                walk.operands.into_iter().map(|(name, at, text)| (name, at + range.start, (text, purpose(at)))),
            );
        }
        let starts: BTreeSet<usize> = operands.iter().map(|(_, at, _)| *at).collect();
        // Another use of the name may be the test: `{% if n %}{{ n + 1 }}{% endif %}`.
        let is_tested =
            |name: &str| entry.text.names().iter().any(|used| used.name == name && !starts.contains(&used.range.start));
        let untested = operands.into_iter().filter(|(name, ..)| !is_tested(name));
        found.extend(untested.map(|(_, at, operation)| ((Arc::as_ptr(&entry.node), at), operation)));
    }
    found
}

/// The names that are not null in an action, because its `condition` or that of an action around it is not true otherwise.
/// `except`: the number of a condition that does not guard itself.
fn non_null_at(collected: &Collected, at: &ActionPosition, except: Option<usize>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut action = at.action.and_then(|number| collected.actions.get(number));
    while let Some(around) = action {
        let condition = around.condition.filter(|condition| Some(*condition) != except);
        if let Some(entry) = condition.and_then(|condition| collected.expressions.get(condition)) {
            names.extend(non_null_if(entry.expression.root(), true));
            compared(entry.expression.root(), &mut names);
        }
        action = around.parent.and_then(|number| collected.actions.get(number));
    }
    names
}

/// The names that a true condition compares: a comparison with null is not true.
fn compared(node: &ExprNode, names: &mut BTreeSet<String>) {
    match &node.kind {
        ExprKind::And(left, right) => [left, right].into_iter().for_each(|part| compared(part, names)),
        ExprKind::Operation(operator, left, right) if operator.family() == Family::Order => {
            names.extend([left, right].into_iter().filter_map(|part| match &part.kind {
                ExprKind::Name(name) => Some(name.clone()),
                _ => None,
            }));
        }
        _ => {}
    }
}

struct Walk<'a> {
    source: &'a str,
    /// The names that are operands, with their positions and the text of the operation.
    operands: Vec<(String, usize, String)>,
}

impl Walk<'_> {
    /// `guarded`: the names that are not null whenever the value of this node matters.
    fn visit(&mut self, node: &ExprNode, guarded: &BTreeSet<String>) {
        match &node.kind {
            ExprKind::And(left, right) => {
                let known = with(guarded, &[non_null_if(left, true), non_null_if(right, true)]);
                self.visit_all(&[left, right], &known);
            }
            ExprKind::Or(left, right) => {
                let known = with(guarded, &[non_null_if(left, false), non_null_if(right, false)]);
                self.visit_all(&[left, right], &known);
            }
            ExprKind::Choice { test, yes, no } => {
                self.visit(test, guarded);
                self.visit(yes, &with(guarded, &[non_null_if(test, true)]));
                if let Some(no) = no {
                    self.visit(no, &with(guarded, &[non_null_if(test, false)]));
                }
            }
            ExprKind::Operation(operator, left, right) => {
                if needs_values(*operator) {
                    self.operands(&[left, right], &node.range, guarded);
                }
                self.visit_all(&[left, right], guarded);
            }
            ExprKind::Chain(first, rest) => {
                let all: Vec<&ExprNode> =
                    std::iter::once(first.as_ref()).chain(rest.iter().map(|(_, of)| of)).collect();
                if rest.iter().any(|(operator, _)| needs_values(*operator)) {
                    self.operands(&all, &node.range, guarded);
                }
                self.visit_all(&all, guarded);
            }
            ExprKind::Not(of) | ExprKind::Negate(of) => {
                self.operands(&[of], &node.range, guarded);
                self.visit(of, guarded);
            }
            // These take null as a value, and whatever makes it null.
            ExprKind::Filter(name, ..) if NULL_FILTERS.contains(&name.as_str()) => {}
            ExprKind::Test(..) => {}
            _ => node.each_part(&mut |part| self.visit(part, guarded)),
        }
    }

    fn visit_all(&mut self, nodes: &[&ExprNode], guarded: &BTreeSet<String>) {
        nodes.iter().for_each(|node| self.visit(node, guarded));
    }

    fn operands(&mut self, nodes: &[&ExprNode], operation: &Range<usize>, guarded: &BTreeSet<String>) {
        for node in nodes {
            if let ExprKind::Name(name) = &node.kind
                && !guarded.contains(name)
            {
                let text = self.source.get(balanced(self.source, operation)).unwrap_or_default().to_owned();
                self.operands.push((name.clone(), node.range.start, text));
            }
        }
    }
}

fn needs_values(operator: Operator) -> bool {
    operator.family() != Family::Equality && operator != Operator::In
}

/// The positions of the names that make the whole expression null: the operands of its operation, and of arithmetic in these.
fn decisive_operands(node: &ExprNode, places: &mut BTreeSet<usize>) {
    let operands = match &node.kind {
        ExprKind::Operation(operator, left, right) if needs_values(*operator) => vec![left, right],
        ExprKind::Not(of) | ExprKind::Negate(of) => vec![of],
        _ => return,
    };
    for operand in operands {
        match &operand.kind {
            ExprKind::Name(_) => {
                places.insert(operand.range.start);
            }
            ExprKind::Operation(operator, ..) if matches!(operator.family(), Family::Add | Family::Arithmetic) => {
                decisive_operands(operand, places);
            }
            ExprKind::Negate(_) => decisive_operands(operand, places),
            _ => {}
        }
    }
}

fn with(guarded: &BTreeSet<String>, more: &[BTreeSet<String>]) -> BTreeSet<String> {
    guarded.iter().chain(more.iter().flatten()).cloned().collect()
}

/// The names that are certainly not null if the condition has this truth because the name was tested: `x is not none`, `x != none`, `x`.
fn non_null_if(node: &ExprNode, truth: bool) -> BTreeSet<String> {
    let name = |of: &ExprNode| match &of.kind {
        ExprKind::Name(name) => Some(name.clone()),
        _ => None,
    };
    let is_null = |of: &ExprNode| matches!(&of.kind, ExprKind::Constant(value) if value.is_none());
    match &node.kind {
        ExprKind::Name(name) => BTreeSet::from([name.clone()]),
        ExprKind::Not(of) => non_null_if(of, !truth),
        ExprKind::Test(test, of, _) if (test == "none") != truth => name(of).into_iter().collect(),
        ExprKind::Operation(Operator::Equal | Operator::Unequal, one, other) => {
            let operator_is_equal = matches!(&node.kind, ExprKind::Operation(Operator::Equal, ..));
            let compared = [(one, other), (other, one)].into_iter().find(|(_, null)| is_null(null));
            match compared {
                Some((of, _)) if operator_is_equal != truth => name(of).into_iter().collect(),
                // `x == 'a' and x < 'b'`
                None if operator_is_equal && truth => [name(one), name(other)].into_iter().flatten().collect(),
                _ => BTreeSet::new(),
            }
        }
        ExprKind::And(left, right) if truth => with(&non_null_if(left, true), &[non_null_if(right, true)]),
        ExprKind::Or(left, right) if !truth => with(&non_null_if(left, false), &[non_null_if(right, false)]),
        _ => BTreeSet::new(),
    }
}
