//! Builds the edges of a [`crate::graph::ControlFlowGraph`] from order, conditions and routes.

use std::collections::{BTreeMap, BTreeSet};

use crate::collected::{ActionPosition, CalleeBody, CollectedAction};
use crate::escape_analysis::EscapeAnalysis;
use crate::graph::{Certainty, ControlEdge, ControlFlowGraph, NodeId, NodeSet, NodeWork};
use crate::jump_targets::{ActionIds, can_jump};
use crate::library::SkillExits;
use crate::reasons::{DefaultRoute, ERROR, ReasonTable, SKIPPED, default_route, possible_reasons};
use crate::semantic_model::SemanticModel;
use crate::skill_topics::{is_skill_topic, skill_topic_of};
use bcc_lang::script::route_parser::{RouteTarget, WrittenRoute};
use bcc_lang::script::script::{Script, WrittenTopic};
use bcc_lang::source::span::Span;
use bcc_lang::workflow::state_file::END;

/// The control flow graph of a document, built on first use.
pub fn graph<'f>(model: &'f SemanticModel<'_>) -> &'f ControlFlowGraph {
    model.graph.get_or_init(|| {
        let phases = model.script.map(|script| script.phases.as_slice()).unwrap_or_default();
        let nodes = NodeSet::of(phases, model.skills.len(), model.collected.actions.len());
        let (edges, anytime) = build_edges(model, &nodes);
        ControlFlowGraph::of(nodes, edges, anytime)
    })
}

/// The edges of a document, each with its source node, and the nodes that may be reached at any time.
fn build_edges(model: &SemanticModel<'_>, nodes: &NodeSet) -> (Vec<(NodeId, ControlEdge)>, Vec<NodeId>) {
    let mut builder = EdgeBuilder {
        model,
        nodes,
        edges: Vec::new(),
        anytime: Vec::new(),
        ids: BTreeMap::new(),
        jump_ids: ActionIds::of(&model.collected),
        targets: BTreeMap::new(),
        gotos: BTreeMap::new(),
        rewinds: BTreeMap::new(),
        lists: BTreeMap::new(),
        finally: BTreeMap::new(),
        compensations: BTreeMap::new(),
        blocks: BTreeMap::new(),
        calls: model.collected.calls.iter().filter_map(|call| call.at.action).collect(),
        escapes: None,
        trigger_exits: SkillExits::default(),
        tables: Tables::default(),
    };
    builder.index();
    builder.script();
    for skill in 0..model.skills.len() {
        builder.tables = Tables::default();
        let list = builder.lists.remove(&CalleeBody::Skill(skill)).unwrap_or_default();
        builder.list(&list, nodes.skill_in(skill), nodes.skill_out(skill));
    }
    (builder.edges, builder.anytime)
}

/// The tables of routes that apply to the actions of a topic.
#[derive(Clone, Copy, Default)]
struct Tables<'a> {
    topic: ReasonTable<'a>,
    phase: ReasonTable<'a>,
    session: ReasonTable<'a>,
}

