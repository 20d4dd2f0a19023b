//! Counts which parts of a program ran in a session, from the events of its journal.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::test_runner::coverage::item::{ItemKey, change_reason};
use crate::test_runner::coverage::trail::{TrailPart, TrailStep, trail};
use bcc_runtime::program::outcome::ExitReason;
use bcc_runtime::program::program::Program;
use bcc_runtime::program::route_table::RouteLevel;
use bcc_runtime::run::changes::CHANGED;
use bcc_runtime::run::frames::ELEMENT;

/// How often a part ran, and how often it was skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often it was entered, started or taken.
    pub ran: u64,
    /// How often it was skipped because of its condition, an empty list or the time budget.
    pub skipped: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoverageCounts {
    pub tallies: BTreeMap<ItemKey, Tally>,
    /// How often an action ended with or encountered an exit reason, by action id and reason.
    pub exits: BTreeMap<(String, String), u64>,
}

impl CoverageCounts {
    pub fn add(&mut self, other: &Self) {
        for (key, tally) in &other.tallies {
            let sum = self.tallies.entry(key.clone()).or_default();
            sum.ran += tally.ran;
            sum.skipped += tally.skipped;
        }
        for (key, times) in &other.exits {
            *self.exits.entry(key.clone()).or_default() += times;
        }
    }
}

/// Counts what ran in a session, by file name. `events` are the lines of its complete journal, in order. An action that
/// a plan added to the session is not part of the program and is not counted, but what it inserts is.
pub fn count(program: &Program, events: &[Value]) -> BTreeMap<String, CoverageCounts> {
    let mut counting = Counting { program, counts: BTreeMap::new(), visits: BTreeSet::new() };
    events.iter().for_each(|event| counting.event(event));
    counting.counts
}

struct Counting<'p> {
    program: &'p Program,
    counts: BTreeMap<String, CoverageCounts>,
    /// The visits of skills and branches that are already counted, by instance path.
    visits: BTreeSet<(ItemKey, String)>,
}

