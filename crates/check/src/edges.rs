//! Draws the ways of a [`crate::graph::ControlFlowGraph`]: what follows on what, by order, conditions and routes.

use std::collections::{BTreeMap, BTreeSet};

use crate::collected::{ActionFact, CalleeBody};
use crate::escape_analysis::EscapeAnalysis;
use crate::graph::{Certainty, ControlEdge, ControlFlowGraph, NodeId, NodeSet, NodeWork};
use crate::library::SkillExits;
use crate::reasons::{DefaultRoute, ERROR, ReasonTable, possible, usual};
use crate::semantic_model::SemanticModel;
use bcc_lang::script::routes::{Go, WrittenRoute};
use bcc_lang::script::script::{Script, WrittenTopic};
use bcc_lang::source::span::Span;

/// Which way the conversation can take.
pub fn graph<'f>(facts: &'f SemanticModel<'_>) -> &'f ControlFlowGraph {
    facts.graph.get_or_init(|| {
        let phases = facts.script.map(|script| script.phases.as_slice()).unwrap_or_default();
        let nodes = NodeSet::of(phases, facts.skills.len(), facts.seen.actions.len());
        let (ways, anytime) = draw(facts, &nodes);
        ControlFlowGraph::of(nodes, ways, anytime)
    })
}

/// Draws the ways of a document, each with where it begins; and where the conversation may be at any time.
fn draw(facts: &SemanticModel<'_>, nodes: &NodeSet) -> (Vec<(NodeId, ControlEdge)>, Vec<NodeId>) {
    let mut drawing = Drawing {
        facts,
        nodes,
        ways: Vec::new(),
        anytime: Vec::new(),
        ids: BTreeMap::new(),
        targets: BTreeMap::new(),
        gotos: BTreeMap::new(),
        lists: BTreeMap::new(),
        blocks: BTreeMap::new(),
        calls: facts.seen.calls.iter().filter_map(|call| call.at.action).collect(),
        leaving: None,
        anywhere: SkillExits::default(),
        tables: Tables::default(),
    };
    drawing.index();
    drawing.script();
    for skill in 0..facts.skills.len() {
        drawing.tables = Tables::default();
        let list = drawing.lists.remove(&CalleeBody::Skill(skill)).unwrap_or_default();
        drawing.list(&list, nodes.skill_in(skill), nodes.skill_out(skill));
    }
    (drawing.ways, drawing.anytime)
}

/// The tables that are asked for the actions of a topic, nearest first.
#[derive(Clone, Copy, Default)]
struct Tables<'a> {
    topic: ReasonTable<'a>,
    phase: ReasonTable<'a>,
    session: ReasonTable<'a>,
}

