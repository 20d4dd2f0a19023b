//! Who calls whom: skills and actions that call skills or insert skills and actions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::callables::can_insert;
use crate::collected::{CallBy, CalleeBody};
use crate::library::SkillOutline;
use crate::reasons::{REASONS, ReasonTable, possible};
use crate::semantic_model::SemanticModel;
use bcc_lang::source::span::Spanned;
use bcc_lang::source::text::SourceFile;

/// By what one calls another.
#[derive(Clone, Copy)]
pub struct CallKind<'f> {
    /// The callee's id, as written.
    pub id: &'f Spanned<String>,
    pub file: &'f Arc<SourceFile>,
    pub is_here: bool,
    /// Whether a route inserts it; else an action calls it.
    pub inserts: bool,
}

/// From what calls to what is called.
#[derive(Clone, Copy)]
pub struct CallEdge<'f> {
    pub to: usize,
    /// The exit reason of an insertion.
    pub reason: Option<&'static str>,
    /// None where an action merely stands inside of what calls.
    pub by: Option<CallKind<'f>>,
    /// Whether nothing but an exit reason decides if it is taken: no `condition`, and no case.
    pub sure: bool,
}

/// Who calls whom: the actions of the document by their numbers, then its skills, then those of the project that are called.
pub struct Calls<'f, 'a> {
    facts: &'f SemanticModel<'a>,
    /// By the number of each node, what it calls.
    pub ways: Vec<Vec<CallEdge<'f>>>,
    own: BTreeMap<&'f str, usize>,
    /// The same of those of the project that were met so far.
    others: BTreeMap<&'f str, (usize, &'f SkillOutline)>,
    /// Those of them whose calls were not yet followed.
    open: Vec<&'f SkillOutline>,
}

impl<'f, 'a> Calls<'f, 'a> {
    pub fn of(facts: &'f SemanticModel<'a>) -> Self {
        let (actions, skills) = (facts.seen.actions.len(), facts.skills.len());
        let own = facts.skills.iter().enumerate().map(|(number, skill)| (skill.id.value.as_str(), actions + number));
        let ways = (0..actions + skills).map(|_| Vec::new()).collect();
        let mut calls = Self { facts, ways, own: own.collect(), others: BTreeMap::new(), open: Vec::new() };
        for (number, action) in facts.seen.actions.iter().enumerate() {
            let holder = match (action.parent, action.body) {
                (Some(parent), _) => Some(parent),
                (None, CalleeBody::Skill(skill)) => Some(actions + skill),
                (None, _) => None,
            };
            if let Some(holder) = holder {
                // What stands in a case is not always done.
                let sure = !action.conditional && action.parent.is_none();
                calls.way(holder, CallEdge { to: number, reason: None, by: None, sure });
            }
        }
        // What may be called when somebody says so need not be: no circle goes through it.
        for call in facts.seen.calls.iter().filter(|call| !matches!(call.by, CallBy::Maybe(_))) {
            let by = CallKind { id: &call.skill, file: facts.file, is_here: true, inserts: false };
            if let (Some(from), Some(to)) = (call.at.action, calls.skill(&call.skill.value)) {
                calls.way(from, CallEdge { to, reason: None, by: Some(by), sure: true });
            }
        }
        calls.insertions();
        calls.follow();
        calls
    }

    /// What each action inserts by its own routes. Those of the tables around it count only where it stands in its topic, and
    /// not where it is inserted itself (docs/routes.md): no circle goes through them.
    fn insertions(&mut self) {
        let facts = self.facts;
        for (number, action) in facts.seen.actions.iter().enumerate() {
            let own = ReasonTable::of(action.on_exit.as_ref());
            for reason in possible(facts, action) {
                let Some(id) = own.route(reason).and_then(|route| route.insert.as_ref()) else { continue };
                let Some(to) = self.inserted(id, action.body) else { continue };
                let by = CallKind { id, file: facts.file, is_here: true, inserts: true };
                self.way(number, CallEdge { to, reason: Some(reason), by: Some(by), sure: true });
            }
        }
    }

    /// The calls of the project's skills, and of those that they call.
    fn follow(&mut self) {
        while let Some(skill) = self.open.pop() {
            let Some((from, _)) = self.others.get(skill.id.as_str()).copied() else { continue };
            for call in &skill.calls {
                let id = call.id.value.as_str();
                // A skill of the script is not known to others; that of a file is the one that the project has.
                let own = self.own.get(id).filter(|_| self.facts.script.is_none()).copied();
                let to = own.or_else(|| Some(self.other(self.facts.library.skill(id)?)));
                let reason = call.reason.as_ref().map(|reason| REASONS.into_iter().find(|known| known == reason));
                // What happens at a reason that does not exist never happens.
                if let (Some(to), None | Some(Some(_))) = (to, reason) {
                    let by = CallKind { id: &call.id, file: &skill.file, is_here: false, inserts: false };
                    self.way(from, CallEdge { to, reason: reason.flatten(), by: Some(by), sure: call.sure });
                }
            }
        }
    }

    /// Follows these ids as well, where they are skills.
    pub fn meet(&mut self, ids: impl Iterator<Item = &'f Spanned<String>>) {
        for id in ids {
            let _ = self.skill(&id.value);
        }
        self.follow();
    }

    /// The skills of the project that were met, with their nodes.
    pub fn others(&self) -> impl Iterator<Item = (usize, &'f SkillOutline)> {
        self.others.values().map(|(node, skill)| (*node, *skill))
    }

    /// The node of what is inserted where `from` stands, when it was met.
    pub fn known(&self, id: &Spanned<String>, from: CalleeBody) -> Option<usize> {
        let id = id.value.as_str();
        let skill = || self.own.get(id).copied().or_else(|| self.others.get(id).map(|(node, _)| *node));
        skill().or_else(|| self.action(id, from))
    }

    fn action(&self, id: &str, from: CalleeBody) -> Option<usize> {
        let number = self.facts.callables().action(id)?;
        self.facts.seen.actions.get(number).is_some_and(|action| can_insert(from, action)).then_some(number)
    }

    /// The node of what is inserted where `from` stands.
    fn inserted(&mut self, id: &Spanned<String>, from: CalleeBody) -> Option<usize> {
        self.skill(&id.value).or_else(|| self.action(&id.value, from))
    }

    fn skill(&mut self, id: &str) -> Option<usize> {
        match self.own.get(id) {
            Some(own) => Some(*own),
            None => Some(self.other(self.facts.callables().skill(id)?)),
        }
    }

    fn other(&mut self, skill: &'f SkillOutline) -> usize {
        if let Some((number, _)) = self.others.get(skill.id.as_str()) {
            return *number;
        }
        let number = self.ways.len();
        self.ways.push(Vec::new());
        self.others.insert(&skill.id, (number, skill));
        self.open.push(skill);
        number
    }

    fn way(&mut self, from: usize, way: CallEdge<'f>) {
        if let Some(ways) = self.ways.get_mut(from) {
            ways.push(way);
        }
    }
}
