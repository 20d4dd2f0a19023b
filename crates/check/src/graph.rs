//! Which way a conversation can take through a document: a graph with the ways between its phases, topics and actions.
//!
//! It holds every way that there is, and sometimes one more: what it cannot be sure of counts as possible. So a place that
//! the graph does not reach is never reached; one that it reaches may still never be.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::collected::CalleeBody;
use bcc_lang::script::script::WrittenPhase;
use bcc_lang::source::span::Span;

/// A place of the graph, by its number.
pub type NodeId = usize;

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
    /// Where the session begins.
    pub const START: NodeId = 0;
    pub const END: NodeId = 1;
    pub const FAIL: NodeId = 2;

    /// The nodes of a document with these phases and so many skills and actions.
    pub fn of(phases: &[WrittenPhase], skills: usize, actions: usize) -> Self {
        let mut count = 3;
        let mut take = |many| {
            count += many;
            count - many
        };
        let phases = phases.iter().map(|phase| (take(2), phase.topics.iter().map(|_| take(4)).collect())).collect();
        let skills = take(2 * skills);
        let actions = take(4 * actions);
        Self { phases, skills, actions, count }
    }

    pub fn phase_in(&self, phase: usize) -> NodeId {
        self.phases.get(phase).map_or(Self::END, |(node, _)| *node)
    }

    /// What stands behind a phase.
    pub fn phase_out(&self, phase: usize) -> NodeId {
        self.phases.get(phase).map_or(Self::END, |(node, _)| node + 1)
    }

    pub fn topic_in(&self, phase: usize, topic: usize) -> NodeId {
        self.phases.get(phase).and_then(|(_, topics)| topics.get(topic)).copied().unwrap_or(Self::END)
    }

    /// What stands behind a topic.
    pub fn topic_out(&self, phase: usize, topic: usize) -> NodeId {
        self.topic_in(phase, topic) + 1
    }

    /// Before the first action of a topic, for each element of its list.
    pub fn topic_body(&self, phase: usize, topic: usize) -> NodeId {
        self.topic_in(phase, topic) + 2
    }

    /// Behind the last action of a topic.
    pub fn topic_last(&self, phase: usize, topic: usize) -> NodeId {
        self.topic_in(phase, topic) + 3
    }

    pub fn skill_in(&self, skill: usize) -> NodeId {
        self.skills + 2 * skill
    }

    /// Where a skill is done.
    pub fn skill_out(&self, skill: usize) -> NodeId {
        self.skills + 2 * skill + 1
    }

    /// Before an action, where its condition is asked.
    pub fn gate(&self, action: usize) -> NodeId {
        self.actions + 4 * action
    }

    pub fn act(&self, action: usize) -> NodeId {
        self.actions + 4 * action + 1
    }

    pub fn exit(&self, action: usize) -> NodeId {
        self.actions + 4 * action + 2
    }

    /// What stands behind it.
    pub fn after(&self, action: usize) -> NodeId {
        self.actions + 4 * action + 3
    }

    pub fn begin(&self, body: CalleeBody) -> NodeId {
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
    /// It is taken when no other is.
    Yes,
    /// It is there for an error.
    OnError,
    /// Something else may come before it is taken, as an answer or an insertion; or it may not be one at all.
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
    /// The route or `goto` that makes it.
    pub by: Option<Span>,
}

/// The graph of a document. The bodies of its skills are graphs of their own: a skill runs in a scope of its own, so a call
/// of it is a way from before it to behind it.
#[derive(Debug)]
pub struct ControlFlowGraph {
    pub nodes: NodeSet,
    first: Vec<usize>,
    ways: Vec<ControlEdge>,
    reached: Vec<bool>,
}