struct EdgeBuilder<'a, 'f> {
    model: &'a SemanticModel<'f>,
    nodes: &'a NodeSet,
    edges: Vec<(NodeId, ControlEdge)>,
    /// The actions that triggers insert, the parts that they jump to, and the targets of the session's `error` route if one fails after the last action.
    anytime: Vec<NodeId>,
    ids: BTreeMap<&'a str, usize>,
    jump_ids: ActionIds<'a>,
    /// The targets of a `goto` to an id; two if a phase and a topic share the id.
    targets: BTreeMap<&'a str, Vec<NodeId>>,
    gotos: BTreeMap<usize, Vec<(&'a str, Span)>>,
    /// The action that each approval can go back to.
    rewinds: BTreeMap<usize, &'a str>,
    /// The top-level actions, by the part of the document.
    lists: BTreeMap<CalleeBody, Vec<usize>>,
    /// The actions of `finally`, by the topic.
    finally: BTreeMap<CalleeBody, Vec<usize>>,
    /// The actions of `compensate`, by action.
    compensations: BTreeMap<usize, Vec<usize>>,
    /// The lists in actions, by action and in the order of the file.
    blocks: BTreeMap<usize, BTreeMap<usize, Vec<usize>>>,
    calls: BTreeSet<usize>,
    /// The exits of called and inserted skills and actions; `None` without calls and insertions.
    escapes: Option<EscapeAnalysis<'a, 'f>>,
    /// The exits of what triggers insert; they may be taken anywhere.
    trigger_exits: SkillExits,
    tables: Tables<'a>,
}

impl EdgeBuilder<'_, '_> {
    fn index(&mut self) {
        let model = self.model;
        for (number, action) in model.collected.actions.iter().enumerate() {
            if !is_skill_topic(action) {
                self.ids.entry(action.id.value.as_str()).or_insert(number);
            }
            let is_cleanup = model.collected.cleanup_blocks.contains_key(&action.block);
            match action.parent {
                Some(parent) if is_cleanup => self.compensations.entry(parent).or_default().push(number),
                None if is_cleanup => self.finally.entry(action.body).or_default().push(number),
                Some(parent) => {
                    self.blocks.entry(parent).or_default().entry(action.block).or_default().push(number);
                }
                None => self.lists.entry(action.body).or_default().push(number),
            }
        }
        for (id, at) in &model.collected.gotos {
            if let Some(action) = at.action {
                self.gotos.entry(action).or_default().push((id.value.as_str(), id.span));
            }
        }
        for (id, at) in &model.collected.rewinds {
            self.rewinds.extend(at.action.map(|action| (action, id.value.as_str())));
        }
        for (number, phase) in model.script.iter().flat_map(|script| &script.phases).enumerate() {
            self.targets.entry(phase.id.value.as_str()).or_default().push(self.nodes.phase_in(number));
            for (inner, topic) in phase.topics.iter().enumerate() {
                self.targets.entry(topic.id.value.as_str()).or_default().push(self.nodes.topic_in(number, inner));
            }
        }
        let inserted = || model.collected.triggers.iter().filter_map(|trigger| trigger.insert.as_ref());
        if !model.collected.triggers.is_empty() {
            let session = model.script.and_then(|script| script.on_exit.as_ref());
            let then = ReasonTable::of(session).route(ERROR).and_then(|route| route.then.as_ref());
            if let Some(RouteTarget::Goto(id)) = then.map(|then| &then.value) {
                self.anytime.extend(self.targets.get(id.as_str()).into_iter().flatten());
            }
        }
        if !model.collected.calls.is_empty() || !model.inserts().is_empty() {
            let escapes = EscapeAnalysis::of(model);
            let exits = inserted().map(|id| escapes.inserted(id, CalleeBody::Session));
            self.trigger_exits = SkillExits { session: false, ..exits.fold(SkillExits::default(), SkillExits::or) };
            self.escapes = Some(escapes);
        }
        let jumps = model.collected.triggers.iter().filter_map(|trigger| self.targets.get(trigger.goto()?.value));
        self.anytime.extend(jumps.flatten());
        let inserted = inserted().filter_map(|id| self.ids.get(id.value.as_str()));
        // A value may change in any turn.
        for table in model.collected.routes.iter().filter(|table| table.is_on_change) {
            for route in &table.on_exit.routes {
                if let Some(RouteTarget::Goto(id)) = route.then.as_ref().map(|then| &then.value) {
                    let action = self.ids.get(id.as_str()).map(|action| self.nodes.before(*action));
                    self.anytime.extend(self.targets.get(id.as_str()).into_iter().flatten().copied().chain(action));
                }
                let inserted = route.insert.as_ref().and_then(|id| self.ids.get(id.value.as_str()));
                self.anytime.extend(inserted.map(|action| self.nodes.act(*action)));
            }
        }
        self.anytime.extend(inserted.map(|action| self.nodes.act(*action)));
    }