struct Drawing<'a, 'f> {
    facts: &'a SemanticModel<'f>,
    nodes: &'a NodeSet,
    ways: Vec<(NodeId, ControlEdge)>,
    /// What a trigger inserts, and where the session's route leads when that fails after the last action.
    anytime: Vec<NodeId>,
    ids: BTreeMap<&'a str, usize>,
    /// Where a `goto` to an id leads; two places when a phase and a topic share it.
    targets: BTreeMap<&'a str, Vec<NodeId>>,
    gotos: BTreeMap<usize, Vec<(&'a str, Span)>>,
    /// The actions that stand in no other one, by the part of the document.
    lists: BTreeMap<CalleeBody, Vec<usize>>,
    /// The lists inside of actions, by their action and in the order of the file.
    blocks: BTreeMap<usize, BTreeMap<usize, Vec<usize>>>,
    calls: BTreeSet<usize>,
    /// Where what is called or inserted leads; none where nothing is.
    leaving: Option<EscapeAnalysis<'a, 'f>>,
    /// Where what a trigger inserts leads, from wherever it fires.
    anywhere: SkillExits,
    tables: Tables<'a>,
}

impl Drawing<'_, '_> {
    fn index(&mut self) {
        let facts = self.facts;
        for (number, action) in facts.seen.actions.iter().enumerate() {
            self.ids.entry(action.id.value.as_str()).or_insert(number);
            match action.parent {
                Some(parent) => {
                    self.blocks.entry(parent).or_default().entry(action.block).or_default().push(number);
                }
                None => self.lists.entry(action.body).or_default().push(number),
            }
        }
        for (id, at) in &facts.seen.gotos {
            if let Some(action) = at.action {
                self.gotos.entry(action).or_default().push((id.value.as_str(), id.span));
            }
        }
        for (number, phase) in facts.script.iter().flat_map(|script| &script.phases).enumerate() {
            self.targets.entry(phase.id.value.as_str()).or_default().push(self.nodes.phase_in(number));
            for (inner, topic) in phase.topics.iter().enumerate() {
                self.targets.entry(topic.id.value.as_str()).or_default().push(self.nodes.topic_in(number, inner));
            }
        }
        let inserted = || facts.seen.triggers.iter().filter_map(|trigger| trigger.insert.as_ref());
        if !facts.seen.triggers.is_empty() {
            let session = facts.script.and_then(|script| script.on_exit.as_ref());
            let then = ReasonTable::of(session).route(ERROR).and_then(|route| route.then.as_ref());
            if let Some(Go::Goto(id)) = then.map(|then| &then.value) {
                self.anytime.extend(self.targets.get(id.as_str()).into_iter().flatten());
            }
        }
        if !facts.seen.calls.is_empty() || !facts.inserts().is_empty() {
            let leaving = EscapeAnalysis::of(facts);
            let leaves = inserted().map(|id| leaving.inserted(id, CalleeBody::Session));
            self.anywhere = SkillExits { session: false, ..leaves.fold(SkillExits::default(), SkillExits::or) };
            self.leaving = Some(leaving);
        }
        let inserted = inserted().filter_map(|id| self.ids.get(id.value.as_str()));
        self.anytime.extend(inserted.map(|action| self.nodes.act(*action)));
    }

    fn script(&mut self) {
        let (facts, nodes) = (self.facts, self.nodes);
        let Some(script) = facts.script else { return };
        self.tables.session = ReasonTable::of(script.on_exit.as_ref());
        self.plain(NodeSet::START, nodes.phase_in(0));
        for (number, phase) in script.phases.iter().enumerate() {
            self.tables.phase = ReasonTable::of(phase.on_exit.as_ref());
            let (enter, leave) = (nodes.phase_in(number), nodes.phase_out(number));
            let first = if phase.topics.is_empty() { leave } else { nodes.topic_in(number, 0) };
            self.plain(enter, first);
            if phase.condition.is_some() {
                self.plain(enter, leave);
            }
            for (inner, topic) in phase.topics.iter().enumerate() {
                self.tables.topic = ReasonTable::of(topic.on_exit.as_ref());
                let (enter, body) = (nodes.topic_in(number, inner), nodes.topic_body(number, inner));
                let (last, out) = (nodes.topic_last(number, inner), nodes.topic_out(number, inner));
                self.way(
                    enter,
                    ControlEdge { to: body, sure: Certainty::Yes, work: NodeWork::Topic(number, inner), by: None },
                );
                let list = self.lists.remove(&CalleeBody::Topic(number, inner)).unwrap_or_default();
                self.list(&list, body, last);
                self.plain(last, out);
                if topic.for_each.is_some() {
                    self.plain(last, body);
                }
                if topic.for_each.is_some() || topic.condition.is_some() {
                    self.plain(enter, out);
                }
                self.left_out(script, topic, (enter, body, last, out));
                if topic.strategy.as_ref().is_some_and(|strategy| strategy.orchestration) {
                    self.in_any_order(&list, body, last);
                }
                let follows = inner + 1 < phase.topics.len();
                self.plain(out, if follows { nodes.topic_in(number, inner + 1) } else { leave });
            }
            // Behind the last phase stands the end.
            self.plain(leave, nodes.phase_in(number + 1));
        }
    }

