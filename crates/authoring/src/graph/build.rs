//! From a checked script to its parts and what leads from one to another (docs/graph.md).

use std::collections::BTreeMap;

use crate::graph::label::one_line;
use crate::graph::routes::Around;
use crate::graph::script_graph::{Edge, EdgeKind, GraphNodeKind, ScriptGraph, ScriptPart};
use bcc_runtime::program::action::Branch;
use bcc_runtime::program::limits::Priority;
use bcc_runtime::program::program::{Phase, Program, ProgramStep, Skill, Topic};
use bcc_runtime::program::routes::RouteTable;

/// What ended and waits for what comes next: where it begins, how it leads on, and when.
type Loose = (usize, EdgeKind, String);

pub fn gather(program: &Program) -> ScriptGraph {
    let mut gathering = Gathering::new(program);
    gathering.walk();
    gathering.connect();
    gathering.whole
}

pub(crate) struct Gathering<'p> {
    program: &'p Program,
    pub(crate) whole: ScriptGraph,
    /// The topics and phases by their ids. One that is named like a phase stands before it.
    pub(crate) places: BTreeMap<&'p str, usize>,
    pub(crate) actions: BTreeMap<&'p str, usize>,
    pub(crate) skills: BTreeMap<&'p str, usize>,
    pub(crate) end: usize,
    pub(crate) fail: usize,
    /// Routes wait until every part has its number.
    tables: Vec<(usize, &'p RouteTable, Around)>,
    gotos: Vec<(usize, &'p str, String)>,
    calls: Vec<(usize, &'p str)>,
}

impl<'p> Gathering<'p> {
    fn new(program: &'p Program) -> Self {
        let mut whole = ScriptGraph::default();
        let mut start = ScriptPart::new(GraphNodeKind::Start, None, &program.id);
        start.name.clone_from(&program.name);
        whole.parts.push(start);
        whole.parts.push(ScriptPart::new(GraphNodeKind::End, None, ""));
        whole.parts.push(ScriptPart::new(GraphNodeKind::Fail, None, ""));
        Self {
            program,
            whole,
            places: BTreeMap::new(),
            actions: BTreeMap::new(),
            skills: BTreeMap::new(),
            end: 1,
            fail: 2,
            tables: vec![],
            gotos: vec![],
            calls: vec![],
        }
    }

    fn walk(&mut self) {
        let program = self.program;
        let numbers = self.number_places();
        let mut loose: Vec<Loose> = vec![(0, EdgeKind::Order, String::new())];
        let first_of = |number: usize| numbers.get(number).map(|(phase, _)| *phase);
        for (number, phase) in program.phases.iter().enumerate() {
            let Some((own, topics)) = numbers.get(number) else { continue };
            let behind_phase = first_of(number + 1).unwrap_or(self.end);
            let around = Around { behind_topic: None, behind_phase: Some(behind_phase), action: false };
            self.table(*own, &phase.routes, around, "any action of the phase");
            for (inner, (topic, at)) in phase.topics.iter().zip(topics).enumerate() {
                let next = topics.get(inner + 1).copied().unwrap_or(behind_phase);
                let behind_topic = if topic.for_each.is_some() { *at } else { next };
                let around =
                    Around { behind_topic: Some(behind_topic), behind_phase: Some(behind_phase), action: true };
                loose = self.steps(&topic.steps, *at, around, loose);
                let around = Around { action: false, ..around };
                self.table(*at, &topic.routes, around, "any action of the topic");
            }
        }
        let end = self.end;
        self.tie(loose, end);
        for skill in program.skills.values() {
            self.skill(skill);
        }
        let mut session = ScriptPart::new(GraphNodeKind::Table, None, "");
        session.name = Some("any action of the session".to_owned());
        if program.routes.iter().next().is_some() {
            let number = self.add(session);
            self.tables.push((number, &program.routes, Around::default()));
        }
        for trigger in &program.triggers {
            let mut part = ScriptPart::new(GraphNodeKind::Trigger, None, &trigger.id);
            part.notes.push(format!("when {}", one_line(trigger.when.source())));
            part.notes.extend(trigger.once.then(|| "once".to_owned()));
            self.add(part);
        }
    }

    /// Gives phases and topics their numbers first, because routes lead forwards too.
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
        // Only its name: where it lies is nothing that a drawing should hold.
        let file = skill.file.as_ref().map(|file| file.name().rsplit('/').next().unwrap_or_default().to_owned());
        part.notes.extend(file);
        let number = self.add(part);
        self.skills.insert(&skill.id, number);
        // What it ends with goes back to whoever called.
        let _ = self.steps(&skill.steps, number, Around { action: true, ..Around::default() }, vec![]);
    }

    /// The actions of a list, and what waits for what stands behind it.
    fn steps(&mut self, steps: &'p [ProgramStep], holder: usize, around: Around, before: Vec<Loose>) -> Vec<Loose> {
        let mut loose = before;
        for step in steps {
            let branches = step.action.branches();
            let kind = if branches.is_empty() { GraphNodeKind::Action } else { GraphNodeKind::Choice };
            let mut part = ScriptPart::new(kind, Some(holder), &step.id);
            part.action_type = step.kind;
            part.notes.extend(step.condition.as_ref().map(|condition| format!("if {}", one_line(condition.source()))));
            let number = self.add(part);
            self.actions.entry(&step.id).or_insert(number);
            self.tie(loose, number);
            loose = Vec::new();
            self.tables.push((number, &step.routes, around));
            // What it calls stands in the action, which the program outlives.
            self.calls.extend(step.action.skill().map(|skill| (number, skill)));
            if branches.is_empty() {
                loose.push((number, EdgeKind::Order, String::new()));
                for block in step.action.blocks() {
                    loose.extend(self.steps(block, holder, around, vec![(number, EdgeKind::Case, String::new())]));
                }
                continue;
            }
            let otherwise = branches.iter().any(|branch| branch.when.is_none());
            for branch in branches {
                loose.extend(self.branch(number, branch, holder, around));
            }
            if !otherwise {
                loose.push((number, EdgeKind::Case, "otherwise".to_owned()));
            }
        }
        loose
    }

    fn branch(&mut self, from: usize, branch: Branch<'p>, holder: usize, around: Around) -> Vec<Loose> {
        let when = branch.when.map_or_else(|| branch.name.clone(), one_line);
        match (branch.goto, branch.steps) {
            (Some(id), _) => {
                self.gotos.push((from, id, when));
                vec![]
            }
            (None, Some(steps)) => self.steps(steps, holder, around, vec![(from, EdgeKind::Case, when)]),
            (None, None) => vec![(from, EdgeKind::Case, format!("{when}: set"))],
        }
    }

    fn table(&mut self, holder: usize, table: &'p RouteTable, around: Around, name: &str) {
        if table.iter().next().is_none() {
            return;
        }
        let part =
            ScriptPart { name: Some(name.to_owned()), ..ScriptPart::new(GraphNodeKind::Table, Some(holder), "") };
        let number = self.add(part);
        self.tables.push((number, table, around));
    }

    fn connect(&mut self) {
        for (from, table, around) in std::mem::take(&mut self.tables) {
            self.routes(from, table, around);
        }
        for (from, id, when) in std::mem::take(&mut self.gotos) {
            if let Some(to) = self.places.get(id).copied() {
                self.link(from, to, EdgeKind::Case, when, "case");
            }
        }
        for (from, id) in std::mem::take(&mut self.calls) {
            if let Some(to) = self.skills.get(id).copied() {
                self.link(from, to, EdgeKind::Call, "calls".to_owned(), "calls");
            }
        }
        let triggers = self.whole.inside(None).collect::<Vec<_>>();
        let is_trigger =
            |number: &usize| self.whole.parts.get(*number).is_some_and(|part| part.kind == GraphNodeKind::Trigger);
        let triggers = triggers.into_iter().filter(is_trigger).collect::<Vec<_>>();
        for (trigger, from) in self.program.triggers.iter().zip(triggers) {
            if let Some(to) = self.inserted(&trigger.insert) {
                let then = if trigger.ends { "then end" } else { "then resume" };
                self.link(from, to, EdgeKind::Call, format!("insert, {then}"), "insert");
            }
        }
    }

    /// What an insertion of this id runs: a skill of this id stands before an action (docs/routes.md).
    pub(crate) fn inserted(&self, id: &str) -> Option<usize> {
        self.skills.get(id).or_else(|| self.actions.get(id)).copied()
    }

    pub(crate) fn link(&mut self, from: usize, to: usize, lead: EdgeKind, why: String, brief: &str) {
        self.whole.links.push(Edge { from, to, lead, why, brief: brief.to_owned() });
    }

    fn tie(&mut self, loose: Vec<Loose>, to: usize) {
        for (from, lead, why) in loose {
            let brief = if lead == EdgeKind::Order { "" } else { "case" };
            self.link(from, to, lead, why, brief);
        }
    }

    fn add(&mut self, part: ScriptPart) -> usize {
        self.whole.parts.push(part);
        self.whole.parts.len() - 1
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
