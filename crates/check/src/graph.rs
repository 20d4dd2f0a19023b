//! The control flow graph of a document, whose edges connect its phases, topics and actions.
//!
//! It overestimates: whatever is uncertain counts as possible. So a node that the graph does not reach is never reached,
//! but a node that it reaches may still be unreachable.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::collected::CalleeBody;
use bcc_lang::script::script::WrittenPhase;
use bcc_lang::source::span::Span;

/// The number of a node.
pub(crate) type NodeId = usize;

/// The nodes of a document, numbered in the order of the file.
#[derive(Debug, Default)]
pub struct NodeSet {
    /// The first node of each phase, then those of its topics.
    phases: Vec<(NodeId, Vec<NodeId>)>,
    skills: NodeId,
    actions: NodeId,
    count: usize,
}

impl NodeSet {
    /// The start of the session.
    pub const START: NodeId = 0;
    pub const END: NodeId = 1;
    pub(crate) const FAIL: NodeId = 2;

    /// The nodes of a document with these phases and these numbers of skills and actions.
    pub fn of(phases: &[WrittenPhase], skills: usize, actions: usize) -> Self {
        let mut count = 3;
        let mut take = |size| {
            count += size;
            count - size
        };
        let phases = phases.iter().map(|phase| (take(2), phase.topics.iter().map(|_| take(4)).collect())).collect();
        let skills = take(2 * skills);
        let actions = take(4 * actions);
        Self { phases, skills, actions, count }
    }

    /// The number of nodes.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The action that a node belongs to.
    pub(crate) fn action_of(&self, node: NodeId) -> Option<usize> {
        Some(node.checked_sub(self.actions)? / 4)
    }

    pub(crate) fn phase_in(&self, phase: usize) -> NodeId {
        self.phases.get(phase).map_or(Self::END, |(node, _)| *node)
    }

    /// The node after a phase.
    pub(crate) fn phase_out(&self, phase: usize) -> NodeId {
        self.phases.get(phase).map_or(Self::END, |(node, _)| node + 1)
    }

    pub(crate) fn topic_in(&self, phase: usize, topic: usize) -> NodeId {
        self.phases.get(phase).and_then(|(_, topics)| topics.get(topic)).copied().unwrap_or(Self::END)
    }

    /// The node after a topic.
    pub(crate) fn topic_out(&self, phase: usize, topic: usize) -> NodeId {
        self.topic_in(phase, topic) + 1
    }

    /// The node before the first action of a topic, for each element of its list.
    pub(crate) fn topic_body(&self, phase: usize, topic: usize) -> NodeId {
        self.topic_in(phase, topic) + 2
    }

    /// The node after the last action of a topic.
    pub(crate) fn topic_last(&self, phase: usize, topic: usize) -> NodeId {
        self.topic_in(phase, topic) + 3
    }

    pub(crate) fn skill_in(&self, skill: usize) -> NodeId {
        self.skills + 2 * skill
    }

    /// The end of a skill.
    pub(crate) fn skill_out(&self, skill: usize) -> NodeId {
        self.skills + 2 * skill + 1
    }

    /// The node before an action, where its condition is evaluated.
    pub fn before(&self, action: usize) -> NodeId {
        self.actions + 4 * action
    }

    pub fn act(&self, action: usize) -> NodeId {
        self.actions + 4 * action + 1
    }

    pub fn exit(&self, action: usize) -> NodeId {
        self.actions + 4 * action + 2
    }

    /// The node after an action.
    pub fn after(&self, action: usize) -> NodeId {
        self.actions + 4 * action + 3
    }