    fn list(&mut self, actions: &[usize], from: NodeId, to: NodeId) {
        let mut last = from;
        for action in actions {
            self.plain(last, self.nodes.gate(*action));
            self.action(*action);
            last = self.nodes.after(*action);
        }
        self.plain(last, to);
    }

    fn action(&mut self, number: usize) {
        let (facts, nodes) = (self.facts, self.nodes);
        let Some(action) = facts.seen.actions.get(number) else { return };
        let (gate, act, exit, after) = (nodes.gate(number), nodes.act(number), nodes.exit(number), nodes.after(number));
        self.plain(gate, act);
        if action.conditional {
            self.plain(gate, after);
        }
        for (id, span) in self.gotos.remove(&number).unwrap_or_default() {
            for to in self.targets.get(id).cloned().unwrap_or_else(|| vec![exit]) {
                self.way(act, ControlEdge { to, sure: Certainty::Yes, work: NodeWork::Nothing, by: Some(span) });
            }
        }
        for block in self.blocks.remove(&number).unwrap_or_default().into_values() {
            self.list(&block, act, exit);
        }
        let described = action.described.as_ref();
        if !described.is_some_and(|described| described.always_branches) {
            // A skill may wait for an answer.
            let at_once = described.is_some_and(|described| !described.listens) && !self.calls.contains(&number);
            let sure = if at_once && action.sound { Certainty::Yes } else { Certainty::No };
            self.way(act, ControlEdge { to: exit, sure, work: NodeWork::Action(number), by: None });
        }
        if self.calls.contains(&number)
            && let Some(leaving) = &self.leaving
        {
            self.out(action, act, leaving.action(number));
        }
        self.out(action, act, self.anywhere);
        let own = ReasonTable::of(action.on_exit.as_ref());
        let Tables { topic, phase, session } = self.tables;
        for reason in possible(facts, action) {
            // An error may come before anything was done.
            let (from, sure) = if reason == ERROR { (act, Certainty::OnError) } else { (exit, Certainty::Yes) };
            let route = [own, topic, phase, session].iter().find_map(|table| table.route(reason));
            match route {
                Some(route) => {
                    self.route(number, action, route, from, sure);
                    if let (Some(id), Some(leaving)) = (&route.insert, &self.leaving) {
                        self.out(action, from, leaving.inserted(id, action.body));
                    }
                }
                None => {
                    let to = match usual(reason) {
                        DefaultRoute::Next => after,
                        DefaultRoute::Again => act,
                        DefaultRoute::Fail => NodeSet::FAIL,
                    };
                    self.way(from, ControlEdge { to, sure, work: NodeWork::Nothing, by: None });
                }
            }
        }
    }

    fn route(&mut self, number: usize, action: &ActionFact, route: &WrittenRoute, from: NodeId, sure: Certainty) {
        let (nodes, facts) = (self.nodes, self.facts);
        let (act, after) = (nodes.act(number), nodes.after(number));
        let mut unsure = route.insert.is_some();
        let targets = match route.then.as_ref().map(|then| &then.value) {
            Some(Go::Next) => vec![after],
            None => vec![match usual(&route.reason.value) {
                DefaultRoute::Next => after,
                DefaultRoute::Again => act,
                DefaultRoute::Fail => NodeSet::FAIL,
            }],
            Some(Go::Resume | Go::Retry) => {
                unsure = true;
                vec![act, after]
            }
            Some(go @ (Go::SkipTopic | Go::SkipPhase | Go::End)) => vec![self.behind(action, go)],
            // One that leads nowhere is reported; what stands behind it is not held against it.
            Some(Go::Goto(id)) => self.targets.get(id.as_str()).cloned().unwrap_or_else(|| vec![after]),
            Some(Go::Fail) => vec![NodeSet::FAIL],
        };
        let sure = if unsure && sure == Certainty::Yes { Certainty::No } else { sure };
        let by = Some(route.then.as_ref().map_or(route.span, |then| then.span));
        if let Some(other) = route.insert.as_ref().and_then(|id| self.ids.get(id.value.as_str()).copied()) {
            let elsewhere = facts.seen.actions.get(other).is_none_or(|other| other.body != action.body);
            // An action of a skill, or for one, is inserted by a mistake that is reported.
            let skill = |body| matches!(body, CalleeBody::Skill(_));
            if !elsewhere || !skill(action.body) && !facts.seen.actions.get(other).is_some_and(|a| skill(a.body)) {
                self.way(from, ControlEdge { to: nodes.act(other), sure: Certainty::No, work: NodeWork::Nothing, by });
                for to in &targets {
                    self.way(
                        nodes.exit(other),
                        ControlEdge { to: *to, sure: Certainty::No, work: NodeWork::Nothing, by },
                    );
                }
            }
        }
        for to in targets {
            self.way(from, ControlEdge { to, sure, work: NodeWork::Nothing, by });
        }
    }

