//! Runs of plain actions: what follows one on another without a route, a condition or a call, and can be drawn as one.

use std::collections::BTreeMap;

use crate::graph::script_graph::{Edge, EdgeKind, GraphNodeKind, ScriptGraph};

/// Fewer than these are drawn one by one.
const SHORTEST: usize = 3;

/// The action at the head of the run, for every action that stands in one.
pub fn runs(whole: &ScriptGraph) -> BTreeMap<usize, usize> {
    let mut ways = EdgeIndex { before: vec![vec![]; whole.parts.len()], behind: vec![vec![]; whole.parts.len()] };
    for link in &whole.links {
        let to = whole.entry(link.to);
        ways.behind.get_mut(link.from).into_iter().for_each(|behind| behind.push((to, link)));
        ways.before.get_mut(to).into_iter().for_each(|before| before.push(link));
    }
    let mut heads = BTreeMap::new();
    for first in 0..whole.parts.len() {
        if heads.contains_key(&first) || !ways.is_plain(whole, first) {
            continue;
        }
        let mut run = vec![first];
        while let Some(next) = run.last().and_then(|last| ways.next(whole, *last)) {
            run.push(next);
        }
        if run.len() >= SHORTEST {
            heads.extend(run.into_iter().map(|member| (member, first)));
        }
    }
    heads
}

struct EdgeIndex<'w> {
    before: Vec<Vec<&'w Edge>>,
    behind: Vec<Vec<(usize, &'w Edge)>>,
}

impl EdgeIndex<'_> {
    /// Whether there is nothing to tell of it but its kind. One at the head of a run may be come to from anywhere.
    fn is_plain(&self, whole: &ScriptGraph, number: usize) -> bool {
        let plain =
            whole.parts.get(number).is_some_and(|part| part.kind == GraphNodeKind::Action && part.notes.is_empty());
        let behind = self.behind.get(number).map(Vec::as_slice).unwrap_or_default();
        plain && behind.len() <= 1 && behind.iter().all(|(_, link)| link.lead == EdgeKind::Order)
    }

    fn next(&self, whole: &ScriptGraph, number: usize) -> Option<usize> {
        let [(next, _)] = self.behind.get(number)?.as_slice() else { return None };
        let alone = self.before.get(*next).is_some_and(|before| before.len() == 1);
        let holder = |number: usize| whole.parts.get(number).map(|part| part.holder);
        (alone && holder(*next) == holder(number) && self.is_plain(whole, *next)).then_some(*next)
    }
}
