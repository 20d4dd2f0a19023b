//! The lists that a script only appends to. What such a list holds once is final: it can be used before the session has ended.

use std::collections::{BTreeMap, BTreeSet};

use bcc_lang::expr::operators::Operator;
use bcc_lang::expr::tree::{Argument, ExprKind, ExprNode};
use bcc_lang::script::script::Script;
use bcc_lang::source::span::{Span, Spanned};
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::scopes::Scope;
use minijinja::value::ValueKind;

use crate::collected::{AssignmentKind, CalleeBody, Definition, ExpressionRole};
use crate::semantic_model::SemanticModel;

/// Actions after which a list may have other elements: the source of the first one may set any declared variable, and each branch of the second
/// one writes to a scope of its own.
const MAY_REPLACE: [&str; 2] = ["behavior_loop", "parallel"];

/// The variables of the session that are declared as lists, and to which every writer appends. Empty if something else than the script
/// may set variables, or if it could not be read completely.
pub(crate) fn growing_lists(model: &SemanticModel<'_>, script: &Script) -> BTreeSet<String> {
    let collected = &model.collected;
    let may_replace = collected.actions.iter().any(|action| MAY_REPLACE.contains(&action.kind.value.as_str()));
    if !model.is_complete() || script.is_orchestrated() || may_replace {
        return BTreeSet::new();
    }
    let growing = |name: &str, appending: &BTreeSet<Span>| {
        let places = model.names().places(name)?;
        // Variables of skills stay in the skill.
        let in_session = |definition: &&Definition| !matches!(definition.at.body, CalleeBody::Skill(_));
        let is_declared = |definition: &&Definition| definition.how == AssignmentKind::Declared;
        let definitions = || places.defined(collected).filter(in_session);
        let appends = |definition: &Definition| definition.to == Scope::Session && appending.contains(&definition.span);
        let grows = definitions().filter(is_declared).count() == 1
            && definitions().filter(|definition| !is_declared(definition)).all(appends);
        grows.then(|| name.to_owned())
    };
    let lists: Vec<&Definition> = collected.definitions.iter().filter(|definition| is_list(definition)).collect();
    if lists.is_empty() {
        return BTreeSet::new();
    }
    let appending = appending(model);
    lists.into_iter().filter_map(|list| growing(&list.name, &appending)).collect()
}

/// Whether it declares a list of the session.
fn is_list(definition: &Definition) -> bool {
    definition.how == AssignmentKind::Declared
        && definition.declared == Some(DeclaredType::List)
        && (definition.to, definition.at.body) == (Scope::Session, CalleeBody::Session)
}

/// The places of the names that are written by appending: by an output with `append`, or by an expression that begins with the list.
fn appending(model: &SemanticModel<'_>) -> BTreeSet<Span> {
    let collected = &model.collected;
    let outputs = collected.outputs.iter().filter(|entry| entry.output.append).map(|entry| entry.span);
    // Several variables have the same value if it is an alias.
    let mut values: BTreeMap<Span, Vec<&Spanned<String>>> = BTreeMap::new();
    for set in &collected.sets {
        values.entry(set.span).or_default().push(&set.name);
    }
    let expressions = collected.expressions.iter().filter(|entry| entry.role == ExpressionRole::Value);
    let sets = expressions.flat_map(|entry| {
        let names = values.get(&entry.node.span).into_iter().flatten();
        names.filter(|name| appends_to(entry.expression.root(), &name.value)).map(|name| name.span)
    });
    outputs.chain(sets).collect()
}

/// Whether the value of an expression is the list with something after it. With null after it, it would be null.
fn appends_to(node: &ExprNode, name: &str) -> bool {
    match &node.kind {
        ExprKind::Operation(Operator::Add, first, second) => {
            is_certainly_list(second) && (names(first, name) || appends_to(first, name))
        }
        _ => false,
    }
}

/// Whether it is certainly a list: one that stands there, or with `default` if there is nothing else.
fn is_certainly_list(node: &ExprNode) -> bool {
    match &node.kind {
        ExprKind::Filter(filter, _, arguments) if filter == "default" => {
            matches!(arguments.as_slice(), [Argument::Plain(argument)] if stands_there(argument))
        }
        _ => stands_there(node),
    }
}

fn stands_there(list: &ExprNode) -> bool {
    match &list.kind {
        ExprKind::List(_) => true,
        ExprKind::Constant(value) => value.kind() == ValueKind::Seq,
        _ => false,
    }
}

/// Whether it is the list: its name, or with `default` an empty list in its place.
fn names(node: &ExprNode, name: &str) -> bool {
    match &node.kind {
        ExprKind::Name(found) => found == name,
        ExprKind::Filter(filter, of, arguments) if filter == "default" => {
            let is_empty = |argument: &ExprNode| match &argument.kind {
                ExprKind::List(items) => items.is_empty(),
                ExprKind::Constant(value) => value.kind() == ValueKind::Seq && value.len() == Some(0),
                _ => false,
            };
            matches!(arguments.as_slice(), [Argument::Plain(argument)] if is_empty(argument)) && names(of, name)
        }
        _ => false,
    }
}
