//! `insert-itself` and `skill-cycle`: an insertion or call that leads back to itself.
//!
//! An insertion happens at an exit reason. A cycle of several reasons requires different events each time, so it may end; a
//! cycle of a single reason repeats itself, and is reported. A call in a case or under a condition is assumed to end;
//! otherwise the session ends with an error (docs/actions/).

use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::calls::{CallEdge, CallKind, Calls};
use crate::components::components;
use crate::reasons::REASONS;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::{Diagnostic, Related};
use bcc_lang::source::span::Span;

pub static RULE: Rule = Rule { slugs: &["insert-itself", "skill-cycle"], essential: true, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let mut routes = model.collected.routes.iter().flat_map(|table| &table.on_exit.routes);
    if model.collected.calls.is_empty() && routes.all(|route| route.insert.is_none()) {
        return;
    }
    let calls = Calls::of(model);
    let mut reported: BTreeSet<Span> = BTreeSet::new();
    for reason in reasons(&calls) {
        let reason_graph = reason_graph(&calls, reason);
        for (from, edges) in reason_graph.edges.iter().enumerate() {
            for edge in
                edges.iter().filter(|edge| reason_graph.component.get(from) == reason_graph.component.get(edge.to))
            {
                if let Some(by) = edge.by.filter(|by| by.in_document && reported.insert(by.id.span)) {
                    findings.report(reason_graph.report(edge.to, by, model, findings.may_suggest()));
                }
            }
        }
    }
}

/// The reasons of insertions; a single `None` if there are no insertions, to check only calls.
fn reasons(calls: &Calls<'_, '_>) -> Vec<Option<&'static str>> {
    let used: BTreeSet<&str> = calls.edges.iter().flatten().filter_map(|edge| edge.reason).collect();
    if used.is_empty() {
        return vec![None];
    }
    REASONS.into_iter().filter(|reason| used.contains(reason)).map(Some).collect()
}

/// The graph of calls, and of insertions at this reason.
fn reason_graph<'f>(calls: &Calls<'f, '_>, reason: Option<&'static str>) -> ReasonGraph<'f> {
    let is_active = |edge: &&CallEdge<'f>| edge.sure && (edge.reason.is_none() || edge.reason == reason);
    let edges: Vec<Vec<CallEdge<'f>>> =
        calls.edges.iter().map(|edges| edges.iter().filter(is_active).copied().collect()).collect();
    let component = components(edges.len(), |node, nth| edges.get(node)?.get(nth).map(|edge| edge.to));
    ReasonGraph { edges, component }
}

/// The edges of one reason.
struct ReasonGraph<'f> {
    edges: Vec<Vec<CallEdge<'f>>>,
    /// The component of each node: nodes of one component reach each other.
    component: Vec<usize>,
}

impl ReasonGraph<'_> {
    fn report(&self, to: usize, by: CallKind<'_>, model: &SemanticModel<'_>, advise: bool) -> Diagnostic {
        let id = shortened(&by.id.value);
        let diagnostic = if by.inserts {
            let message = msg!("this inserts `{id}` again from inside `{id}`");
            let help = "this would never end: insert something else here, or continue with `next`";
            Diagnostic::error("insert-itself", message, model.file, by.id.span).with_help(help)
        } else {
            let message = msg!("this calls `{id}` again from inside `{id}`");
            let help = "this would never end: call another skill, or remove this call";
            Diagnostic::error("skill-cycle", message, model.file, by.id.span).with_help(help)
        };
        let related = if advise { self.cycle(to, by.id.span) } else { Vec::new() };
        related.into_iter().fold(diagnostic, |diagnostic, related| {
            diagnostic.with_related(related.message, &related.file, related.span)
        })
    }

    /// The calls on a shortest path from the callee to the call itself.
    fn cycle(&self, from: usize, end: Span) -> Vec<Related> {
        const MAX_NODES: usize = 1_000;
        let closes_cycle = |edge: &CallEdge<'_>| edge.by.is_some_and(|by| by.in_document && by.id.span == end);
        let mut before: BTreeMap<usize, Option<(usize, usize)>> = BTreeMap::from([(from, None)]);
        let mut pending = VecDeque::from([from]);
        while let Some(node) = pending.pop_front().filter(|_| before.len() < MAX_NODES) {
            for (nth, edge) in self.edges.get(node).into_iter().flatten().enumerate() {
                if closes_cycle(edge) {
                    return self.path(&before, node);
                }
                if self.component.get(edge.to) == self.component.get(from) && !before.contains_key(&edge.to) {
                    before.insert(edge.to, Some((node, nth)));
                    pending.push_back(edge.to);
                }
            }
        }
        Vec::new()
    }

    fn path(&self, before: &BTreeMap<usize, Option<(usize, usize)>>, mut node: usize) -> Vec<Related> {
        const MAX_RELATED: usize = 8;
        let mut path = Vec::new();
        while let Some(Some((from, nth))) = before.get(&node) {
            let by = self.edges.get(*from).and_then(|edges| edges.get(*nth)).and_then(|edge| edge.by);
            path.extend(by.map(|by| Related {
                message: match by.in_document {
                    true => msg!("`{}` is called here, as part of the cycle", shortened(&by.id.value)),
                    false => msg!("which then calls this one"),
                },
                file: Arc::clone(by.file),
                span: by.id.span,
            }));
            node = *from;
        }
        path.reverse();
        path.truncate(MAX_RELATED);
        path
    }
}