    fn script(&mut self) {
        let (model, nodes) = (self.model, self.nodes);
        let Some(script) = model.script else { return };
        self.tables.session = ReasonTable::of(script.on_exit.as_ref());
        self.add_plain_edge(NodeSet::START, nodes.phase_in(0));
        for (number, phase) in script.phases.iter().enumerate() {
            self.tables.phase = ReasonTable::of(phase.on_exit.as_ref());
            let (enter, leave) = (nodes.phase_in(number), nodes.phase_out(number));
            let first = if phase.topics.is_empty() { leave } else { nodes.topic_in(number, 0) };
            self.add_plain_edge(enter, first);
            if phase.condition.is_some() {
                self.add_plain_edge(enter, leave);
            }
            for (inner, topic) in phase.topics.iter().enumerate() {
                self.tables.topic = ReasonTable::of(topic.on_exit.as_ref());
                let (enter, body) = (nodes.topic_in(number, inner), nodes.topic_body(number, inner));
                let (last, out) = (nodes.topic_last(number, inner), nodes.topic_out(number, inner));
                self.add_edge(
                    enter,
                    ControlEdge { to: body, sure: Certainty::Yes, work: NodeWork::Topic(number, inner), by: None },
                );
                let list = self.lists.remove(&CalleeBody::Topic(number, inner)).unwrap_or_default();
                self.list(&list, body, last);
                self.add_plain_edge(last, out);
                let finally = self.finally.remove(&CalleeBody::Topic(number, inner)).unwrap_or_default();
                self.cleanup(&finally, out);
                if topic.for_each.is_some() {
                    self.add_plain_edge(last, body);
                }
                if topic.for_each.is_some() || topic.condition.is_some() {
                    self.add_plain_edge(enter, out);
                }
                self.add_skip_edges(script, topic, (enter, body, last, out));
                if topic.strategy.as_ref().is_some_and(|strategy| strategy.orchestration) {
                    self.add_orchestration_edges(&list, body, last);
                }
                let follows = inner + 1 < phase.topics.len();
                self.add_plain_edge(out, if follows { nodes.topic_in(number, inner + 1) } else { leave });
            }
            // After the last phase comes the end.
            self.add_plain_edge(leave, nodes.phase_in(number + 1));
        }
    }

    /// Adds the actions of a `finally` or a `compensate`, which may start at any time. Only their own routes apply.
    fn cleanup(&mut self, actions: &[usize], to: NodeId) {
        let Some((first, others)) = actions.split_first() else { return };
        let tables = std::mem::take(&mut self.tables);
        self.anytime.push(self.nodes.before(*first));
        self.action(*first);
        self.list(others, self.nodes.after(*first), to);
        self.tables = tables;
    }

    fn list(&mut self, actions: &[usize], from: NodeId, to: NodeId) {
        let mut last = from;
        for action in actions {
            self.add_plain_edge(last, self.nodes.before(*action));
            self.action(*action);
            last = self.nodes.after(*action);
        }
        self.add_plain_edge(last, to);
    }

