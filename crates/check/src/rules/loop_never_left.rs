//! `loop-never-left`: a loop that ends only when a variable has another value, while nothing in the loop sets this variable.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};

use crate::collected::{AssignmentKind, Collected, CollectedExpression, Definition, ExpressionRole};
use crate::components::components;
use crate::edges::graph;
use crate::graph::{Certainty, ControlEdge, ControlFlowGraph, NodeId, NodeSet};
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;
use bcc_lang::value::scopes::Scope;
use bcc_runtime::program::turn::ENGINE_NAMES;

const SLUG: &str = "loop-never-left";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let collected = &model.collected;
    // A missing part might set the variable.
    if !model.is_complete() || collected.routes.is_empty() && collected.gotos.is_empty() {
        return;
    }
    // What a trigger inserts may set it, and a trigger may leave the loop.
    if !collected.triggers.is_empty() {
        return;
    }
    let graph = graph(model);
    let edges = |node: NodeId| graph.edges_from(node).iter().filter(|edge| stays_possible(edge));
    let targets = |node: NodeId| edges(node).filter(|_| graph.reached(node)).map(|edge| edge.to).collect();
    let targets: Vec<Vec<NodeId>> = (0..graph.nodes.count()).map(targets).collect();
    let component = components(targets.len(), |node, nth| targets.get(node)?.get(nth).copied());
    let of = |node: NodeId| component.get(node).copied();
    let mut loops: BTreeMap<usize, Vec<NodeId>> = BTreeMap::new();
    for node in (0..graph.nodes.count()).filter(|node| graph.reached(*node)) {
        loops.entry(component.get(node).copied().unwrap_or_default()).or_default().push(node);
    }
    let forks = Forks::of(collected);
    for nodes in loops.into_values().filter(|nodes| nodes.len() > 1) {
        let is_inside = |edge: &ControlEdge| nodes.first().is_some_and(|node| of(*node) == of(edge.to));
        let exits = nodes.iter().filter(|node| edges(**node).any(|edge| !is_inside(edge))).copied().collect::<Vec<_>>();
        let Some(names) = forks.deciding_names(graph, &exits).filter(|names| !names.is_empty()) else { continue };
        let actions: BTreeSet<usize> = nodes.iter().filter_map(|node| graph.nodes.action_of(*node)).collect();
        if collected
            .definitions
            .iter()
            .any(|definition| names.contains(definition.name.as_str()) && may_change(model, definition, &actions))
        {
            continue;
        }
        let spans =
            nodes.iter().flat_map(|node| edges(*node).filter(|edge| is_inside(edge)).filter_map(|edge| edge.by));
        let Some(back) = spans.max() else { continue };
        findings.report(report(model, &names, back));
    }
}

fn stays_possible(edge: &ControlEdge) -> bool {
    edge.sure != Certainty::OnError && edge.to != NodeSet::FAIL
}

/// The actions that only expressions decide about.
struct Forks<'m> {
    collected: &'m Collected,
    /// The expressions of each action that picks a case and may jump.
    cases: BTreeMap<usize, Vec<&'m CollectedExpression>>,
}

impl<'m> Forks<'m> {
    fn of(collected: &'m Collected) -> Self {
        let calls: BTreeSet<usize> = collected.calls.iter().filter_map(|call| call.at.action).collect();
        let forks = collected.gotos.iter().filter_map(|(_, at)| at.action).filter(|action| !calls.contains(action));
        let mut cases: BTreeMap<usize, Vec<&CollectedExpression>> = forks.map(|action| (action, Vec::new())).collect();
        let conditions = collected.expressions.iter().filter(|found| found.role == ExpressionRole::Condition);
        for expression in conditions {
            let fork = expression.at.action.and_then(|action| cases.get_mut(&action));
            fork.into_iter().for_each(|fork| fork.push(expression));
        }
        Self { collected, cases }
    }

    /// The names that decide whether a loop is left at these nodes; `None` if something else may decide it.
    fn deciding_names(&self, graph: &ControlFlowGraph, exits: &[NodeId]) -> Option<BTreeSet<&'m str>> {
        let mut names = BTreeSet::new();
        for exit in exits {
            let number = graph.nodes.action_of(*exit)?;
            let condition = || {
                let condition = self.collected.actions.get(number)?.condition?;
                Some(vec![self.collected.expressions.get(condition)?])
            };
            let is_skipped = *exit == graph.nodes.before(number);
            let decides = if is_skipped { condition()? } else { self.cases.get(&number)?.clone() };
            names.extend(decides.iter().flat_map(|found| found.expression.names()).map(|used| used.name.as_str()));
        }
        names.iter().all(|name| !ENGINE_NAMES.contains(name)).then_some(names)
    }
}

/// Whether the variable may get another value while the loop runs.
fn may_change(model: &SemanticModel<'_>, definition: &Definition, actions: &BTreeSet<usize>) -> bool {
    let parent = |number: &usize| model.collected.actions.get(*number)?.parent;
    match definition.at.action {
        Some(number) => std::iter::successors(Some(number), parent).any(|number| actions.contains(&number)),
        // A value that is the same for all sessions of a user may be set by another session.
        None => definition.how != AssignmentKind::Declared || definition.to == Scope::Global,
    }
}

fn report(model: &SemanticModel<'_>, names: &BTreeSet<&str>, back: Span) -> Diagnostic {
    let names = Message::names(names.iter().copied());
    let message = msg!("the loop that this closes is left only when {names} changes, but nothing in the loop sets it");
    let help = "have an action in the loop ask for it or set it, or give the loop another way out, such as a number of attempts";
    Diagnostic::warning(SLUG, message, model.file, back).with_help(help)
}
