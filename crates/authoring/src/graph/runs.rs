//! Finds runs of plain actions: consecutive actions without routes, conditions or calls, which can be drawn as one box.

use std::collections::BTreeMap;

use crate::graph::script_graph::{Edge, EdgeKind, GraphNodeKind, ScriptGraph};

/// Shorter runs are drawn as single actions.
const MIN_RUN_LENGTH: usize = 3;

/// The first action of the run, for every action in a run.
pub fn runs(graph: &ScriptGraph) -> BTreeMap<usize, usize> {
    let mut edges = EdgeIndex { incoming: vec![vec![]; graph.parts.len()], outgoing: vec![vec![]; graph.parts.len()] };
    for link in &graph.links {
        let to = graph.entry(link.to);
        edges.outgoing.get_mut(link.from).into_iter().for_each(|outgoing| outgoing.push((to, link)));
        edges.incoming.get_mut(to).into_iter().for_each(|incoming| incoming.push(link));
    }
    let mut heads = BTreeMap::new();
    for first in 0..graph.parts.len() {
        if heads.contains_key(&first) || !edges.is_plain(graph, first) {
            continue;
        }
        let mut run = vec![first];
        while let Some(next) = run.last().and_then(|last| edges.next(graph, *last)) {
            run.push(next);
        }
        if run.len() >= MIN_RUN_LENGTH {
            heads.extend(run.into_iter().map(|member| (member, first)));
        }
    }
    heads
}

struct EdgeIndex<'w> {
    incoming: Vec<Vec<&'w Edge>>,
    outgoing: Vec<Vec<(usize, &'w Edge)>>,
}

impl EdgeIndex<'_> {
    /// Whether an action has no details besides its type. The first action of a run may have several incoming edges.
    fn is_plain(&self, graph: &ScriptGraph, number: usize) -> bool {
        let plain =
            graph.parts.get(number).is_some_and(|part| part.kind == GraphNodeKind::Action && part.notes.is_empty());
        let outgoing = self.outgoing.get(number).map(Vec::as_slice).unwrap_or_default();
        plain && outgoing.len() <= 1 && outgoing.iter().all(|(_, link)| link.kind == EdgeKind::Order)
    }

    fn next(&self, graph: &ScriptGraph, number: usize) -> Option<usize> {
        let [(next, _)] = self.outgoing.get(number)?.as_slice() else { return None };
        let alone = self.incoming.get(*next).is_some_and(|incoming| incoming.len() == 1);
        let parent = |number: usize| graph.parts.get(number).map(|part| part.parent);
        (alone && parent(*next) == parent(number) && self.is_plain(graph, *next)).then_some(*next)
    }
}