    fn action(&mut self, number: usize) {
        let (model, nodes) = (self.model, self.nodes);
        let Some(action) = model.collected.actions.get(number) else { return };
        let (before, act, exit, after) =
            (nodes.before(number), nodes.act(number), nodes.exit(number), nodes.after(number));
        self.add_plain_edge(before, act);
        for (id, span) in self.gotos.remove(&number).unwrap_or_default() {
            let elsewhere = if id == END { self.node_after(action, &RouteTarget::End) } else { exit };
            for to in self.jump_targets(number, id).unwrap_or_else(|| vec![elsewhere]) {
                self.add_edge(act, ControlEdge { to, sure: Certainty::Yes, work: NodeWork::Nothing, by: Some(span) });
            }
        }
        if let Some(target) = self.rewinds.remove(&number).and_then(|id| self.ids.get(id).copied()) {
            // Only if somebody decides so; the values of the form are set before.
            let to = nodes.before(target);
            self.add_edge(exit, ControlEdge { to, sure: Certainty::No, work: NodeWork::Nothing, by: None });
        }
        let described = action.described.as_ref();
        let blocks = self.blocks.remove(&number).unwrap_or_default().into_values();
        if described.is_some_and(|described| !described.concurrent.is_empty()) {
            // All of them run. What each of them needs from others is checked by a rule.
            let all: Vec<usize> = blocks.flatten().collect();
            self.list(&all, act, exit);
        } else {
            let outer = self.tables;
            if is_skill_topic(action) {
                self.tables.topic = ReasonTable::of(action.on_exit.as_ref());
            }
            blocks.for_each(|block| self.list(&block, act, exit));
            self.tables = outer;
        }
        if !described.is_some_and(|described| described.always_branches) {
            // A skill may wait for an answer.
            let at_once = described.is_some_and(|described| !described.needs_answer) && !self.calls.contains(&number);
            let sure = if at_once && action.sound { Certainty::Yes } else { Certainty::No };
            self.add_edge(act, ControlEdge { to: exit, sure, work: NodeWork::Action(number), by: None });
        }
        if self.calls.contains(&number)
            && let Some(escapes) = &self.escapes
        {
            self.add_exits(action, act, escapes.action(number));
        }
        self.add_exits(action, act, self.trigger_exits);
        let compensations = self.compensations.remove(&number).unwrap_or_default();
        self.cleanup(&compensations, NodeSet::END);
        // The table of a topic is for its actions.
        let own = ReasonTable::of(action.on_exit.as_ref().filter(|_| !is_skill_topic(action)));
        let Tables { topic, phase, session } = self.tables;
        for reason in possible_reasons(model, action) {
            // An error may occur before the action did anything.
            let (from, sure) = match reason {
                ERROR => (act, Certainty::OnError),
                SKIPPED => (before, Certainty::Yes),
                _ => (exit, Certainty::Yes),
            };
            let route = [own, topic, phase, session].iter().find_map(|table| table.route(reason));
            match route {
                Some(route) => {
                    self.route(number, action, route, from, sure);
                    if let (Some(id), Some(escapes)) = (&route.insert, &self.escapes) {
                        self.add_exits(action, from, escapes.inserted(id, action.body));
                    }
                }
                None => {
                    let to = match default_route(reason) {
                        DefaultRoute::Next => after,
                        DefaultRoute::Again => act,
                        DefaultRoute::Fail => NodeSet::FAIL,
                    };
                    self.add_edge(from, ControlEdge { to, sure, work: NodeWork::Nothing, by: None });
                }
            }
        }
    }

    fn route(&mut self, number: usize, action: &CollectedAction, route: &WrittenRoute, from: NodeId, sure: Certainty) {
        let (nodes, model) = (self.nodes, self.model);
        let (act, after) = (nodes.act(number), nodes.after(number));
        let mut unsure = route.insert.is_some();
        let targets = match route.then.as_ref().map(|then| &then.value) {
            Some(RouteTarget::Next) => vec![after],
            None => vec![match default_route(&route.reason.value) {
                DefaultRoute::Next => after,
                DefaultRoute::Again => act,
                DefaultRoute::Fail => NodeSet::FAIL,
            }],
            Some(RouteTarget::Resume | RouteTarget::Retry) => {
                unsure = true;
                vec![act, after]
            }
            Some(target @ (RouteTarget::SkipTopic | RouteTarget::SkipPhase | RouteTarget::End)) => {
                vec![self.node_after(action, target)]
            }
            // An unknown target is reported by a rule; assume here that the next action follows.
            Some(RouteTarget::Goto(id)) => self.jump_targets(number, id).unwrap_or_else(|| vec![after]),
            Some(RouteTarget::Fail) => vec![NodeSet::FAIL],
        };
        let sure = if unsure && sure == Certainty::Yes { Certainty::No } else { sure };
        let by = Some(route.then.as_ref().map_or(route.span, |then| then.span));
        if let Some(other) = route.insert.as_ref().and_then(|id| self.ids.get(id.value.as_str()).copied()) {
            let in_other_part = model.collected.actions.get(other).is_none_or(|other| other.body != action.body);
            // Another rule reports insertions between a skill and the rest of the document.
            let skill = |body| matches!(body, CalleeBody::Skill(_));
            if !in_other_part
                || !skill(action.body) && !model.collected.actions.get(other).is_some_and(|a| skill(a.body))
            {
                self.add_edge(
                    from,
                    ControlEdge { to: nodes.act(other), sure: Certainty::No, work: NodeWork::Nothing, by },
                );
                for to in &targets {
                    self.add_edge(
                        nodes.exit(other),
                        ControlEdge { to: *to, sure: Certainty::No, work: NodeWork::Nothing, by },
                    );
                }
            }
        }
        for to in targets {
            self.add_edge(from, ControlEdge { to, sure, work: NodeWork::Nothing, by });
        }
    }