impl Counting<'_> {
    fn event(&mut self, event: &Value) {
        let text = |key: &str| event.get(key).and_then(Value::as_str);
        let Some(location) = event.get("location") else { return };
        let at = |key: &str| location.get(key).and_then(Value::as_str).map(str::to_owned);
        let script = self.program.file.name();
        match text("type") {
            Some("phase_entered") => self.ran(script, at("phase_id").map(ItemKey::Phase)),
            Some("topic_entered") => {
                self.ran(script, at("topic_id").map(ItemKey::Topic));
                let path = at("path").unwrap_or_default();
                if path.split('/').next().is_some_and(|topic| topic.contains(ELEMENT)) {
                    self.ran(script, at("topic_id").map(ItemKey::ForEach));
                }
            }
            Some("action_started") => {
                if let Some((file, id)) = self.action(location) {
                    self.ran(&file, Some(ItemKey::Action(id)));
                }
            }
            Some("skipped") => match (at("action_id"), at("topic_id"), at("phase_id")) {
                (Some(_), ..) => {
                    if let Some((file, id)) = self.action(location) {
                        self.skipped(&file, ItemKey::Action(id));
                    }
                }
                (None, Some(topic), _) => self.skipped(script, ItemKey::Topic(topic)),
                (None, None, Some(phase)) => self.skipped(script, ItemKey::Phase(phase)),
                (None, None, None) => {}
            },
            Some("outcome") => self.outcome(event, location),
            Some("routed") => {
                let reason = match text("reason") {
                    Some(CHANGED) => text("from").map(change_reason),
                    reason => reason.and_then(ExitReason::parse).map(|reason| reason.name().to_owned()),
                };
                let Some(reason) = reason else { return };
                let route = |level, id| ItemKey::Route(level, id, reason.clone());
                match text("table") {
                    Some("action") => {
                        if let Some((file, id)) = self.action(location) {
                            self.ran(&file, Some(route(RouteLevel::Action, id)));
                        }
                    }
                    Some("topic") => match skill_topic(self.program, location) {
                        Some((file, id)) => self.ran(&file, Some(route(RouteLevel::Topic, id))),
                        None => self.ran(script, at("topic_id").map(|id| route(RouteLevel::Topic, id))),
                    },
                    Some("phase") => self.ran(script, at("phase_id").map(|id| route(RouteLevel::Phase, id))),
                    Some("session") => self.ran(script, Some(route(RouteLevel::Session, self.program.id.clone()))),
                    _ => {}
                }
            }
            Some("triggered") => self.ran(script, text("reason").map(|id| ItemKey::Trigger(id.to_owned()))),
            _ => {}
        }
    }

    /// The file and the id of the action at a location; counts the skills and branches on its path.
    fn action(&mut self, location: &Value) -> Option<(String, String)> {
        let trail_steps = trail(self.program, location)?;
        let mut parent: Option<&TrailStep<'_>> = None;
        for current in &trail_steps {
            match (current.part, parent.map(|parent| parent.part)) {
                (TrailPart::Skill(skill), _) => {
                    self.visited(current.file.name(), ItemKey::Skill(skill.id.clone()), &current.path)
                }
                (TrailPart::Action(step), Some(TrailPart::Action(parent_step))) => {
                    let holds = |steps: &bcc_runtime::program::program::ProgramSteps| {
                        steps.iter().any(|inner| inner.id == step.id)
                    };
                    let branches = parent_step.action.branches();
                    if let Some(branch) = branches.into_iter().find(|branch| branch.steps.is_some_and(holds)) {
                        let path = parent.map(|parent| parent.path.as_str()).unwrap_or_default();
                        self.visited(current.file.name(), ItemKey::Branch(parent_step.id.clone(), branch.name), path);
                    }
                }
                _ => {}
            }
            parent = Some(current);
        }
        match trail_steps.last() {
            Some(TrailStep { part: TrailPart::Action(step), file, .. }) => {
                Some((file.name().to_owned(), step.id.clone()))
            }
            _ => None,
        }
    }

    fn outcome(&mut self, event: &Value, location: &Value) {
        let Some((file, id)) = self.action(location) else { return };
        if let Some(reason) = event.get("exit_reason").and_then(Value::as_str) {
            let exits = &mut self.counts.entry(file.clone()).or_default().exits;
            *exits.entry((id.clone(), reason.to_owned())).or_default() += 1;
        }
        // A branch with actions was counted when its first action started.
        let taken = event.get("metadata").and_then(|metadata| metadata.get("branch")).and_then(Value::as_str);
        if let Some(name) = taken.filter(|name| self.has_no_steps(location, name)) {
            self.ran(&file, Some(ItemKey::Branch(id, name.to_owned())));
        }
    }

    fn has_no_steps(&self, location: &Value, name: &str) -> bool {
        let steps = trail(self.program, location).unwrap_or_default();
        let Some(TrailStep { part: TrailPart::Action(step), .. }) = steps.last() else { return false };
        step.action.branches().iter().any(|branch| branch.name == name && branch.steps.is_none())
    }

    fn visited(&mut self, file: &str, key: ItemKey, path: &str) {
        if self.visits.insert((key.clone(), path.to_owned())) {
            self.ran(file, Some(key));
        }
    }

    fn ran(&mut self, file: &str, key: Option<ItemKey>) {
        if let Some(key) = key {
            self.tally(file, key).ran += 1;
        }
    }

    fn skipped(&mut self, file: &str, key: ItemKey) {
        self.tally(file, key).skipped += 1;
    }

    fn tally(&mut self, file: &str, key: ItemKey) -> &mut Tally {
        self.counts.entry(file.to_owned()).or_default().tallies.entry(key).or_default()
    }
}

/// The topic of a skill that contains the action at a location: its file and its id. In a skill, no other topic has a table.
fn skill_topic(program: &Program, location: &Value) -> Option<(String, String)> {
    let steps = trail(program, location)?;
    let mut topics = steps.iter().filter_map(|current| match current.part {
        TrailPart::Action(step) => Some((current.file.name().to_owned(), step.action.topic()?.id.clone())),
        _ => None,
    });
    topics.next_back()
}