impl ControlFlowGraph {
    /// The graph with these ways, each with where it begins. `roots`: what can be reached besides the beginning and the skills.
    pub fn of(nodes: NodeSet, mut ways: Vec<(NodeId, ControlEdge)>, mut roots: Vec<NodeId>) -> Self {
        ways.sort_by_key(|(from, _)| *from);
        let mut first = vec![0; nodes.count + 1];
        ways.iter().for_each(|(from, _)| first.iter_mut().skip(from + 1).take(1).for_each(|count| *count += 1));
        let mut sum = 0;
        for count in &mut first {
            sum += *count;
            *count = sum;
        }
        let ways = ways.into_iter().map(|(_, way)| way).collect();
        let mut graph = Self { nodes, first, ways, reached: vec![] };
        roots.push(NodeSet::START);
        roots.extend((graph.nodes.skills..graph.nodes.actions).step_by(2));
        graph.reached = graph.from(&roots);
        graph
    }

    pub fn ways_from(&self, node: NodeId) -> &[ControlEdge] {
        let (Some(from), Some(to)) = (self.first.get(node), self.first.get(node + 1)) else { return &[] };
        self.ways.get(*from..*to).unwrap_or_default()
    }

    /// Whether a conversation could come to this node.
    pub fn reached(&self, node: NodeId) -> bool {
        self.reached.get(node).is_some_and(|reached| *reached)
    }

    /// Whether a conversation could come to this action.
    pub fn reached_action(&self, action: usize) -> bool {
        self.reached(self.nodes.gate(action)) || self.reached(self.nodes.act(action))
    }

    /// The least that any way from the beginning to the end costs; none when no way leads there.
    pub fn cheapest(&self, cost: impl Fn(NodeWork) -> u64) -> Option<u64> {
        let mut best: Vec<Option<u64>> = vec![None; self.nodes.count];
        let mut open = BinaryHeap::from([Reverse((0_u64, NodeSet::START))]);
        while let Some(Reverse((spent, node))) = open.pop() {
            let Some(known) = best.get_mut(node).filter(|known| known.is_none()) else { continue };
            *known = Some(spent);
            if node == NodeSet::END {
                return Some(spent);
            }
            open.extend(self.ways_from(node).iter().map(|way| Reverse((spent.saturating_add(cost(way.work)), way.to))));
        }
        None
    }

    /// The only way on from a node, errors aside; none where there are several, or where it is not sure.
    pub fn only_way(&self, node: NodeId) -> Option<&ControlEdge> {
        let mut ways = self.ways_from(node).iter().filter(|way| way.sure != Certainty::OnError);
        let only = ways.next()?;
        (only.sure == Certainty::Yes && ways.all(|way| way.sure == Certainty::Yes && way.to == only.to)).then_some(only)
    }

    /// The loops that nothing leaves: each as the routes and `goto`s that make it.
    pub fn endless(&self) -> Vec<Vec<Span>> {
        let mut round: Vec<usize> = vec![0; self.nodes.count];
        let mut loops = Vec::new();
        for start in (0..self.nodes.count).filter(|node| self.reached(*node)) {
            let mut node = start;
            let mut path: Vec<(NodeId, Option<Span>)> = Vec::new();
            // Every node is passed once: whoever comes to one that was passed before stops there.
            while let Some(mark) = round.get_mut(node).filter(|mark| **mark == 0) {
                *mark = start + 1;
                let Some(way) = self.only_way(node) else { break };
                path.push((node, way.by));
                node = way.to;
            }
            let again = path.iter().position(|(passed, _)| *passed == node);
            if let Some(again) = again.filter(|_| round.get(node) == Some(&(start + 1))) {
                loops.push(path.iter().skip(again).filter_map(|(_, by)| *by).collect());
            }
        }
        loops
    }

    fn from(&self, roots: &[NodeId]) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.count];
        let mut open = roots.to_vec();
        while let Some(node) = open.pop() {
            let Some(new) = reached.get_mut(node).filter(|reached| !**reached) else { continue };
            *new = true;
            open.extend(self.ways_from(node).iter().map(|way| way.to));
        }
        reached
    }
}