    /// The targets of a `goto` of this action, or of a table that applies to it; `None` if there is no such target.
    fn jump_targets(&self, number: usize, id: &str) -> Option<Vec<NodeId>> {
        let (model, nodes) = (self.model, self.nodes);
        let body = model.collected.actions.get(number)?.body;
        let action = || {
            let at = ActionPosition { body, action: Some(number) };
            let target = self.jump_ids.get(body, id).filter(|target| can_jump(&model.collected, at, *target))?;
            Some(vec![nodes.before(target)])
        };
        // A skill does not know the topics and phases of a script.
        let in_script = self.targets.get(id).filter(|_| !matches!(body, CalleeBody::Skill(_)));
        in_script.cloned().or_else(action)
    }

    /// Adds edges for the exits that the skills or actions inside an action may take.
    fn add_exits(&mut self, action: &CollectedAction, from: NodeId, exits: SkillExits) {
        let targets = [
            (exits.topic, RouteTarget::SkipTopic),
            (exits.phase, RouteTarget::SkipPhase),
            (exits.session, RouteTarget::End),
        ];
        for (_, target) in targets.into_iter().filter(|(exits, _)| *exits) {
            let to = self.node_after(action, &target);
            self.add_edge(from, ControlEdge { to, sure: Certainty::No, work: NodeWork::Nothing, by: None });
        }
    }

    /// The node after the topic, the phase or the session of an action.
    fn node_after(&self, action: &CollectedAction, target: &RouteTarget) -> NodeId {
        let nodes = self.nodes;
        match (target, action.body) {
            (RouteTarget::End, _) => NodeSet::END,
            (RouteTarget::SkipTopic, CalleeBody::Skill(skill)) => {
                let topic = action.parent.and_then(|parent| skill_topic_of(&self.model.collected, parent));
                topic.map_or_else(|| nodes.skill_out(skill), |topic| nodes.after(topic))
            }
            (_, CalleeBody::Skill(skill)) => nodes.skill_out(skill),
            (RouteTarget::SkipPhase, CalleeBody::Topic(phase, _)) => nodes.phase_out(phase),
            // A topic that repeats continues with its next element.
            (_, CalleeBody::Topic(phase, topic)) if self.repeats(phase, topic) => nodes.topic_last(phase, topic),
            (_, CalleeBody::Topic(phase, topic)) => nodes.topic_out(phase, topic),
            (_, CalleeBody::Session | CalleeBody::Phase(_)) => NodeSet::END,
        }
    }

    /// Adds edges for a topic of low priority, which may be skipped completely or in part when time is short.
    fn add_skip_edges(
        &mut self,
        script: &Script,
        topic: &WrittenTopic,
        (enter, body, last, out): (NodeId, NodeId, NodeId, NodeId),
    ) {
        let low = topic.priority.as_ref().is_some_and(|priority| priority.value == "low");
        let minutes = script.budget.as_ref().is_some_and(|budget| budget.minutes.is_some());
        if low && (minutes || topic.time_budget.is_some()) {
            for (from, to) in [(enter, out), (body, last)] {
                self.add_edge(from, ControlEdge { to, sure: Certainty::No, work: NodeWork::Nothing, by: None });
            }
        }
    }

    /// Adds edges for a plan, which may omit or reorder the actions of a topic.
    fn add_orchestration_edges(&mut self, list: &[usize], body: NodeId, last: NodeId) {
        let entries = list.iter().map(|action| self.nodes.before(*action));
        for to in entries.chain([last]).collect::<Vec<_>>() {
            self.add_edge(body, ControlEdge { to, sure: Certainty::No, work: NodeWork::Nothing, by: None });
        }
    }

    fn repeats(&self, phase: usize, topic: usize) -> bool {
        let phase = self.model.script.and_then(|script| script.phases.get(phase));
        phase.and_then(|phase| phase.topics.get(topic)).is_some_and(|topic| topic.for_each.is_some())
    }

    fn add_plain_edge(&mut self, from: NodeId, to: NodeId) {
        self.add_edge(from, ControlEdge { to, sure: Certainty::Yes, work: NodeWork::Nothing, by: None });
    }

    fn add_edge(&mut self, from: NodeId, edge: ControlEdge) {
        self.edges.push((from, edge));
    }
}
