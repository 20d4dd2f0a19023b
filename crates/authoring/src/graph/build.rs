//! Builds the graph of a checked script: its parts, and the edges between them (docs/graph.md).

use std::collections::BTreeMap;

use crate::graph::label::one_line;
use crate::graph::route_edges::{RouteContext, TableRoutes, table_routes};
use crate::graph::script_graph::{Edge, EdgeKind, GraphNodeKind, ScriptGraph, ScriptPart};
use bcc_lang::script::route_parser::RouteTarget;
use bcc_runtime::program::action::Branch;
use bcc_runtime::program::decision::DecisionKind;
use bcc_runtime::program::limits::Priority;
use bcc_runtime::program::program::{Phase, Program, ProgramStep, Skill, Topic};

/// The label of the edge from an action to what undoes it.
const COMPENSATE: &str = "compensate";

/// An edge whose target is not known yet: its source, its kind and its label.
type OpenEnd = (usize, EdgeKind, String);

pub fn build_graph(program: &Program) -> ScriptGraph {
    let mut builder = GraphBuilder::new(program);
    builder.walk();
    builder.connect();
    builder.graph
}

pub(crate) struct GraphBuilder<'p> {
    program: &'p Program,
    pub(crate) graph: ScriptGraph,
    /// The topics and phases by id. A topic takes precedence over a phase with the same id.
    pub(crate) places: BTreeMap<&'p str, usize>,
    pub(crate) actions: BTreeMap<&'p str, usize>,
    pub(crate) skills: BTreeMap<&'p str, usize>,
    pub(crate) end: usize,
    pub(crate) fail: usize,
    /// Routes are added after every part has a number.
    tables: Vec<(usize, TableRoutes<'p>, RouteContext)>,
    gotos: Vec<(usize, &'p str, String)>,
    calls: Vec<(usize, &'p str)>,
    /// The approvals that go back, each with its parent and the id of an earlier action there.
    rewinds: Vec<(usize, usize, &'p str)>,
}

impl<'p> GraphBuilder<'p> {
    fn new(program: &'p Program) -> Self {
        let mut graph = ScriptGraph::default();
        let mut start = ScriptPart::new(GraphNodeKind::Start, None, &program.id);
        start.name.clone_from(&program.name);
        graph.parts.push(start);
        graph.parts.push(ScriptPart::new(GraphNodeKind::End, None, ""));
        graph.parts.push(ScriptPart::new(GraphNodeKind::Fail, None, ""));
        Self {
            program,
            graph,
            places: BTreeMap::new(),
            actions: BTreeMap::new(),
            skills: BTreeMap::new(),
            end: 1,
            fail: 2,
            tables: vec![],
            gotos: vec![],
            calls: vec![],
            rewinds: vec![],
        }
    }

    fn walk(&mut self) {
        let program = self.program;
        let numbers = self.number_places();
        let mut open_ends: Vec<OpenEnd> = vec![(0, EdgeKind::Order, String::new())];
        let first_of = |number: usize| numbers.get(number).map(|(phase, _)| *phase);
        for (number, phase) in program.phases.iter().enumerate() {
            let Some((own, topics)) = numbers.get(number) else { continue };
            let after_phase = first_of(number + 1).unwrap_or(self.end);
            let context = RouteContext { after_topic: None, after_phase: Some(after_phase), action: false };
            self.table(*own, table_routes(&phase.routes, &phase.changes), context, "any action of the phase");
            for (inner, (topic, at)) in phase.topics.iter().zip(topics).enumerate() {
                let next = topics.get(inner + 1).copied().unwrap_or(after_phase);
                let after_topic = if topic.for_each.is_some() { *at } else { next };
                let context =
                    RouteContext { after_topic: Some(after_topic), after_phase: Some(after_phase), action: true };
                open_ends = self.steps(&topic.steps, *at, context, open_ends);
                open_ends = self.finally(topic, *at, open_ends);
                let context = RouteContext { action: false, ..context };
                self.table(*at, table_routes(&topic.routes, &topic.changes), context, "any action of the topic");
            }
        }
        let end = self.end;
        self.connect_all(open_ends, end);
        for skill in program.skills.values() {
            self.skill(skill);
        }
        let mut session = ScriptPart::new(GraphNodeKind::Table, None, "");
        session.name = Some("any action of the session".to_owned());
        let routes = table_routes(&program.routes, &program.changes);
        if !routes.is_empty() {
            let number = self.add(session);
            self.tables.push((number, routes, RouteContext::default()));
        }
        for trigger in &program.triggers {
            let mut part = ScriptPart::new(GraphNodeKind::Trigger, None, &trigger.id);
            part.notes.push(format!("when {}", one_line(trigger.when.source())));
            part.notes.extend(trigger.once.then(|| "once".to_owned()));
            self.add(part);
        }
    }

    /// Numbers phases and topics first, because routes can also lead forward.
    fn number_places(&mut self) -> Vec<(usize, Vec<usize>)> {
        let program = self.program;
        let mut numbers = Vec::new();
        for phase in &program.phases {
            let own = self.add(phase_part(phase));
            let mut topics = Vec::new();
            for topic in &phase.topics {
                let number = self.add(topic_part(topic, own));
                self.places.insert(&topic.id, number);
                topics.push(number);
            }
            numbers.push((own, topics));
        }
        for (phase, (own, _)) in program.phases.iter().zip(&numbers) {
            self.places.entry(&phase.id).or_insert(*own);
        }
        numbers
    }

    fn skill(&mut self, skill: &'p Skill) {
        let mut part = ScriptPart::new(GraphNodeKind::Skill, None, &skill.id);
        // Only the file name: a graph should not contain paths.
        let file = skill.file.as_ref().map(|file| file.name().rsplit('/').next().unwrap_or_default().to_owned());
        part.notes.extend(file);
        let number = self.add(part);
        self.skills.insert(&skill.id, number);
        // The end of a skill returns to the caller.
        let _ = self.steps(&skill.steps, number, RouteContext { action: true, ..RouteContext::default() }, vec![]);
    }

    /// Adds the actions of a list. Returns the open ends that lead to what follows the list.
    fn steps(
        &mut self,
        steps: &'p [ProgramStep],
        parent: usize,
        context: RouteContext,
        before: Vec<OpenEnd>,
    ) -> Vec<OpenEnd> {
        let mut open_ends = before;
        for step in steps {
            if let Some(topic) = step.action.topic() {
                open_ends = self.skill_topic(step, topic, parent, open_ends);
                continue;
            }
            let branches = step.action.branches();
            let decisions = step.action.decisions();
            let kind = match (branches.is_empty(), decisions.is_empty()) {
                (true, true) => GraphNodeKind::Action,
                (true, false) => GraphNodeKind::Approval,
                (false, _) => GraphNodeKind::Choice,
            };
            let mut part = ScriptPart::new(kind, Some(parent), &step.id);
            part.action_type = step.kind;
            part.notes.extend(step.condition.as_ref().map(|condition| format!("if {}", one_line(condition.source()))));
            if !decisions.is_empty() {
                part.notes.push(decisions.iter().map(|decision| decision.name()).collect::<Vec<_>>().join(", "));
            }
            let number = self.add(part);
            self.actions.entry(&step.id).or_insert(number);
            self.connect_all(open_ends, number);
            open_ends = Vec::new();
            let routes = step.routes.iter().map(|(reason, route)| (reason.name().to_owned(), route));
            self.tables.push((number, routes.collect(), context));
            self.rewinds.extend(step.action.rewind_to().map(|target| (number, parent, target)));
            // The id of the called skill borrows from the action, which the program owns.
            self.calls.extend(step.action.skill().map(|skill| (number, skill)));
            let undone = vec![(number, EdgeKind::Call, COMPENSATE.to_owned())];
            let own = RouteContext { action: true, ..RouteContext::default() };
            let _ = self.steps(&step.compensate, parent, own, undone);
            if branches.is_empty() {
                open_ends.push((number, EdgeKind::Order, String::new()));
                for block in step.action.blocks() {
                    open_ends.extend(self.steps(block, parent, context, vec![(number, EdgeKind::Case, String::new())]));
                }
                continue;
            }
            let otherwise = branches.iter().any(|branch| branch.when.is_none());
            if step.action.runs_all_branches() {
                open_ends.extend(self.branches_at_once(number, &branches, parent, context));
                continue;
            }
            for branch in branches {
                open_ends.extend(self.branch(number, branch, parent, context));
            }
            if !otherwise {
                open_ends.push((number, EdgeKind::Case, "otherwise".to_owned()));
            }
        }
        open_ends
    }

    /// Adds branches that all run. One that waits for others starts at their ends; the others start at `from`. Returns the ends of those for
    /// which no other one waits.
    fn branches_at_once(
        &mut self,
        from: usize,
        branches: &[Branch<'p>],
        parent: usize,
        context: RouteContext,
    ) -> Vec<OpenEnd> {
        let mut ends: Vec<(&str, Vec<OpenEnd>)> = Vec::new();
        for branch in branches {
            let group = self.add(ScriptPart::new(GraphNodeKind::Branch, Some(parent), &branch.name));
            let earlier = ends.iter().filter(|(name, _)| branch.after.iter().any(|after| after == name));
            let mut start: Vec<OpenEnd> = earlier.flat_map(|(_, ends)| ends.clone()).collect();
            if start.is_empty() {
                start.push((from, EdgeKind::Case, String::new()));
            }
            let steps = branch.steps.map(|steps| steps.as_slice()).unwrap_or_default();
            ends.push((&branch.name, self.steps(steps, group, context, start)));
        }
        let is_awaited = |name: &str| branches.iter().any(|branch| branch.after.iter().any(|after| after == name));
        ends.into_iter().filter(|(name, _)| !is_awaited(name)).flat_map(|(_, ends)| ends).collect()
    }

    /// Adds a topic of a skill with its actions. `skip_topic` leads to what follows it, as its end does.
    fn skill_topic(
        &mut self,
        step: &'p ProgramStep,
        topic: &'p Topic,
        parent: usize,
        before: Vec<OpenEnd>,
    ) -> Vec<OpenEnd> {
        let number = self.add(topic_part(topic, parent));
        let condition = step.condition.as_ref().map(|condition| format!("if {}", one_line(condition.source())));
        if let Some(part) = self.graph.parts.get_mut(number) {
            part.notes.extend(condition);
        }
        self.actions.entry(&step.id).or_insert(number);
        let context = RouteContext { action: true, ..RouteContext::default() };
        let open_ends = self.steps(&topic.steps, number, context, before);
        self.table(
            number,
            table_routes(&topic.routes, &topic.changes),
            RouteContext::default(),
            "any action of the topic",
        );
        open_ends
    }

    /// Adds the `finally` of a topic after its actions.
    fn finally(&mut self, topic: &'p Topic, at: usize, before: Vec<OpenEnd>) -> Vec<OpenEnd> {
        let first = self.graph.parts.len();
        let own = RouteContext { action: true, ..RouteContext::default() };
        let open_ends = self.steps(&topic.finally, at, own, before);
        let is_listed = |part: &&mut ScriptPart| topic.finally.iter().any(|step| step.id == part.id);
        let added = self.graph.parts.iter_mut().skip(first).filter(is_listed);
        added.for_each(|part| part.notes.insert(0, "finally".to_owned()));
        open_ends
    }

    fn branch(&mut self, from: usize, branch: Branch<'p>, parent: usize, context: RouteContext) -> Vec<OpenEnd> {
        let when = branch.when.map_or_else(|| branch.name.clone(), one_line);
        match (branch.goto, branch.steps) {
            (Some(id), _) => {
                let label = if branch.sets { format!("{when}: set") } else { when };
                self.gotos.push((from, id, label));
                vec![]
            }
            (None, Some(steps)) => self.steps(steps, parent, context, vec![(from, EdgeKind::Case, when)]),
            (None, None) => vec![(from, EdgeKind::Case, format!("{when}: set"))],
        }
    }

    fn table(&mut self, parent: usize, table: TableRoutes<'p>, context: RouteContext, name: &str) {
        if table.is_empty() {
            return;
        }
        let part =
            ScriptPart { name: Some(name.to_owned()), ..ScriptPart::new(GraphNodeKind::Table, Some(parent), "") };
        let number = self.add(part);
        self.tables.push((number, table, context));
    }

    fn connect(&mut self) {
        for (from, table, context) in std::mem::take(&mut self.tables) {
            self.routes(from, table, context);
        }
        for (from, id, when) in std::mem::take(&mut self.gotos) {
            if let Some(to) = self.jump_target(from, id) {
                self.link(from, to, EdgeKind::Case, when, "case");
            }
        }
        for (from, parent, id) in std::mem::take(&mut self.rewinds) {
            let is_target = |part: &ScriptPart| part.parent == Some(parent) && part.id == id && part.is_action();
            if let Some(to) = self.graph.parts.iter().position(is_target) {
                let decision = DecisionKind::PushBack.name();
                self.link(from, to, EdgeKind::Route, decision.to_owned(), decision);
            }
        }
        for (from, id) in std::mem::take(&mut self.calls) {
            if let Some(to) = self.skills.get(id).copied() {
                self.link(from, to, EdgeKind::Call, "calls".to_owned(), "calls");
            }
        }
        let triggers = self.graph.children(None).collect::<Vec<_>>();
        let is_trigger =
            |number: &usize| self.graph.parts.get(*number).is_some_and(|part| part.kind == GraphNodeKind::Trigger);
        let triggers = triggers.into_iter().filter(is_trigger).collect::<Vec<_>>();
        for (trigger, from) in self.program.triggers.iter().zip(triggers) {
            let jump = match &trigger.then {
                RouteTarget::Goto(id) => self.places.get(id.as_str()).copied(),
                _ => None,
            };
            if let Some(to) = trigger.insert.as_ref().and_then(|id| self.insert_target(id)) {
                let then = if jump.is_some() { String::new() } else { format!(", then {}", trigger.then) };
                self.link(from, to, EdgeKind::Call, format!("insert{then}"), "insert");
            }
            if let Some(to) = jump {
                let after = trigger.insert.as_ref().map(|id| format!(" after {id}")).unwrap_or_default();
                self.link(from, to, EdgeKind::Route, format!("goto{after}"), "goto");
            }
        }
    }

    /// The target of an insertion with this id: a skill takes precedence over an action (docs/routes.md).
    pub(crate) fn insert_target(&self, id: &str) -> Option<usize> {
        self.skills.get(id).or_else(|| self.actions.get(id)).copied()
    }

    /// The target of a `goto` with this id: a topic or a phase takes precedence over an action (docs/routes.md).
    /// In a skill, only its own topics and actions can be meant.
    pub(crate) fn jump_target(&self, from: usize, id: &str) -> Option<usize> {
        let parent = |number: &usize| self.graph.parts.get(*number)?.parent;
        let outermost = |number: usize| std::iter::successors(Some(number), parent).last();
        let root = outermost(from)?;
        if self.graph.parts.get(root).is_some_and(|part| part.kind == GraphNodeKind::Skill) {
            let is_target = |number: &usize| self.graph.parts.get(*number).is_some_and(|part| part.id == id);
            return (0..self.graph.parts.len()).filter(is_target).find(|number| outermost(*number) == Some(root));
        }
        self.places.get(id).or_else(|| self.actions.get(id)).copied()
    }

    pub(crate) fn link(&mut self, from: usize, to: usize, kind: EdgeKind, label: String, short_label: &str) {
        self.graph.links.push(Edge { from, to, kind, label, short_label: short_label.to_owned() });
    }

    fn connect_all(&mut self, open_ends: Vec<OpenEnd>, to: usize) {
        for (from, kind, label) in open_ends {
            let short_label = match kind {
                EdgeKind::Order => "",
                EdgeKind::Call => COMPENSATE,
                EdgeKind::Case | EdgeKind::Route => "case",
            };
            self.link(from, to, kind, label, short_label);
        }
    }

    fn add(&mut self, part: ScriptPart) -> usize {
        self.graph.parts.push(part);
        self.graph.parts.len() - 1
    }
}

fn phase_part(phase: &Phase) -> ScriptPart {
    let mut part = ScriptPart { name: phase.name.clone(), ..ScriptPart::new(GraphNodeKind::Phase, None, &phase.id) };
    part.notes.extend(phase.condition.as_ref().map(|condition| format!("if {}", one_line(condition.source()))));
    part
}

fn topic_part(topic: &Topic, phase: usize) -> ScriptPart {
    let mut part =
        ScriptPart { name: topic.name.clone(), ..ScriptPart::new(GraphNodeKind::Topic, Some(phase), &topic.id) };
    part.notes.extend(topic.condition.as_ref().map(|condition| format!("if {}", one_line(condition.source()))));
    let each = topic.for_each.as_ref();
    part.notes.extend(each.map(|each| format!("for each {} in {}", each.element, one_line(each.list.source()))));
    part.notes.extend(topic.strategy.orchestration.then(|| "orchestration: on".to_owned()));
    part.notes.extend(topic.time_budget.map(|minutes| format!("time budget: {minutes} min")));
    if topic.priority != Priority::default() {
        part.notes.push(format!("priority: {}", topic.priority.name()));
    }
    part
}