    pub(crate) fn start_of(&self, body: CalleeBody) -> NodeId {
        match body {
            CalleeBody::Session => Self::START,
            CalleeBody::Phase(phase) => self.phase_in(phase),
            CalleeBody::Topic(phase, topic) => self.topic_in(phase, topic),
            CalleeBody::Skill(skill) => self.skill_in(skill),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The edge is taken if no other edge is.
    Yes,
    /// The edge is taken only on an error.
    OnError,
    /// Something else, such as an answer or an insertion, may happen before the edge is taken; or the edge may not exist.
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeWork {
    Nothing,
    Action(usize),
    Topic(usize, usize),
}

#[derive(Clone, Copy, Debug)]
pub struct ControlEdge {
    pub to: NodeId,
    pub sure: Certainty,
    pub work: NodeWork,
    /// The route or `goto` that creates it.
    pub by: Option<Span>,
}

/// The graph of a document. The bodies of its skills are separate graphs: a skill runs in its own scope, so a call of it is
/// an edge across the call.
#[derive(Debug)]
pub struct ControlFlowGraph {
    pub nodes: NodeSet,
    first: Vec<usize>,
    edges: Vec<ControlEdge>,
    reached: Vec<bool>,
}

impl ControlFlowGraph {
    /// The graph with these edges, each with its source node. `roots`: reachable nodes in addition to the start and the skills.
    pub fn of(nodes: NodeSet, mut edges: Vec<(NodeId, ControlEdge)>, mut roots: Vec<NodeId>) -> Self {
        edges.sort_by_key(|(from, _)| *from);
        let mut first = vec![0; nodes.count + 1];
        edges.iter().for_each(|(from, _)| first.iter_mut().skip(from + 1).take(1).for_each(|count| *count += 1));
        let mut sum = 0;
        for count in &mut first {
            sum += *count;
            *count = sum;
        }
        let edges = edges.into_iter().map(|(_, edge)| edge).collect();
        let mut graph = Self { nodes, first, edges, reached: vec![] };
        roots.push(NodeSet::START);
        roots.extend((graph.nodes.skills..graph.nodes.actions).step_by(2));
        graph.reached = graph.reachable_from(&roots);
        graph
    }

    pub(crate) fn edges_from(&self, node: NodeId) -> &[ControlEdge] {
        let (Some(from), Some(to)) = (self.first.get(node), self.first.get(node + 1)) else { return &[] };
        self.edges.get(*from..*to).unwrap_or_default()
    }

    /// Whether a conversation can reach this node.
    pub fn reached(&self, node: NodeId) -> bool {
        self.reached.get(node).is_some_and(|reached| *reached)
    }

    /// Whether a conversation can reach this action.
    pub fn reached_action(&self, action: usize) -> bool {
        self.reached(self.nodes.before(action)) || self.reached(self.nodes.act(action))
    }

    /// The minimum cost of a path from the start to the end; `None` if there is no path.
    pub fn cheapest(&self, cost: impl Fn(NodeWork) -> u64) -> Option<u64> {
        let mut best: Vec<Option<u64>> = vec![None; self.nodes.count];
        let mut open = BinaryHeap::from([Reverse((0_u64, NodeSet::START))]);
        while let Some(Reverse((spent, node))) = open.pop() {
            let Some(known) = best.get_mut(node).filter(|known| known.is_none()) else { continue };
            *known = Some(spent);
            if node == NodeSet::END {
                return Some(spent);
            }
            open.extend(
                self.edges_from(node).iter().map(|edge| Reverse((spent.saturating_add(cost(edge.work)), edge.to))),
            );
        }
        None
    }

    /// The only edge of a node, except for errors; `None` if there are several, or if it is not certain.
    pub(crate) fn only_edge(&self, node: NodeId) -> Option<&ControlEdge> {
        let mut edges = self.edges_from(node).iter().filter(|edge| edge.sure != Certainty::OnError);
        let only = edges.next()?;
        (only.sure == Certainty::Yes && edges.all(|edge| edge.sure == Certainty::Yes && edge.to == only.to))
            .then_some(only)
    }

    /// The loops without an exit: each as the routes and `goto`s that form it.
    pub fn endless(&self) -> Vec<Vec<Span>> {
        let mut visited_by: Vec<usize> = vec![0; self.nodes.count];
        let mut loops = Vec::new();
        for start in (0..self.nodes.count).filter(|node| self.reached(*node)) {
            let mut node = start;
            let mut path: Vec<(NodeId, Option<Span>)> = Vec::new();
            // Every node is visited once: the search stops at a visited node.
            while let Some(start_of_path) = visited_by.get_mut(node).filter(|first| **first == 0) {
                *start_of_path = start + 1;
                let Some(edge) = self.only_edge(node) else { break };
                path.push((node, edge.by));
                node = edge.to;
            }
            let loop_start = path.iter().position(|(visited, _)| *visited == node);
            if let Some(loop_start) = loop_start.filter(|_| visited_by.get(node) == Some(&(start + 1))) {
                loops.push(path.iter().skip(loop_start).filter_map(|(_, by)| *by).collect());
            }
        }
        loops
    }

    fn reachable_from(&self, roots: &[NodeId]) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.count];
        let mut open = roots.to_vec();
        while let Some(node) = open.pop() {
            let Some(new) = reached.get_mut(node).filter(|reached| !**reached) else { continue };
            *new = true;
            open.extend(self.edges_from(node).iter().map(|edge| edge.to));
        }
        reached
    }
}