    /// The ways out of where an action stands that what runs inside of it may take.
    fn out(&mut self, action: &ActionFact, from: NodeId, leaves: SkillExits) {
        let goes = [(leaves.topic, Go::SkipTopic), (leaves.phase, Go::SkipPhase), (leaves.session, Go::End)];
        for (_, go) in goes.into_iter().filter(|(leaves, _)| *leaves) {
            let to = self.behind(action, &go);
            self.way(from, ControlEdge { to, sure: Certainty::No, work: NodeWork::Nothing, by: None });
        }
    }

    /// What stands behind the topic, the phase or the session of an action.
    fn behind(&self, action: &ActionFact, go: &Go) -> NodeId {
        let nodes = self.nodes;
        match (go, action.body) {
            (Go::End, _) => NodeSet::END,
            (_, CalleeBody::Skill(skill)) => nodes.skill_out(skill),
            (Go::SkipPhase, CalleeBody::Topic(phase, _)) => nodes.phase_out(phase),
            // One that repeats goes on with its next element.
            (_, CalleeBody::Topic(phase, topic)) if self.repeats(phase, topic) => nodes.topic_last(phase, topic),
            (_, CalleeBody::Topic(phase, topic)) => nodes.topic_out(phase, topic),
            (_, CalleeBody::Session | CalleeBody::Phase(_)) => NodeSet::END,
        }
    }

    /// A topic of low priority is skipped when time is short, or what is left of it is.
    fn left_out(
        &mut self,
        script: &Script,
        topic: &WrittenTopic,
        (enter, body, last, out): (NodeId, NodeId, NodeId, NodeId),
    ) {
        let low = topic.priority.as_ref().is_some_and(|priority| priority.value == "low");
        let minutes = script.budget.as_ref().is_some_and(|budget| budget.minutes.is_some());
        if low && (minutes || topic.time_budget.is_some()) {
            for (from, to) in [(enter, out), (body, last)] {
                self.way(from, ControlEdge { to, sure: Certainty::No, work: NodeWork::Nothing, by: None });
            }
        }
    }

    /// A plan may leave out actions of a topic, or put them into another order.
    fn in_any_order(&mut self, list: &[usize], body: NodeId, last: NodeId) {
        let gates = list.iter().map(|action| self.nodes.gate(*action));
        for to in gates.chain([last]).collect::<Vec<_>>() {
            self.way(body, ControlEdge { to, sure: Certainty::No, work: NodeWork::Nothing, by: None });
        }
    }

    fn repeats(&self, phase: usize, topic: usize) -> bool {
        let phase = self.facts.script.and_then(|script| script.phases.get(phase));
        phase.and_then(|phase| phase.topics.get(topic)).is_some_and(|topic| topic.for_each.is_some())
    }

    fn plain(&mut self, from: NodeId, to: NodeId) {
        self.way(from, ControlEdge { to, sure: Certainty::Yes, work: NodeWork::Nothing, by: None });
    }

    fn way(&mut self, from: NodeId, way: ControlEdge) {
        self.ways.push((from, way));
    }
}
